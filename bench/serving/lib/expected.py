"""Prints as JSON the bare engine's result for each row of a model, one by one; run by a Python that has the engine."""
import json
import sys

import numpy

import models


def _onnx(path):
    import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda batch: session.run(None, {models.INPUT: batch})[0]


def _torch(name, directory):
    sys.path.insert(0, directory)
    import networks
    import torch
    net = networks.build(name)

    def run(batch):
        with torch.inference_mode():
            return net(torch.from_numpy(batch)).numpy()

    return run


name, path = sys.argv[1:]
run = _torch(name, path) if name in models.PYTHON_MODELS else _onnx(path)
answers = []
for row in models.rows(name):
    batch = numpy.array(row, numpy.float32).reshape(1, *models.SHAPES[name])
    answers.append(run(batch)[0].tolist())
json.dump(answers, sys.stdout)
