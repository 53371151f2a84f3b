"""Draws shapes in random colors, sizes and places, so that the example needs no data set."""

import math
import random

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

LABELS = ["circle", "square", "star", "triangle"]


def corners(label, turn):
    """Returns the corners of a shape around the origin, inside a circle of radius 1."""
    count = {"square": 4, "star": 10, "triangle": 3}[label]
    radii = [1, 0.45] if label == "star" else [1]
    angles = [turn + 2 * math.pi * index / count for index in range(count)]
    lengths = [radii[index % len(radii)] for index in range(count)]
    return [(length * math.cos(angle), length * math.sin(angle)) for length, angle in zip(lengths, angles)]


def color(rng):
    return tuple(rng.randrange(256) for _ in range(3))


def drawing(label, rng, size=None):
    """Returns an image of one shape, of random size if none is given."""
    width, height = size or (rng.randint(48, 160), rng.randint(48, 160))
    background, ink = color(rng), color(rng)
    while sum(abs(a - b) for a, b in zip(background, ink)) < 150:
        ink = color(rng)
    image = Image.new("RGB", (width, height), background)
    draw = ImageDraw.Draw(image)
    short = min(width, height)
    radius = short * rng.uniform(0.25, 0.42)
    x = width / 2 + rng.uniform(-1, 1) * (short / 2 - radius)
    y = height / 2 + rng.uniform(-1, 1) * (short / 2 - radius)
    if label == "circle":
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=ink)
    else:
        points = corners(label, rng.uniform(0, 2 * math.pi))
        draw.polygon([(x + radius * a, y + radius * b) for a, b in points], fill=ink)
    image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1)))
    noise = np.random.default_rng(rng.randrange(2**32)).normal(0, rng.uniform(0, 8), (height, width, 3))
    return Image.fromarray((np.asarray(image) + noise).clip(0, 255).astype(np.uint8))


def drawings(count, seed):
    """Returns images and the indices of their labels."""
    rng = random.Random(seed)
    indices = [rng.randrange(len(LABELS)) for _ in range(count)]
    return [drawing(LABELS[index], rng) for index in indices], indices
