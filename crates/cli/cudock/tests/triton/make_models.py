"""Writes the models of `talk.py`: each computes something, so that an answer to another request is noticed.

    pip install onnx && python make_models.py models
"""

import sys
from pathlib import Path

from onnx import TensorProto, checker, helper, save


def tensor(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, kind, value):
    return helper.make_tensor(name, kind, [1], [value])


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(constants))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)
    made.producer_name = "cudock"
    checker.check_model(made, full_check=True)
    return made


def scale(kind, columns, factor):
    """y = factor * x"""
    return model(
        [helper.make_node("Mul", ["x", "factor"], ["y"])],
        [tensor("x", kind, ["rows", columns])],
        [tensor("y", kind, ["rows", columns])],
        [constant("factor", kind, factor)],
    )


def mark():
    """y = x followed by an exclamation mark"""
    return model(
        [helper.make_node("StringConcat", ["x", "mark"], ["y"])],
        [tensor("x", TensorProto.STRING, ["rows", 1])],
        [tensor("y", TensorProto.STRING, ["rows", 1])],
        [constant("mark", TensorProto.STRING, b"!")],
    )


def brain():
    """y = x in the other half-precision type, which few operators take on a CPU"""
    return model(
        [helper.make_node("Identity", ["x"], ["y"])],
        [tensor("x", TensorProto.BFLOAT16, ["rows", 2])],
        [tensor("y", TensorProto.BFLOAT16, ["rows", 2])],
    )


def several():
    """total = a + b, twice = b + b"""
    return model(
        [
            helper.make_node("Cast", ["b"], ["as_float"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["a", "as_float"], ["total"]),
            helper.make_node("Add", ["b", "b"], ["twice"]),
        ],
        [tensor("a", TensorProto.FLOAT, ["rows", 4]), tensor("b", TensorProto.INT64, ["rows", 1])],
        [tensor("total", TensorProto.FLOAT, ["rows", 4]), tensor("twice", TensorProto.INT64, ["rows", 1])],
    )


folder = Path(sys.argv[1])
for path, made in {
    "fp32.onnx": scale(TensorProto.FLOAT, "columns", 2.0),
    "fp16.onnx": scale(TensorProto.FLOAT16, 2, 2.0),
    "int64.onnx": scale(TensorProto.INT64, 3, 3),
    "bytes.onnx": mark(),
    "bf16.onnx": brain(),
    "several.onnx": several(),
    "versions/1/model.onnx": scale(TensorProto.FLOAT, 1, 10.0),
    "versions/2/model.onnx": scale(TensorProto.FLOAT, 1, 20.0),
}.items():
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    save(made, place)
