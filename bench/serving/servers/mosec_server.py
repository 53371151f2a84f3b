"""Mosec as recommended in its documentation: one worker process that gets batches, orjson instead of json.

A malformed request is rejected with Mosec's own ValidationError in `deserialize`.
"""
import os

import numpy
import onnxruntime
import orjson
from mosec import Server, ValidationError, Worker

SHAPE = tuple(int(size) for size in os.environ["MODEL_SHAPE"].split(","))


def session():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(os.environ["MODEL_FILE"], options, providers=["CPUExecutionProvider"])


class Inference(Worker):
    def __init__(self):
        self.session = session()

    def deserialize(self, data):
        try:
            rows = numpy.asarray(orjson.loads(data)["input"], numpy.float32)
        except (ValueError, KeyError, TypeError) as error:
            raise ValidationError(str(error)) from error
        if rows.shape[1:] != SHAPE:
            raise ValidationError(f"rows must have the shape {SHAPE}")
        return rows

    def forward(self, data):
        batch = data[0] if len(data) == 1 else numpy.concatenate(data)
        output = self.session.run(None, {"input": batch})[0]
        answers, at = [], 0
        for rows in data:
            answers.append(output[at:at + len(rows)])
            at += len(rows)
        return answers

    def serialize(self, data):
        return orjson.dumps({"prediction": data}, option=orjson.OPT_SERIALIZE_NUMPY)


if __name__ == "__main__":
    server = Server()
    server.append_worker(Inference, num=1, max_batch_size=int(os.environ["MAX_BATCH"]),
                         max_wait_time=int(os.environ["MAX_WAIT_MS"]), route="/predict")
    server.run()
