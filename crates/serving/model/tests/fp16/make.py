#!/usr/bin/env python3
"""Writes the models that the tests convert to fp16, one for each rule, next to this file. Needs onnx and numpy.

Usage: make.py [--check PROGRAM]

With --check, PROGRAM (the example `to_fp16` of cudock-model: `PROGRAM IN OUT`) converts each model, and onnx.checker
verifies the result.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
FLOAT, HALF, INT64, BOOL, DOUBLE = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE)
random = numpy.random.default_rng(7)


def floats(name, *shape, scale=0.5):
    """Returns a random initializer."""
    return numpy_helper.from_array((random.standard_normal(shape) * scale).astype(numpy.float32), name)


def constant(name, value, kind=numpy.float32):
    return numpy_helper.from_array(numpy.array(value, kind), name)


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights=(), opset=17, ir=8, functions=(), domains=(), infer=False):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(weights))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    made = helper.make_model(graph, opset_imports=imports, functions=list(functions), producer_name="cudock")
    made.ir_version = ir
    return onnx.shape_inference.infer_shapes(made) if infer else made


node = helper.make_node


def conv_bn():
    weights = [floats("k", 4, 3, 3, 3), floats("scale", 4), floats("bias", 4), floats("mean", 4),
               constant("var", [0.5, 1, 2, 3]), floats("w", 4, 5), floats("b", 5)]
    return model(
        [node("Conv", ["image", "k"], ["c"], pads=[1, 1, 1, 1]),
         node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
         node("Relu", ["n"], ["r"]),
         node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
         node("GlobalAveragePool", ["p"], ["g"]), node("Flatten", ["g"], ["f"]),
         node("Gemm", ["f", "w", "b"], ["scores"])],
        [value("image", FLOAT, "rows", 3, 8, 8)], [value("scores", FLOAT, "rows", 5)], weights, infer=True)


def layer_norm():
    return model(
        [node("MatMul", ["x", "w"], ["h"]),
         node("LayerNormalization", ["h", "scale", "bias"], ["y", "mean", "deviation"], axis=-1, epsilon=1e-12),
         node("Add", ["mean", "deviation"], ["statistics"])],
        [value("x", FLOAT, "rows", 8)], [value("y", FLOAT, "rows", 8), value("statistics", FLOAT, "rows", 1)],
        [floats("w", 8, 8), floats("scale", 8), floats("bias", 8)])


def layer_norm_parts():
    # The squares exceed fp16.
    return model(
        [node("MatMul", ["x", "w"], ["h"]),
         node("ReduceMean", ["h"], ["mean"], axes=[-1]), node("Sub", ["h", "mean"], ["d"]),
         node("Pow", ["d", "two"], ["square"]), node("ReduceMean", ["square"], ["variance"], axes=[-1]),
         node("Add", ["variance", "epsilon"], ["positive"]), node("Sqrt", ["positive"], ["root"]),
         node("Div", ["d", "root"], ["normal"]), node("Mul", ["normal", "scale"], ["scaled"]),
         node("Add", ["scaled", "bias"], ["y"])],
        [value("x", FLOAT, "rows", 8)], [value("y", FLOAT, "rows", 8)],
        [floats("w", 8, 8, scale=500), constant("two", 2), constant("epsilon", 1e-12), floats("scale", 8),
         floats("bias", 8)])


def attention():
    # The usual mask: the smallest fp32 number where there is nothing to attend to.
    return model(
        [node("MatMul", ["x", "wq"], ["q"]), node("MatMul", ["x", "wk"], ["k"]), node("MatMul", ["x", "wv"], ["v"]),
         node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["products"]),
         node("Div", ["products", "root"], ["scores"]),
         node("Unsqueeze", ["mask", "one_axis"], ["mask1"]), node("Cast", ["mask1"], ["mask2"], to=FLOAT),
         node("Sub", ["one", "mask2"], ["absent"]), node("Mul", ["absent", "smallest"], ["penalty"]),
         node("Add", ["scores", "penalty"], ["masked"]), node("Softmax", ["masked"], ["shares"], axis=-1),
         node("MatMul", ["shares", "v"], ["y"])],
        [value("x", FLOAT, "rows", 6, 8), value("mask", INT64, "rows", 6)], [value("y", FLOAT, "rows", 6, 8)],
        [floats("wq", 8, 8), floats("wk", 8, 8), floats("wv", 8, 8), constant("root", 2.83), constant("one", 1),
         constant("smallest", numpy.finfo(numpy.float32).min), constant("one_axis", [1], numpy.int64)])


def resize():
    return model(
        [node("Conv", ["image", "k"], ["c"], pads=[1, 1, 1, 1]),
         node("Resize", ["c", "", "scales"], ["large"], mode="linear"), node("Sigmoid", ["large"], ["y"])],
        [value("image", FLOAT, "rows", 3, 4, 4)], [value("y", FLOAT, "rows", 2, 8, 8)],
        [floats("k", 2, 3, 3, 3), constant("scales", [1, 1, 2, 2])])


def branch():
    taken = helper.make_graph([node("MatMul", ["h", "w2"], ["then"])], "then", [], [value("then", FLOAT, None, 4)])
    other = helper.make_graph([node("Identity", ["h"], ["else"])], "else", [], [value("else", FLOAT, None, 4)])
    return model(
        [node("MatMul", ["x", "w"], ["h"]), node("ReduceMax", ["x"], ["most"], keepdims=0),
         node("Greater", ["most", "limit"], ["is_large"]),
         node("If", ["is_large"], ["z"], then_branch=taken, else_branch=other), node("MatMul", ["z", "w2"], ["y"])],
        [value("x", FLOAT, "rows", 4)], [value("y", FLOAT, "rows", 4)],
        [floats("w", 4, 4), floats("w2", 4, 4), constant("limit", 0.5)])


def loop():
    body = helper.make_graph(
        [node("Identity", ["more"], ["more_out"]), node("Mul", ["state", "factor"], ["state_out"])], "body",
        [value("turn", INT64), value("more", BOOL), value("state", FLOAT, None, 4)],
        [value("more_out", BOOL), value("state_out", FLOAT, None, 4)])
    return model(
        [node("MatMul", ["x", "w"], ["h"]), node("Loop", ["turns", "yes", "h"], ["looped"], body=body),
         node("MatMul", ["looped", "w"], ["y"])],
        [value("x", FLOAT, "rows", 4)], [value("y", FLOAT, "rows", 4)],
        [floats("w", 4, 4), constant("factor", 0.9), constant("turns", 3, numpy.int64), constant("yes", True, bool)])


def constants():
    return model(
        [node("Constant", [], ["a"], value=constant("", [[1, 2, 3, 4]])),
         node("Constant", [], ["b"], value_float=0.25),
         node("Constant", [], ["c"], value_floats=[0.5, -1, 2, 1e-9]),
         node("Constant", [], ["shape"], value_ints=[1, 4]),
         node("ConstantOfShape", ["shape"], ["zeros"]),
         node("ConstantOfShape", ["shape"], ["twos"], value=constant("", [2])),
         node("Sum", ["x", "a", "b", "c", "zeros", "twos"], ["s"]), node("Relu", ["s"], ["y"]),
         node("Identity", ["c"], ["unchanged"])],
        [value("x", FLOAT, "rows", 4)], [value("y", FLOAT, "rows", 4), value("unchanged", FLOAT, 4)])


def casts():
    # A part is in fp16 already; the rest is fp32.
    return model(
        [node("Cast", ["x"], ["x16"], to=HALF), node("Mul", ["x16", "w16"], ["m16"]),
         node("Cast", ["m16"], ["m"], to=FLOAT), node("MatMul", ["m", "w"], ["h"]),
         node("Cast", ["ids"], ["numbers"], to=FLOAT), node("Add", ["h", "numbers"], ["y"]),
         node("Identity", ["m"], ["z"])],
        [value("x", FLOAT, "rows", 4), value("ids", INT64, "rows", 4)],
        [value("y", FLOAT, "rows", 4), value("z", FLOAT, "rows", 4)],
        [constant("w16", [1, 2, 3, 4], numpy.float16), floats("w", 4, 4)])


def external():
    return model(
        [node("Gather", ["table", "ids"], ["h"]), node("MatMul", ["h", "w"], ["m"]),
         node("Gather", ["numbers", "ids"], ["n"]), node("Cast", ["n"], ["nf"], to=FLOAT),
         node("Add", ["m", "nf"], ["y"])],
        [value("ids", INT64, "rows", 1)], [value("y", FLOAT, "rows", 1, 16)],
        [floats("table", 8, 16), floats("w", 16, 16), constant("numbers", [[n] * 16 for n in range(8)], numpy.int64)])


def overflow():
    return model(
        [node("Mul", ["x", "large"], ["l"]), node("Mul", ["l", "small"], ["s"]), node("Add", ["s", "w"], ["y"])],
        [value("x", FLOAT, "rows", 4)], [value("y", FLOAT, "rows", 4)],
        [constant("large", [1e6, -1e6, 1, 1]), constant("small", [1e-6, 1e-6, 1, 1e-12]), floats("w", 4)])


def infinite():
    # The product exceeds fp16. Of these operators, ONNX Runtime computes only normalizations in fp16 on a CPU.
    return model(
        [node("MatMul", ["x", "w"], ["h"]), node("LayerNormalization", ["h", "scale"], ["n"]),
         node("LayerNormalization", ["n", "scale"], ["y"])],
        [value("x", FLOAT, "rows", 4)], [value("y", FLOAT, "rows", 4)],
        [constant("w", numpy.full((4, 4), 60000) + numpy.eye(4)), floats("scale", 4)])


def sizes():
    # Half of the width, as a size: 2049 does not exist in fp16.
    return model(
        [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "one"], ["width"]),
         node("Cast", ["width"], ["width_f"], to=FLOAT), node("Mul", ["width_f", "half"], ["middle_f"]),
         node("Floor", ["middle_f"], ["floor"]), node("Cast", ["floor"], ["middle"], to=INT64),
         node("Slice", ["x", "zero", "middle", "one"], ["first"]), node("Mul", ["first", "half"], ["y"])],
        [value("x", FLOAT, "rows", 4099)], [value("y", FLOAT, "rows", "half")],
        [constant("one", [1], numpy.int64), constant("zero", [0], numpy.int64), constant("half", [0.5])])


def positions():
    # Sines of positions, as in rotary embeddings.
    return model(
        [node("Cast", ["position"], ["p"], to=FLOAT), node("MatMul", ["p", "frequencies"], ["angles"]),
         node("Sin", ["angles"], ["sin"]), node("Cos", ["angles"], ["cos"]), node("MatMul", ["x", "w"], ["h"]),
         node("Mul", ["h", "sin"], ["hs"]), node("Mul", ["h", "cos"], ["hc"]), node("Sub", ["hs", "hc"], ["y"])],
        [value("position", INT64, "rows", 1), value("x", FLOAT, "rows", 4)], [value("y", FLOAT, "rows", 4)],
        [constant("frequencies", [[5000.5, 0.1, 0.01, 0.001]]), floats("w", 4, 4)])


def detection():
    return model(
        [node("MatMul", ["x", "w"], ["h"]), node("Abs", ["h"], ["boxes"]),
         node("ReduceMax", ["boxes"], ["best"], axes=[2], keepdims=0),
         node("Unsqueeze", ["best", "axis"], ["scores"]),
         node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"]),
         node("TopK", ["best", "k"], ["values", "indices"])],
        [value("x", FLOAT, 1, 5, 4)],
        [value("kept", INT64, "found", 3), value("values", FLOAT, 1, 2), value("indices", INT64, 1, 2)],
        [floats("w", 4, 4), constant("axis", [1], numpy.int64), constant("most", [3], numpy.int64),
         constant("overlap", [0.5]), constant("least", [0.0]), constant("k", [2], numpy.int64)])


def old_format():
    # Weights are inputs as well, and Clip has attributes.
    weights = [floats("k", 2, 3, 3, 3), floats("shared", 2, 1, 1)]
    inputs = [value("image", FLOAT, "rows", 3, 4, 4), value("k", FLOAT, 2, 3, 3, 3), value("shared", FLOAT, 2, 1, 1)]
    return model(
        [node("Conv", ["image", "k"], ["c"]), node("Clip", ["c"], ["r"], min=0.0, max=6.0),
         node("Add", ["r", "shared"], ["y"]), node("Identity", ["shared"], ["z"])],
        inputs, [value("y", FLOAT, "rows", 2, 2, 2), value("z", FLOAT, 2, 1, 1)], weights, opset=9, ir=3)


def quantized():
    return model(
        [node("QuantizeLinear", ["x", "scale", "zero"], ["q"]), node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
         node("Reshape", ["d", "shape"], ["r"]), node("MatMul", ["r", "w"], ["y"])],
        [value("x", FLOAT, "rows", 4)], [value("y", FLOAT, "rows", 4)],
        [constant("scale", 0.05), constant("zero", 0, numpy.int8), constant("shape", [-1, 4], numpy.int64),
         floats("w", 4, 4)])


def function():
    double = helper.make_function(
        "local", "Double", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)])
    return model(
        [node("MatMul", ["x", "w"], ["h"]), node("Double", ["h"], ["d"], domain="local"), node("Relu", ["d"], ["r"]),
         node("MatMul", ["x", "w"], ["h2"]), node("Add", ["r", "h2"], ["y"])],
        [value("x", FLOAT, "rows", 4)], [value("y", FLOAT, "rows", 4)], [floats("w", 4, 4)],
        functions=[double], domains=["local"])


def tokens():
    return model(
        [node("Gather", ["table", "ids"], ["h"]), node("LayerNormalization", ["h", "scale", "bias"], ["n"]),
         node("MatMul", ["n", "w"], ["m"]), node("Gelu", ["m"], ["g"], domain="com.microsoft"),
         node("ReduceMean", ["g"], ["mean"], axes=[1], keepdims=0), node("MatMul", ["mean", "w2"], ["scores"])],
        [value("ids", INT64, "rows", "tokens")], [value("scores", FLOAT, "rows", 3)],
        [floats("table", 4, 8), floats("scale", 8), floats("bias", 8), floats("w", 8, 8), floats("w2", 8, 3)],
        domains=["com.microsoft"])


def recurrent():
    return model(
        [node("LSTM", ["x", "w", "r", "b"], ["", "last"], hidden_size=3), node("Squeeze", ["last", "axis"], ["y"])],
        [value("x", FLOAT, 5, "rows", 4)], [value("y", FLOAT, "rows", 3)],
        [floats("w", 1, 12, 4), floats("r", 1, 12, 3), floats("b", 1, 24), constant("axis", [0], numpy.int64)])


def names():
    # Names that end as those of converted values would.
    return model(
        [node("MatMul", ["x", "w"], ["x_fp16"]), node("Relu", ["x_fp16"], ["x_fp16_"]),
         node("MatMul", ["x_fp16_", "w"], ["y"])],
        [value("x", FLOAT, "rows", 4)], [value("y", FLOAT, "rows", 4)], [floats("w", 4, 4)])


def nothing():
    return model([node("Add", ["x", "x"], ["y"])], [value("x", DOUBLE, "rows", 4)], [value("y", DOUBLE, "rows", 4)])


MODELS = [conv_bn, layer_norm, layer_norm_parts, attention, resize, branch, loop, constants, casts, external, overflow,
          infinite, sizes, positions, detection, old_format, quantized, function, tokens, recurrent, names, nothing]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="PROGRAM")
    options = parser.parse_args()
    for make in MODELS:
        path = HERE / f"{make.__name__}.onnx"
        made = make()
        onnx.checker.check_model(made, full_check=make is not old_format)
        if make is external:
            (HERE / "external.data").unlink(missing_ok=True)
            onnx.save_model(made, path, save_as_external_data=True, location="external.data", size_threshold=0)
        else:
            onnx.save_model(made, path)
        if options.check and make is not nothing:
            with tempfile.TemporaryDirectory() as directory:
                converted = pathlib.Path(directory) / path.name
                subprocess.run([options.check, path, converted], check=True)
                onnx.checker.check_model(str(converted), full_check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
