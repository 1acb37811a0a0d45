/* SPDX-License-Identifier: Apache-2.0 */
/** @file advise.h
 * Decisions: candidates, economic utility, launch prior, ranking, abstention, the next probe.
 */
#ifndef OMNIPILOT_ADVISE_H
#define OMNIPILOT_ADVISE_H

#include "omnipilot/predict.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One line of the inventory. */
typedef struct opi_inventory {
    uint32_t struct_size;
    int32_t count;         /**< GPUs available */
    int32_t per_node;      /**< GPUs per node; 0 = 8 */
    int32_t reserved;
    const opi_gpu *gpu;
    double price_usd_h;    /**< per GPU hour; 0 = the table's cited price, or "not stated" (never assumed) */
    double queue_s;        /**< expected wait, seconds */
} opi_inventory;

/** A service-level objective: target <= limit (latency, power) or >= limit (throughput), in the target's unit. */
typedef struct opi_slo {
    size_t target;
    double limit;
} opi_slo;

/** Utility weights. opi_utility_default fills them, struct_size included; a JSON file overrides by name (docs/json.md,
 *  "utility"). */
typedef struct opi_utility {
    uint32_t struct_size;
    uint32_t reserved;
    double value_usd_per_mtok;       /**< value of a million output tokens; 0 = cheapest that meets the demand */
    double queue_usd_per_h;          /**< cost of an hour of waiting */
    double restart_usd;              /**< cost of one failed launch, beside the node time it burns */
    double restart_node_h;           /**< node hours a failed launch burns */
    double slo_penalty_usd_per_h;    /**< per hour and SLO, times the violation probability */
    double kv_penalty_usd_per_h;     /**< per hour at full saturation, linear beyond the knee */
    double kv_knee;                  /**< 0.85 */
    double power_usd_per_kwh;
    double amortize_h;               /**< hours over which launch and queue costs are spread */
    double risk;                     /**< 0 = expectation; 1 = the interval's bad end */
} opi_utility;
OPI_API void opi_utility_default(opi_utility *out);
/** Overrides the weights that the JSON object names. Errors: OPI_E_FORMAT, OPI_E_UNKNOWN (a name), OPI_E_RANGE. */
OPI_API int32_t opi_utility_parse(opi_ctx *ctx, const char *json, size_t size, opi_utility *inout, opi_error *err);

typedef struct opi_advise_request {
    uint32_t struct_size;
    int32_t pipeline;               /**< 1: also PP > 1 */
    const opi_llm *llm;
    double input_len, output_len;   /**< mean tokens */
    double concurrency;             /**< requests in flight over all replicas; 0 = from request_rate */
    double request_rate;            /**< requests/s; 0 = from concurrency */
    double max_context;             /**< 0 = input + output, doubled, at most the model's */
    double demand_tok_s;            /**< output tokens/s to be met; 0 = none */
    double level;                   /**< of the intervals; 0 = 0.8 */
    const opi_inventory *inventory;
    size_t n_inventory;
    const char *const *precisions;  /**< NULL = those the GPU supports */
    size_t n_precisions;
    const char *const *engines;     /**< NULL = those measured for servers */
    size_t n_engines;
    const opi_slo *slos;
    size_t n_slos;
    const opi_utility *utility;     /**< NULL = defaults */
} opi_advise_request;

/** One term of the utility; they sum to the total. Unit: US dollars per hour. */
typedef struct opi_terms {
    double value, node, queue, restart, slo, kv, power, total;
} opi_terms;

#define OPI_FEASIBLE 0
/** Reasons a candidate is infeasible; opi_reason_name gives the machine-readable code. */
#define OPI_R_MEMORY 1
#define OPI_R_DIVISIBILITY 2
#define OPI_R_INVENTORY 3
#define OPI_R_CONTEXT 4
#define OPI_R_PRECISION 5
#define OPI_R_FACTS 6
#define OPI_R_ENGINE 7

typedef struct opi_candidate {
    uint32_t struct_size;
    int32_t infeasible;           /**< OPI_FEASIBLE or OPI_R_… */
    opi_config config;            /**< of one replica; strings and facts live as long as the advice */
    int32_t replicas;
    int32_t verdict;              /**< worst OPI_P_… over the targets the utility used: OK, NEW_COMBINATION, OOD */
    int32_t meets_slo;            /**< 1: slo_violation < 0.5 */
    int32_t meets_demand;         /**< 1: the demand (stated, or implied by request_rate) is met; 1 when there is none */
    int32_t price_stated;         /**< 0: no price known; the node term is 0 and said to be missing */
    int32_t inventory_index;
    double slo_violation;         /**< probability that at least one SLO is violated */
    double launch_success, launch_lo, launch_hi; /**< prior and its 80 % interval */
    opi_memory memory;
    opi_terms terms;              /**< at the point estimate (expectation) */
    double score;                 /**< what it is ranked by: terms.total less the risk adjustment */
    double usd_per_mtok;          /**< NaN when the price is not stated */
    char reason[200];             /**< why infeasible, outside or a new combination, one line; empty otherwise */
    double out_tok_s;             /**< output tokens/s of all replicas under the load (predictions are per replica) */
} opi_candidate;

#define OPI_ADVISE_RECOMMENDED 0
#define OPI_ADVISE_ABSTAINED 1        /**< every feasible candidate lies outside, or none meets the SLOs and the demand */
#define OPI_ADVISE_NOTHING_FEASIBLE 2

/** A ranked answer. Owner: the caller, opi_advice_free. Immutable. */
typedef struct opi_advice opi_advice;
/** Enumerates, predicts and ranks. Errors: OPI_E_INVALID, OPI_E_RANGE (a length, count, price … and its limit),
 *  OPI_E_UNKNOWN (a precision), OPI_E_NOMEM; finding nothing feasible or abstaining is a verdict. */
OPI_API int32_t opi_advise(opi_ctx *ctx, const opi_model *model, const opi_advise_request *request, opi_advice **out,
                           opi_error *err);
OPI_API void opi_advice_free(opi_advice *advice);
/** OPI_ADVISE_…; `winner` (nullable) gets the recommended candidate's rank, or SIZE_MAX. */
OPI_API int32_t opi_advice_verdict(const opi_advice *advice, size_t *winner);
/** Candidates in rank order: feasible ones first, then infeasible ones. */
OPI_API size_t opi_advice_count(const opi_advice *advice);
OPI_API size_t opi_advice_feasible(const opi_advice *advice);
OPI_API int32_t opi_advice_candidate(const opi_advice *advice, size_t rank, opi_candidate *out, opi_error *err);
/** Prediction of one target for the candidate at `rank`: of one replica under its share of the load. */
OPI_API int32_t opi_advice_prediction(const opi_advice *advice, size_t rank, size_t target, opi_prediction *out,
                                      size_t out_size, opi_error *err);
/** One sentence: why the winner wins, or why the answer is withheld. Lives as long as the advice. */
OPI_API const char *opi_advice_sentence(const opi_advice *advice);
/** The measurement that would help most, in words; "" when none. */
OPI_API const char *opi_advice_probe(const opi_advice *advice);
/** What has to be said beside the numbers (prices not stated, a rate converted, an SLO without calibration …), one line
 *  each. Lives as long as the advice; NULL past the end. */
OPI_API size_t opi_advice_note_count(const opi_advice *advice);
OPI_API const char *opi_advice_note(const opi_advice *advice, size_t index);
/** The whole answer as a versioned JSON document (docs/json.md, "advice"). */
OPI_API int32_t opi_advice_json(const opi_advice *advice, opi_text **out, opi_error *err);
/** Asks the 60 everyday requests (popular LLMs on GPUs people rent) and counts the verdicts: JSON (docs/json.md,
 *  "everyday"). Owner: the caller, opi_text_free. */
OPI_API int32_t opi_evaluate_everyday(opi_ctx *ctx, const opi_model *model, opi_text **out, opi_error *err);
/** Machine-readable name of an OPI_R_… code ("memory", "divisibility", …). */
OPI_API const char *opi_reason_name(int32_t reason);

/** Utility weights from what operators chose among offered configurations: a conditional logit (McFadden 1974) over the
 *  attributes of the utility, each weight in dollars because it is relative to that of the node cost (docs/preferences.md).
 *  Owner: the caller, opi_preferences_free. Immutable. */
typedef struct opi_preferences opi_preferences;

typedef struct opi_preferences_options {
    uint32_t struct_size;
    uint32_t reserved;
    double ridge;            /**< on coefficients of attributes in units of their spread; 0 = 0.1 */
    double level;            /**< of the intervals, 0.5 to 0.999; 0 = 0.95 */
    const opi_utility *base; /**< what choices cannot tell is kept from it; NULL = the defaults */
} opi_preferences_options;

/** Whether the choices tell a weight. Any other than IDENTIFIED keeps the base's. */
#define OPI_PREF_IDENTIFIED 0
#define OPI_PREF_NO_COLUMN 1  /**< the file does not have its column */
#define OPI_PREF_CONSTANT 2   /**< the column does not vary within any situation */
#define OPI_PREF_COLLINEAR 3  /**< the column is a straight-line combination of others */
#define OPI_PREF_SEPARATED 4  /**< it explains choices without exception: the larger, the better the fit */
#define OPI_PREF_NO_SCALE 5   /**< the weight of the cost itself is not identified, or not above 0: no dollars */

/** One weight. NaN where the status leaves no number. */
typedef struct opi_preference {
    uint32_t struct_size;
    int32_t status;        /**< OPI_PREF_… */
    const char *name;      /**< of the weight in opi_utility; static */
    const char *column;    /**< of the choice file; static */
    const char *unit;      /**< of the weight; static */
    double weight, se;     /**< estimate and standard error (delta method) */
    double lo, hi;         /**< interval (Fieller 1954) */
    double used;           /**< what opi_preferences_utility gives: the estimate, 0 for a negative one, or the base's */
    double coefficient, coefficient_se; /**< of the logit, per unit of the attribute */
} opi_preference;

typedef struct opi_preferences_summary {
    uint32_t struct_size;
    int32_t cost_status;         /**< OPI_PREF_… of the node cost: IDENTIFIED, or there are no weights in dollars */
    uint64_t situations, alternatives; /**< used */
    uint64_t left_out;           /**< situations with one configuration only */
    uint64_t hits;               /**< situations whose choice has the highest fitted utility */
    double log_likelihood, log_likelihood_null; /**< null: every alternative alike */
    double cost, cost_se;        /**< logit coefficient of a dollar per hour saved, and its standard error */
    double noise_usd_per_h;      /**< spread (standard deviation) of what the utility does not explain; NaN: no scale */
    double ridge, level;         /**< as used */
} opi_preferences_summary;

/** Reads a choice file (CSV, docs/preferences.md) and fits. Errors: OPI_E_FORMAT (a column, a cell, a file that contradicts
 *  itself: no or several configurations chosen in a situation), OPI_E_RANGE, OPI_E_NODATA, OPI_E_NOMEM; a weight that the
 *  choices do not tell is a status, not an error. */
OPI_API int32_t opi_preferences_fit(opi_ctx *ctx, const char *csv, size_t size, const opi_preferences_options *options,
                                    opi_preferences **out, opi_error *err);
OPI_API void opi_preferences_free(opi_preferences *preferences);
OPI_API int32_t opi_preferences_get_summary(const opi_preferences *preferences, opi_preferences_summary *out, opi_error *err);
/** Weights, the same ones in the same order whatever the file has. */
OPI_API size_t opi_preferences_count(const opi_preferences *preferences);
OPI_API int32_t opi_preferences_at(const opi_preferences *preferences, size_t index, opi_preference *out, opi_error *err);
/** The whole utility, ready for opi_advise_request. Errors: OPI_E_NODATA when there is no scale, OPI_E_RANGE. */
OPI_API int32_t opi_preferences_utility(const opi_preferences *preferences, opi_utility *out, opi_error *err);
/** The same as the JSON that opi_utility_parse reads, written beside `path` first and renamed. Errors: also OPI_E_IO. */
OPI_API int32_t opi_preferences_save_file(const opi_preferences *preferences, const char *path, opi_error *err);
/** What is odd about the file or the fit, one line each. Lives as long as the preferences; NULL past the end. */
OPI_API size_t opi_preferences_note_count(const opi_preferences *preferences);
OPI_API const char *opi_preferences_note(const opi_preferences *preferences, size_t index);
/** All of it as a versioned JSON document (docs/json.md, "preferences"). */
OPI_API int32_t opi_preferences_json(const opi_preferences *preferences, opi_text **out, opi_error *err);
/** Machine-readable name of an OPI_PREF_… code ("identified", "no-column", …). */
OPI_API const char *opi_preference_status_name(int32_t status);

/** Launch-success prior of a GPU and count (observational; empirical Bayes, beta-binomial). */
typedef struct opi_prior {
    uint32_t struct_size;
    int32_t serving_rows;  /**< 1: serving launches stand behind it; 0: pooled, training jobs included */
    double mean, lo, hi;   /**< 80 % interval */
    double attempts;       /**< observed for this very pair */
    char basis[160];       /**< what it rests on, one line */
} opi_prior;
OPI_API int32_t opi_prior_launch(const char *gpu, int32_t n_gpus, opi_prior *out, opi_error *err);

#ifdef __cplusplus
}
#endif
#endif
