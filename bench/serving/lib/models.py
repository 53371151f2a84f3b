"""The models for every server in the comparison, and the requests sent to them: seeded, the same on every machine.

tiny    one 64×64 product: measures the server's own work
mlp     512→1024→1024→10 with ReLU: batching gains a factor of thirteen
conv    three convolutions over a 28×28 image: batching gains nothing, and waiting for a batch costs time
deep    a small row through 16 wide layers: most work is in the engine, which shows work for disconnected clients
lookup  reads table entries by index: an index beyond the table is well-formed and makes the engine fail

torch-mlp and resnet18 are networks in Python: `servers/python/networks.py`.
"""
import array
import json
import pathlib
import random
import struct

import onnxfile

SHAPES = {"tiny": [64], "mlp": [512], "conv": [1, 28, 28], "deep": [64], "lookup": [8],
          "torch-mlp": [512], "resnet18": [3, 64, 64]}
PYTHON_MODELS = ["torch-mlp", "resnet18"]
DISTINCT_REQUESTS = 16
TABLE = 100
INPUT, OUTPUT = "input", "output"


def _normal(seed, count, scale):
    source = random.Random(seed)
    return array.array("f", (source.gauss(0.0, scale) for _ in range(count)))


class _Builder:
    def __init__(self, seed):
        self.seed, self.nodes, self.constants, self.last = seed, [], [], INPUT

    def weight(self, shape, scale):
        count = 1
        for size in shape:
            count *= size
        name = f"w{len(self.constants)}"
        values = _normal(self.seed + len(self.constants), count, scale)
        self.constants.append(onnxfile.tensor(name, onnxfile.FLOAT, shape, values.tobytes()))
        return name

    def apply(self, operator, *others, **attributes):
        result = f"t{len(self.nodes)}"
        self.nodes.append(onnxfile.node(operator, [self.last, *others], [result], **attributes))
        self.last = result
        return self

    def finish(self, name, outputs):
        self.nodes.append(onnxfile.node("Identity", [self.last], [OUTPUT]))
        return onnxfile.model(
            name, self.nodes, self.constants,
            [onnxfile.value(INPUT, onnxfile.FLOAT, ["N", *SHAPES[name]])],
            [onnxfile.value(OUTPUT, onnxfile.FLOAT, ["N", outputs])])


def _tiny():
    net = _Builder(100)
    return net.apply("MatMul", net.weight([64, 64], 0.125)).finish("tiny", 64)


def _mlp():
    net = _Builder(200)
    sizes = [512, 1024, 1024, 10]
    for before, after in zip(sizes, sizes[1:]):
        net.apply("Gemm", net.weight([before, after], (2 / before) ** 0.5), net.weight([after], 0.1))
        if after != 10:
            net.apply("Relu")
    return net.finish("mlp", 10)


def _conv():
    net = _Builder(300)
    channels = [1, 32, 64, 64]
    for index, (before, after) in enumerate(zip(channels, channels[1:])):
        net.apply("Conv", net.weight([after, before, 3, 3], (2 / (9 * before)) ** 0.5), net.weight([after], 0.1),
                  kernel_shape=[3, 3], pads=[1, 1, 1, 1]).apply("Relu")
        if index == 0:
            net.apply("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    net.apply("GlobalAveragePool").apply("Flatten", axis=1)
    net.apply("Gemm", net.weight([64, 10], 0.25), net.weight([10], 0.1))
    return net.finish("conv", 10)


def _deep():
    net = _Builder(500)
    net.apply("Gemm", net.weight([64, 1024], (2 / 64) ** 0.5)).apply("Relu")
    layer = net.weight([1024, 1024], (2 / 1024) ** 0.5)
    for _ in range(16):
        net.apply("Gemm", layer).apply("Relu")
    return net.apply("Gemm", net.weight([1024, 10], (1 / 1024) ** 0.5)).finish("deep", 10)


def _lookup():
    net = _Builder(400)
    table = net.weight([TABLE], 1.0)
    net.apply("Cast", to=onnxfile.INT64)
    net.nodes.append(onnxfile.node("Gather", [table, net.last], ["entries"]))
    net.last = "entries"
    return net.finish("lookup", 8)


MODELS = {"tiny": _tiny, "mlp": _mlp, "conv": _conv, "deep": _deep, "lookup": _lookup}


def elements(name):
    """The number of elements in one row of the model's input."""
    count = 1
    for size in SHAPES[name]:
        count *= size
    return count


def rows(name):
    """Returns the rows to send, flat: `DISTINCT_REQUESTS` lists of single-precision numbers."""
    if name == "lookup":
        return [[float((7 * index + at) % TABLE) for at in range(8)] for index in range(DISTINCT_REQUESTS)]
    count = elements(name)
    return [_normal(f"{name} {index}", count, 1.0).tolist() for index in range(DISTINCT_REQUESTS)]


def _nest(flat, shape):
    if len(shape) == 1:
        return flat
    step = len(flat) // shape[0]
    return [_nest(flat[at * step:(at + 1) * step], shape[1:]) for at in range(shape[0])]


def predict_body(name, flat, count):
    """Returns rows as `{"input": [[…]]}`, as any Python client would print them."""
    return json.dumps({"input": _nest(flat, [count, *SHAPES[name]])}).encode()


def oip_body(name, flat, count):
    """Returns rows in the Open Inference Protocol, as JSON."""
    return json.dumps({"inputs": [{"name": INPUT, "datatype": "FP32", "shape": [count, *SHAPES[name]],
                                   "data": flat}]}).encode()


def raw_body(flat):
    """Returns rows as their bytes."""
    return struct.pack(f"<{len(flat)}f", *flat)


def oip_binary_body(name, flat, count):
    """Returns rows in the Open Inference Protocol with binary tensors: the body and the length of its JSON part."""
    raw = raw_body(flat)
    head = json.dumps({
        "inputs": [{"name": INPUT, "datatype": "FP32", "shape": [count, *SHAPES[name]],
                    "parameters": {"binary_data_size": len(raw)}}],
        "outputs": [{"name": OUTPUT, "parameters": {"binary_data": True}}]}).encode()
    return head + raw, len(head)


def write(directory, name):
    """Writes the model as `directory/NAME.onnx` unless it exists, and returns the path."""
    path = pathlib.Path(directory) / f"{name}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(MODELS[name]())
        part.rename(path)
    return path
