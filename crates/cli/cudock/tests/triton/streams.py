"""Streams stay open as long as their client does, whatever the server's --client-timeout (here one second).

    python streams.py HOST:PORT
"""

import queue
import sys
import threading
import time

import grpc
import numpy as np
import tritonclient.grpc as triton

ADDRESS = sys.argv[1]
PATIENCE = 60
# Several times the server's timeout.
LONG = 4.0


def infer_stream():
    answers = queue.Queue()
    client = triton.InferenceServerClient(ADDRESS)
    client.start_stream(lambda result, error: answers.put((result, error)))

    def ask(number):
        tensor = triton.InferInput("x", [1, 3], "INT64")
        tensor.set_data_from_numpy(np.full((1, 3), number, np.int64))
        client.async_stream_infer("int64", [tensor])
        result, error = answers.get(timeout=PATIENCE)
        assert error is None, error
        assert result.as_numpy("y").tolist() == [[3 * number] * 3]

    # At work all the time, then silent, then at work again.
    for number in range(int(LONG / 0.2)):
        ask(number)
        time.sleep(0.2)
    time.sleep(LONG)
    ask(7)
    client.stop_stream()
    assert answers.empty(), answers.get()


def health_watch():
    with grpc.insecure_channel(ADDRESS) as channel:
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        assert next(watch) == b"\x08\x01"
        time.sleep(2 * LONG)
        assert watch.is_active(), watch.code()
        watch.cancel()


def stalled_message():
    """The first bytes of a message, and then nothing: this one is ended, and nobody else is."""
    with grpc.insecure_channel(ADDRESS) as channel:
        stop = threading.Event()

        def never():
            stop.wait(PATIENCE)
            yield b""

        call = channel.stream_unary("/inference.GRPCInferenceService/ModelInfer")
        try:
            call(never(), timeout=PATIENCE)
            raise AssertionError("a call without a message was answered")
        except grpc.RpcError as error:
            stop.set()
            assert "did not arrive in time" in error.details(), error


failures = []


def guarded(work):
    try:
        work()
    except BaseException as error:
        failures.append((work.__name__, repr(error)))


threads = [threading.Thread(target=guarded, args=(work,)) for work in (infer_stream, health_watch, stalled_message)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
