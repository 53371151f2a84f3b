"""What the clients of a server are promised that is told to end.

    python end.py HOST:PORT PID

The server serves the models of `make_models.py`.
"""

import os
import queue
import signal
import sys
import time

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

ADDRESS, PROCESS = sys.argv[1], int(sys.argv[2])
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"
REQUESTS = 50


def request(number):
    made = service_pb2.ModelInferRequest(model_name="int64", id=str(number))
    made.inputs.add(name="x", datatype="INT64", shape=[1, 3])
    made.raw_input_contents.append(np.full((1, 3), number, np.int64).tobytes())
    return made


def check(answer, number):
    assert answer.error_message == "", answer
    assert answer.infer_response.id == str(number), (answer, number)
    got = np.frombuffer(answer.infer_response.raw_output_contents[0], np.int64).tolist()
    assert got == [3 * number] * 3, (got, number)


with grpc.insecure_channel(ADDRESS) as channel:
    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
    assert next(watch) == SERVING
    idle = stub.ModelStreamInfer(iter(queue.Queue().get, None))
    outbox = queue.Queue()
    busy = stub.ModelStreamInfer(iter(outbox.get, None))
    for number in range(REQUESTS):
        outbox.put(request(number))
    check(next(busy), 0)
    # What the client has sent is with the server soon after its first answer.
    time.sleep(0.2)

    os.kill(PROCESS, signal.SIGTERM)

    for number in range(1, REQUESTS):
        check(next(busy), number)
    assert next(watch) == NOT_SERVING
    for stream in (busy, idle, watch):
        try:
            raise AssertionError(f"an answer nobody asked for: {next(stream)}")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error
            assert "shutting down" in error.details(), error
    outbox.put(None)
print("every request was answered, every stream was told why it ends")
