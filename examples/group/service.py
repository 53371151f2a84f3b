"""Multiplies and adds on a GPU: POST {"a": 2, "x": [1, 2], "y": [3, 4]} returns a*x + y.

It needs only the driver, which the container gets from the machine it runs on.
"""

import ctypes
import json
import os
import signal
import sys
import threading
from array import array
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MOST = 1 << 20

KERNEL = b"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry saxpy(.param .u64 px, .param .u64 py, .param .f32 pa, .param .u32 pn)
{
    .reg .pred %p;
    .reg .f32 %a, %x, %y;
    .reg .u32 %block, %size, %thread, %i, %n;
    .reg .u64 %at, %x0, %y0;
    ld.param.u64 %x0, [px];
    ld.param.u64 %y0, [py];
    ld.param.f32 %a, [pa];
    ld.param.u32 %n, [pn];
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %i, %block, %size, %thread;
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    mul.wide.u32 %at, %i, 4;
    cvta.to.global.u64 %x0, %x0;
    cvta.to.global.u64 %y0, %y0;
    add.u64 %x0, %x0, %at;
    add.u64 %y0, %y0, %at;
    ld.global.f32 %x, [%x0];
    ld.global.f32 %y, [%y0];
    fma.rn.f32 %y, %a, %x, %y;
    st.global.f32 [%y0], %y;
    ret;
}
\0"""


class Gpu:
    """The first GPU of this container."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), KERNEL)
        self.call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"saxpy")
        self.lock = threading.Lock()

    def call(self, function, *arguments):
        error = getattr(self.cuda, function)(*arguments)
        if error:
            raise RuntimeError(f"{function} failed with {error}")

    def saxpy(self, a, x, y):
        with self.lock:
            self.call("cuCtxSetCurrent", self.context)
            count, size = len(x), 4 * len(x)
            places = [ctypes.c_uint64(), ctypes.c_uint64()]
            made = []
            try:
                for place, values in zip(places, (x, y)):
                    self.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
                    made.append(place)
                    source = ctypes.c_void_p(values.buffer_info()[0])
                    self.call("cuMemcpyHtoD_v2", place, source, ctypes.c_size_t(size))
                values = [places[0], places[1], ctypes.c_float(a), ctypes.c_uint32(count)]
                pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
                blocks = (count + 255) // 256
                self.call("cuLaunchKernel", self.kernel, blocks, 1, 1, 256, 1, 1, 0, None, pointers, None)
                target = ctypes.c_void_p(y.buffer_info()[0])
                self.call("cuMemcpyDtoH_v2", target, places[1], ctypes.c_size_t(size))
            finally:
                for place in made:
                    self.call("cuMemFree_v2", place)
        return y


class Cpu:
    """Replaces the GPU if the group runs on a machine without one."""

    name = "CPU"

    def saxpy(self, a, x, y):
        return array("f", (a * one + other for one, other in zip(x, y)))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200 if self.path == "/health" else 404, {"device": DEVICE.name})

    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 64 << 20))
        if self.headers.get("X-Service-Key") != KEY:
            return self.answer(403, {"error": "only the gateway may send requests"})
        try:
            asked = json.loads(body)
            a, x, y = float(asked["a"]), array("f", asked["x"]), array("f", asked["y"])
        except (KeyError, TypeError, ValueError) as error:
            return self.answer(400, {"error": f"invalid request: {error}"})
        if not 0 < len(x) == len(y) <= MOST:
            return self.answer(400, {"error": f"x and y must have the same length, 1 to {MOST}"})
        self.answer(200, {"device": DEVICE.name, "answer": DEVICE.saxpy(a, x, y).tolist()})

    def answer(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_request(self, code="-", size="-"):
        if self.path != "/health":
            super().log_request(code, size)


# The first process of a container receives only signals that it handles.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
KEY = os.environ["SERVICE_KEY"]
DEVICE = Cpu() if os.environ.get("SERVICE_DEVICE") == "cpu" else Gpu()
print(f"serving on {DEVICE.name}", file=sys.stderr, flush=True)
ThreadingHTTPServer(("127.0.0.1", 8081), Handler).serve_forever()
