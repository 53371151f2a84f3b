#!/usr/bin/env python3
"""The model server of common tutorials: a route, `model(x)`, one request at a time, eager half precision.

Usage: flask_server.py PORT [--image SIZE] [--device cuda]

Uses Flask if it is installed, as in the tutorials, and otherwise the same few lines on http.server. Either way a request is
an image as raw FP16, or JSON as in most tutorials, and the response is JSON. Connections are handled by threads, without
batching. Prints which of the two it uses.
"""
import argparse
import importlib.metadata
import json
import pathlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import resnet50  # noqa: E402


def predictor(device, image):
    net = resnet50.build().to(device)
    net = net.half() if device == "cuda" else net
    dtype = next(net.parameters()).dtype

    def predict(body, is_json):
        if is_json:
            x = torch.tensor(json.loads(body)["input"], dtype=torch.float32)
        else:
            x = torch.frombuffer(bytearray(body), dtype=torch.float16)
        x = x.reshape(-1, 3, image, image).to(device=device, dtype=dtype)
        with torch.inference_mode():
            return json.dumps({"prediction": net(x).float().cpu().tolist()}).encode()
    predict(bytes(2 * 3 * image * image), False)
    return predict


def serve_by_flask(flask, predict, port):
    app = flask.Flask("tutorial")

    @app.post("/predict")
    def handle():
        body = predict(flask.request.get_data(), flask.request.is_json)
        return flask.Response(body, content_type="application/json")
    app.run("127.0.0.1", port, threaded=True)


def serve_by_standard_library(predict, port):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = predict(body, "json" in self.headers.get("Content-Type", ""))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--image", type=int, default=resnet50.IMAGE[1])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    predict = predictor(options.device, options.image)
    try:
        import flask
    except ImportError:
        print("http.server", flush=True)
        serve_by_standard_library(predict, options.port)
    else:
        print(f"flask {importlib.metadata.version('flask')}", flush=True)
        serve_by_flask(flask, predict, options.port)


if __name__ == "__main__":
    main()
