#!/usr/bin/env python3
"""ResNet-50 in half precision behind Mosec or LitServe, each batching as its documentation recommends.

Usage: peer_server.py mosec|litserve PORT

A request is an image as raw FP16, for LitServe as a file of a form, because it takes no other bytes. The response is raw FP16.
"""
import os
import pathlib
import sys

import fastapi
import litserve
import mosec
import torch

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import resnet50  # noqa: E402

MAX_BATCH, WAIT_MS = 128, 5


class Network:
    """Runs lists of images."""

    def __init__(self):
        torch.backends.cudnn.benchmark = True
        self.net = resnet50.build().to("cuda", torch.float16, memory_format=torch.channels_last)
        self.host = torch.empty((MAX_BATCH, *resnet50.IMAGE), dtype=torch.float16).pin_memory()
        for rows in (1, 8, 32, 64, MAX_BATCH):
            self.run([bytes(2 * 3 * 224 * 224)] * rows)

    def run(self, images):
        for row, image in zip(self.host, images):
            row.copy_(torch.frombuffer(bytearray(image), dtype=torch.float16).view(resnet50.IMAGE))
        with torch.inference_mode():
            batch = self.host[: len(images)].to("cuda", non_blocking=True, memory_format=torch.channels_last)
            output = self.net(batch).cpu().numpy()
        return [row.tobytes() for row in output]


class MosecInference(mosec.Worker):
    def __init__(self):
        self.network = Network()

    def deserialize(self, data):
        return data

    def forward(self, data):
        return self.network.run(data)

    def serialize(self, data):
        return data


class LitInference(litserve.LitAPI):
    def setup(self, device):
        self.network = Network()

    def decode_request(self, request):
        return request["file"].file.read()

    def batch(self, inputs):
        return inputs

    def predict(self, images):
        return self.network.run(images)

    def unbatch(self, output):
        return output

    def encode_response(self, output):
        return fastapi.Response(output, media_type="application/octet-stream")


def serve_by_mosec(port):
    sys.argv[1:] = ["--port", port, "--address", "127.0.0.1", "--timeout", "60000"]
    server = mosec.Server()
    server.append_worker(MosecInference, num=1, max_batch_size=MAX_BATCH, max_wait_time=WAIT_MS, route="/predict")
    server.run()


def serve_by_litserve(port):
    api = LitInference(max_batch_size=MAX_BATCH, batch_timeout=WAIT_MS / 1000)
    litserve.LitServer(api, accelerator="cuda", devices=1, workers_per_device=1, timeout=60).run(
        host="127.0.0.1", port=int(port), log_level="warning", generate_client_file=False,
        num_api_servers=min(8, os.cpu_count()))


if __name__ == "__main__":
    {"mosec": serve_by_mosec, "litserve": serve_by_litserve}[sys.argv[1]](sys.argv[2])
