/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/everyday.h"

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "decide/explain.h"

#include <string.h>

static const opi__everyday requests[] = {
#define EVERYDAY(use, llm, input, output, concurrency, rate, inventory, slo)                                                   \
    {use, llm, input, output, concurrency, rate, inventory, slo},
#include "decide/everyday.inc"
#undef EVERYDAY
};
#define N_REQUESTS (sizeof requests / sizeof *requests)
#define MOST 8 /* inventory lines and SLOs of one request */

size_t opi__everyday_count(void)
{
    return N_REQUESTS;
}

const opi__everyday *opi__everyday_at(size_t index)
{
    return index < N_REQUESTS ? &requests[index] : NULL;
}

/* Takes "name<mark>number" off the front of *s; 1 when there was one. */
static int next_pair(const char **s, char mark, char *name, size_t cap, double *number)
{
    const char *start = *s + strspn(*s, " "), *end = start + strcspn(start, " "), *at = strchr(start, mark);
    if (start == end || !at || at > end || (size_t)(at - start) >= cap)
        return 0;
    memcpy(name, start, (size_t)(at - start));
    name[at - start] = 0;
    *s = end;
    return opi__parse_double(at + 1, (size_t)(end - at - 1), number);
}

typedef struct question {
    opi_llm llm;
    opi_gpu gpu[MOST];
    opi_inventory line[MOST];
    opi_slo slo[MOST];
    opi_advise_request request;
} question;

static int32_t make_question(const opi__everyday *e, question *q, opi_error *err)
{
    char name[96];
    double number;
    memset(q, 0, sizeof *q);
    q->llm.struct_size = sizeof q->llm;
    int32_t rc = opi_llm_find(e->llm, &q->llm, err);
    size_t n = 0, slos = 0;
    for (const char *s = e->inventory; !rc && n < MOST && next_pair(&s, ':', name, sizeof name, &number); n++) {
        q->gpu[n].struct_size = sizeof q->gpu[n];
        rc = opi_gpu_find(name, &q->gpu[n], err);
        q->line[n] = (opi_inventory){.struct_size = sizeof q->line[n], .count = (int32_t)number, .gpu = &q->gpu[n]};
    }
    for (const char *s = e->slo; !rc && slos < MOST && next_pair(&s, '=', name, sizeof name, &number); slos++) {
        rc = opi_target_find(name, &q->slo[slos].target, err);
        q->slo[slos].limit = number;
    }
    q->request = (opi_advise_request){.struct_size = sizeof q->request, .llm = &q->llm, .input_len = e->input_len,
                                      .output_len = e->output_len, .concurrency = e->concurrency,
                                      .request_rate = e->request_rate, .inventory = q->line, .n_inventory = n,
                                      .slos = q->slo, .n_slos = slos};
    return rc;
}

typedef struct tally {
    size_t recommended, inside, combination, abstained, nothing;
} tally;

static const char *outcome(const opi_advice *a, tally *t)
{
    if (a->verdict == OPI_ADVISE_NOTHING_FEASIBLE) {
        t->nothing++;
        return "nothing-feasible";
    }
    if (a->verdict == OPI_ADVISE_ABSTAINED) {
        t->abstained++;
        return "abstained";
    }
    t->recommended++;
    if (opi__ranked(a, a->winner)->pub.verdict == OPI_P_OK) {
        t->inside++;
        return "inside";
    }
    t->combination++;
    return "new-combination";
}

static void write_answer(const opi__everyday *e, const opi_advice *a, opi__json *list, tally *t)
{
    opi__json *o = opi__json_add_object(list, NULL);
    char label[160];
    opi__json_add_string(o, "use", e->use);
    opi__json_add_string(o, "llm", e->llm);
    opi__json_add_number(o, "input_len", e->input_len);
    opi__json_add_number(o, "output_len", e->output_len);
    opi__json_add_number(o, "concurrency", e->concurrency);
    opi__json_add_number(o, "request_rate", e->request_rate);
    opi__json_add_string(o, "inventory", e->inventory);
    opi__json_add_string(o, "slo", e->slo);
    opi__json_add_string(o, "verdict", outcome(a, t));
    if (a->winner == SIZE_MAX) {
        opi__json_add_null(o, "winner");
    } else {
        opi__label(opi__ranked(a, a->winner), label, sizeof label);
        opi__json_add_string(o, "winner", label);
    }
    opi__json_add_string(o, "sentence", a->sentence);
}

int32_t opi__everyday_with(opi_ctx *ctx, const opi__oracle *oracle, opi_text **out, opi_error *err)
{
    opi__json *root = opi__json_new_object();
    tally t = {0};
    int32_t rc = OPI_OK;
    opi__json_add_string(root, "schema", "omnipilot.everyday");
    opi__json_add_int(root, "version", 1);
    opi__json *answers = opi__json_add_array(root, "requests");
    for (size_t i = 0; !rc && i < N_REQUESTS; i++) {
        question q;
        opi_advice *a = NULL;
        rc = make_question(&requests[i], &q, err);
        if (!rc)
            rc = opi__advise_with(ctx, oracle, &q.request, &a, err);
        if (!rc)
            write_answer(&requests[i], a, answers, &t);
        opi_advice_free(a);
    }
    if (rc) {
        opi__json_free(root);
        return rc;
    }
    opi__json_add_int(root, "n", (int64_t)N_REQUESTS);
    opi__json_add_int(root, "recommended", (int64_t)t.recommended);
    opi__json_add_number(root, "recommended_share", (double)t.recommended / (double)N_REQUESTS);
    opi__json *verdicts = opi__json_add_object(root, "verdicts");
    opi__json_add_int(verdicts, "inside", (int64_t)t.inside);
    opi__json_add_int(verdicts, "new-combination", (int64_t)t.combination);
    opi__json_add_int(verdicts, "abstained", (int64_t)t.abstained);
    opi__json_add_int(verdicts, "nothing-feasible", (int64_t)t.nothing);
    return opi__json_text(ctx, root, out, err);
}
