"""Models that take numpy arrays, and models that take rows of JSON."""
import collections.abc
import dataclasses
import importlib
import json
import threading

import numpy as np
from cudock_lane import view
from cudock_signature import BatchError, InvalidRows, Spec, arrange, find_outputs, named_outputs
from cudock_worker import in_this_process


def array_of(value, spec=None):
    """A model's output as an array. What has no type of its own, such as a list, gets that of the output."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "dtype") or spec is None or spec.dtype == "string":
        return np.asarray(value)
    return np.asarray(value, dtype=numpy_dtype(spec.dtype))


def dtype_name(dtype):
    return "string" if dtype.kind in "OUS" else dtype.name


def numpy_dtype(name):
    return np.dtype(importlib.import_module("ml_dtypes").bfloat16 if name == "bfloat16" else name)


def read_strings(memory, extent):
    shape, size = extent
    data = bytes(memoryview(memory.map)[:size])
    strings, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at:at + 4], "little")
        strings.append(data[at + 4:end].decode("utf-8", "surrogateescape"))
        at = end
    array = np.empty(len(strings), object)
    array[:] = strings
    return array.reshape(shape)


def write_strings(memory, array):
    parts = []
    for one in array.ravel():
        text = one if isinstance(one, bytes) else str(one).encode("utf-8", "surrogateescape")
        parts += [len(text).to_bytes(4, "little"), text]
    data = b"".join(parts)
    memory.reserve(len(data))
    memory.map[:len(data)] = data
    return len(data), array.shape


class ArrayModel:
    """A function of arrays. It runs one batch at a time: most such code is not written for several threads."""

    def __init__(self, call, inputs, outputs, engine=None):
        self.call, self.inputs, self.engine = in_this_process(call), inputs, engine
        self.lock = threading.Lock()
        self.dtypes = [None if spec.dtype == "string" else numpy_dtype(spec.dtype) for spec in inputs]
        self.outputs = outputs or find_outputs(inputs, self.probe)

    def probe(self, shapes):
        arrays = [np.full(shape, "", object) if dtype is None else np.zeros(shape, dtype)
                  for dtype, shape in zip(self.dtypes, shapes)]
        outputs = [(name, array_of(value)) for name, value in named_outputs(self.call(*arrays)).items()]
        return [Spec(name, dtype_name(array.dtype), array.shape) for name, array in outputs]

    def open_lane(self, lane):
        return self

    def views(self, lane, extents):
        """The inputs in shared memory; strings are read for each batch."""
        return [None if dtype is None else view(memory, dtype, shape)
                for dtype, memory, (shape, _) in zip(self.dtypes, lane.inputs, extents)]

    def run(self, lane, plan):
        arrays = [read_strings(memory, extent) if array is None else array
                  for array, memory, extent in zip(plan.views, lane.inputs, plan.extents)]
        # Until the outputs are copied: the next call may write them to the same arrays.
        with self.lock:
            values = arrange(self.call(*arrays), [spec.name for spec in self.outputs])
            return [write_output(*output, plan.rows) for output in zip(lane.outputs, self.outputs, values)]


def write_output(memory, spec, value, rows):
    try:
        array = array_of(value, spec)
    except (TypeError, ValueError) as error:
        raise BatchError(f"output `{spec.name}` is not {spec}: {error}") from error
    spec.check(dtype_name(array.dtype), array.shape, rows)
    if spec.dtype == "string":
        return write_strings(memory, array)
    memory.reserve(array.nbytes)
    np.copyto(view(memory, array.dtype.newbyteorder("="), array.shape), array)
    return array.nbytes, array.shape


class JsonModel:
    """A function of a list of rows, each decoded from JSON, that returns a list of results."""

    def __init__(self, call, row_type):
        self.call, self.engine = in_this_process(call), None
        self.row_type = row_type if dataclasses.is_dataclass(row_type) else None
        self.inputs = self.outputs = [Spec("json", "string", (None,), json=True)]
        self.lock = threading.Lock()

    def open_lane(self, lane):
        return self

    def views(self, lane, extents):
        return None

    def run(self, lane, plan):
        texts = read_strings(lane.inputs[0], plan.extents[0])
        rows, invalid = [], []
        for index, text in enumerate(texts):
            # Rows that pad or warm up are empty.
            if text:
                try:
                    rows.append(self.row(text))
                except (TypeError, ValueError) as error:
                    invalid.append((index, str(error)))
        if invalid:
            raise InvalidRows(invalid)
        with self.lock:
            encoded = iter([encode(result) for result in self.results(rows)] if rows else [])
        strings = np.array([next(encoded) if text else "null" for text in texts], object)
        return [write_strings(lane.outputs[0], strings)]

    def row(self, text):
        value = json.loads(text)
        return self.row_type(**value) if self.row_type else value

    def results(self, rows):
        results = self.call(rows)
        results = results.tolist() if hasattr(results, "tolist") else results
        if not isinstance(results, collections.abc.Sequence) or len(results) != len(rows):
            found = f"{len(results)} results" if hasattr(results, "__len__") else type(results).__name__
            raise BatchError(f"predict returned {found}, expected a list of {len(rows)}")
        return results


def encode(value):
    """JSON has neither NaN nor infinities: they become null."""
    try:
        return json.dumps(value, default=plain, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(value, default=plain), parse_constant=lambda _: None))


def plain(value):
    """What JSON can hold instead of a dataclass, an array or a scalar of numpy or torch."""
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON serializable")
