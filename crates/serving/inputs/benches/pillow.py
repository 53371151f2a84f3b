"""Prints the seconds that Pillow and numpy take for one image. Called by image.rs with a file and a number of images."""

import io
import sys
import time

import numpy as np
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def prepared(data):
    """What torchvision's Resize(256), CenterCrop(224), ToTensor and Normalize do."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    short = min(image.size)
    image = image.resize([int(256 * side / short) for side in image.size], Image.Resampling.BILINEAR)
    left, top = (round((side - 224) / 2) for side in image.size)
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
    return np.ascontiguousarray(((pixels / 255 - MEAN) / STD).transpose(2, 0, 1))


data, count = open(sys.argv[1], "rb").read(), int(sys.argv[2])
prepared(data)
begun = time.perf_counter()
for _ in range(count):
    prepared(data)
print((time.perf_counter() - begun) / count)
