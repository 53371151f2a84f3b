"""Sends images to the server and prints their labels: python client.py [FILE ...]; draws some if no file is given."""

import io
import json
import mimetypes
import random
import sys
import urllib.request

URL = "http://localhost:8000/predict"


def drawn():
    """Returns a JPEG file of each shape."""
    from shapes import LABELS, drawing

    for label in LABELS:
        file = io.BytesIO()
        drawing(label, random.Random(label), (160, 120)).save(file, "jpeg")
        yield f"a drawn {label}", "image/jpeg", file.getvalue()


def read(paths):
    for path in paths:
        with open(path, "rb") as file:
            yield path, mimetypes.guess_type(path)[0] or "image/jpeg", file.read()


for name, kind, content in read(sys.argv[1:]) if sys.argv[1:] else drawn():
    request = urllib.request.Request(URL, content, {"content-type": kind})
    with urllib.request.urlopen(request) as response:
        best = json.load(response)["labels"][0]
    print(f"{name}: {best['label']} ({best['score']:.0%})")
