# SPDX-License-Identifier: Apache-2.0
"""The C structs and functions of include/omnipilot, declared for ctypes. test_omnipilot.py compares every size and
offset with tests/abi/layout.txt and every function with lib/omnipilot.map."""

import ctypes
import ctypes.util
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p)


class Error(Structure):
    _fields_ = [("code", c_int32), ("reserved", c_int32), ("index", c_int64), ("message", c_char * 496)]


class Gpu(Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("name", c_char * 48), ("arch", c_char * 24),
                ("link", c_char * 24), ("source", c_char * 192), ("year", c_int32), ("reserved", c_int32)] + [
        (n, c_double) for n in ("mem_gb", "mem_bw_gbs", "fp16_tflops", "fp8_tflops", "int8_tops", "fp4_tflops",
                                "link_gbs", "tdp_w", "price_ondemand_usd_h", "price_rental_usd_h")]


class Llm(Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("name", c_char * 96), ("family", c_char * 32),
                ("arch", c_char * 32), ("attention", c_char * 16), ("source", c_char * 192),
                ("params_b", c_double), ("active_params_b", c_double)] + [
        (n, c_int32) for n in ("n_layers", "hidden_size", "n_heads", "n_kv_heads", "head_dim", "intermediate_size",
                               "vocab_size", "max_context", "is_moe", "n_experts", "experts_per_token",
                               "moe_intermediate_size", "kv_lora_rank", "qk_rope_head_dim", "sliding_window",
                               "n_kv_layers")] + [
        (n, c_double) for n in ("kv_elems_per_token", "weight_bits", "kv_bits")] + [("quant", c_char * 16)] + [
        (n, c_int32) for n in ("n_window_layers", "n_moe_layers", "shared_intermediate_size", "q_lora_rank",
                               "mlp_matrices", "tied_embeddings")]


class Config(Structure):
    _fields_ = [("struct_size", c_uint32), ("n_gpus", c_int32), ("tp", c_int32), ("pp", c_int32), ("ep", c_int32),
                ("dp", c_int32), ("llm", POINTER(Llm)), ("gpu", POINTER(Gpu)), ("engine", c_char_p),
                ("engine_version", c_char_p), ("precision", c_char_p), ("load_kind", c_char_p)] + [
        (n, c_double) for n in ("weight_bits", "kv_bits", "input_len", "output_len", "concurrency", "request_rate",
                                "max_context", "mem_util")]


class Memory(Structure):
    _fields_ = [("struct_size", c_uint32), ("fits", c_int32)] + [
        (n, c_double) for n in ("total_gib", "usable_gib", "weights_gib", "activation_gib", "runtime_gib", "kv_gib",
                                "kv_bytes_per_token", "kv_tokens", "kv_needed_tokens", "margin_gib", "kv_pressure")
    ] + [("limit", c_char * 160)]


class Roofline(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32)] + [
        (n, c_double) for n in ("decode_step_s", "decode_mem_s", "decode_flop_s", "link_s", "prefill_s", "out_tok_s",
                                "total_tok_s", "req_s", "ttft_ms", "itl_ms", "e2e_s", "power_w", "tokens_per_joule",
                                "cold_start_s", "kv_usage", "sm_activity", "tensor_activity")]


class TargetInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("higher_is_better", c_int32), ("name", c_char_p), ("alias", c_char_p),
                ("unit", c_char_p), ("title", c_char_p)]


class AxisInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_int32), ("enveloped", c_int32), ("reserved", c_int32),
                ("name", c_char_p), ("unit", c_char_p), ("title", c_char_p)]


class TableOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("keep_unlabeled", c_int32), ("format", c_char_p), ("source", c_char_p),
                ("defaults", POINTER(Config))]


PROGRESS = CFUNCTYPE(c_int32, c_void_p, c_char_p, c_uint64, c_uint64)
LOG = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
ALLOC = CFUNCTYPE(c_void_p, c_void_p, c_size_t)
RESIZE = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)
RELEASE = CFUNCTYPE(None, c_void_p, c_void_p)


class Allocator(Structure):
    _fields_ = [("user", c_void_p), ("alloc", ALLOC), ("resize", RESIZE), ("release", RELEASE)]


class CtxOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("allocator", Allocator), ("log", LOG),
                ("log_user", c_void_p)]


class FitOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_int32), ("seed", c_uint64), ("learner", c_char_p),
                ("note", c_char_p), ("date", c_char_p), ("progress", PROGRESS), ("progress_user", c_void_p)]


class EvaluateOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_int32), ("seed", c_uint64), ("learner", c_char_p),
                ("level", c_double), ("by_mix", c_int32), ("leave_out", c_int32), ("progress", PROGRESS),
                ("progress_user", c_void_p)]


class GateOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("allow_seen", c_int32), ("seed", c_uint64), ("resamples", c_int32),
                ("reserved", c_int32)]


class Prediction(Structure):
    _fields_ = [("status", c_int32), ("target", c_int32), ("p10", c_double), ("p50", c_double), ("p90", c_double),
                ("lo", c_double), ("hi", c_double), ("level", c_double), ("ood_distance", c_double),
                ("ood_axis", c_int32), ("ood_axis2", c_int32), ("ood_value", c_double), ("ood_lo", c_double),
                ("ood_hi", c_double), ("calibration_rows", c_uint32), ("calibration_group", c_uint32)]


class PredictOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("level", c_double), ("targets", POINTER(c_size_t)),
                ("n_targets", c_size_t)]


class Support(Structure):
    _fields_ = [("struct_size", c_uint32), ("cells", c_uint32), ("nearest_distance", c_double),
                ("nearest", c_char * 160)]


class Inventory(Structure):
    _fields_ = [("struct_size", c_uint32), ("count", c_int32), ("per_node", c_int32), ("reserved", c_int32),
                ("gpu", POINTER(Gpu)), ("price_usd_h", c_double), ("queue_s", c_double)]


class Slo(Structure):
    _fields_ = [("target", c_size_t), ("limit", c_double)]


class Utility(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32)] + [
        (n, c_double) for n in ("value_usd_per_mtok", "queue_usd_per_h", "restart_usd", "restart_node_h",
                                "slo_penalty_usd_per_h", "kv_penalty_usd_per_h", "kv_knee", "power_usd_per_kwh",
                                "amortize_h", "risk")]


class AdviseRequest(Structure):
    _fields_ = [("struct_size", c_uint32), ("pipeline", c_int32), ("llm", POINTER(Llm))] + [
        (n, c_double) for n in ("input_len", "output_len", "concurrency", "request_rate", "max_context",
                                "demand_tok_s", "level")] + [
        ("inventory", POINTER(Inventory)), ("n_inventory", c_size_t), ("precisions", POINTER(c_char_p)),
        ("n_precisions", c_size_t), ("engines", POINTER(c_char_p)), ("n_engines", c_size_t), ("slos", POINTER(Slo)),
        ("n_slos", c_size_t), ("utility", POINTER(Utility))]


class Terms(Structure):
    _fields_ = [(n, c_double) for n in ("value", "node", "queue", "restart", "slo", "kv", "power", "total")]


class Candidate(Structure):
    _fields_ = [("struct_size", c_uint32), ("infeasible", c_int32), ("config", Config), ("replicas", c_int32),
                ("verdict", c_int32), ("meets_slo", c_int32), ("meets_demand", c_int32), ("price_stated", c_int32),
                ("inventory_index", c_int32), ("slo_violation", c_double), ("launch_success", c_double),
                ("launch_lo", c_double), ("launch_hi", c_double), ("memory", Memory), ("terms", Terms),
                ("score", c_double), ("usd_per_mtok", c_double), ("reason", c_char * 200), ("out_tok_s", c_double)]


class Prior(Structure):
    _fields_ = [("struct_size", c_uint32), ("serving_rows", c_int32), ("mean", c_double), ("lo", c_double),
                ("hi", c_double), ("attempts", c_double), ("basis", c_char * 160)]


class PreferencesOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("ridge", c_double), ("level", c_double),
                ("base", POINTER(Utility))]


class Preference(Structure):
    _fields_ = [("struct_size", c_uint32), ("status", c_int32), ("name", c_char_p), ("column", c_char_p),
                ("unit", c_char_p)] + [
        (n, c_double) for n in ("weight", "se", "lo", "hi", "used", "coefficient", "coefficient_se")]


class PreferencesSummary(Structure):
    _fields_ = [("struct_size", c_uint32), ("cost_status", c_int32)] + [
        (n, c_uint64) for n in ("situations", "alternatives", "left_out", "hits")] + [
        (n, c_double) for n in ("log_likelihood", "log_likelihood_null", "cost", "cost_se", "noise_usd_per_h", "ridge",
                                "level")]


class PlanOptions(Structure):
    _fields_ = [("struct_size", c_uint32)] + [
        (n, c_int32) for n in ("gpus", "tp", "pp", "per_node", "nodes_per_rack", "spares", "replicas", "policy", "arrivals",
                               "replays", "sweep", "snapshot_interval", "reserved")] + [("seed", c_uint64)] + [
        (n, c_double) for n in ("days", "process_mtbf_h", "node_mtbf_h", "rack_mtbf_h", "burst", "burst_window_s",
                                "burst_near", "process_repair_s", "node_repair_h", "rack_repair_h", "repair_cv", "step_s",
                                "params_b", "state_gb", "unique_gb", "snapshot_gbs", "network_gbs", "overhead")] + [
        ("phase_s", c_double * 8)] + [
        (n, c_double) for n in ("checkpoint_interval_s", "checkpoint_s", "checkpoint_stall_s", "restart_interval_s",
                                "restart_s", "wait_h", "idle_cost")]


class PlanResult(Structure):
    _fields_ = [("struct_size", c_uint32), ("replays", c_int32)] + [
        (n, c_double) for n in ("goodput", "goodput_median", "goodput_low", "goodput_high", "goodput_se", "redone",
                                "stalled", "narrow", "recovering", "restarting", "waiting", "failures", "swaps",
                                "fallbacks", "fallback_share", "stops", "shrinks", "restarts", "steps", "steps_redone",
                                "nodes_down", "checkpoint_interval_s")]


class PlanClosed(Structure):
    _fields_ = [("struct_size", c_uint32), ("applies", c_int32)] + [
        (n, c_double) for n in ("job_mtbf_s", "young_s", "daly_s", "restart_goodput", "swap_goodput", "nodes_down",
                                "fallbacks", "fallback_probability", "window_s")]


class PlanSpares(Structure):
    _fields_ = [("struct_size", c_uint32), ("spares", c_int32)] + [
        (n, c_double) for n in ("goodput", "goodput_se", "waiting", "fallbacks", "gained", "net")]


class PlanMeasured(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_int32), ("lines", c_uint64), ("recoveries", c_uint64),
                ("phase_s", c_double * 8), ("redone", c_double), ("snapshots", c_uint64), ("snapshot_bytes", c_uint64),
                ("replica_bytes", c_uint64), ("wait_s", c_double)]


class PlanCheck(Structure):
    _fields_ = [("struct_size", c_uint32), ("passed", c_int32), ("simulated", c_double), ("formula", c_double),
                ("tolerance", c_double), ("name", c_char * 96)]


STRUCTS = {"opi_error": Error, "opi_gpu": Gpu, "opi_llm": Llm, "opi_config": Config, "opi_memory": Memory,
           "opi_roofline": Roofline, "opi_target_info": TargetInfo, "opi_axis_info": AxisInfo,
           "opi_table_options": TableOptions, "opi_allocator": Allocator, "opi_ctx_options": CtxOptions,
           "opi_fit_options": FitOptions, "opi_evaluate_options": EvaluateOptions,
           "opi_gate_options": GateOptions, "opi_prediction": Prediction,
           "opi_predict_options": PredictOptions, "opi_support": Support, "opi_inventory": Inventory, "opi_slo": Slo,
           "opi_utility": Utility, "opi_advise_request": AdviseRequest, "opi_terms": Terms,
           "opi_candidate": Candidate, "opi_prior": Prior, "opi_preferences_options": PreferencesOptions,
           "opi_preference": Preference, "opi_preferences_summary": PreferencesSummary,
           "opi_plan_options": PlanOptions, "opi_plan_result": PlanResult,
           "opi_plan_closed": PlanClosed, "opi_plan_spares": PlanSpares, "opi_plan_measured": PlanMeasured,
           "opi_plan_check": PlanCheck}

_handle = c_void_p  # opaque: opi_ctx, opi_model, opi_table, opi_advice, opi_text
_out = POINTER(c_void_p)
_err = POINTER(Error)

# name: (result, arguments). A wrong or missing argtypes entry cuts 64-bit pointers to 32 bits without a word.
FUNCTIONS = {
    "opi_version": (c_char_p, []),
    "opi_status_name": (c_char_p, [c_int32]),
    "opi_ctx_create": (c_int32, [POINTER(CtxOptions), _out, _err]),
    "opi_ctx_destroy": (None, [_handle]),
    "opi_text_data": (c_void_p, [_handle]),
    "opi_text_size": (c_size_t, [_handle]),
    "opi_text_free": (None, [_handle]),
    "opi_gpu_count": (c_size_t, []),
    "opi_gpu_at": (c_int32, [c_size_t, POINTER(Gpu), _err]),
    "opi_gpu_find": (c_int32, [c_char_p, POINTER(Gpu), _err]),
    "opi_llm_count": (c_size_t, []),
    "opi_llm_at": (c_int32, [c_size_t, POINTER(Llm), _err]),
    "opi_llm_find": (c_int32, [c_char_p, POINTER(Llm), _err]),
    "opi_llm_from_config": (c_int32, [_handle, c_char_p, c_size_t, c_char_p, POINTER(Llm), _err]),
    "opi_memory_fit": (c_int32, [POINTER(Config), POINTER(Memory), _err]),
    "opi_roofline_of": (c_int32, [POINTER(Config), POINTER(Roofline), _err]),
    "opi_target_count": (c_size_t, []),
    "opi_target_at": (c_int32, [c_size_t, POINTER(TargetInfo), _err]),
    "opi_target_find": (c_int32, [c_char_p, POINTER(c_size_t), _err]),
    "opi_axis_count": (c_size_t, []),
    "opi_axis_at": (c_int32, [c_size_t, POINTER(AxisInfo), _err]),
    "opi_table_read": (c_int32, [_handle, c_char_p, POINTER(TableOptions), _out, _err]),
    "opi_table_parse": (c_int32, [_handle, c_char_p, c_size_t, POINTER(TableOptions), _out, _err]),
    "opi_table_free": (None, [_handle]),
    "opi_table_rows": (c_size_t, [_handle]),
    "opi_table_config": (c_int32, [_handle, c_size_t, POINTER(Config), POINTER(c_int32), _err]),
    "opi_table_value": (c_double, [_handle, c_size_t, c_size_t]),
    "opi_table_line": (c_uint64, [_handle, c_size_t]),
    "opi_table_reason": (c_char_p, [_handle, c_size_t]),
    "opi_table_report": (c_int32, [_handle, _out, _err]),
    "opi_import_count": (c_size_t, []),
    "opi_import_name_at": (c_char_p, [c_size_t]),
    "opi_model_adapt": (c_int32, [_handle, _handle, _out, _err]),
    "opi_model_fit": (c_int32, [_handle, _handle, POINTER(FitOptions), _out, _err]),
    "opi_model_load_default": (c_int32, [_handle, _out, _err]),
    "opi_model_load_file": (c_int32, [_handle, c_char_p, _out, _err]),
    "opi_model_load_memory": (c_int32, [_handle, c_void_p, c_size_t, _out, _err]),
    "opi_model_save_file": (c_int32, [_handle, c_char_p, _err]),
    "opi_model_save_memory": (c_int32, [_handle, _out, _err]),
    "opi_model_free": (None, [_handle]),
    "opi_model_inspect": (c_int32, [_handle, _out, _err]),
    "opi_model_gate": (c_int32, [_handle, _handle, _handle, POINTER(GateOptions), POINTER(c_int32), _out, _err]),
    "opi_evaluate": (c_int32, [_handle, _handle, POINTER(EvaluateOptions), _out, _err]),
    "opi_evaluate_memory": (c_int32, [_handle, c_char_p, c_size_t, _handle, _out, _err]),
    "opi_predict": (c_int32, [_handle, POINTER(Config), c_size_t, POINTER(PredictOptions), c_void_p, c_size_t, _err]),
    "opi_predict_exceed": (c_int32, [_handle, POINTER(Config), c_size_t, c_double, POINTER(c_double), _err]),
    "opi_predict_reason": (c_size_t, [_handle, POINTER(Config), POINTER(Prediction), c_char_p, c_size_t]),
    "opi_prediction_status_name": (c_char_p, [c_int32]),
    "opi_predict_support": (c_int32, [_handle, POINTER(Config), c_size_t, POINTER(Support), _err]),
    "opi_utility_default": (None, [POINTER(Utility)]),
    "opi_utility_parse": (c_int32, [_handle, c_char_p, c_size_t, POINTER(Utility), _err]),
    "opi_advise": (c_int32, [_handle, _handle, POINTER(AdviseRequest), _out, _err]),
    "opi_advice_free": (None, [_handle]),
    "opi_advice_verdict": (c_int32, [_handle, POINTER(c_size_t)]),
    "opi_advice_count": (c_size_t, [_handle]),
    "opi_advice_feasible": (c_size_t, [_handle]),
    "opi_advice_candidate": (c_int32, [_handle, c_size_t, POINTER(Candidate), _err]),
    "opi_advice_prediction": (c_int32, [_handle, c_size_t, c_size_t, POINTER(Prediction), c_size_t, _err]),
    "opi_advice_sentence": (c_char_p, [_handle]),
    "opi_advice_probe": (c_char_p, [_handle]),
    "opi_advice_note_count": (c_size_t, [_handle]),
    "opi_advice_note": (c_char_p, [_handle, c_size_t]),
    "opi_evaluate_everyday": (c_int32, [_handle, _handle, _out, _err]),
    "opi_advice_json": (c_int32, [_handle, _out, _err]),
    "opi_reason_name": (c_char_p, [c_int32]),
    "opi_plan_run": (c_int32, [_handle, POINTER(PlanOptions), _out, _err]),
    "opi_plan_free": (None, [_handle]),
    "opi_plan_get_options": (c_int32, [_handle, POINTER(PlanOptions), _err]),
    "opi_plan_get_result": (c_int32, [_handle, c_int32, POINTER(PlanResult), _err]),
    "opi_plan_get_closed": (c_int32, [_handle, POINTER(PlanClosed), _err]),
    "opi_plan_spares_count": (c_size_t, [_handle]),
    "opi_plan_spares_at": (c_int32, [_handle, c_size_t, POINTER(PlanSpares), _err]),
    "opi_plan_worth": (c_int32, [_handle]),
    "opi_plan_json": (c_int32, [_handle, _out, _err]),
    "opi_plan_from_run": (c_int32, [_handle, c_char_p, c_size_t, POINTER(PlanOptions), POINTER(PlanMeasured), _err]),
    "opi_plan_check_count": (c_size_t, []),
    "opi_plan_check_at": (c_int32, [_handle, c_size_t, c_uint64, POINTER(PlanCheck), _err]),
    "opi_preferences_fit": (c_int32, [_handle, c_char_p, c_size_t, POINTER(PreferencesOptions), _out, _err]),
    "opi_preferences_free": (None, [_handle]),
    "opi_preferences_get_summary": (c_int32, [_handle, POINTER(PreferencesSummary), _err]),
    "opi_preferences_count": (c_size_t, [_handle]),
    "opi_preferences_at": (c_int32, [_handle, c_size_t, POINTER(Preference), _err]),
    "opi_preferences_utility": (c_int32, [_handle, POINTER(Utility), _err]),
    "opi_preferences_save_file": (c_int32, [_handle, c_char_p, _err]),
    "opi_preferences_note_count": (c_size_t, [_handle]),
    "opi_preferences_note": (c_char_p, [_handle, c_size_t]),
    "opi_preferences_json": (c_int32, [_handle, _out, _err]),
    "opi_preference_status_name": (c_char_p, [c_int32]),
    "opi_prior_launch": (c_int32, [c_char_p, c_int32, POINTER(Prior), _err]),
}


def _candidates():
    """Where the library may be, best first."""
    chosen = os.environ.get("OMNIPILOT_LIBRARY")
    if chosen:
        yield chosen  # an explicit choice is final: a silent fallback would test another library
        return
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, "libomnipilot.so.0")
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(here))), "build/lib/libomnipilot.so.0")
    yield "libomnipilot.so.0"
    found = ctypes.util.find_library("omnipilot")
    if found:
        yield found


def load():
    tried = []
    for path in _candidates():
        if os.path.isabs(path) and not os.path.exists(path):
            tried.append(path + ": no such file")
            continue
        try:
            library = ctypes.CDLL(path)
            break
        except OSError as e:
            tried.append(str(e))
    else:
        raise ImportError("libomnipilot was not found; set OMNIPILOT_LIBRARY to its path. Tried: " + "; ".join(tried))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
