"""Models that take tensors of PyTorch, on the CPU or a GPU."""
import contextlib
import dataclasses
import math
import mmap
import sys
import threading
import typing

import numpy as np
import torch
from cudock_lane import STEP, view
from cudock_signature import Spec, arrange, find_outputs, named_outputs
from cudock_worker import LoadError, describe, in_this_process

# Most CUDA graphs of a lane.
MAX_GRAPHS = 64
# A shape with open sizes is captured as a CUDA graph when it has come this often: most do not come again.
COMMON = 3
PRECISIONS = {"fp16": torch.float16, "bf16": torch.bfloat16}
CAPTURE = threading.Lock()


@dataclasses.dataclass
class TorchOptions:
    """How a model runs."""
    device: typing.Any
    # The precision of the computation, if it is not that of the inputs.
    dtype: typing.Any
    # Whether operators are cast to that precision, and the weights keep theirs.
    uses_autocast: bool
    channels_last: bool
    compile: bool
    # Numbers of rows that the model is compiled for; if there are none, it is compiled for any number.
    compiled_rows: tuple
    # Numbers of rows that are captured as CUDA graphs.
    graphs: tuple
    pinned: bool

    def convert(self, tensor):
        """An input in the model's precision and layout."""
        changes = {}
        if self.dtype is not None and tensor.is_floating_point() and not self.uses_autocast:
            changes["dtype"] = self.dtype
        if self.channels_last and tensor.dim() == 4:
            changes["memory_format"] = torch.channels_last
        return tensor.to(**changes) if changes else tensor

    def uncompiled(self):
        """Within it, a model that is compiled for certain sizes runs as it is."""
        return torch.compiler.set_stance("force_eager") if self.compiled_rows else contextlib.nullcontext()

    def autocast(self):
        if self.uses_autocast:
            return torch.autocast(self.device.type, dtype=self.dtype)
        return contextlib.nullcontext()


def dtype_name(dtype):
    return str(dtype)[len("torch."):]


# Sides of the images that models are made for.
SIDES = (28, 32, 64, 96, 128, 160, 192, 224, 240, 256, 299, 384, 512)


def layer_input(module, name):
    """The input of a module on the CPU, found by running it on zeros: its first layer must get them as they are, and the sizes
    that the layer leaves open must be ones for which the rest runs. None if that is not certain."""
    leaves = [one for one in module.modules() if next(one.children(), None) is None]
    first = next((one for one in leaves if isinstance(one, (torch.nn.Linear, torch.nn.Conv2d, torch.nn.Embedding))), None)

    def runs(*shape, dtype=torch.float32):
        zeros, calls = torch.zeros(shape, dtype=dtype), []
        hooks = [one.register_forward_pre_hook(lambda leaf, values: calls.append((leaf, values))) for one in leaves]
        try:
            with torch.inference_mode():
                module.eval()(zeros)
        except Exception:
            return False
        finally:
            for hook in hooks:
                hook.remove()
        return bool(calls) and calls[0][0] is first and any(value is zeros for value in calls[0][1])

    if isinstance(first, torch.nn.Linear):
        return Spec(name, "float32", (None, first.in_features)) if runs(2, first.in_features) else None
    if isinstance(first, torch.nn.Embedding):
        is_open = all(runs(2, length, dtype=torch.int64) for length in (3, 5))
        return Spec(name, "int64", (None, None)) if is_open else None
    if isinstance(first, torch.nn.Conv2d):
        channels = first.in_channels
        if runs(1, channels, 224, 192) and runs(1, channels, 192, 224):
            return Spec(name, "float32", (None, channels, None, None))
        sides = [side for side in SIDES if runs(1, channels, side, side)]
        return Spec(name, "float32", (None, channels, *sides * 2)) if len(sides) == 1 else None
    return None


class TorchModel:
    """A function of tensors."""

    def __init__(self, call, inputs, outputs, options):
        self.call, self.inputs, self.options = in_this_process(call), inputs, options
        self.engine = f"PyTorch {torch.__version__}"
        self.notes = []
        strings = [spec.name for spec in inputs if spec.dtype == "string"]
        if strings:
            raise LoadError(f"input `{strings[0]}` is a string, which tensors of PyTorch cannot hold")
        self.dtypes = [getattr(torch, spec.dtype) for spec in inputs]
        self.is_closed = all(None not in spec.shape[1:] for spec in inputs)
        with torch.inference_mode():
            # A model is compiled by its first runs; and one that cannot run in its new precision shows it now.
            has_new_dtype = options.dtype is not None and not options.uses_autocast
            found = None
            if outputs is None or (options.compile and not options.compiled_rows) or has_new_dtype:
                found = find_outputs(inputs, self.probe)
            self.outputs = outputs or found
            if options.compiled_rows:
                self.compile_sizes()
            self.out_dtypes = [getattr(torch, spec.dtype) for spec in self.outputs]
            self.names = [spec.name for spec in self.outputs]
            if options.graphs:
                self.try_graph()

    def compute(self, tensors):
        options = self.options
        if options.dtype is not None or options.channels_last:
            tensors = [options.convert(tensor) for tensor in tensors]
        with options.autocast():
            return self.call(*tensors)

    def results(self, tensors, rows):
        """The outputs as contiguous tensors of the declared types."""
        results = []
        values = arrange(self.compute(tensors), self.names)
        for spec, dtype, value in zip(self.outputs, self.out_dtypes, values):
            tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value, dtype=dtype)
            # The precision of the computation is a setting; that of the outputs is not.
            if tensor.dtype != dtype and tensor.dtype == self.options.dtype and dtype.is_floating_point:
                tensor = tensor.to(dtype)
            spec.check(dtype_name(tensor.dtype), tensor.shape, rows)
            results.append(tensor.contiguous())
        return results

    def zeros(self, shapes):
        return [torch.zeros(shape, dtype=dtype, device=self.options.device)
                for shape, dtype in zip(shapes, self.dtypes)]

    def shapes(self, rows):
        """The shapes of inputs with a number of rows; open sizes are 1."""
        return [(rows, *(1 if size is None else size for size in spec.shape[1:])) for spec in self.inputs]

    def probe(self, shapes):
        specs = []
        with self.options.uncompiled():
            values = named_outputs(self.compute(self.zeros(shapes)))
        for name, value in values.items():
            tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
            dtype = tensor.dtype
            if dtype == self.options.dtype and torch.float32 in self.dtypes:
                dtype = torch.float32
            specs.append(Spec(name, dtype_name(dtype), tuple(tensor.shape)))
        return specs

    def compile_sizes(self):
        """Compiles the model for each size. Batches of other sizes run as they are: compiling would hold them up."""
        for rows in self.options.compiled_rows:
            self.compute(self.zeros(self.shapes(rows)))
        torch.compiler.set_stance("eager_on_recompile")

    def try_graph(self):
        """Captures a batch once, so that a model for which this fails is known when it is loaded."""
        rows = min(self.options.graphs)
        tensors = self.zeros(self.shapes(rows))
        try:
            capture(torch.cuda.Stream(), torch.cuda.graph_pool_handle(), lambda: self.results(tensors, rows))
        except Exception as error:
            self.notes.append(f"CUDA graphs are disabled: {describe(error)}")
            self.options.graphs = ()
            torch.cuda.synchronize()

    def open_lane(self, lane):
        return TorchLane(self, lane)


def capture(stream, pool, work):
    """Captures work on a stream as a CUDA graph; returns the graph and the tensors that hold its results."""
    with CAPTURE, torch.cuda.stream(stream):
        # The first runs choose algorithms and allocate workspaces, which cannot be captured.
        for _ in range(2):
            work()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            results = work()
    return graph, results


class TorchLane:
    """Runs the batches of one lane.

    On a GPU they are copied on the lane's stream from pinned memory to fixed buffers, computed and copied back. The CPU
    waits once, at the end and without the interpreter's lock, while other lanes proceed.
    """

    def __init__(self, model, lane):
        self.model, self.options = model, model.options
        self.mode = torch.inference_mode()
        self.mode.__enter__()
        # A view of each output's memory, with its shape and the mapping it is a view of.
        self.outputs = [(None, None, None)] * len(model.outputs)
        self.is_gpu = self.options.device.type == "cuda"
        if self.is_gpu:
            self.stream = torch.cuda.Stream()
            torch.cuda.set_stream(self.stream)
            self.done = torch.cuda.Event(blocking=True)
            self.pool = torch.cuda.graph_pool_handle()
            self.buffers = [torch.empty(0, dtype=torch.uint8, device=self.options.device)] * len(model.inputs)
            for memory in [*lane.inputs, *lane.outputs] if self.options.pinned else []:
                memory.on_move(pin)

    def views(self, lane, extents):
        return [tensor_view(memory, dtype, shape)
                for memory, dtype, (shape, _) in zip(lane.inputs, self.model.dtypes, extents)]

    def run(self, lane, plan):
        inputs = self.upload(plan) if self.is_gpu else plan.views
        if self.is_gpu and self.wants_graph(lane, plan):
            self.capture(plan)
        if plan.graph is not None:
            plan.graph.replay()
        results = plan.results or self.model.results(inputs, plan.rows)
        replies = []
        for index, tensor in enumerate(results):
            shape, size = tensor.shape, tensor.nbytes
            known_shape, mapped, output = self.outputs[index]
            memory = lane.outputs[index]
            if shape != known_shape or mapped is not memory.map:
                memory.reserve(size)
                output = tensor_view(memory, tensor.dtype, shape)
                self.outputs[index] = (shape, memory.map, output)
            output.copy_(tensor, non_blocking=True)
            replies.append((size, shape))
        if self.is_gpu:
            self.done.record(self.stream)
            self.done.synchronize()
        return replies

    def upload(self, plan):
        if plan.device is None:
            plan.device = [self.buffer(index, host) for index, host in enumerate(plan.views)]
        for buffer, host in zip(plan.device, plan.views):
            buffer.copy_(host, non_blocking=True)
        return plan.device

    def buffer(self, index, host):
        """A part of the input's buffer on the device. One that is too small stays with the plans that use it."""
        if self.buffers[index].nbytes < host.nbytes:
            size = 1 << (host.nbytes - 1).bit_length()
            self.buffers[index] = torch.empty(size, dtype=torch.uint8, device=self.options.device)
        return self.buffers[index][:host.nbytes].view(host.dtype).view(host.shape)

    def wants_graph(self, lane, plan):
        if plan.was_captured or plan.rows not in self.options.graphs:
            return False
        plan.uses += 1
        return ((self.model.is_closed or plan.uses >= COMMON)
                and sum(one.graph is not None for one in lane.plans.values()) < MAX_GRAPHS)

    def capture(self, plan):
        plan.was_captured = True
        try:
            work = lambda: self.model.results(plan.device, plan.rows)
            plan.graph, plan.results = capture(self.stream, self.pool, work)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:
            print(f"a batch of {plan.rows} rows runs without a CUDA graph: {describe(error)}", file=sys.stderr)
            torch.cuda.synchronize()


def tensor_view(memory, dtype, shape):
    # As bytes first: numpy has no bfloat16.
    size = math.prod(shape) * torch.empty((), dtype=dtype).element_size()
    return torch.from_numpy(view(memory, np.uint8, (size,))).view(dtype).view(shape)


def pin(old, new):
    """Pins memory for copies by the GPU and unpins what it replaces; returns CUDA's error, if any. Memory that is not
    pinned is copied more slowly."""
    runtime = torch.cuda.cudart()
    if old is not None:
        runtime.cudaHostUnregister(address(old))
    return int(runtime.cudaHostRegister(address(new), len(new), 0)) if new is not None else 0


def address(mapped):
    return np.frombuffer(mapped, np.uint8, 1).ctypes.data


def pin_error():
    """The error with which memory cannot be pinned; 0 if it can."""
    trial = mmap.mmap(-1, STEP)
    error = pin(None, trial)
    if not error:
        pin(trial, None)
    return error
