/* SPDX-License-Identifier: Apache-2.0 */
/* Number parsing and printing against the C library's (in the "C" locale), and the round trip. */
#include "base/text.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_bits(double a, double b)
{
    if (memcmp(&a, &b, sizeof a) != 0)
        abort();
}

/* Any bit pattern prints to a text that reads back as the same bits. */
static void round_trip(double v)
{
    char text[64];
    double back;
    size_t n = opi__format_double(text, v);
    if (n >= 32 || strlen(text) != n)
        abort();
    if (!isfinite(v))
        return;
    if (!opi__parse_double(text, n, &back))
        abort();
    same_bits(v, back);
    for (int digits = 1; digits <= 17; digits += 4) {
        n = opi__format_short(text, v, digits);
        if (n >= sizeof text || strlen(text) != n)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512];
    double v, want;
    int64_t i;
    if (size >= sizeof text)
        return 0;
    if (size >= sizeof v) {
        memcpy(&v, data, sizeof v);
        round_trip(v);
    }
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    if (opi__parse_double(text, size, &v)) {
        char *end;
        want = strtod(text, &end);
        same_bits(v, want);
    }
    if (opi__parse_int64(text, size, &i) && strtoll(text, NULL, 10) != i)
        abort();
    return 0;
}
