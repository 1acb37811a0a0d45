/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU table and the names people type for its entries. */
#include "base/text.h"
#include "facts/gpu.h"
#include "facts/names.h"

#include <check.h>
#include <math.h>
#include <string.h>

Suite *suite_gpu(void);

static opi_error err;
static opi_gpu found;

static int32_t find(const char *name)
{
    memset(&err, 0, sizeof err);
    memset(&found, 0, sizeof found);
    found.struct_size = sizeof found;
    return opi_gpu_find(name, &found, &err);
}

static void finds(const char *typed, const char *name)
{
    int32_t status = find(typed);
    ck_assert_msg(status == OPI_OK, "%s: %s", typed, err.message);
    ck_assert_str_eq(found.name, name);
    ck_assert_ptr_nonnull(opi__gpu_by_name(typed));
    ck_assert_str_eq(opi__gpu_by_name(typed)->name, name);
}

static int nocase_order(const char *a, const char *b)
{
    for (; *a && opi__lower(*a) == opi__lower(*b); a++, b++)
        ;
    return (unsigned char)opi__lower(*a) - (unsigned char)opi__lower(*b);
}

START_TEST(the_table_is_sorted_and_sound)
{
    ck_assert_uint_ge(opi_gpu_count(), 36);
    for (size_t i = 0; i < opi_gpu_count(); i++) {
        const opi_gpu *g = &opi__gpus[i].gpu;
        ck_assert_uint_eq(g->struct_size, sizeof *g);
        if (i > 0)
            ck_assert_msg(nocase_order(opi__gpus[i - 1].gpu.name, g->name) < 0, "%s is out of order", g->name);
        ck_assert_msg(g->flags == OPI_FACT_VERIFIED || g->flags == OPI_FACT_RECALLED, "%s has no mark", g->name);
        ck_assert_msg(g->source[0] && memchr(g->source, 0, sizeof g->source), "%s: source", g->name);
        ck_assert_msg(memchr(g->name, 0, sizeof g->name) != NULL, "%s: name", g->name);
        ck_assert_msg(g->mem_gb >= 8 && g->mem_gb <= 1024, "%s: %g GB", g->name, g->mem_gb);
        ck_assert(g->year >= 2016 && g->year <= 2030);
        /* A process never sees more than the nominal size, nor much less. */
        double seen = opi__gpu_visible_gib(g);
        ck_assert_msg(seen <= g->mem_gb && seen >= g->mem_gb * 0.9, "%s: %g of %g", g->name, seen, g->mem_gb);
    }
}
END_TEST

START_TEST(every_spelling_means_its_own_entry)
{
    for (size_t i = 0; i < opi__gpu_entries; i++) {
        const char *s = opi__gpus[i].aliases;
        finds(opi__gpus[i].gpu.name, opi__gpus[i].gpu.name);
        while (*s) {
            char one[64];
            size_t n = strcspn(s, "|");
            ck_assert_uint_lt(n, sizeof one);
            memcpy(one, s, n);
            one[n] = '\0';
            finds(one, opi__gpus[i].gpu.name);
            s += n + (s[n] == '|');
        }
    }
}
END_TEST

START_TEST(facts_of_known_parts)
{
    finds("H100-80GB-SXM", "H100-80GB-SXM");
    ck_assert_double_eq(found.mem_gb, 80);
    ck_assert_double_eq(found.mem_bw_gbs, 3350);
    ck_assert_double_eq(found.fp16_tflops, 989);
    ck_assert_double_eq(found.fp8_tflops, 1978);
    ck_assert(isnan(found.fp4_tflops));
    ck_assert_double_eq(found.link_gbs, 450);
    ck_assert_double_eq(found.tdp_w, 700);
    ck_assert_double_eq(found.price_ondemand_usd_h, 14.1335);
    ck_assert_double_eq(found.price_rental_usd_h, 1.3);
    ck_assert_uint_eq(found.flags, OPI_FACT_VERIFIED);
    finds("V100-32GB-SXM", "V100-32GB-SXM");
    ck_assert(isnan(found.fp8_tflops) && isnan(found.price_ondemand_usd_h));
    ck_assert_uint_eq(found.flags, OPI_FACT_RECALLED);
    /* 79.18 GiB: vLLM's log on this part (llm-d-benchmark, empirical-vllm-memory-results.md). */
    ck_assert_double_eq(opi__gpu_visible_gib(opi__gpu_by_name("H100")), 79.18);
}
END_TEST

START_TEST(names_people_type)
{
    finds("H100", "H100-80GB-SXM");
    finds("h100-sxm", "H100-80GB-SXM");
    finds("NVIDIA H100 80GB HBM3", "H100-80GB-SXM");
    finds("h100 pcie", "H100-80GB-PCIe");
    finds("NVIDIA H100 NVL", "H100-94GB-NVL");
    finds("A100 80GB", "A100-80GB-SXM");
    finds("a100_80g", "A100-80GB-SXM");
    finds("NVIDIA A100-SXM4-40GB", "A100-40GB-SXM");
    finds("NVIDIA A100-PCIE-40GB", "A100-40GB-PCIe");
    finds("Tesla V100-SXM2-32GB", "V100-32GB-SXM");
    finds("AMD Instinct MI300X", "MI300X-192GB");
    finds("mi355x", "MI355X-288GB");
    finds("NVIDIA GeForce RTX 4090", "RTX-4090-24GB");
    finds("nvidia l4", "L4-24GB");
    finds("L40S", "L40S-48GB");
    finds("b200", "B200-180GB");
    finds("GB200", "GB200-186GB");
    finds("Max 1550", "Max1550-128GB");
    finds("H100-80GB-SXM", "H100-80GB-SXM");
    finds("h100-80gb-sxm", "H100-80GB-SXM");
}
END_TEST

START_TEST(ambiguous_names_list_their_candidates)
{
    ck_assert_int_eq(find("A100"), OPI_E_AMBIGUOUS);
    ck_assert_int_eq(err.code, OPI_E_AMBIGUOUS);
    ck_assert_str_eq(err.message, "\"A100\" fits 3 GPUs: A100-40GB-PCIe, A100-40GB-SXM, A100-80GB-SXM");
    ck_assert_str_eq(found.name, "");
    ck_assert_ptr_null(opi__gpu_by_name("A100"));
    ck_assert_int_eq(find("V100"), OPI_E_AMBIGUOUS);
    ck_assert_int_eq(find("GH200"), OPI_E_AMBIGUOUS);
    ck_assert_int_eq(find("a100 40gb"), OPI_E_AMBIGUOUS);
}
END_TEST

START_TEST(unknown_names_suggest_the_nearest)
{
    /* A100-80GB-PCIe exists, but not in the table: no other part is put in its place. */
    ck_assert_int_eq(find("NVIDIA A100 80GB PCIe"), OPI_E_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(err.message, "A100-80GB-SXM"));
    ck_assert_ptr_nonnull(strstr(err.message, "A100-40GB-PCIe"));
    ck_assert_int_eq(find("H1O0"), OPI_E_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(err.message, "nearest names: H100-80GB-SXM"));
    ck_assert_int_eq(find("A10G"), OPI_E_UNKNOWN); /* another part than the A10 */
    ck_assert_ptr_nonnull(strstr(err.message, "A10-24GB"));
    ck_assert_int_eq(find("H10"), OPI_E_UNKNOWN);
    ck_assert_int_eq(find("80GB"), OPI_E_UNKNOWN);
    ck_assert_int_eq(find("sxm"), OPI_E_UNKNOWN);
    ck_assert_int_eq(find("\n\x01"), OPI_E_UNKNOWN);
    for (const char *c = err.message; *c; c++)
        ck_assert_msg((unsigned char)*c >= ' ', "the message has more than one line");
}
END_TEST

START_TEST(bad_arguments)
{
    char longest[4096];
    ck_assert_int_eq(find(NULL), OPI_E_INVALID);
    ck_assert_int_eq(find(""), OPI_E_INVALID);
    memset(longest, 'h', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ck_assert_int_eq(find(longest), OPI_E_UNKNOWN);
    ck_assert_uint_lt(strlen(err.message), sizeof err.message - 1);
    ck_assert_int_eq(opi_gpu_at(opi_gpu_count(), &found, &err), OPI_E_RANGE);
    ck_assert_int_eq(err.index, (int64_t)opi_gpu_count());
    found.struct_size = 0;
    ck_assert_int_eq(opi_gpu_find("H100", &found, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_gpu_find("H100", NULL, &err), OPI_E_INVALID);
    ck_assert_int_eq(opi_gpu_find("H100", NULL, NULL), OPI_E_INVALID);
}
END_TEST

START_TEST(a_shorter_struct_gets_what_it_has_room_for)
{
    struct {
        uint32_t struct_size, flags;
        char name[48], guard[8];
    } old = {.struct_size = 56, .guard = "guarded"};
    ck_assert_int_eq(opi_gpu_find("H100", (opi_gpu *)(void *)&old, &err), OPI_OK);
    ck_assert_str_eq(old.name, "H100-80GB-SXM");
    ck_assert_uint_eq(old.struct_size, 56);
    ck_assert_str_eq(old.guard, "guarded");
}
END_TEST

START_TEST(normal_form)
{
    opi__name n;
    ck_assert_int_eq(opi__name_of("Meta-Llama_3.1:70B Instruct", 27, "meta", &n), 1);
    ck_assert_str_eq(n.words, "llama 3.1 70b instruct");
    ck_assert_str_eq(n.tight, "llama3.170binstruct");
    ck_assert_int_eq(opi__name_of("llama3.1", 8, NULL, &n), 1);
    ck_assert_str_eq(n.words, "llama 3.1");
    ck_assert_int_eq(opi__name_of("Llama-3_3-x", 11, NULL, &n), 1);
    ck_assert_str_eq(n.words, "llama 3.3 x");
    ck_assert_int_eq(opi__name_of("80 GB 94G 16gib", 15, NULL, &n), 1);
    ck_assert_str_eq(n.words, "80gb 94gb 16gb");
    ck_assert_int_eq(opi__name_of("h100 mi300x 8x7b", 16, NULL, &n), 1);
    ck_assert_str_eq(n.words, "h100 mi300x 8x7b");
    ck_assert_int_eq(opi__name_of("--/ ", 4, NULL, &n), 0);
    ck_assert_int_eq(opi__name_has("llama 80b", "8b", 2), 0);
    ck_assert_uint_eq(opi__name_missing("llama 8b", "llama 80b 1.8b", NULL), 1);
}
END_TEST

Suite *suite_gpu(void)
{
    Suite *s = suite_create("gpu");
    TCase *c = tcase_create("table");
    tcase_add_test(c, the_table_is_sorted_and_sound);
    tcase_add_test(c, every_spelling_means_its_own_entry);
    tcase_add_test(c, facts_of_known_parts);
    tcase_add_test(c, names_people_type);
    tcase_add_test(c, ambiguous_names_list_their_candidates);
    tcase_add_test(c, unknown_names_suggest_the_nearest);
    tcase_add_test(c, bad_arguments);
    tcase_add_test(c, a_shorter_struct_gets_what_it_has_room_for);
    tcase_add_test(c, normal_form);
    suite_add_tcase(s, c);
    return s;
}
