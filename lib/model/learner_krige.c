/* SPDX-License-Identifier: Apache-2.0 */
/* The kriging learner; krige_fit.c fits it. How wide a held-out residual is follows from how near the nearest remaining
 * rows are: a small forest knows that, because the exact variance would need the whole inverse at hand. */
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "model/kriged.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SPREAD 10.

/* ---- points ---- */

/* Counts and sizes differ by factors. */
static int is_log(int d)
{
    static const char *const name[] = {"GPUs",
                                       "TP",
                                       "PP",
                                       "EP",
                                       "DP",
                                       "layers",
                                       "hidden size",
                                       "heads",
                                       "KV heads",
                                       "head dimension",
                                       "vocabulary",
                                       "experts",
                                       "experts per token",
                                       "memory"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!strcmp(name[i], opi__number_names[d]))
            return 1;
    return 0;
}

static uint32_t log_mask(int half)
{
    uint32_t mask = 0;
    for (int d = 0; d < 32 && half * 32 + d < OPI__DIMS; d++)
        mask |= (uint32_t)is_log(half * 32 + d) << d;
    return mask;
}

void opi__krige_point(const double *scale, const uint32_t *logs, const float *x, float *out)
{
    for (int d = 0; d < OPI__DIMS; d++) {
        double v = (double)x[d];
        if (logs[d / 32] >> (d % 32) & 1 && v > 0)
            v = log(v);
        if (isnan(v))
            v = scale[d * 3];
        out[d] = (float)((v - scale[d * 3 + 1]) * scale[d * 3 + 2]);
    }
}

/* A name of two things; OPI__NO_KEY when one of them is not known. */
static uint32_t both(uint32_t a, uint32_t b)
{
    if (a == OPI__NO_KEY || b == OPI__NO_KEY)
        return OPI__NO_KEY;
    uint32_t h = (uint32_t)(opi__mix64(opi__mix64((uint64_t)a + 1) * 31 + (uint64_t)b + 1) >> 32);
    return h == OPI__NO_KEY ? 0 : h;
}

static uint32_t one(int32_t code)
{
    return code < 0 ? OPI__NO_KEY : (uint32_t)code;
}

void opi__krige_columns(opi__kriged *k)
{
    static const char *const degrees[OPI__DEGREES] = {"GPUs", "TP", "PP", "EP", "DP"};
    k->logs[0] = log_mask(0);
    k->logs[1] = log_mask(1);
    for (int d = 0; d < OPI__DIMS; d++)
        for (int i = 0; i < OPI__DEGREES; i++)
            if (!strcmp(degrees[i], opi__number_names[d]))
                k->degree[i] = d;
}

void opi__krige_keys(const opi__kriged *k, const float *x, const int32_t *code, int32_t site, uint32_t *key)
{
    uint32_t llm = one(code[OPI__C_SHAPE]), gpu = one(code[OPI__C_GPU]), engine = one(code[OPI__C_ENGINE]);
    key[OPI__K_LLM] = llm;
    key[OPI__K_GPU] = gpu;
    key[OPI__K_PRECISION] = one(code[OPI__C_PRECISION]);
    key[OPI__K_GPU_ENGINE] = both(gpu, engine);
    key[OPI__K_ENGINE_VERSION] = both(engine, one(code[OPI__C_VERSION]));
    key[OPI__K_LOAD_ENGINE] = both(one(code[OPI__C_LOAD]), engine);
    key[OPI__K_LLM_GPU_ENGINE] = both(key[OPI__K_GPU_ENGINE], llm);
    uint32_t h = both(key[OPI__K_LLM_GPU_ENGINE], both(one(code[OPI__C_VERSION]), one(code[OPI__C_PRECISION])));
    h = both(h, both(one(code[OPI__C_LOAD]), one(code[OPI__C_MODEL])));
    for (int i = 0; i < OPI__DEGREES; i++)
        h = both(h, isnan(x[k->degree[i]]) ? 0xffff : (uint32_t)x[k->degree[i]]);
    key[OPI__K_CONFIG] = h;
    key[OPI__K_SITE] = one(site);
    key[OPI__K_SITE_GPU] = both(key[OPI__K_SITE], gpu);
    key[OPI__K_SITE_LLM] = both(key[OPI__K_SITE], llm);
}

double opi__krige_site_variance(const opi__kernel *k)
{
    double sum = 0;
    for (int w = 0; w < OPI__SITES; w++)
        sum += exp(k->site[w]);
    return sum;
}

double opi__krige_spread(const opi__kriged *k, const float *near)
{
    double log_spread;
    opi__forest_eval(&k->spread, near, &log_spread);
    double s = fmin(fmax(exp(log_spread), OPI__LEAST_SPREAD), MOST_SPREAD);
    return near[OPI__LEVELS] > 0 ? s : sqrt(s * s + opi__krige_site_variance(&k->k.kernel));
}

void opi__krige_release(opi_ctx *ctx, void *state)
{
    opi__kriged *k = state;
    if (k && !k->borrowed) {
        opi__free(ctx, (void *)(uintptr_t)k->k.x);
        opi__free(ctx, (void *)(uintptr_t)k->k.key);
        opi__free(ctx, (void *)(uintptr_t)k->k.weight);
        opi__free(ctx, k->scale);
        opi__forest_free(ctx, &k->spread);
    }
    for (int i = 0; k && i < 5; i++)
        opi__free(ctx, k->local[i]);
    opi__free(ctx, k);
}

/* ---- answering ---- */

static void krige_predict(const void *state, const float *x, const int32_t *code, int32_t site, double *mean,
                          double *spread)
{
    const opi__kriged *k = state;
    float point[OPI__DIMS], near[OPI__NEARS];
    uint32_t key[OPI__KEYS];
    opi__krige_point(k->scale, k->logs, x, point);
    opi__krige_keys(k, x, code, site, key);
    *mean = opi__krige_mean(&k->k, point, key, near);
    *spread = opi__krige_spread(k, near);
    if (site < 0 && k->here.n) {
        double c[OPI__LOCAL_MOST];
        opi__krige_here(&k->k, &k->here, point, key, c, mean, spread);
    }
}

/* ---- adapting ---- */

/* Room for n local rows; the arrays of `here` point into it. */
static int32_t local_room(opi_ctx *ctx, size_t n, void **local, opi__krige_local *here)
{
    const size_t size[5] = {n * OPI__DIMS * sizeof(float), n * OPI__KEYS * sizeof(uint32_t), n * sizeof(double),
                            n * sizeof(double), n * n * sizeof(double)};
    int fine = 1;
    for (int i = 0; i < 5; i++)
        fine &= (local[i] = opi__alloc(ctx, size[i], 1)) != NULL;
    *here = (opi__krige_local){n, local[0], local[1], local[2], local[3], local[4]};
    return fine ? OPI_OK : OPI_E_NOMEM;
}

/* One local row, so that they can be put in order. */
typedef struct local_row {
    float x[OPI__DIMS];
    uint32_t key[OPI__KEYS];
    double spread, deviation;
} local_row;

static int by_row(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(local_row));
}

/* The deviations of the rows that are there: covariance times weights, from the factor. */
static void deviations(const opi__krige_local *l, double *out)
{
    for (size_t i = 0; i < l->n; i++)
        out[i] = 0;
    for (size_t j = 0; j < l->n; j++) {
        double up = 0;
        for (size_t i = j; i < l->n; i++)
            up += l->factor[i * l->n + j] * l->weight[i];
        for (size_t i = j; i < l->n; i++)
            out[i] += l->factor[i * l->n + j] * up;
    }
}

static int32_t krige_adapt(opi_ctx *ctx, void *state, size_t n, const float *x, const int32_t *code, const double *y,
                           opi_error *err)
{
    opi__kriged *k = state;
    size_t before = k->here.n, all = before + n;
    if (all > OPI__LOCAL_MOST)
        return opi__fail(err, OPI_E_RANGE, (int64_t)all,
                         "%zu local measurements of one target, at most %d are taken: fit "
                         "a model instead",
                         all, OPI__LOCAL_MOST);
    void *local[5] = {0};
    opi__krige_local here;
    local_row *row = opi__zalloc(ctx, all, sizeof *row);
    double *old = opi__alloc(ctx, before, sizeof *old);
    int32_t status = row && old ? local_room(ctx, all, local, &here) : OPI_E_NOMEM;
    if (!status) {
        deviations(&k->here, old);
        for (size_t i = 0; i < before; i++) {
            memcpy(row[i].x, k->here.x + i * OPI__DIMS, sizeof row[i].x);
            memcpy(row[i].key, k->here.key + i * OPI__KEYS, sizeof row[i].key);
            row[i].spread = k->here.spread[i];
            row[i].deviation = old[i];
        }
        for (size_t i = 0; i < n; i++) {
            local_row *r = &row[before + i];
            float near[OPI__NEARS];
            opi__krige_point(k->scale, k->logs, x + i * OPI__FEATURES, r->x);
            opi__krige_keys(k, x + i * OPI__FEATURES, code + i * OPI__CATEGORIES, -1, r->key);
            r->deviation = y[i] - opi__krige_mean(&k->k, r->x, r->key, near);
            r->spread = opi__krige_spread(k, near);
        }
        for (size_t i = 0; i < all; i++) { /* what was computed back and what is new must not differ in a last bit */
            double unit = ldexp(1, -40);
            row[i].deviation = unit * nearbyint(row[i].deviation / unit);
        }
        qsort(row, all, sizeof *row, by_row);
        for (size_t i = 0; i < all; i++) {
            memcpy((float *)local[0] + i * OPI__DIMS, row[i].x, sizeof row[i].x);
            memcpy((uint32_t *)local[1] + i * OPI__KEYS, row[i].key, sizeof row[i].key);
            ((double *)local[2])[i] = row[i].spread;
            ((double *)local[3])[i] = row[i].deviation;
        }
        if (opi__krige_localize(&k->k, &here, local[3], local[4]))
            status = opi__fail(err, OPI_E_NODATA, -1, "the covariance of %zu local measurements stays singular", all);
    } else {
        opi__fail_memory(err, all * all * sizeof(double));
    }
    opi__free(ctx, row);
    opi__free(ctx, old);
    for (int i = 0; i < 5; i++)
        opi__free(ctx, status ? local[i] : k->local[i]);
    if (status)
        return status;
    memcpy(k->local, local, sizeof local);
    k->here = here;
    return OPI_OK;
}

static size_t krige_local(const void *state)
{
    return ((const opi__kriged *)state)->here.n;
}

/* ---- file ---- */

static void krige_save(const void *state, opi__writer *w)
{
    const opi__kriged *k = state;
    opi__write_array(w, k->scale, OPI__DIMS * 3, sizeof *k->scale);
    opi__write_array(w, k->k.x, k->k.n * OPI__DIMS, sizeof *k->k.x);
    opi__write_array(w, k->k.key, k->k.n * OPI__KEYS, sizeof *k->k.key);
    opi__write_array(w, k->k.weight, k->k.n, sizeof *k->k.weight);
    opi__write_f64(w, k->k.mean);
    opi__write_array(w, &k->k.kernel, OPI__KERNEL_PARAMETERS, sizeof(double));
    opi__forest_save(&k->spread, w);
    opi__write_array(w, k->here.x, k->here.n * OPI__DIMS, sizeof *k->here.x);
    opi__write_array(w, k->here.key, k->here.n * OPI__KEYS, sizeof *k->here.key);
    opi__write_array(w, k->here.spread, k->here.n, sizeof *k->here.spread);
    opi__write_array(w, k->here.weight, k->here.n, sizeof *k->here.weight);
    opi__write_array(w, k->here.factor, k->here.n * k->here.n, sizeof *k->here.factor);
}

static int finite(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return 0;
    return 1;
}

/* The local rows are copied out of the block: they are few, and adapting again replaces them. */
static int32_t load_local(opi_ctx *ctx, opi__reader *r, opi__kriged *k, opi_error *err)
{
    const size_t most = OPI__LOCAL_MOST;
    size_t x, key, n, weights, factors;
    const void *from[5];
    from[0] = opi__read_array(r, sizeof(float), 0, most * OPI__DIMS, &x);
    from[1] = opi__read_array(r, sizeof(uint32_t), 0, most * OPI__KEYS, &key);
    from[2] = opi__read_array(r, sizeof(double), 0, most, &n);
    from[3] = opi__read_array(r, sizeof(double), 0, most, &weights);
    from[4] = opi__read_array(r, sizeof(double), 0, most * most, &factors);
    if (r->failed || x != n * OPI__DIMS || key != n * OPI__KEYS || weights != n || factors != n * n)
        return opi__read_error(r, err);
    if (!n)
        return OPI_OK;
    const size_t size[5] = {x * sizeof(float), key * sizeof(uint32_t), n * sizeof(double), n * sizeof(double),
                            factors * sizeof(double)};
    if (local_room(ctx, n, k->local, &k->here))
        return opi__fail_memory(err, n * n * sizeof(double));
    for (int i = 0; i < 5; i++)
        memcpy(k->local[i], from[i], size[i]);
    int sound = finite(k->here.spread, n) && finite(k->here.weight, n) && finite(k->here.factor, factors);
    for (size_t i = 0; sound && i < x; i++)
        sound = isfinite(k->here.x[i]);
    for (size_t i = 0; sound && i < n; i++)
        sound = k->here.factor[i * n + i] > 0 && k->here.spread[i] > 0;
    return sound ? OPI_OK : opi__read_error(r, err);
}

static int32_t krige_load(opi_ctx *ctx, opi__reader *r, void **state, opi_error *err)
{
    size_t n, values, keys, weights, parameters;
    opi__kriged *k = opi__zalloc(ctx, 1, sizeof *k);
    if (!k)
        return opi__fail_memory(err, sizeof *k);
    k->borrowed = 1;
    opi__krige_columns(k);
    k->scale = (double *)opi__read_array(r, sizeof *k->scale, OPI__DIMS * 3, OPI__DIMS * 3, &n);
    k->k.x = opi__read_array(r, sizeof *k->k.x, OPI__DIMS, 1u << 30, &values);
    k->k.key = opi__read_array(r, sizeof *k->k.key, OPI__KEYS, 1u << 30, &keys);
    k->k.weight = opi__read_array(r, sizeof *k->k.weight, 1, 1u << 26, &weights);
    k->k.mean = opi__read_f64(r);
    const void *kernel =
        opi__read_array(r, sizeof(double), OPI__KERNEL_PARAMETERS, OPI__KERNEL_PARAMETERS, &parameters);
    if (kernel)
        memcpy(&k->k.kernel, kernel, sizeof k->k.kernel);
    k->k.n = weights;
    int sound = !r->failed && values == weights * OPI__DIMS && keys == weights * OPI__KEYS &&
                finite(k->scale, OPI__DIMS * 3) && finite(k->k.weight, weights) && isfinite(k->k.mean) &&
                finite((const double *)&k->k.kernel, OPI__KERNEL_PARAMETERS);
    for (size_t i = 0; sound && i < values; i++)
        sound = isfinite(k->k.x[i]);
    int32_t status = sound ? opi__forest_load(r, OPI__NEARS, &k->spread, err) : opi__read_error(r, err);
    if (!status && k->spread.n_out != 1)
        status = opi__read_error(r, err);
    if (!status)
        status = load_local(ctx, r, k, err);
    if (status) {
        opi__krige_release(ctx, k);
        return status;
    }
    opi__krige_ready(&k->k);
    *state = k;
    return OPI_OK;
}

const opi__learner opi__learner_krige = {"krige",     1,          opi__krige_fit, krige_predict,     krige_adapt,
                                         krige_local, krige_save, krige_load,     opi__krige_release};
