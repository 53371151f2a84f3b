"""Prints as JSON the bare engine's result for each row of a model, one by one; run by a Python that has onnxruntime."""
import json
import sys

import numpy
import onnxruntime

import models

name, path = sys.argv[1:]
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
answers = []
for row in models.rows(name):
    batch = numpy.array(row, numpy.float32).reshape(1, *models.SHAPES[name])
    answers.append(session.run(None, {models.INPUT: batch})[0][0].tolist())
json.dump(answers, sys.stdout)
