"""Hand-written batching on bare ASGI: no framework, orjson, one process on one core.

Requests that arrive in the same turn of the event loop share a batch. The engine runs in a thread, so that the loop keeps
reading while it works; requests that have arrived by the time it is done are the next batch. No request waits when the
engine is idle, which on one core is faster than any delay.
"""
import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import numpy
import onnxruntime
import orjson

SHAPE = tuple(int(size) for size in os.environ["MODEL_SHAPE"].split(","))
MAX_BATCH = int(os.environ["MAX_BATCH"])
INLINE = os.environ.get("ENGINE_INLINE", "0") == "1"

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(os.environ["MODEL_FILE"], options, providers=["CPUExecutionProvider"])
JSON_HEADERS = [(b"content-type", b"application/json")]


class Batcher:
    def __init__(self):
        self.waiting, self.busy, self.pool = [], False, ThreadPoolExecutor(1)

    def submit(self, rows):
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((rows, future))
        if not self.busy:
            self.busy = True
            asyncio.get_running_loop().call_soon(self.start)
        return future

    def take(self):
        count, rows = 0, 0
        for item, _ in self.waiting:
            if count and rows + len(item) > MAX_BATCH:
                break
            count, rows = count + 1, rows + len(item)
        batch, self.waiting = self.waiting[:count], self.waiting[count:]
        return batch

    def start(self):
        batch = self.take()
        data = batch[0][0] if len(batch) == 1 else numpy.concatenate([rows for rows, _ in batch])
        if INLINE:
            try:
                self.done(batch, session.run(None, {"input": data})[0], None)
            except Exception as error:
                self.done(batch, None, error)
            return
        running = asyncio.get_running_loop().run_in_executor(self.pool, session.run, None, {"input": data})
        running.add_done_callback(lambda result: self.done(
            batch, None if result.exception() else result.result()[0], result.exception()))

    def done(self, batch, output, error):
        at = 0
        for rows, future in batch:
            piece = None if output is None else output[at:at + len(rows)]
            at += len(rows)
            if future.done():
                continue
            if error is None:
                future.set_result(piece)
            else:
                future.set_exception(error)
        self.busy = bool(self.waiting)
        if self.busy:
            asyncio.get_running_loop().call_soon(self.start)


batcher = Batcher()


async def answer(send, status, content):
    await send({"type": "http.response.start", "status": status,
                "headers": [*JSON_HEADERS, (b"content-length", str(len(content)).encode())]})
    await send({"type": "http.response.body", "body": content})


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["path"] != "/predict":
        await answer(send, 200, b"{}")
        return
    body = b""
    while True:
        message = await receive()
        body = body + message["body"] if body else message["body"]
        if not message.get("more_body"):
            break
    try:
        rows = numpy.asarray(orjson.loads(body)["input"], numpy.float32)
        if rows.shape[1:] != SHAPE:
            raise ValueError(f"rows must have the shape {SHAPE}")
    except (ValueError, KeyError, TypeError) as error:
        await answer(send, 400, orjson.dumps({"error": str(error)}))
        return
    output = await batcher.submit(rows)
    await answer(send, 200, orjson.dumps({"prediction": output}, option=orjson.OPT_SERIALIZE_NUMPY))
