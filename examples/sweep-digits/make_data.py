"""Writes digits.csv.gz from the copy that scikit-learn ships: 64 pixels from 0 to 16, then the label, a row per image."""

import gzip
import io
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

digits = load_digits()
rows = np.column_stack([digits.data.astype(int), digits.target])
text = io.StringIO()
np.savetxt(text, rows, fmt="%d", delimiter=",")
path = Path(__file__).with_name("digits.csv.gz")
# Without a time stamp, so that the same data gives the same bytes.
path.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
print(f"{path.name}: {len(rows)} images, {path.stat().st_size} bytes")
