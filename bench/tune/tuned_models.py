"""Models for the comparison of `bench --tune` with an exhaustive grid: written with the standard library, seeded.

mlp          512→1024→1024→10 with ReLU, from the comparison of servers
resnet       18 layers like ResNet-18 on images of 32×32, with a quarter of its channels
transformer  four encoder layers of width 128 with four heads, over 32 tokens
resnet50     ResNet-50 in half precision (needs torch), for a GPU
bert         BERT-base in half precision with 128 tokens (needs torch), for a GPU
"""
import pathlib
import random
import struct
import subprocess
import sys

SERVING = pathlib.Path(__file__).resolve().parent.parent / "serving"
sys.path.insert(0, str(SERVING / "lib"))

import models as serving_models  # noqa: E402
import onnxfile  # noqa: E402

# The arguments of `bench` for each model.
REQUESTS = {
    "mlp": [], "resnet": ["--protocol", "oip-binary"], "transformer": ["--protocol", "oip-binary"],
    "resnet50": ["--protocol", "oip-binary"], "bert": ["--protocol", "oip-binary", "--shape", "tokens=128"],
}
HEADS, WIDTH, TOKENS, LAYERS, WORDS = 4, 128, 32, 4, 1000


class Graph:
    def __init__(self, seed):
        self.random, self.nodes, self.constants = random.Random(seed), [], []

    def weight(self, *shape, scale=None):
        count = 1
        for size in shape:
            count *= size
        scale = scale or (2 / max(1, count // shape[0])) ** 0.5
        values = [self.random.gauss(0, scale) for _ in range(count)]
        return self.constant(onnxfile.FLOAT, shape, struct.pack(f"<{count}f", *values))

    def whole(self, *values):
        return self.constant(onnxfile.INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))

    def constant(self, element, shape, raw):
        name = f"w{len(self.constants)}"
        self.constants.append(onnxfile.tensor(name, element, list(shape), raw))
        return name

    def node(self, operator, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(onnxfile.node(operator, list(inputs), [name], **attributes))
        return name

    def model(self, name, last, element, shape, outputs):
        self.nodes.append(onnxfile.node("Identity", [last], ["output"]))
        return onnxfile.model(name, self.nodes, self.constants, [onnxfile.value("input", element, ["N", *shape])],
                              [onnxfile.value("output", onnxfile.FLOAT, ["N", outputs])])


def _resnet():
    graph = Graph(600)

    def convolution(x, before, after, stride=1, size=3):
        return graph.node("Conv", x, graph.weight(after, before, size, size), graph.weight(after, scale=0.1),
                          kernel_shape=[size, size], strides=[stride, stride], pads=[size // 2] * 4)
    x, channels = graph.node("Relu", convolution("input", 3, 16)), 16
    for width in (16, 32, 64, 128):
        for block in range(2):
            stride = 2 if block == 0 and width > 16 else 1
            straight = x if channels == width else convolution(x, channels, width, stride, 1)
            inner = graph.node("Relu", convolution(x, channels, width, stride))
            inner = convolution(inner, width, width)
            x, channels = graph.node("Relu", graph.node("Add", inner, straight)), width
    x = graph.node("Flatten", graph.node("GlobalAveragePool", x), axis=1)
    x = graph.node("Gemm", x, graph.weight(128, 10), graph.weight(10, scale=0.1))
    return graph.model("resnet", x, onnxfile.FLOAT, [3, 32, 32], 10)


def _transformer():
    graph = Graph(700)

    def linear(x, before, after):
        product = graph.node("MatMul", x, graph.weight(before, after, scale=before ** -0.5))
        return graph.node("Add", product, graph.weight(after, scale=0.02))

    def norm(x):
        return graph.node("LayerNormalization", x, graph.weight(WIDTH, scale=1.0), graph.weight(WIDTH, scale=0.02),
                          axis=-1)
    x = graph.node("Gather", graph.weight(WORDS, WIDTH, scale=1.0), "input")
    split = graph.whole(0, 0, HEADS, WIDTH // HEADS)
    for _ in range(LAYERS):
        orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        query, key, value = (graph.node("Transpose", graph.node("Reshape", linear(x, WIDTH, WIDTH), split), perm=order)
                             for order in orders)
        scores = graph.node("Softmax", graph.node("Mul", graph.node("MatMul", query, key),
                                                  graph.constant(onnxfile.FLOAT, [1], struct.pack("<f", 0.18))), axis=-1)
        found = graph.node("Transpose", graph.node("MatMul", scores, value), perm=[0, 2, 1, 3])
        found = graph.node("Reshape", found, graph.whole(0, 0, WIDTH))
        x = norm(graph.node("Add", x, linear(found, WIDTH, WIDTH)))
        x = norm(graph.node("Add", x, linear(graph.node("Relu", linear(x, WIDTH, 4 * WIDTH)), 4 * WIDTH, WIDTH)))
    x = graph.node("ReduceMean", x, axes=[1], keepdims=0)
    return graph.model("transformer", x, onnxfile.INT64, [TOKENS], WIDTH)


MODELS = {"resnet": _resnet, "transformer": _transformer}


def write(directory, name, python):
    """Writes the model unless it exists, and returns its path. `python` is one with torch."""
    path = pathlib.Path(directory) / f"{name}.onnx"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    if name == "mlp":
        return serving_models.write(directory, name)
    part = path.with_suffix(".part")
    if name in MODELS:
        part.write_bytes(MODELS[name]())
    else:
        script = {"resnet50": "export_resnet50.py", "bert": "bert.py"}[name]
        subprocess.run([python, SERVING / "h200" / script, part], check=True)
    part.rename(path)
    return path
