/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: a 128-bit path for up to 19 digits and exponents of +-27, else a long division of big integers. Writing: a
 * guess that is verified by reading it back, else Steele and White's free-format algorithm (PLDI 1990). */
#include "base/number.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

/* 771 digits are 2562 bits, 5^1115 is 2590 bits, and the division needs 64 more. */
#define BIG_WORDS 96
typedef struct big {
    int n; /* words in use; the highest is not zero */
    uint32_t w[BIG_WORDS];
} big;

static void big_set(big *b, uint64_t v)
{
    b->w[0] = (uint32_t)v;
    b->w[1] = (uint32_t)(v >> 32);
    b->n = b->w[1] ? 2 : b->w[0] ? 1 : 0;
}

static void big_copy(big *to, const big *from)
{
    to->n = from->n;
    memcpy(to->w, from->w, sizeof from->w[0] * (size_t)from->n);
}

static void big_mul_add(big *b, uint32_t factor, uint32_t carry)
{
    uint64_t c = carry;
    for (int i = 0; i < b->n; i++) {
        c += (uint64_t)b->w[i] * factor;
        b->w[i] = (uint32_t)c;
        c >>= 32;
    }
    if (c && b->n < BIG_WORDS)
        b->w[b->n++] = (uint32_t)c;
}

static void big_mul_pow5(big *b, int k)
{
    for (; k >= 13; k -= 13)
        big_mul_add(b, 1220703125u, 0);
    uint32_t rest = 1;
    while (k-- > 0)
        rest *= 5;
    if (rest != 1)
        big_mul_add(b, rest, 0);
}

static void big_shl(big *b, int bits)
{
    if (b->n == 0 || bits == 0)
        return;
    int words = bits / 32, low = bits % 32;
    if (b->n + words + 1 > BIG_WORDS)
        return; /* cannot happen within the bounds above; never write past the array */
    uint32_t top = low ? b->w[b->n - 1] >> (32 - low) : 0;
    for (int i = b->n - 1; i >= 0; i--) {
        uint32_t below = low && i > 0 ? b->w[i - 1] >> (32 - low) : 0;
        b->w[i + words] = (b->w[i] << low) | below;
    }
    memset(b->w, 0, sizeof b->w[0] * (size_t)words);
    b->n += words;
    if (top)
        b->w[b->n++] = top;
}

static int big_cmp(const big *a, const big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->w[i] != b->w[i])
            return a->w[i] < b->w[i] ? -1 : 1;
    return 0;
}

/* a -= b, for a >= b. */
static void big_sub(big *a, const big *b)
{
    uint64_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        uint64_t d = (uint64_t)a->w[i] - (i < b->n ? b->w[i] : 0) - borrow;
        a->w[i] = (uint32_t)d;
        borrow = (d >> 32) & 1;
    }
    while (a->n > 0 && a->w[a->n - 1] == 0)
        a->n--;
}

static void big_add(big *a, const big *b)
{
    uint64_t c = 0;
    int n = a->n > b->n ? a->n : b->n;
    for (int i = 0; i < n; i++) {
        c += (uint64_t)(i < a->n ? a->w[i] : 0) + (i < b->n ? b->w[i] : 0);
        a->w[i] = (uint32_t)c;
        c >>= 32;
    }
    a->n = n;
    if (c && a->n < BIG_WORDS)
        a->w[a->n++] = (uint32_t)c;
}

static int bits64(uint64_t v)
{
    int n = 0;
    for (int step = 32; step; step >>= 1)
        if (v >> step) {
            v >>= step;
            n += step;
        }
    return n + (v != 0);
}

static int big_bits(const big *b)
{
    return b->n ? 32 * (b->n - 1) + bits64(b->w[b->n - 1]) : 0;
}

/* q * 2^x (plus a little when sticky) to the nearest double. */
static int compose(uint64_t q, int x, int sticky, double *out)
{
    int lead = 64 - bits64(q);
    q <<= lead;
    x -= lead;
    int exponent = x + 63, shift = 11;
    uint64_t bits;
    if (exponent > 1023)
        return 0;
    if (exponent < -1022)
        shift += -1022 - exponent;
    if (shift > 64) {
        bits = 0;
    } else {
        uint64_t kept = shift < 64 ? q >> shift : 0;
        uint64_t half = 1ull << (shift - 1);
        uint64_t rest = shift < 64 ? q & ((half << 1) - 1) : q;
        if (rest > half || (rest == half && (sticky || (kept & 1))))
            kept++;
        /* The implied bit of a normal number adds the missing 1 to the exponent field, a carry one more. */
        bits = (exponent >= -1022 ? (uint64_t)(exponent + 1022) << 52 : 0) + kept;
    }
    if (bits >= 0x7ff0000000000000ull)
        return 0;
    memcpy(out, &bits, sizeof *out);
    return 1;
}

/* 5^k fits 64 bits. */
#define POW5_MAX 27
static uint64_t pow5(int k)
{
    uint64_t p = 1;
    while (k-- > 0)
        p *= 5;
    return p;
}

static int compose_wide(u128 v, int x, int sticky, double *out)
{
    uint64_t high = (uint64_t)(v >> 64);
    if (high) {
        int drop = bits64(high);
        sticky = sticky || (v & ((((u128)1) << drop) - 1)) != 0;
        v >>= drop;
        x += drop;
    }
    return compose((uint64_t)v, x, sticky, out);
}

/* m * 10^e, |e| <= POW5_MAX, m != 0: exact in 128 bits. */
static int from_small(uint64_t m, int e, double *out)
{
    if (e >= 0)
        return compose_wide((u128)m * pow5(e), e, 0, out);
    int lead = 64 - bits64(m);
    u128 top = (u128)(m << lead) << 64, den = pow5(-e);
    u128 q = top / den;
    return compose_wide(q, e - 64 - lead, q * den != top, out);
}

/* num / den * 2^x by 64 steps of long division. */
static int from_quotient(big *num, big *den, int x, double *out)
{
    int shift = 63 - (big_bits(num) - big_bits(den));
    if (shift >= 0)
        big_shl(num, shift);
    else
        big_shl(den, -shift);
    big_shl(den, 63); /* now num < 2 den, and the quotient's bits come out from the top */
    uint64_t q = 0;
    for (int i = 0; i < 64; i++) {
        q <<= 1;
        if (big_cmp(num, den) >= 0) {
            big_sub(num, den);
            q |= 1;
        }
        big_shl(num, 1);
    }
    return compose(q, x - shift, num->n != 0, out);
}

int opi__number_from_digits(const uint8_t *d, size_t n, int64_t exp10, int more, double *out)
{
    while (n > 0 && d[n - 1] == 0 && !more) {
        n--;
        exp10++;
    }
    if (n == 0) {
        *out = 0.0;
        return 1;
    }
    int64_t leading = exp10 + (int64_t)n - 1; /* the decimal exponent of d[0] */
    if (leading > 309)
        return 0;
    if (leading < -326) {
        *out = 0.0;
        return 1;
    }
    int e = (int)exp10;
    if (n <= 19 && !more && e >= -POW5_MAX && e <= POW5_MAX) {
        uint64_t m = 0;
        for (size_t i = 0; i < n; i++)
            m = m * 10 + d[i];
        return from_small(m, e, out);
    }
    big num, den;
    big_set(&num, 0);
    for (size_t i = 0; i < n; i++)
        big_mul_add(&num, 10, d[i]);
    if (more) {
        big_mul_add(&num, 10, 1);
        e--;
    }
    big_set(&den, 1);
    big_mul_pow5(e >= 0 ? &num : &den, e >= 0 ? e : -e);
    return from_quotient(&num, &den, e, out);
}

/* ---- writing ---- */

typedef struct split {
    uint64_t m;
    int e;      /* v = m * 2^e */
    int narrow; /* the double below is half as far away as the one above */
} split;

static split split_double(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    uint64_t fraction = bits & 0xfffffffffffffull;
    int field = (int)(bits >> 52) & 0x7ff;
    split s = {fraction, -1074, 0};
    if (field) {
        s.m = fraction | 1ull << 52;
        s.e = field - 1075;
        s.narrow = fraction == 0 && field > 1;
    }
    return s;
}

/* r / s is v / 10^x with x = floor(log10 v); above and below are half the gaps to the neighbors, in the same unit. */
typedef struct ratio {
    big r, s, above, below;
    int x;
} ratio;

static void ratio_init(ratio *q, split v)
{
    int up = v.e >= 0 ? v.e : 0, down = v.e >= 0 ? 0 : -v.e;
    big_set(&q->r, v.m);
    big_shl(&q->r, up + 1 + v.narrow);
    big_set(&q->s, 1);
    big_shl(&q->s, down + 1 + v.narrow);
    big_set(&q->above, 1);
    big_shl(&q->above, up + v.narrow);
    big_set(&q->below, 1);
    big_shl(&q->below, up);
    /* floor(log2 v) * log10(2), rounded down: the answer or one less. 315652 < log10(2) * 2^20 < 315653. */
    int64_t log2 = v.e + bits64(v.m) - 1;
    q->x = (int)(log2 >= 0 ? (log2 * 315652) >> 20 : -((-log2 * 315653 + (1 << 20) - 1) >> 20));
    if (q->x >= 0) {
        big_mul_pow5(&q->s, q->x);
        big_shl(&q->s, q->x);
    } else {
        big *scale[3] = {&q->r, &q->above, &q->below};
        for (int i = 0; i < 3; i++) {
            big_mul_pow5(scale[i], -q->x);
            big_shl(scale[i], -q->x);
        }
    }
    big ten;
    big_copy(&ten, &q->s);
    big_mul_add(&ten, 10, 0);
    if (big_cmp(&q->r, &ten) >= 0) {
        big_copy(&q->s, &ten);
        q->x++;
    }
}

static uint8_t next_digit(ratio *q)
{
    uint8_t d = 0;
    while (big_cmp(&q->r, &q->s) >= 0) {
        big_sub(&q->r, &q->s);
        d++;
    }
    return d;
}

/* Compares the remainder with half a unit of the last digit. */
static int remainder_vs_half(const ratio *q)
{
    big twice;
    big_copy(&twice, &q->r);
    big_shl(&twice, 1);
    return big_cmp(&twice, &q->s);
}

static int shortest_digits(ratio *q, int even, uint8_t *d, int *round_up)
{
    for (int n = 0;; n++) {
        d[n] = next_digit(q);
        big reach;
        big_copy(&reach, &q->r);
        big_add(&reach, &q->above);
        int low = big_cmp(&q->r, &q->below), high = big_cmp(&reach, &q->s);
        int is_low = low < 0 || (low == 0 && even), is_high = high > 0 || (high == 0 && even);
        if (is_low || is_high || n == 16) {
            int half = remainder_vs_half(q);
            *round_up = is_high && (!is_low || half > 0 || (half == 0 && (d[n] & 1)));
            return n + 1;
        }
        big_mul_add(&q->r, 10, 0);
        big_mul_add(&q->above, 10, 0);
        big_mul_add(&q->below, 10, 0);
    }
}

static int fixed_digits(ratio *q, int want, uint8_t *d, int *round_up)
{
    for (int n = 0; n < want; n++) {
        if (n > 0)
            big_mul_add(&q->r, 10, 0);
        d[n] = next_digit(q);
    }
    int half = remainder_vs_half(q);
    *round_up = half > 0 || (half == 0 && (d[want - 1] & 1));
    return want;
}

/* At most 15 digits and a plain magnitude, which is nearly every number people write: guess, then verify. At 15 digits
 * decimals are sparser than doubles, so the shortest guess that reads back is the only one of its length. */
static int guess_digits(double v, uint8_t *d, int *exp10)
{
    if (!(v >= 1e-5 && v < 1e15))
        return 0;
    double scale = 1.0;
    for (int k = 0; k <= 20; k++, scale *= 10.0) {
        double x = v * scale;
        if (x >= 1e15)
            return 0;
        uint64_t m = (uint64_t)(x + 0.5);
        double back;
        if (m == 0 || fabs(x - (double)m) > x * 1e-15 || !from_small(m, -k, &back) || back != v)
            continue;
        int n = 0;
        for (uint64_t rest = m; rest; rest /= 10)
            n++;
        *exp10 = n - 1 - k;
        for (int i = n - 1; i >= 0; i--, m /= 10)
            d[i] = (uint8_t)(m % 10);
        return n;
    }
    return 0;
}

int opi__number_to_digits(double v, int want, uint8_t *d, int *exp10)
{
    int n = want == 0 ? guess_digits(v, d, exp10) : 0;
    if (n == 0) {
        split s = split_double(v);
        ratio q;
        int round_up;
        ratio_init(&q, s);
        n = want == 0 ? shortest_digits(&q, !(s.m & 1), d, &round_up) : fixed_digits(&q, want, d, &round_up);
        if (round_up) {
            int i = n - 1;
            while (i >= 0 && d[i] == 9)
                d[i--] = 0;
            if (i >= 0) {
                d[i]++;
            } else {
                d[0] = 1; /* all nines: the rest is zero already */
                q.x++;
            }
        }
        *exp10 = q.x;
    }
    while (n > 1 && d[n - 1] == 0)
        n--;
    return n;
}
