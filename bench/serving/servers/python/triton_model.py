"""Triton's Python backend around torch. The server's own dynamic batching passes the requests of a batch together."""
import os

import networks
import numpy
import torch
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        self.net = networks.build(os.environ["MODEL_NAME"])

    @torch.inference_mode()
    def execute(self, requests):
        rows = [triton.get_input_tensor_by_name(request, "input").as_numpy() for request in requests]
        output = self.net(torch.from_numpy(numpy.concatenate(rows))).numpy()
        answers, at = [], 0
        for part in rows:
            piece = triton.Tensor("output", output[at:at + len(part)])
            answers.append(triton.InferenceResponse([piece]))
            at += len(part)
        return answers
