"""Forwards requests to the service, which it reaches on localhost, as in the cloud, and whose key it knows."""

import os
import signal
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVICE = "http://localhost:8081"
LARGEST = 16 << 20


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/health":
            return self.forward("/health", None)
        self.answer(404, b'{"error": "use POST /saxpy"}')

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if self.path != "/saxpy" or length > LARGEST:
            self.close_connection = True
            return self.answer(404 if self.path != "/saxpy" else 413, b'{"error": "not here"}')
        self.forward("/", self.rfile.read(length))

    def forward(self, path, body):
        request = urllib.request.Request(SERVICE + path, body, {"X-Service-Key": os.environ["SERVICE_KEY"]})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                self.answer(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            self.answer(error.code, error.read())
        except OSError:
            self.answer(502, b'{"error": "the service does not respond"}')

    def answer(self, status, text):
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
ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
