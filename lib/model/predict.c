/* SPDX-License-Identifier: Apache-2.0 */
#include "omnipilot/predict.h"
#include "base/status.h"
#include "base/take.h"
#include "base/text.h"
#include "facts/config.h"
#include "learn/conformal.h"
#include "model/model.h"
#include <math.h>
#include <string.h>

#define DEFAULT_LEVEL .8

static const opi_prediction blank = {.p10 = NAN,
                                     .p50 = NAN,
                                     .p90 = NAN,
                                     .lo = NAN,
                                     .hi = NAN,
                                     .level = NAN,
                                     .ood_distance = NAN,
                                     .ood_axis = -1,
                                     .ood_axis2 = -1,
                                     .ood_value = NAN,
                                     .ood_lo = NAN,
                                     .ood_hi = NAN};

/* Targets whose residual is nearly another's, best first, as index + 1; 0 = none, also for a target without a line here. */
#define KIN(target) ((target) + 1)
static const int32_t kin_of[OPI__T_COUNT][2] = {
    [OPI__T_TOTAL_TOK_S] = {KIN(OPI__T_OUT_TOK_S)},
    [OPI__T_REQ_S] = {KIN(OPI__T_OUT_TOK_S)},
    [OPI__T_TTFT_P50] = {KIN(OPI__T_TTFT_P95)},
    [OPI__T_TTFT_P95] = {KIN(OPI__T_TTFT_P50)},
    [OPI__T_ITL_P50] = {KIN(OPI__T_ITL_P95), KIN(OPI__T_E2E)},
    [OPI__T_ITL_P95] = {KIN(OPI__T_ITL_P50), KIN(OPI__T_E2E)},
    [OPI__T_E2E] = {KIN(OPI__T_ITL_P50)},
    [OPI__T_TOK_J] = {KIN(OPI__T_OUT_TOK_S)},
    [OPI__T_SM_ACTIVITY] = {KIN(OPI__T_OUT_TOK_S)},
    [OPI__T_TENSOR_ACTIVITY] = {KIN(OPI__T_OUT_TOK_S)},
};

static double value_of(double log_value, double upper)
{
    double v = exp(log_value);
    return v > upper ? upper : v;
}

/* Bounds in the target's unit; an infinite score gives 0 and infinity (or the target's upper end). */
static void bounds(const opi__answer *a, double level, double upper, double *lo, double *hi)
{
    opi__answer_bounds(a, level, lo, hi);
    *lo = value_of(*lo, upper);
    *hi = value_of(*hi, upper);
}

/* The bound, times what a learned target of the same kind makes of its own bound here (requests/s follow tokens/s, a
 * 95th percentile its median, activity the share of the bound that is reached): so that figures beside each other do
 * not contradict. */
static void from_physics(const opi_model *m, const opi__question *q, int32_t target, double level, opi_prediction *out)
{
    double log_value = q->encoded.base[target];
    for (int i = 0; i < 2 && kin_of[target][i]; i++) {
        const int32_t kin = kin_of[target][i] - 1;
        opi__location l;
        if (!m->target[kin].learned)
            continue;
        opi__locate(m, kin, q->x, q->code, OPI__NEW_SITE, q->encoded.base[kin], &l);
        log_value += l.median - q->encoded.base[kin];
        break;
    }
    out->status = OPI_P_UNCALIBRATED;
    out->p50 = value_of(log_value, opi__targets[target].upper);
    out->level = level;
    if (isnan(out->p50))
        out->status = OPI_P_ERROR;
}

static void predict_target(const opi_model *m, const opi__question *q, int32_t target, double level,
                           opi_prediction *out)
{
    const double upper = opi__targets[target].upper;
    opi__answer a;
    *out = blank;
    out->target = target;
    if (!m->target[opi__residual_of(target)].learned || !q->identity[target]) {
        from_physics(m, q, target, level, out);
        return;
    }
    opi__answer_row(m, target, q->encoded.envelope, q->x, q->code, OPI__NEW_SITE, q->encoded.base[target], &a);
    out->status = a.verdict.status;
    out->ood_distance = a.verdict.distance;
    out->ood_axis = a.verdict.axis, out->ood_axis2 = a.verdict.axis2;
    out->ood_value = a.verdict.value, out->ood_lo = a.verdict.lo, out->ood_hi = a.verdict.hi;
    out->p50 = value_of(a.location.median, upper);
    bounds(&a, DEFAULT_LEVEL, upper, &out->p10, &out->p90);
    bounds(&a, level, upper, &out->lo, &out->hi);
    out->level = level;
    out->calibration_rows = (uint32_t)a.n;
    out->calibration_group = a.group;
}

/* Whether the configuration cannot exist beyond doubt. The memory formula is good to a few percent, so a shortage
 * below CERTAIN of the device is not held against a question here (opi_advise is strict, it recommends launches).
 * Servers refuse requests beyond the LLM's context, and degrees that do not divide; benchmarks of bare batches do
 * run past both. */
#define CERTAIN .1
static int bare(const opi_config *c)
{
    return c->load_kind && (!strcmp(c->load_kind, "batch") || !strcmp(c->load_kind, "offline"));
}

static int context_exceeded(const opi_config *c)
{
    return !bare(c) && !opi__config_context_fits(c);
}

static int infeasible(const opi_config *c)
{
    opi_memory memory = {.struct_size = sizeof memory};
    if (context_exceeded(c))
        return 1;
    if (opi_memory_fit(c, &memory, NULL) || memory.fits)
        return 0;
    if (memory.margin_gib >= 0)
        return !bare(c); /* the degrees do not divide */
    return !(memory.margin_gib > -CERTAIN * memory.total_gib);
}

typedef struct wanted {
    double level;
    const size_t *targets;
    size_t n;
} wanted;

static int32_t take_options(const opi_predict_options *options, wanted *w, opi_error *err)
{
    opi_predict_options o = {0};
    int32_t status = options ? opi__take(&o, sizeof o, options, "opi_predict_options", err) : OPI_OK;
    if (status)
        return status;
    w->level = o.level == 0 ? DEFAULT_LEVEL : o.level;
    w->targets = o.targets;
    w->n = o.targets ? o.n_targets : OPI__T_COUNT;
    if (!(w->level >= .5 && w->level <= .99))
        return opi__fail(err, OPI_E_RANGE, -1, "level = %.6g: must be from 0.5 to 0.99", w->level);
    for (size_t i = 0; w->targets && i < w->n; i++)
        if (w->targets[i] >= OPI__T_COUNT)
            return opi__fail(err, OPI_E_RANGE, (int64_t)i, "target %zu: there are %d targets", w->targets[i],
                             OPI__T_COUNT);
    return OPI_OK;
}

int32_t opi_predict(const opi_model *m, const opi_config *configs, size_t n, const opi_predict_options *options,
                    opi_prediction *out, size_t out_size, opi_error *err)
{
    wanted w;
    if (!m || (n && (!configs || !out)))
        return opi__fail(err, OPI_E_INVALID, -1, "model, configs or out is NULL");
    if (out_size < offsetof(opi_prediction, level))
        return opi__fail(err, OPI_E_INVALID, -1, "out_size = %zu: set it to sizeof(opi_prediction)", out_size);
    int32_t status = take_options(options, &w, err);
    if (status)
        return status;
    size_t stride = n ? configs[0].struct_size : 0,
           keep = out_size < sizeof(opi_prediction) ? out_size : sizeof(opi_prediction);
    for (size_t i = 0; i < n; i++) {
        opi_config c;
        opi__question q;
        int32_t verdict = -1;
        if (opi__config_take((const opi_config *)((const char *)configs + i * stride), &c, NULL))
            verdict = OPI_P_ERROR;
        else if (infeasible(&c))
            verdict = OPI_P_INFEASIBLE;
        else
            opi__question_make(m, &c, &q);
        for (size_t k = 0; k < w.n; k++) {
            int32_t target = (int32_t)(w.targets ? w.targets[k] : k);
            opi_prediction p = blank;
            p.target = target;
            if (verdict >= 0)
                p.status = verdict;
            else
                predict_target(m, &q, target, w.level, &p);
            memcpy((char *)out + (i * w.n + k) * out_size, &p, keep);
        }
    }
    return OPI_OK;
}

int32_t opi_predict_exceed(const opi_model *m, const opi_config *config, size_t target, double limit,
                           double *probability, opi_error *err)
{
    opi_config c;
    opi__question q;
    opi__answer a;
    if (!m || !probability)
        return opi__fail(err, OPI_E_INVALID, -1, "model or probability is NULL");
    if (target >= OPI__T_COUNT)
        return opi__fail(err, OPI_E_RANGE, -1, "target %zu: there are %d targets", target, OPI__T_COUNT);
    if (isnan(limit))
        return opi__fail(err, OPI_E_RANGE, -1, "limit is not a number");
    int32_t status = opi__config_take(config, &c, err);
    if (status)
        return status;
    const int silent = !m->target[opi__residual_of((int32_t)target)].learned ||
                       !opi__identity_holds((int32_t)target, c.input_len, c.output_len) || infeasible(&c);
    if (silent || limit <= 0) {
        *probability = silent ? NAN : 1;
        return OPI_OK;
    }
    opi__question_make(m, &c, &q);
    opi__answer_row(m, (int32_t)target, q.encoded.envelope, q.x, q.code, OPI__NEW_SITE, q.encoded.base[target], &a);
    double z = (log(limit) - a.location.median) / a.location.gap;
    *probability = a.score ? opi__conformal_exceed(a.score, a.n, z) : NAN;
    return OPI_OK;
}

const char *opi_prediction_status_name(int32_t status)
{
    static const char *const name[] = {"ok", "new-combination", "uncalibrated", "ood", "infeasible", "error"};
    return status >= 0 && status < (int32_t)(sizeof name / sizeof *name) ? name[status] : "?";
}

/* ---- reasons ---- */

static const char *axis_text(const opi_config *c, int32_t axis)
{
    opi__encoded e;
    opi__encode(c, &e);
    for (int k = 0; k < OPI__CATEGORIES; k++)
        if (opi__category_axis(k) == axis)
            return *e.category[k] ? e.category[k] : "not stated";
    return "";
}

static size_t explain_outside(const opi_config *c, const opi_prediction *p, char *buf, size_t size)
{
    const opi__axis_def *axis = &opi__axes[p->ood_axis];
    const char *target = opi__targets[p->target].title;
    if (axis->kind == OPI_AXIS_CATEGORY)
        return opi__format(buf, size, "%s %s was never measured for %s", axis->title, axis_text(c, p->ood_axis),
                           target);
    if (isnan(p->ood_value))
        return opi__format(buf, size, "%s is not stated, and was in every measured row", axis->title);
    if (isnan(p->ood_lo))
        return opi__format(buf, size, "%s %.4g %s: never stated in a measured row", axis->title, p->ood_value,
                           axis->unit);
    return opi__format(buf, size, "%s %.4g %s is outside the measured %.4g to %.4g for %s", axis->title, p->ood_value,
                       axis->unit, p->ood_lo, p->ood_hi, target);
}

static size_t explain_combination(const opi_config *c, const opi_prediction *p, char *buf, size_t size)
{
    const opi__axis_def *axis = &opi__axes[p->ood_axis];
    const char *target = opi__targets[p->target].title;
    if (p->ood_axis2 < 0 || p->ood_axis2 >= (int32_t)opi__axis_total())
        return opi__format(buf, size, "%s %s was never measured for %s, others with its kind of attention were",
                           axis->title, axis_text(c, p->ood_axis), target);
    char first[64];
    opi__copy_text(first, sizeof first, axis_text(c, p->ood_axis));
    return opi__format(buf, size, "%s %s with %s %s was never measured together for %s", axis->title, first,
                       opi__axes[p->ood_axis2].title, axis_text(c, p->ood_axis2), target);
}

static size_t explain_infeasible(const opi_config *c, char *buf, size_t size)
{
    opi_memory memory = {.struct_size = sizeof memory};
    if (context_exceeded(c))
        return opi__format(buf, size, "%.6g tokens of context asked, %s holds at most %d",
                           fmax(c->input_len + c->output_len, c->max_context), c->llm->name, (int)c->llm->max_context);
    opi_memory_fit(c, &memory, NULL);
    return opi__format(buf, size, "%s", memory.limit);
}

size_t opi_predict_reason(const opi_model *m, const opi_config *config, const opi_prediction *p, char *buf, size_t size)
{
    opi_config c;
    opi_error err = {0};
    if (size)
        *buf = 0;
    if (!m || !config || !p || p->target < 0 || p->target >= OPI__T_COUNT)
        return 0;
    if (opi__config_take(config, &c, &err))
        return opi__format(buf, size, "%s", err.message);
    int axis = p->ood_axis >= 0 && p->ood_axis < (int32_t)opi__axis_total();
    if (p->status == OPI_P_INFEASIBLE)
        return explain_infeasible(&c, buf, size);
    if (p->status == OPI_P_OOD && axis)
        return explain_outside(&c, p, buf, size);
    if (p->status == OPI_P_NEW_COMBINATION && axis)
        return explain_combination(&c, p, buf, size);
    if (p->status == OPI_P_UNCALIBRATED)
        return opi__format(buf, size, "%s: %u measured rows, too few to learn from: physics only, no interval",
                           opi__targets[p->target].title, m->target[p->target].rows);
    return 0;
}

int32_t opi_predict_support(const opi_model *m, const opi_config *config, size_t target, opi_support *out,
                            opi_error *err)
{
    opi_config c;
    opi__question q;
    opi_support s = {0};
    const opi__anchor *best = NULL;
    double least = INFINITY;
    if (!m || target >= OPI__T_COUNT)
        return opi__fail(err, OPI_E_INVALID, -1, "model is NULL or target %zu unknown", target);
    int32_t status = opi__config_take(config, &c, err);
    if (status)
        return status;
    const int32_t source = opi__residual_of((int32_t)target);
    opi__question_make(m, &c, &q);
    for (size_t i = 0; i < m->n_anchors; i++) {
        const opi__anchor *a = &m->anchor[i];
        if (!(a->targets >> source & 1))
            continue;
        double d = opi__anchor_distance(m, q.encoded.envelope, q.code, a);
        s.cells += d <= m->spacing;
        if (d < least)
            least = d, best = a;
    }
    s.nearest_distance = least / m->spacing;
    if (best)
        opi__format(s.nearest, sizeof s.nearest, "%s on %s, %s, %s", m->names[OPI__C_MODEL].name[best->model],
                    m->names[OPI__C_GPU].name[best->code[0]], m->names[OPI__C_ENGINE].name[best->code[3]],
                    m->names[OPI__C_PRECISION_CLASS].name[best->code[2]]);
    return opi__give(out, &s, sizeof s, "opi_support", err);
}
