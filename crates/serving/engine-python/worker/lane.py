"""Lanes: each runs one batch at a time, with tensors in memory that it shares with the server."""
import math
import mmap
import os
import socket
import struct
import sys
import traceback

import numpy as np
from cudock_signature import BatchError, InvalidRows, are_batched
from cudock_worker import describe, end_now

# Kinds of replies, and the most bytes of a packet, of the number of its batch, of an error message, and of the reason for a row,
# as in wire.rs.
DONE, FAILED, BROKEN, OUT_OF_MEMORY, INVALID_ROWS = range(5)
PACKET, NUMBER, TEXT, ROW_TEXT = 200 << 10, 8, 16 << 10, 1 << 10
# Sizes of shared memory are multiples of this.
STEP = 64 << 10
# Most batch shapes for which a lane keeps what it prepared.
MAX_PLANS = 256
# Exceptions of PyTorch, CuPy and TensorFlow that say that the GPU has no more memory.
DEVICE_MEMORY_ERRORS = {"OutOfMemoryError", "ResourceExhaustedError"}


class Memory:
    """The memory of one tensor, shared with the server. It grows and never shrinks."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.map = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self.moved = None

    def on_move(self, moved):
        """Calls `moved` with the old and the new mapping, now and whenever the address changes."""
        self.moved = moved
        moved(None, self.map)

    def reserve(self, size):
        """Maps at least that many bytes; returns whether the address changed."""
        if size <= len(self.map):
            return False
        wanted = -(-(1 << (size - 1).bit_length()) // STEP) * STEP
        if os.fstat(self.descriptor).st_size < wanted:
            os.ftruncate(self.descriptor, wanted)
        old, self.map = self.map, mmap.mmap(self.descriptor, wanted)
        if self.moved:
            self.moved(old, self.map)
        return True


def view(memory, dtype, shape):
    """Shared memory as an array."""
    return np.frombuffer(memory.map, dtype, math.prod(shape)).reshape(shape)


class Plan:
    """What a batch of certain shapes needs, prepared once."""

    def __init__(self, extents, rows, views):
        # The shape and size of each input, the number of rows if the model has rows, and the inputs' memory.
        self.extents, self.rows, self.views = extents, rows, views
        # Buffers on the device, and a CUDA graph with the tensors that hold its results.
        self.device = self.graph = self.results = None
        self.uses, self.was_captured = 0, False


class Lane:
    """Runs the batches of which each is a packet on its socket."""

    def __init__(self, model, descriptors):
        self.socket = socket.socket(fileno=descriptors[0])
        memories = [Memory(descriptor) for descriptor in descriptors[1:]]
        self.inputs, self.outputs = memories[:len(model.inputs)], memories[len(model.inputs):]
        self.model = model
        self.batched = are_batched([*model.inputs, *model.outputs])
        # By the packet that asks for them.
        self.plans = {}

    def serve(self):
        """Runs batches until the server closes the lane."""
        self.runner = self.model.open_lane(self)
        packet = bytearray(PACKET)
        while True:
            try:
                length = self.socket.recv_into(packet)
                if not length:
                    return
                batch = bytes(memoryview(packet)[:NUMBER])
                reply = self.reply(bytes(memoryview(packet)[NUMBER:length]))
                self.socket.send(batch + reply)
            except ConnectionError:
                return
            if reply[0] == BROKEN:
                end_now()

    def reply(self, request):
        try:
            results = self.runner.run(self, self.plans.get(request) or self.plan(request))
        except BaseException as error:
            return failure(error)
        parts = [bytes([DONE])]
        for size, shape in results:
            parts.append(struct.pack(f"<{2 + len(shape)}Q", size, len(shape), *shape))
        return b"".join(parts)

    def plan(self, request):
        extents, at = [], 1
        for _ in self.inputs:
            size, rank = struct.unpack_from("<QQ", request, at)
            extents.append((struct.unpack_from(f"<{rank}Q", request, at + 16), size))
            at += 16 + 8 * rank
        if len(self.plans) >= MAX_PLANS:
            self.plans = {packet: plan for packet, plan in self.plans.items() if plan.graph is not None}
        if any([memory.reserve(size) for memory, (_, size) in zip(self.inputs, extents)]):
            for plan in self.plans.values():
                plan.views = self.runner.views(self, plan.extents)
        rows = extents[0][0][0] if self.batched else None
        plan = self.plans[request] = Plan(extents, rows, self.runner.views(self, extents))
        return plan


def encode_rows(rows):
    """As many rows as fit into a packet."""
    parts, room = [], PACKET - NUMBER - 1
    for row, reason in rows:
        text = reason.encode("utf-8", "replace")[:ROW_TEXT]
        part = struct.pack("<QQ", row, len(text)) + text
        room -= len(part)
        if room < 0:
            break
        parts.append(part)
    return b"".join(parts)


def failure(error):
    """The reply for a batch that failed. The traceback goes only to the log."""
    if isinstance(error, InvalidRows):
        return bytes([INVALID_ROWS]) + encode_rows(error.rows)
    is_mismatch = isinstance(error, BatchError)
    if not is_mismatch:
        traceback.print_exception(type(error), error, error.__traceback__)
    kind, text = FAILED, str(error) if is_mismatch else describe(error)
    torch = sys.modules.get("torch")
    uses_gpu = torch is not None and torch.cuda.is_initialized()
    if any(base.__name__ in DEVICE_MEMORY_ERRORS for base in type(error).__mro__):
        kind = OUT_OF_MEMORY
        if uses_gpu:
            torch.cuda.empty_cache()
    elif uses_gpu:
        try:
            torch.cuda.synchronize()
        except Exception:
            # Every later call will fail, too.
            kind = BROKEN
    return bytes([kind]) + text.encode("utf-8", "replace")[:TEXT]
