"""Prints as JSON the rows per second of a network without a server, by batch size; run by a Python that has torch."""
import json
import sys
import time

import torch

import models

SECONDS = 1.0

name, directory, *batches = sys.argv[1:]
sys.path.insert(0, directory)
import networks  # noqa: E402

net = networks.build(name)
runs = []
with torch.inference_mode():
    for batch in map(int, batches):
        rows = torch.randn(batch, *models.SHAPES[name])
        net(rows)
        count, start = 0, time.monotonic()
        while time.monotonic() < start + SECONDS:
            net(rows)
            count += batch
        runs.append({"batch": batch, "rows_per_second": count / (time.monotonic() - start)})
json.dump({"runs": runs}, sys.stdout)
