# SPDX-License-Identifier: Apache-2.0
"""omnipilot from Python: predictions with calibrated intervals and ranked serving configurations.

    import omnipilot

    with omnipilot.Context() as ctx, ctx.default_model() as model:
        c = omnipilot.config("Qwen/Qwen2.5-72B-Instruct", "H100-80GB-SXM", tp=4, precision="bf16", engine="vllm",
                             input_len=1024, output_len=256, concurrency=64)
        for p in model.predict(c, targets=["ttft_p50", "itl_p50"]):
            print(p.status_name, p.p50, p.lo, p.hi)

The structs are those of include/omnipilot, field by field; texts in them are bytes, and as_dict() gives plain Python
values. A failing call raises Error with the C library's code, index and message. NumPy is needed only by predict_array.
"""

import ctypes
import json as _json
import weakref

from . import _abi
from ._abi import (AdviseRequest, Candidate, Config, Gpu, Inventory, Llm, Memory, Prediction, Prior, Roofline, Slo,
                   Support, Utility)

__version__ = "0.1.0"
__all__ = ["Advice", "Candidate", "Config", "Context", "Error", "Gpu", "Inventory", "Llm", "Memory", "Model",
           "Prediction", "Prior", "Roofline", "Support", "Table", "Utility", "as_dict", "axes", "config", "gpu", "gpus",
           "launch_prior", "library_version", "llm", "llms", "memory", "roofline", "target_index", "targets", "utility"]

_lib = _abi.load()

OK, NEW_COMBINATION, UNCALIBRATED, OOD, INFEASIBLE, ERROR = range(6)  # Prediction.status
RECOMMENDED, ABSTAINED, NOTHING_FEASIBLE = range(3)                   # Advice.verdict
_NONE = ctypes.c_size_t(-1).value


class Error(Exception):
    """A call that failed: code (OPI_E_…), name, index (row, element or byte; -1 when none), message."""

    def __init__(self, code, index, message):
        super().__init__(message)
        self.code, self.index, self.message = code, index, message
        self.name = _lib.opi_status_name(code).decode()


def _call(function, *arguments):
    """Calls a function whose last parameter is opi_error *, and raises when it fails."""
    err = _abi.Error(index=-1)
    code = function(*arguments, ctypes.byref(err))
    if code < 0:
        raise Error(code, err.index, err.message.decode("utf-8", "replace"))
    return code


def _new(kind):
    return kind(struct_size=ctypes.sizeof(kind))


def _bytes(value):
    return None if value is None else value if isinstance(value, bytes) else str(value).encode()


def _text(value):
    return value.decode("utf-8", "replace") if value is not None else ""


def _take_text(handle):
    try:
        return ctypes.string_at(_lib.opi_text_data(handle), _lib.opi_text_size(handle))
    finally:
        _lib.opi_text_free(handle)


def _text_of(function, *arguments):
    out = ctypes.c_void_p()
    _call(function, *arguments, ctypes.byref(out))
    return _take_text(out)


def as_dict(struct):
    """A struct as a dict of plain values: bytes become str, pointers to structs become dicts, struct_size goes."""
    result = {}
    for name, _ in struct._fields_:
        value = getattr(struct, name)
        if name in ("struct_size", "reserved"):
            continue
        if isinstance(value, bytes):
            value = _text(value)
        elif isinstance(value, ctypes.Structure):
            value = as_dict(value)
        elif isinstance(value, ctypes._Pointer):
            value = as_dict(value.contents) if value else None
        result[name] = value
    return result


# ---- facts and physics ----------------------------------------------------------------------------------------------
def library_version():
    return _text(_lib.opi_version())


def _entry(kind, function, key):
    out = _new(kind)
    _call(function, key, ctypes.byref(out))
    return out


def gpu(name):
    """A GPU by name or alias."""
    return _entry(Gpu, _lib.opi_gpu_find, _bytes(name))


def gpus():
    return [_entry(Gpu, _lib.opi_gpu_at, i) for i in range(_lib.opi_gpu_count())]


def llm(name):
    """An LLM of the compiled-in table; Context.llm_from_config reads a config.json."""
    return _entry(Llm, _lib.opi_llm_find, _bytes(name))


def llms():
    return [_entry(Llm, _lib.opi_llm_at, i) for i in range(_lib.opi_llm_count())]


def config(llm_or_name, gpu_or_name, **fields):
    """One serving configuration under one load; fields are those of opi_config. n_gpus follows from tp, pp and dp."""
    the_llm = llm_or_name if isinstance(llm_or_name, Llm) else llm(llm_or_name)
    the_gpu = gpu_or_name if isinstance(gpu_or_name, Gpu) else gpu(gpu_or_name)
    c = _new(Config)
    c.llm, c.gpu = ctypes.pointer(the_llm), ctypes.pointer(the_gpu)
    known = {name for name, _ in Config._fields_}
    for name, value in fields.items():
        if name not in known:
            raise TypeError("opi_config has no field %r" % name)
        setattr(c, name, _bytes(value) if isinstance(value, str) else value)
    if "n_gpus" not in fields and "tp" in fields:
        c.n_gpus = c.tp * max(c.pp, 1) * max(c.dp, 1)
    return c


def memory(c):
    out = _new(Memory)
    _call(_lib.opi_memory_fit, ctypes.byref(c), ctypes.byref(out))
    return out


def roofline(c):
    out = _new(Roofline)
    _call(_lib.opi_roofline_of, ctypes.byref(c), ctypes.byref(out))
    return out


def targets():
    """Every target as a dict: name, alias, unit, title, higher_is_better."""
    return [as_dict(_entry(_abi.TargetInfo, _lib.opi_target_at, i)) for i in range(_lib.opi_target_count())]


def axes():
    return [as_dict(_entry(_abi.AxisInfo, _lib.opi_axis_at, i)) for i in range(_lib.opi_axis_count())]


def target_index(name):
    if isinstance(name, int):
        return name
    out = ctypes.c_size_t()
    _call(_lib.opi_target_find, _bytes(name), ctypes.byref(out))
    return out.value


def launch_prior(gpu_name, n_gpus):
    out = _new(Prior)
    _call(_lib.opi_prior_launch, _bytes(gpu_name), n_gpus, ctypes.byref(out))
    return out


def utility(**weights):
    """The default utility weights, with those named overridden."""
    out = _new(Utility)
    _lib.opi_utility_default(ctypes.byref(out))
    for name, value in weights.items():
        if name not in {n for n, _ in Utility._fields_}:
            raise TypeError("opi_utility has no weight %r" % name)
        setattr(out, name, value)
    return out


Prediction.status_name = property(lambda self: _text(_lib.opi_prediction_status_name(self.status)))


# ---- owned objects --------------------------------------------------------------------------------------------------
class _Owned:
    """An object of the library: freed by close(), at the end of `with`, or with the last reference."""

    _free = None

    def __init__(self, ctx, handle):
        self._ctx, self._handle = ctx, handle
        if ctx is not None:
            ctx._children.add(self)

    def _get(self):
        if not self._handle:
            raise ValueError("%s is closed" % type(self).__name__)
        return self._handle

    def close(self):
        handle, self._handle = self._handle, None
        if handle:
            getattr(_lib, self._free)(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()


class Context(_Owned):
    """A library context. Closing it closes what it made, in the right order."""

    _free = "opi_ctx_destroy"

    def __init__(self, log=None):
        """`log(level, line)` receives what the library has to say while reading and fitting."""
        options = _new(_abi.CtxOptions)
        if log is not None:
            options.log = self._log = _abi.LOG(lambda _, level, line: log(level, _text(line)))
        out = ctypes.c_void_p()
        _call(_lib.opi_ctx_create, ctypes.byref(options), ctypes.byref(out))
        self._children = weakref.WeakSet()
        super().__init__(None, out)

    def close(self):
        for child in list(self._children):
            child.close()
        super().close()

    def _make(self, kind, function, *arguments):
        out = ctypes.c_void_p()
        _call(function, self._get(), *arguments, ctypes.byref(out))
        return kind(self, out)

    def default_model(self):
        return self._make(Model, _lib.opi_model_load_default)

    def load(self, path_or_bytes):
        """A model from a file, or from bytes."""
        if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            block = bytes(path_or_bytes)
            return self._make(Model, _lib.opi_model_load_memory, block, len(block))
        return self._make(Model, _lib.opi_model_load_file, _path(path_or_bytes))

    def table(self, path_or_bytes, keep_unlabeled=False, format=None, source=None, defaults=None):
        """Measured rows from a file, or from bytes; `defaults` is a Config with what the file does not state."""
        options = _new(_abi.TableOptions)
        options.keep_unlabeled = 1 if keep_unlabeled else 0
        options.format, options.source = _bytes(format), _bytes(source)
        if defaults is not None:
            options.defaults = ctypes.pointer(defaults)
        if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            block = bytes(path_or_bytes)
            return self._make(Table, _lib.opi_table_parse, block, len(block), ctypes.byref(options))
        return self._make(Table, _lib.opi_table_read, _path(path_or_bytes), ctypes.byref(options))

    def llm_from_config(self, text, name=None):
        """An LLM from the text of a Hugging Face config.json."""
        block, out = _bytes(text), _new(Llm)
        _call(_lib.opi_llm_from_config, self._get(), block, len(block), _bytes(name), ctypes.byref(out))
        return out

    def utility_from_json(self, text):
        block, out = _bytes(text), utility()
        _call(_lib.opi_utility_parse, self._get(), block, len(block), ctypes.byref(out))
        return out

    def fit(self, table, seed=0, threads=0, learner=None, note=None, date=None, progress=None):
        """Fits a model. progress(stage, done, total) may return True to stop."""
        options = _new(_abi.FitOptions)
        options.date = _bytes(date)
        options.seed, options.threads, options.learner, options.note = seed, threads, _bytes(learner), _bytes(note)
        with _Progress(options, progress):
            return self._make(Model, _lib.opi_model_fit, table._get(), ctypes.byref(options))

    def evaluate(self, table, seed=0, threads=0, learner=None, level=0.0, by_mix=False, leave_out=False, progress=None):
        """Cross-validates on whole cells; the report as a dict."""
        options = _new(_abi.EvaluateOptions)
        options.seed, options.threads, options.learner, options.level = seed, threads, _bytes(learner), level
        options.by_mix, options.leave_out = int(bool(by_mix)), int(bool(leave_out))
        with _Progress(options, progress):
            return _json.loads(_text_of(_lib.opi_evaluate, self._get(), table._get(), ctypes.byref(options)))

    def advise(self, model, llm_or_name, inventory, slo=None, precisions=None, engines=None, utility=None,
               pipeline=False, **numbers):
        """Ranks the inventory's configurations for one LLM and load.

        inventory: {GPU name: count} or a list of Inventory. slo: {target: limit in the target's unit}.
        numbers: input_len, output_len, concurrency, request_rate, max_context, demand_tok_s, level.
        """
        the_llm = llm_or_name if isinstance(llm_or_name, Llm) else llm(llm_or_name)
        request = _new(AdviseRequest)
        request.llm, request.pipeline = ctypes.pointer(the_llm), int(bool(pipeline))
        lines = _inventory(inventory)
        request.inventory, request.n_inventory = (Inventory * len(lines))(*lines), len(lines)
        slos = [Slo(target_index(name), limit) for name, limit in (slo or {}).items()]
        if slos:
            request.slos, request.n_slos = (Slo * len(slos))(*slos), len(slos)
        for field, names in (("precisions", precisions), ("engines", engines)):
            if names:
                array = (ctypes.c_char_p * len(names))(*[_bytes(n) for n in names])
                setattr(request, field, array)
                setattr(request, "n_" + field, len(names))
        if utility is not None:
            request.utility = ctypes.pointer(utility)
        for name, value in numbers.items():
            if name not in ("input_len", "output_len", "concurrency", "request_rate", "max_context", "demand_tok_s",
                            "level"):
                raise TypeError("opi_advise_request has no number %r" % name)
            setattr(request, name, value)
        advice = self._make(Advice, _lib.opi_advise, model._get(), ctypes.byref(request))
        advice._keep = (model, request, lines, the_llm)  # candidates point into the facts
        return advice


def _path(path):
    import os
    return os.fsencode(path)


def _inventory(inventory):
    if not isinstance(inventory, dict):
        return list(inventory)
    lines = []
    for name, count in inventory.items():
        line = _new(Inventory)
        line.gpu, line.count = ctypes.pointer(gpu(name)), count
        lines.append(line)
    return lines


class _Progress:
    """Wraps a Python progress function; an exception in it stops the fit and is raised again here."""

    def __init__(self, options, function):
        self.raised = None
        if function is not None:
            def call(_, stage, done, total):
                try:
                    return 1 if function(_text(stage), done, total) else 0
                except BaseException as e:  # must not travel through C frames
                    self.raised = e
                    return 1
            self.callback = options.progress = _abi.PROGRESS(call)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.raised is not None:
            raise self.raised


class Table(_Owned):
    """Measured rows."""

    _free = "opi_table_free"

    def __len__(self):
        return _lib.opi_table_rows(self._get())

    def config(self, row):
        """Row as a Config; raises Error with the reason when the row cannot be used. Valid while the table is open."""
        out, status = _new(Config), ctypes.c_int32()
        _call(_lib.opi_table_config, self._get(), row, ctypes.byref(out), ctypes.byref(status))
        if status.value != 0:
            raise Error(status.value, row, self.reason(row))
        return out

    def value(self, row, target):
        return _lib.opi_table_value(self._get(), row, target_index(target))

    def line(self, row):
        return _lib.opi_table_line(self._get(), row)

    def reason(self, row):
        return _text(_lib.opi_table_reason(self._get(), row))

    def report(self):
        return _json.loads(_text_of(_lib.opi_table_report, self._get()))


class Model(_Owned):
    """A fitted model; immutable, any number of threads may use it."""

    _free = "opi_model_free"

    def _options(self, targets, level):
        options = _new(_abi.PredictOptions)
        options.level = level
        count = _lib.opi_target_count()
        if targets is not None:
            chosen = [target_index(t) for t in ([targets] if isinstance(targets, (str, int)) else targets)]
            count = len(chosen)
            options.targets, options.n_targets = (ctypes.c_size_t * count)(*chosen), count
        return options, count

    def predict(self, configs, targets=None, level=0.0):
        """A list of Prediction for one Config, or a list of such lists for a sequence of them."""
        single = isinstance(configs, Config)
        rows = [configs] if single else list(configs)
        options, count = self._options(targets, level)
        out = (Prediction * (len(rows) * count))()
        _call(_lib.opi_predict, self._get(), (Config * len(rows))(*rows), len(rows), ctypes.byref(options), out,
              ctypes.sizeof(Prediction))
        lists = [list(out[i * count:(i + 1) * count]) for i in range(len(rows))]
        return lists[0] if single else lists

    def predict_array(self, configs, targets=None, level=0.0):
        """The same as a NumPy record array of shape (configurations, targets)."""
        import numpy
        rows = list(configs)
        options, count = self._options(targets, level)
        out = numpy.zeros((len(rows), count), dtype=numpy.dtype(Prediction))
        _call(_lib.opi_predict, self._get(), (Config * len(rows))(*rows), len(rows), ctypes.byref(options),
              out.ctypes.data, ctypes.sizeof(Prediction))
        return out

    def exceed(self, c, target, limit):
        """Probability that the target exceeds the limit; NaN when uncalibrated."""
        out = ctypes.c_double()
        _call(_lib.opi_predict_exceed, self._get(), ctypes.byref(c), target_index(target), limit, ctypes.byref(out))
        return out.value

    def reason(self, c, prediction):
        buffer = ctypes.create_string_buffer(512)
        _lib.opi_predict_reason(self._get(), ctypes.byref(c), ctypes.byref(prediction), buffer, len(buffer))
        return _text(buffer.value)

    def support(self, c, target):
        out = _new(Support)
        _call(_lib.opi_predict_support, self._get(), ctypes.byref(c), target_index(target), ctypes.byref(out))
        return out

    def inspect(self):
        return _json.loads(_text_of(_lib.opi_model_inspect, self._get()))

    def save(self, path):
        _call(_lib.opi_model_save_file, self._get(), _path(path))

    def to_bytes(self):
        return _text_of(_lib.opi_model_save_memory, self._get())


class Advice(_Owned):
    """A ranked answer. Candidates and their strings are valid while it is open."""

    _free = "opi_advice_free"

    def __len__(self):
        return _lib.opi_advice_count(self._get())

    @property
    def feasible(self):
        return _lib.opi_advice_feasible(self._get())

    @property
    def verdict(self):
        return _lib.opi_advice_verdict(self._get(), None)

    @property
    def winner(self):
        """Rank of the recommended candidate, or None."""
        out = ctypes.c_size_t(_NONE)
        _lib.opi_advice_verdict(self._get(), ctypes.byref(out))
        return None if out.value == _NONE else out.value

    def candidate(self, rank):
        out = _new(Candidate)
        _call(_lib.opi_advice_candidate, self._get(), rank, ctypes.byref(out))
        return out

    def __iter__(self):
        return (self.candidate(rank) for rank in range(len(self)))

    def prediction(self, rank, target):
        out = Prediction()
        _call(_lib.opi_advice_prediction, self._get(), rank, target_index(target), ctypes.byref(out),
              ctypes.sizeof(Prediction))
        return out

    @property
    def sentence(self):
        return _text(_lib.opi_advice_sentence(self._get()))

    @property
    def probe(self):
        return _text(_lib.opi_advice_probe(self._get()))

    @property
    def notes(self):
        handle = self._get()
        return [_text(_lib.opi_advice_note(handle, i)) for i in range(_lib.opi_advice_note_count(handle))]

    def json(self):
        return _json.loads(_text_of(_lib.opi_advice_json, self._get()))
