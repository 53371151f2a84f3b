"""Trains the example's network on the digits that scikit-learn ships, and writes model.onnx.

The data set is small: 1,797 images of 8x8 pixels, each pixel the number of inked points (0 to 16) in a 4x4 block of a
32x32 bitmap. The network has to recognize drawings by other people, so every image is varied each time it is used: drawn
back onto the 32x32 grid, rotated, slanted, stretched, moved, with thicker or thinner ink, and counted again. A few shapes
that its writers did not use come from drawn.py.

The last fifth of the file is never used for training. The labels repeat every 130 images, because thirteen people filled in
a printed form: one writer follows another. So these images are by writers that the network has not seen, except for one
whose images are on both sides of the split; a random split would not achieve that.

    python train.py              trains, writes model.onnx, checks it in ONNX Runtime
    python train.py --validate   also excludes the fifth before the last and evaluates on it: for choosing settings
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

from drawn import drawings

SEED = 5
HELD_OUT = 360
BATCH = 128
STEPS = 12_000
PEAK_RATE = 2e-3
WEIGHT_DECAY = 1e-2
AVERAGE = 0.999
MODEL = Path(__file__).with_name("model.onnx")

CONVOLUTIONS = (("conv1", 1, 24), ("conv2", 24, 32), ("conv3", 32, 48))
DENSES = (("dense1", 48 * 4 * 4, 64), ("dense2", 64, 10))


def initial_weights(key):
    """Returns weights for ReLU layers (He), with zero biases."""
    weights = {}
    for name, taken, given in CONVOLUTIONS:
        key, part = jax.random.split(key)
        weights[f"{name}.weight"] = jax.random.normal(part, (given, taken, 3, 3)) * (2 / (9 * taken)) ** 0.5
        weights[f"{name}.bias"] = jnp.zeros(given)
    for name, taken, given in DENSES:
        key, part = jax.random.split(key)
        weights[f"{name}.weight"] = jax.random.normal(part, (taken, given)) * (2 / taken) ** 0.5
        weights[f"{name}.bias"] = jnp.zeros(given)
    return weights


def scores(weights, images, drop_key=None):
    """Returns the ten scores before softmax, for images of shape [N, 64] with pixels 0 to 16."""
    values = images.reshape(-1, 1, 8, 8) / 16
    for name, _, _ in CONVOLUTIONS:
        values = jax.lax.conv(values, weights[f"{name}.weight"], (1, 1), "SAME")
        values = jax.nn.relu(values + weights[f"{name}.bias"][:, None, None])
        if name == "conv2":
            values = jax.lax.reduce_window(values, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    values = values.reshape(-1, DENSES[0][1])
    values = jax.nn.relu(values @ weights["dense1.weight"] + weights["dense1.bias"])
    if drop_key is not None:
        values = values * jax.random.bernoulli(drop_key, 0.7, values.shape) / 0.7
    return values @ weights["dense2.weight"] + weights["dense2.bias"]


def bent(key, image):
    """Returns a variation of an image: 64 pixels from 64 pixels."""
    keys = jax.random.split(key, 7)
    turn = jax.random.normal(keys[0]) * 0.12
    slant = jax.random.normal(keys[1]) * 0.15
    # Also much narrower: the ones in the data set were widened to a block of ink, but people draw a line.
    narrowest, smallest = jnp.log(0.55), jnp.log(0.88)
    wide, high = jnp.exp(jax.random.uniform(keys[2], (2,), minval=jnp.array([narrowest, smallest]), maxval=0.12))
    move = jax.random.normal(keys[3], (2,)) * 0.9
    waves = jax.random.normal(keys[4], (2, 3, 3)) * 1.0

    grid = jnp.arange(32) - 15.5
    down, right = jnp.meshgrid(grid, grid, indexing="ij")
    wave = jax.image.resize(waves, (2, 32, 32), "cubic")
    back_down = (jnp.cos(turn) * down - jnp.sin(turn) * right) / high + move[0] + wave[0]
    back_right = (jnp.sin(turn) * down + jnp.cos(turn) * right) / wide + slant * down + move[1] + wave[1]
    places = [(back_down + 15.5 - 1.5) / 4, (back_right + 15.5 - 1.5) / 4]
    ink = jax.scipy.ndimage.map_coordinates(image.reshape(8, 8) / 16, places, order=1)

    threshold = jax.random.uniform(keys[5], minval=0.25, maxval=0.6)
    bitmap = jnp.clip((ink - threshold) * 8 + 0.5, 0, 1)
    counted = jnp.round(bitmap.reshape(8, 4, 8, 4).sum(axis=(1, 3))).reshape(64)
    return jnp.where(jax.random.bernoulli(keys[6], 0.2), image, counted)


def loss(weights, images, labels, drop_key):
    likelihoods = jax.nn.log_softmax(scores(weights, images, drop_key))
    wanted = jax.nn.one_hot(labels, 10) * 0.95 + 0.005
    return -(wanted * likelihoods).sum(axis=1).mean()


@jax.jit
def step(number, state, key, images, labels):
    """Runs one step of AdamW, with a running average of the weights."""
    weights, first, second, average = state
    pick_key, bend_key, drop_key = jax.random.split(jax.random.fold_in(key, number), 3)
    picked = jax.random.randint(pick_key, (BATCH,), 0, images.shape[0])
    seen = jax.vmap(bent)(jax.random.split(bend_key, BATCH), images[picked])
    slopes = jax.grad(loss)(weights, seen, labels[picked], drop_key)

    count = number + 1.0
    rate = PEAK_RATE * jnp.minimum(count / 300, 0.5 + 0.5 * jnp.cos(jnp.pi * count / STEPS))
    tree = jax.tree.map
    first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, slopes)
    second = tree(lambda v, g: 0.999 * v + 0.001 * g * g, second, slopes)

    def moved(weight, m, v):
        by = m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)
        return weight - rate * (by + WEIGHT_DECAY * weight)

    weights = tree(moved, weights, first, second)
    average = tree(lambda a, w: AVERAGE * a + (1 - AVERAGE) * w, average, weights)
    return weights, first, second, average


def train(images, labels):
    start_key, key = jax.random.split(jax.random.key(SEED))
    weights = initial_weights(start_key)
    nothing = jax.tree.map(jnp.zeros_like, weights)
    state = (weights, nothing, nothing, weights)
    for number in range(STEPS):
        state = step(number, state, key, images, labels)
        if (number + 1) % 2000 == 0:
            print(f"step {number + 1}: {wrong(state[3], images, labels)} of {len(labels)} training images misclassified")
    return state[3]


def wrong(weights, images, labels):
    return int((jnp.argmax(jax.jit(scores)(weights, images), axis=1) != labels).sum())


def export(weights, path):
    """Returns the network as ONNX: input `image` [N, 64], output `probabilities` [N, 10]."""
    constants = {name: np.asarray(value, np.float32) for name, value in weights.items()}
    constants["darkest"] = np.array(16, np.float32)
    constants["square"] = np.array([-1, 1, 8, 8], np.int64)
    constants["flat"] = np.array([-1, DENSES[0][1]], np.int64)

    node = helper.make_node
    nodes = [node("Div", ["image", "darkest"], ["scaled"]), node("Reshape", ["scaled", "square"], ["values"])]
    last = "values"
    for name, _, _ in CONVOLUTIONS:
        inputs = [last, f"{name}.weight", f"{name}.bias"]
        nodes.append(node("Conv", inputs, [f"{name}.out"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", [f"{name}.out"], [f"{name}.relu"]))
        last = f"{name}.relu"
        if name == "conv2":
            nodes.append(node("MaxPool", [last], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]))
            last = "pooled"
    nodes += [
        node("Reshape", [last, "flat"], ["features"]),
        node("Gemm", ["features", "dense1.weight", "dense1.bias"], ["dense1.out"]),
        node("Relu", ["dense1.out"], ["dense1.relu"]),
        node("Gemm", ["dense1.relu", "dense2.weight", "dense2.bias"], ["scores"]),
        node("Softmax", ["scores"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 64])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="cudock")
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())


def check(path, weights, images, labels):
    """Compares the written model with the trained one, and a batch with its rows one by one; returns its errors."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (together,) = session.run(None, {"image": images})
    singly = np.concatenate([session.run(None, {"image": images[at : at + 1]})[0] for at in range(len(images))])
    trained = np.asarray(jax.nn.softmax(scores(weights, images)))
    for name, other in (("its rows one by one", singly), ("the trained network", trained)):
        apart = float(np.abs(together - other).max())
        print(f"a batch of {len(images)} and {name} differ by {apart:.1e} at most")
        if apart > 1e-4:
            raise SystemExit("the difference is too large")
    return int((together.argmax(axis=1) != labels).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--validate", action="store_true", help="evaluate on the fifth before the last, write nothing")
    validate = parser.parse_args().validate

    digits = load_digits()
    images, labels = digits.data.astype(np.float32), digits.target
    end = len(labels) - (HELD_OUT if validate else 0)
    cut = end - HELD_OUT
    drawn_images, drawn_labels = drawings(SEED)
    weights = train(
        jnp.concatenate([images[:cut], drawn_images]),
        jnp.concatenate([labels[:cut], drawn_labels]),
    )
    left_images, left_labels = images[cut:end], labels[cut:end]
    if validate:
        mistakes = wrong(weights, jnp.asarray(left_images), jnp.asarray(left_labels))
    else:
        export(weights, MODEL)
        print(f"{MODEL.name}: {MODEL.stat().st_size:,} bytes")
        mistakes = check(MODEL, weights, left_images, left_labels)
    right = HELD_OUT - mistakes
    print(f"{right} of {HELD_OUT} held-out images recognized correctly: {100 * right / HELD_OUT:.1f} %")


if __name__ == "__main__":
    main()
