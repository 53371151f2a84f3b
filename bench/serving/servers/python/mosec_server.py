"""Mosec as recommended in its documentation: one worker process that gets batches; bodies are raw rows."""
import os

from mosec import Server, Worker
from networks import RawModel


class Inference(Worker):
    resp_mime_type = "application/octet-stream"

    def __init__(self):
        self.model = RawModel()

    def deserialize(self, data):
        return data

    def forward(self, data):
        return self.model.predict(data)

    def serialize(self, data):
        return data


if __name__ == "__main__":
    server = Server()
    server.append_worker(Inference, num=1, max_batch_size=int(os.environ["MAX_BATCH"]),
                         max_wait_time=int(os.environ["MAX_WAIT_MS"]), route="/predict")
    server.run()
