"""Generates digit shapes that are missing from the data set.

Its writers put a bar through the seven and no foot under the one, unlike most people. These shapes are drawn as on the
page's drawing pad (`drawing.js` of cudock-serve): scaled to the height of the image, with a round pen of 0.17 of its side;
each pixel is the number of inked points in its 4x4 block. They are used for training only, not for evaluation.
"""

import numpy as np

PEN = 0.17 * 32
EACH = 30

# Strokes as points on a 100 by 100 canvas, y downwards.
SHAPES = [
    (1, [[(50, 8), (50, 92)]]),
    (1, [[(32, 30), (52, 8), (52, 92)]]),
    (1, [[(34, 28), (52, 8), (52, 92)], [(32, 92), (72, 92)]]),
    (7, [[(22, 12), (76, 12), (42, 92)]]),
    (7, [[(24, 24), (24, 12), (78, 12), (52, 50), (44, 92)]]),
    (4, [[(28, 8), (24, 55), (78, 55)], [(66, 10), (66, 92)]]),
    (4, [[(64, 92), (64, 8), (20, 64), (84, 64)]]),
]


def drawings(seed):
    """Returns images [M, 64] with pixels 0 to 16, and their labels: several variations of each shape."""
    random = np.random.default_rng(seed)
    made = [(digit, rasterised(varied(strokes, random))) for digit, strokes in SHAPES for _ in range(EACH)]
    return np.stack([image for _, image in made]), np.array([digit for digit, _ in made])


def varied(strokes, random):
    """Returns the shape with moved corners, slanted and stretched."""
    slant, wide = random.normal(0, 0.12), np.exp(random.normal(0, 0.2))
    change = np.array([[wide, slant], [0, 1]])
    return [(np.array(stroke, float) - 50 + random.normal(0, 3, (len(stroke), 2))) @ change.T for stroke in strokes]


def rasterised(strokes):
    points = np.concatenate(strokes)
    low, high = points.min(axis=0), points.max(axis=0)
    scale = (32 - PEN) / (high - low).max()
    grid = np.stack(np.meshgrid(np.arange(32) + 0.5, np.arange(32) + 0.5), axis=-1)
    inked = np.zeros((32, 32), bool)
    for stroke in strokes:
        placed = (stroke - (low + high) / 2) * scale + 16
        for start, end in zip(placed[:-1], placed[1:]):
            along = ((grid - start) @ (end - start) / ((end - start) ** 2).sum()).clip(0, 1)
            nearest = start + along[..., None] * (end - start)
            inked |= np.linalg.norm(grid - nearest, axis=-1) <= PEN / 2
    return inked.reshape(8, 4, 8, 4).sum(axis=(1, 3)).reshape(64).astype(np.float32)
