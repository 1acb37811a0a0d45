/* SPDX-License-Identifier: Apache-2.0 */
/* Out of memory, everywhere: each scenario runs public functions again and again while the n-th allocation fails, for
 * every n (or a spread of them when there are very many), once alone and once together with all later ones. Each run
 * must end in OPI_E_NOMEM with its output untouched, or succeed although something was refused (a cache may do without);
 * afterwards nothing may be left allocated. */
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static meter the_meter;

static int refuse(meter *m)
{
    m->calls++;
    int now = m->fail_at != 0 && (m->calls == m->fail_at || (m->all_later && m->calls > m->fail_at));
    m->refused += now;
    return now;
}

static void *meter_alloc(void *user, size_t size)
{
    meter *m = user;
    if (refuse(m))
        return NULL;
    void *p = malloc(size);
    m->live += p != NULL;
    return p;
}

static void *meter_resize(void *user, void *memory, size_t size)
{
    meter *m = user;
    if (refuse(m))
        return NULL;
    void *p = realloc(memory, size);
    m->live += p != NULL && memory == NULL;
    return p;
}

static void meter_release(void *user, void *memory)
{
    meter *m = user;
    m->live -= memory != NULL;
    free(memory);
}

int32_t metered_context(opi_ctx **out)
{
    opi_ctx_options options = {.struct_size = sizeof options,
                               .allocator = {&the_meter, meter_alloc, meter_resize, meter_release}};
    return opi_ctx_create(&options, out, NULL);
}

/* One run; returns NULL or what went wrong. */
static const char *once(const scenario *s, uint64_t fail_at, int all_later, int32_t *rc)
{
    the_meter = (meter){.fail_at = fail_at, .all_later = all_later};
    const char *problem = NULL;
    *rc = s->run(&problem);
    if (problem)
        return problem;
    if (the_meter.live != 0)
        return "memory is left allocated";
    if (*rc != OPI_OK && *rc != OPI_E_NOMEM)
        return "the status is neither OPI_OK nor OPI_E_NOMEM";
    if (*rc == OPI_E_NOMEM && the_meter.refused == 0)
        return "OPI_E_NOMEM although nothing was refused";
    return NULL;
}

static int scenario_holds(const scenario *s)
{
    int32_t rc;
    const char *problem = once(s, 0, 0, &rc);
    uint64_t total = the_meter.calls;
    if (problem || rc != OPI_OK) {
        printf("FAIL %s: without failures: %s, status %s\n", s->name, problem ? problem : "fails", opi_status_name(rc));
        return 0;
    }
    if (total < s->at_least) {
        printf("FAIL %s: only %llu allocations go through the context\n", s->name, (unsigned long long)total);
        return 0;
    }
    uint64_t tried = 0, refused = 0;
    for (int all_later = 0; all_later < 2; all_later++) {
        uint64_t points = total < s->points ? total : s->points;
        for (uint64_t i = 0; i < points; i++) {
            uint64_t n = 1 + (points < 2 ? 0 : i * (total - 1) / (points - 1));
            problem = once(s, n, all_later, &rc);
            if (problem) {
                printf("FAIL %s: allocation %llu of %llu refused%s: %s, status %s\n", s->name, (unsigned long long)n,
                       (unsigned long long)total, all_later ? ", and all later ones" : "", problem,
                       opi_status_name(rc));
                return 0;
            }
            tried++;
            refused += rc == OPI_E_NOMEM;
        }
    }
    printf("%s: %llu allocations, %llu failures tried, %llu ended in OPI_E_NOMEM\n", s->name,
           (unsigned long long)total, (unsigned long long)tried, (unsigned long long)refused);
    if (total > 0 && refused == 0) {
        printf("FAIL %s: no refusal was ever reported\n", s->name);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (const scenario *s = scenarios; s->name; s++) {
        if (argc > 1 && strcmp(argv[1], s->name) != 0)
            continue;
        if (scenario_holds(s))
            passed++;
        else
            failed++;
        fflush(stdout);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed ? 1 : 0;
}
