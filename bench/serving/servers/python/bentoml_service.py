"""BentoML with adaptive batching, raw rows as bodies, and without access log and metrics.

It has no wait to set: it learns one from the time of batches. Its `max_latency_ms` is not a wait, but the age at which a
request is rejected.
"""
import os

import bentoml
from _bentoml_sdk import IODescriptor
from networks import RawModel
from starlette.responses import Response


class Raw(IODescriptor):
    """Bodies as they are, instead of JSON. A batch is a list of them."""

    __root_input__ = True

    @classmethod
    async def from_http_request(cls, request, serde):
        return [await request.body()]

    @classmethod
    async def to_http_response(cls, obj, serde):
        return Response(obj[0], media_type="application/octet-stream")


@bentoml.service(workers=1, traffic={"timeout": 60}, metrics={"enabled": False}, logging={"access": {"enabled": False}})
class Inference:
    def __init__(self):
        self.model = RawModel()

    # Run by the event loop: on one core, a thread would only add switches.
    @bentoml.api(batchable=True, max_batch_size=int(os.environ["MAX_BATCH"]), input_spec=Raw, output_spec=Raw)
    def predict(self, bodies):
        return self.model.predict(bodies)
