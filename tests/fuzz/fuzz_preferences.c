/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a choice file: refused in one line, or weights that are numbers where their status says so, and JSON. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "omnipilot/advise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void check_fit(const opi_preferences *p)
{
    opi_preferences_summary s = {.struct_size = sizeof s};
    opi_utility u = {.struct_size = sizeof u};
    opi_text *text = NULL;
    opi__json *root = NULL;
    check(opi_preferences_get_summary(p, &s, NULL) == OPI_OK);
    check(s.situations > 0 && s.alternatives >= 2 * s.situations && s.hits <= s.situations);
    check(isfinite(s.log_likelihood) && s.log_likelihood <= 0);
    for (size_t i = 0; i < opi_preferences_count(p); i++) {
        opi_preference w = {.struct_size = sizeof w};
        check(opi_preferences_at(p, i, &w, NULL) == OPI_OK);
        check((w.status == OPI_PREF_IDENTIFIED) == !isnan(w.weight));
        check(w.status != OPI_PREF_IDENTIFIED || (w.lo <= w.weight && w.weight <= w.hi && w.se >= 0));
        check(w.used >= 0);
    }
    const int32_t rc = opi_preferences_utility(p, &u, NULL);
    check(rc == OPI_OK || rc == OPI_E_NODATA || rc == OPI_E_RANGE);
    check((rc == OPI_E_NODATA) == (s.cost_status != OPI_PREF_IDENTIFIED));
    if (opi_preferences_json(p, &text, NULL) == OPI_OK) {
        check(opi__json_parse(opi_text_data(text), opi_text_size(text), "preferences", &root, NULL) == OPI_OK);
        opi__json_free(root);
        opi_text_free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opi_ctx *ctx = NULL;
    opi_preferences *p = NULL;
    opi_error err = {0};
    check(opi_ctx_create(NULL, &ctx, NULL) == OPI_OK);
    if (opi_preferences_fit(ctx, (const char *)data, size, NULL, &p, &err) == OPI_OK)
        check_fit(p);
    else /* data may be NULL when size is 0 */
        check(!p && err.message[0] && !strchr(err.message, '\n') && err.code != OPI_E_INTERNAL);
    opi_preferences_free(p);
    opi_ctx_destroy(ctx);
    return 0;
}
