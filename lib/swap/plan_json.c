/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as JSON: docs/json.md, "plan". Grows by new keys only; a changed meaning is a new "version". */
#include "base/json.h"
#include "base/status.h"
#include "swap/planner.h"

#include <math.h>

static const char *const policies[] = {"stop", "shrink", "wait"};
static const char *const arrivals[] = {"exponential", "weibull", "hyperexponential", "clustered"};

static void add_options(opi__json *root, const opi_plan_options *o, const opi__plan_setup *s)
{
    opi__json *j = opi__json_add_object(root, "request");
    opi__json_add_int(j, "gpus", o->gpus);
    opi__json_add_int(j, "dp", s->grid.dp);
    opi__json_add_int(j, "tp", o->tp);
    opi__json_add_int(j, "pp", o->pp);
    opi__json_add_int(j, "per_node", o->per_node);
    opi__json_add_int(j, "nodes", s->nodes);
    opi__json_add_int(j, "nodes_per_rack", o->nodes_per_rack);
    opi__json_add_int(j, "spares", o->spares);
    opi__json_add_int(j, "replicas", o->replicas);
    opi__json_add_string(j, "policy", policies[o->policy]);
    opi__json_add_string(j, "arrivals", arrivals[o->arrivals]);
    opi__json_add_number(j, "burst", o->arrivals ? o->burst : NAN);
    opi__json_add_number(j, "burst_window_s", o->arrivals == OPI_PLAN_CLUSTERED ? o->burst_window_s : NAN);
    opi__json_add_number(j, "burst_near", o->arrivals == OPI_PLAN_CLUSTERED ? o->burst_near : NAN);
    opi__json_add_number(j, "days", o->days);
    opi__json_add_int(j, "replays", o->replays);
    opi__json_add_number(j, "seed", (double)o->seed);
    opi__json_add_number(j, "process_mtbf_h", o->process_mtbf_h); /* never: null */
    opi__json_add_number(j, "node_mtbf_h", o->node_mtbf_h);
    opi__json_add_number(j, "rack_mtbf_h", o->rack_mtbf_h);
    opi__json_add_number(j, "process_repair_s", o->process_repair_s);
    opi__json_add_number(j, "node_repair_h", o->node_repair_h);
    opi__json_add_number(j, "rack_repair_h", o->rack_repair_h);
    opi__json_add_number(j, "repair_cv", o->repair_cv);
    opi__json_add_number(j, "step_s", o->step_s);
    opi__json_add_int(j, "snapshot_interval", o->snapshot_interval);
    opi__json_add_number(j, "state_gb", o->state_gb);
    opi__json_add_number(j, "unique_gb", o->unique_gb);
    opi__json_add_number(j, "snapshot_gbs", o->snapshot_gbs);
    opi__json_add_number(j, "network_gbs", o->network_gbs);
    opi__json_add_number(j, "overhead", o->overhead);
    opi__json *phases = opi__json_add_array(j, "phase_s");
    for (int i = 0; i < OPI_PLAN_PHASES; i++)
        opi__json_add_number(phases, NULL, o->phase_s[i]);
    opi__json_add_number(j, "recovery_s", s->recover);
    opi__json_add_number(j, "checkpoint_interval_s", o->checkpoint_interval_s);
    opi__json_add_number(j, "checkpoint_s", o->checkpoint_s);
    opi__json_add_number(j, "checkpoint_stall_s", o->checkpoint_stall_s);
    opi__json_add_number(j, "restart_interval_s", o->restart_interval_s);
    opi__json_add_number(j, "restart_s", o->restart_s);
    opi__json_add_number(j, "wait_h", o->wait_h);
    opi__json_add_number(j, "idle_cost", o->idle_cost);
}

static void add_result(opi__json *root, const char *name, const opi_plan_result *r)
{
    opi__json *j = opi__json_add_object(root, name);
    opi__json_add_number(j, "goodput", r->goodput);
    opi__json_add_number(j, "goodput_se", r->goodput_se);
    opi__json_add_number(j, "goodput_median", r->goodput_median);
    opi__json_add_number(j, "goodput_low", r->goodput_low);
    opi__json_add_number(j, "goodput_high", r->goodput_high);
    opi__json *share = opi__json_add_object(j, "time_share");
    opi__json_add_number(share, "redone", r->redone);
    opi__json_add_number(share, "stalled", r->stalled);
    opi__json_add_number(share, "narrow", r->narrow);
    opi__json_add_number(share, "recovering", r->recovering);
    opi__json_add_number(share, "restarting", r->restarting);
    opi__json_add_number(share, "waiting", r->waiting);
    opi__json_add_number(j, "failures", r->failures);
    opi__json_add_number(j, "swaps", r->swaps);
    opi__json_add_number(j, "fallbacks", r->fallbacks);
    opi__json_add_number(j, "fallback_share", r->fallback_share);
    opi__json_add_number(j, "stops", r->stops);
    opi__json_add_number(j, "shrinks", r->shrinks);
    opi__json_add_number(j, "restarts", r->restarts);
    opi__json_add_number(j, "steps", r->steps);
    opi__json_add_number(j, "steps_redone", r->steps_redone);
    opi__json_add_number(j, "nodes_down", r->nodes_down);
    opi__json_add_number(j, "checkpoint_interval_s", r->checkpoint_interval_s);
}

static void add_closed(opi__json *root, const opi_plan_closed *c)
{
    opi__json *j = opi__json_add_object(root, "closed_form");
    opi__json_add_bool(j, "applies", c->applies);
    opi__json_add_number(j, "job_mtbf_s", c->job_mtbf_s);
    opi__json_add_number(j, "young_s", c->young_s);
    opi__json_add_number(j, "daly_s", c->daly_s);
    opi__json_add_number(j, "restart_goodput", c->restart_goodput);
    opi__json_add_number(j, "swap_goodput", c->swap_goodput);
    opi__json_add_number(j, "nodes_down", c->nodes_down);
    opi__json_add_number(j, "fallbacks", c->fallbacks);
    opi__json_add_number(j, "fallback_probability", c->fallback_probability);
    opi__json_add_number(j, "window_s", c->window_s);
}

int32_t opi_plan_json(const opi_plan *plan, opi_text **out, opi_error *err)
{
    if (!plan || !out)
        return opi__fail(err, OPI_E_INVALID, -1, "opi_plan_json: %s is NULL", plan ? "out" : "plan");
    opi__json *root = opi__json_new_object();
    opi__json_add_string(root, "schema", "omnipilot.plan");
    opi__json_add_int(root, "version", 1);
    opi__json_add_string(root, "library", opi_version());
    add_options(root, &plan->setup.o, &plan->setup);
    add_result(root, "hot_swap", &plan->result[OPI_PLAN_SWAP]);
    add_result(root, "restart", &plan->result[OPI_PLAN_RESTART]);
    add_closed(root, &plan->closed);
    if (plan->n_spares) {
        opi__json_add_int(root, "spares_worth", plan->worth);
        opi__json *lines = opi__json_add_array(root, "spares");
        for (size_t i = 0; i < plan->n_spares; i++) {
            const opi_plan_spares *l = &plan->spares[i];
            opi__json *j = opi__json_add_object(lines, NULL);
            opi__json_add_int(j, "spares", l->spares);
            opi__json_add_number(j, "goodput", l->goodput);
            opi__json_add_number(j, "goodput_se", l->goodput_se);
            opi__json_add_number(j, "waiting", l->waiting);
            opi__json_add_number(j, "fallbacks", l->fallbacks);
            opi__json_add_number(j, "gained", l->gained);
            opi__json_add_number(j, "net", l->net);
        }
    } else {
        opi__json_add_null(root, "spares_worth");
    }
    return opi__json_text(plan->ctx, root, out, err);
}
