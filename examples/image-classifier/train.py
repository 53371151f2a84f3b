"""Trains the example's network on drawn shapes, and writes model.onnx and labels.txt.

Images are prepared as `[serve.image]` of cudock.toml says: the shorter side is resized to 36 pixels, the centered 32x32
are kept, and each channel is normalized.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from shapes import LABELS, drawings

SEED = 7
STEPS = 2500
BATCH = 64
RATE = 3e-3
RESIZE, CROP = 36, 32
MEAN = np.array([0.5, 0.5, 0.5], np.float32)
STD = np.array([0.25, 0.25, 0.25], np.float32)
CONVOLUTIONS = (("conv1", 3, 16), ("conv2", 16, 32), ("conv3", 32, 32))
HERE = Path(__file__).parent


def prepared(image):
    """Returns what the server makes of an image: FP32 [3, 32, 32]."""
    short = min(image.size)
    image = image.resize([int(RESIZE * side / short) for side in image.size], Image.Resampling.BILINEAR)
    left, top = (round((side - CROP) / 2) for side in image.size)
    pixels = np.asarray(image.crop((left, top, left + CROP, top + CROP)), np.float32)
    return ((pixels / 255 - MEAN) / STD).transpose(2, 0, 1)


def initial_weights(key):
    weights = {}
    for name, taken, given in CONVOLUTIONS:
        key, part = jax.random.split(key)
        weights[f"{name}.weight"] = jax.random.normal(part, (given, taken, 3, 3)) * (2 / (9 * taken)) ** 0.5
        weights[f"{name}.bias"] = jnp.zeros(given)
    channels = CONVOLUTIONS[-1][2]
    weights["dense.weight"] = jax.random.normal(key, (channels, len(LABELS))) * channels**-0.5
    weights["dense.bias"] = jnp.zeros(len(LABELS))
    return weights


def scores(weights, values):
    for name, _, _ in CONVOLUTIONS:
        values = jax.lax.conv(values, weights[f"{name}.weight"], (1, 1), "SAME")
        values = jax.nn.relu(values + weights[f"{name}.bias"][:, None, None])
        values = jax.lax.reduce_window(values, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return values.mean(axis=(2, 3)) @ weights["dense.weight"] + weights["dense.bias"]


def loss(weights, images, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(scores(weights, images)), labels[:, None], axis=1).mean()


@jax.jit
def step(number, weights, first, second, images, labels):
    """Runs one step of Adam."""
    slopes = jax.grad(loss)(weights, images, labels)
    tree, rate = jax.tree.map, RATE * (0.5 + 0.5 * jnp.cos(jnp.pi * number / STEPS))
    first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, slopes)
    second = tree(lambda v, g: 0.999 * v + 0.001 * g * g, second, slopes)

    def moved(weight, m, v):
        return weight - rate * m / (1 - 0.9**number) / (jnp.sqrt(v / (1 - 0.999**number)) + 1e-8)

    return tree(moved, weights, first, second), first, second


def train(images, labels):
    weights = initial_weights(jax.random.key(SEED))
    first = second = jax.tree.map(jnp.zeros_like, weights)
    rng = np.random.default_rng(SEED)
    for number in range(1, STEPS + 1):
        picked = rng.integers(0, len(labels), BATCH)
        weights, first, second = step(float(number), weights, first, second, images[picked], labels[picked])
    return weights


def export(weights, path):
    """Writes the network as ONNX: input `image` FP32 [N, 3, 32, 32], output `scores` FP32 [N, 4]."""
    node, nodes, last = helper.make_node, [], "image"
    for name, _, _ in CONVOLUTIONS:
        inputs = [last, f"{name}.weight", f"{name}.bias"]
        nodes += [
            node("Conv", inputs, [f"{name}.out"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("Relu", [f"{name}.out"], [f"{name}.relu"]),
            node("MaxPool", [f"{name}.relu"], [f"{name}.pool"], kernel_shape=[2, 2], strides=[2, 2]),
        ]
        last = f"{name}.pool"
    nodes += [
        node("GlobalAveragePool", [last], ["pooled"]),
        node("Flatten", ["pooled"], ["features"], axis=1),
        node("Gemm", ["features", "dense.weight", "dense.bias"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "shapes",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, CROP, CROP])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", len(LABELS)])],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="cudock")
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())


def data(count, seed):
    images, labels = drawings(count, seed)
    return np.stack([prepared(image) for image in images]), np.array(labels)


def main():
    export(train(*data(6000, SEED)), HERE / "model.onnx")
    (HERE / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS))
    images, labels = data(1000, SEED + 1)
    session = onnxruntime.InferenceSession(HERE / "model.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"image": images})
    print(f"{(found.argmax(axis=1) == labels).sum()} of {len(labels)} other drawings are classified correctly")


if __name__ == "__main__":
    main()
