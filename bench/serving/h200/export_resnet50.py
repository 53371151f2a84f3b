#!/usr/bin/env python3
"""Writes ResNet-50 in half precision as an ONNX file with any number of rows: input FP16 [N,3,224,224], output
FP16 [N,1000]; with --fp32 in single precision.

Usage: export_resnet50.py OUT.onnx [--image SIZE] [--fp32] [--check]

The file is written from the weights, without the `onnx` package. Normalizations are folded into the convolutions
before them, as every exporter does for inference. --check compares the file's results with torch's (needs
onnxruntime).
"""
import argparse
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import onnxfile  # noqa: E402
import resnet50  # noqa: E402


class Graph:
    def __init__(self, element):
        self.nodes, self.constants, self.element = [], [], element

    def constant(self, value):
        name = f"w{len(self.constants)}"
        value = value.detach().half() if self.element == onnxfile.FLOAT16 else value.detach().float()
        value = value.contiguous().cpu().numpy()
        self.constants.append(onnxfile.tensor(name, self.element, list(value.shape), value.tobytes()))
        return name

    def node(self, operator, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(onnxfile.node(operator, list(inputs), [name], **attributes))
        return name

    def convolution(self, x, conv, norm):
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        weight = conv.weight * scale[:, None, None, None]
        bias = norm.bias - norm.running_mean * scale
        pad = conv.padding[0]
        return self.node("Conv", x, self.constant(weight), self.constant(bias),
                         kernel_shape=list(conv.kernel_size), strides=list(conv.stride), pads=[pad] * 4)

    def block(self, x, block):
        straight = x if block.shortcut is None else self.convolution(x, *block.shortcut)
        inner = self.node("Relu", self.convolution(x, block.conv1, block.bn1))
        inner = self.node("Relu", self.convolution(inner, block.conv2, block.bn2))
        inner = self.convolution(inner, block.conv3, block.bn3)
        return self.node("Relu", self.node("Add", inner, straight))


def onnx_bytes(net, image, element=onnxfile.FLOAT16):
    """Returns the ONNX file."""
    graph = Graph(element)
    x = graph.node("Relu", graph.convolution("input", net.conv, net.bn))
    x = graph.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for block in net.blocks:
        x = graph.block(x, block)
    x = graph.node("Flatten", graph.node("GlobalAveragePool", x), axis=1)
    x = graph.node("Gemm", x, graph.constant(net.classes.weight), graph.constant(net.classes.bias), transB=1)
    graph.nodes.append(onnxfile.node("Identity", [x], ["output"]))
    return onnxfile.model("resnet50", graph.nodes, graph.constants,
                          [onnxfile.value("input", element, ["N", 3, image, image])],
                          [onnxfile.value("output", element, ["N", resnet50.CLASSES])])


def check(net, path, image):
    import onnxruntime
    batch = torch.randn(2, 3, image, image, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        want = net(batch)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    is_half = session.get_inputs()[0].type == "tensor(float16)"
    got = torch.from_numpy(session.run(None, {"input": (batch.half() if is_half else batch).numpy()})[0]).float()
    difference = (got - want).abs().max().item() / want.abs().max().item()
    print(f"largest output {want.abs().max().item():.3f}, largest difference {difference:.2%} of it")
    if not difference < 0.02:
        raise SystemExit("the file does not compute what torch does")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--image", type=int, default=resnet50.IMAGE[1], help="height and width")
    parser.add_argument("--fp32", action="store_true", help="in single precision")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    net = resnet50.build()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    element = onnxfile.FLOAT if options.fp32 else onnxfile.FLOAT16
    options.output.write_bytes(onnx_bytes(net, options.image, element))
    print(f"wrote {options.output} ({options.output.stat().st_size / 1e6:.1f} MB)")
    if options.check:
        check(net, options.output, options.image)


if __name__ == "__main__":
    main()
