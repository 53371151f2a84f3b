"""A model server as the common Flask tutorial writes it: one process, the development server, JSON lists in and out.

Nothing here knows about the gateway. Usage: flask_server.py PORT [mlp|resnet50]; without torch, the perceptron runs in numpy.
"""
import logging
import sys

from flask import Flask, jsonify, request

PORT, NAME = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "mlp"
WIDTHS = [256, 2048, 2048, 10]

try:
    import torch
except ImportError:
    torch = None
    import numpy

app = Flask(__name__)
logging.getLogger("werkzeug").setLevel(logging.ERROR)

if torch is not None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if NAME == "resnet50":
        from torchvision.models import resnet50
        model = resnet50()
    else:
        layers = [layer for wide, narrow in zip(WIDTHS, WIDTHS[1:]) for layer in (torch.nn.Linear(wide, narrow), torch.nn.ReLU())]
        model = torch.nn.Sequential(*layers[:-1])
    model = model.to(device).eval()

    def run(rows):
        with torch.no_grad():
            return model(torch.tensor(rows, dtype=torch.float32, device=device)).tolist()
else:
    device = "cpu"
    random = numpy.random.default_rng(0)
    weights = [random.standard_normal(size, dtype=numpy.float32) / 40 for size in zip(WIDTHS, WIDTHS[1:])]

    def run(rows):
        values = numpy.asarray(rows, dtype=numpy.float32)
        for weight in weights[:-1]:
            values = numpy.maximum(values @ weight, 0)
        return (values @ weights[-1]).tolist()


@app.route("/predict", methods=["POST"])
def predict():
    data = request.get_json()
    if not data or "input" not in data:
        return jsonify({"error": "no input"}), 400
    try:
        return jsonify({"prediction": run(data["input"]), "device": str(device)})
    except (TypeError, ValueError, RuntimeError) as error:
        return jsonify({"error": str(error)}), 400


@app.route("/health", methods=["GET"])
def health():
    gpu = torch is not None and torch.cuda.is_available()
    return jsonify({"status": "healthy", "gpu_available": gpu, "gpu_name": torch.cuda.get_device_name(0) if gpu else None})


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=PORT)
