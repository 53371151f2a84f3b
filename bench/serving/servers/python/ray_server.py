"""Ray Serve with its high-throughput settings (HAProxy as ingress), batching, and without dashboard and access log."""
import os
import signal
import sys
import tempfile

import ray
from networks import RawModel
from ray import serve
from starlette.requests import Request
from starlette.responses import Response


@serve.deployment(num_replicas=1, max_ongoing_requests=1024)
class Inference:
    def __init__(self):
        self.model = RawModel()

    @serve.batch(max_batch_size=int(os.environ["MAX_BATCH"]), batch_wait_timeout_s=int(os.environ["MAX_WAIT_MS"]) / 1000)
    async def predict(self, bodies):
        return self.model.predict(bodies)

    async def __call__(self, request: Request):
        return Response(await self.predict(await request.body()), media_type="application/octet-stream")


def main():
    with tempfile.TemporaryDirectory(prefix="ray-") as directory:
        ray.init(num_cpus=1, include_dashboard=False, logging_level="warning", _node_ip_address="127.0.0.1",
                 _temp_dir=directory)
        serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])},
                    logging_config={"enable_access_log": False})
        serve.run(Inference.bind(), route_prefix="/predict")
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
        ray.shutdown()


if __name__ == "__main__":
    main()
