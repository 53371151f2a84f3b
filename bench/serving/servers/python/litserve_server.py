"""LitServe with batching: one worker process, one API process, raw rows as bodies."""
import os
import sys
from typing import Annotated

import litserve
from fastapi import Body, Response
from networks import RawModel


class Inference(litserve.LitAPI):
    def setup(self, device):
        self.model = RawModel()

    def decode_request(self, request: Annotated[bytes, Body(media_type="application/octet-stream")]):
        return request

    def batch(self, inputs):
        return inputs

    def predict(self, bodies):
        return self.model.predict(bodies)

    def unbatch(self, output):
        return output

    def encode_response(self, output) -> Response:
        return Response(output, media_type="application/octet-stream")


if __name__ == "__main__":
    api = Inference(max_batch_size=int(os.environ["MAX_BATCH"]), batch_timeout=int(os.environ["MAX_WAIT_MS"]) / 1000)
    # Not with `fast_queue`: version 0.2.19 ignores it, and its ZMQ transport never delivers a response.
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), num_api_servers=1, log_level="warning",
               access_log=False, generate_client_file=False)
