"""Triton's Python backend around ONNX Runtime: the PyPI package has the server and this backend, not the ONNX one.

The server's own dynamic batching passes the requests of a batch together.
"""
import os

import numpy
import onnxruntime
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            os.environ["MODEL_FILE"], options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        inputs = [triton.get_input_tensor_by_name(request, "input").as_numpy() for request in requests]
        batch = inputs[0] if len(inputs) == 1 else numpy.concatenate(inputs)
        output = self.session.run(None, {"input": batch})[0]
        answers, at = [], 0
        for rows in inputs:
            piece = triton.Tensor("output", output[at:at + len(rows)])
            answers.append(triton.InferenceResponse([piece]))
            at += len(rows)
        return answers
