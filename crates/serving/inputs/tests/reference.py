"""Writes the images in data/ and what Pillow makes of them, with which tests/it/reference.rs compares the results.

    pip install pillow==13.0.0 numpy==2.4.6
    python reference.py

Each case is what torchvision's transforms do to a PIL image: Resize (with antialiasing, its default), CenterCrop. Gray
images and those with transparency are converted as `Image.convert` does.
"""

import pathlib

import numpy as np
from PIL import Image, ImageOps

DATA = pathlib.Path(__file__).parent / "data"
FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}

# Name, file, resize, crop, mode, filter. A single size is the shorter side.
CASES = [
    ("down", "small.png", 32, 24, "RGB", "bilinear"),
    ("up", "small.png", 150, 24, "RGB", "bilinear"),
    ("bicubic", "small.png", 32, 24, "RGB", "bicubic"),
    ("lanczos", "small.png", 32, 24, "RGB", "lanczos"),
    ("box", "small.png", (20, 30), None, "RGB", "bilinear"),
    ("cropped", "small.png", None, 23, "RGB", "bilinear"),
    ("brightness", "small.png", 32, 24, "L", "bilinear"),
    ("gray", "gray.png", 32, 24, "RGB", "bilinear"),
    ("palette", "palette.png", 32, 24, "RGB", "bilinear"),
    ("transparent", "transparent.png", 32, 24, "RGB", "bilinear"),
    ("bits", "bits.png", 32, 24, "L", "bilinear"),
    ("lossless", "lossless.webp", 32, 24, "RGB", "bilinear"),
    ("lossy", "lossy.webp", 32, 24, "RGB", "bilinear"),
    ("photo", "photo.jpg", 32, 24, "RGB", "bilinear"),
    ("progressive", "progressive.jpg", 32, 24, "RGB", "bilinear"),
    ("gray_jpeg", "gray.jpg", 32, 24, "L", "bilinear"),
    ("rotated", "rotated.jpg", 32, 24, "RGB", "bilinear"),
    ("cmyk", "cmyk.jpg", 32, 24, "RGB", "bilinear"),
]


def picture(width, height):
    """Gradients, edges and texture, the same each time."""
    x, y = np.meshgrid(np.arange(width) / width, np.arange(height) / height)
    waves = [np.sin(7 * x + 3 * y), np.cos(5 * y - 2 * x), np.sin(23 * x * y + 1)]
    pixels = np.stack([127 + 90 * wave for wave in waves], axis=-1)
    pixels[(x - 0.4) ** 2 + (y - 0.5) ** 2 < 0.04] = [230, 60, 40]
    pixels[(abs(x - 0.75) < 0.08) & (abs(y - 0.4) < 0.25)] = [20, 40, 200]
    pixels += np.random.default_rng(1).normal(0, 4, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def write_images():
    photo, small = picture(500, 375), picture(101, 76)
    photo.save(DATA / "photo.jpg", quality=85, subsampling="4:2:0")
    small.save(DATA / "small.png", optimize=True)
    small.convert("L").save(DATA / "gray.png", optimize=True)
    small.convert("L").point(lambda value: 255 * (value > 127)).convert("1").save(DATA / "bits.png", optimize=True)
    small.quantize(16).save(DATA / "palette.png", optimize=True, transparency=3)
    alpha = Image.fromarray(np.linspace(0, 255, small.width * small.height).reshape(small.height, -1).astype(np.uint8))
    transparent = small.copy()
    transparent.putalpha(alpha)
    transparent.save(DATA / "transparent.png", optimize=True)
    small.save(DATA / "lossless.webp", lossless=True, quality=100)
    small.save(DATA / "lossy.webp", quality=80)
    small.save(DATA / "progressive.jpg", quality=90, progressive=True, subsampling="4:4:4")
    small.convert("L").save(DATA / "gray.jpg", quality=90)
    small.convert("CMYK").save(DATA / "cmyk.jpg", quality=90)
    exif = Image.Exif()
    exif[0x0112] = 6
    small.save(DATA / "rotated.jpg", quality=90, exif=exif)


def prepared(file, resize, crop, mode, filter):
    image = ImageOps.exif_transpose(Image.open(DATA / file)).convert(mode)
    if isinstance(resize, int):
        short, long = sorted(image.size)
        size = (resize, int(resize * long / short))
        resize = size if image.width <= image.height else size[::-1]
    if resize:
        image = image.resize(resize, FILTERS[filter])
    if crop:
        left, top = (round((side - crop) / 2) for side in image.size)
        image = image.crop((left, top, left + crop, top + crop))
    return np.asarray(image)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    write_images()
    for name, *case in CASES:
        (DATA / f"{name}.expected").write_bytes(prepared(*case).tobytes())
