"""Writes ONNX files with only the standard library.

The models of the comparison must be the same bytes on every machine and must not depend on a package's version, and the GPU
machine may not have the `onnx` package. Only what these models use is supported: tensors as raw bytes or in other
files, nodes of ONNX and of ONNX Runtime with integer, float and list attributes, inputs and outputs with named or fixed dimensions.
"""
import struct

FLOAT, INT32, INT64, FLOAT16 = 1, 6, 7, 10
OPSET, IR_VERSION = 17, 8
# The operators of ONNX Runtime itself, such as fused attention.
RUNTIME_DOMAIN, RUNTIME_OPSET = "com.microsoft", 1


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _whole(field, value):
    return _varint(field << 3) + _varint(value)


def _block(field, data):
    data = data.encode() if isinstance(data, str) else bytes(data)
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def tensor(name, element, shape, raw):
    """A constant: `raw` has its elements in row order, little-endian."""
    return b"".join(_whole(1, size) for size in shape) + _whole(2, element) + _block(8, name) + _block(9, raw)


def external_tensor(name, element, shape, file):
    """A constant whose elements are in another file in the directory of the model, as `tensor` has them in `raw`."""
    location = _block(13, _block(1, "location") + _block(2, file))
    return b"".join(_whole(1, size) for size in shape) + _whole(2, element) + _block(8, name) + location + _whole(14, 1)


def _attribute(name, value):
    head = _block(1, name)
    if isinstance(value, float):
        return head + _varint(2 << 3 | 5) + struct.pack("<f", value) + _whole(20, 1)
    if isinstance(value, int):
        return head + _whole(3, value) + _whole(20, 2)
    return head + b"".join(_whole(8, item) for item in value) + _whole(20, 7)


def node(operator, inputs, outputs, domain="", **attributes):
    """One operator."""
    return (b"".join(_block(1, name) for name in inputs) + b"".join(_block(2, name) for name in outputs)
            + _block(3, outputs[0]) + _block(4, operator) + _block(7, domain)
            + b"".join(_block(5, _attribute(key, value)) for key, value in attributes.items()))


def value(name, element, shape):
    """An input or output; a dimension given as text is dynamic."""
    sizes = b"".join(_block(1, _block(2, size) if isinstance(size, str) else _whole(1, size)) for size in shape)
    return _block(1, name) + _block(2, _block(1, _whole(1, element) + _block(2, sizes)))


def model(name, nodes, constants, inputs, outputs):
    """The bytes of the file."""
    graph = (b"".join(_block(1, item) for item in nodes) + _block(2, name)
             + b"".join(_block(5, item) for item in constants)
             + b"".join(_block(11, item) for item in inputs) + b"".join(_block(12, item) for item in outputs))
    operators = b"".join(_block(8, _block(1, domain) + _whole(2, version))
                         for domain, version in (("", OPSET), (RUNTIME_DOMAIN, RUNTIME_OPSET)))
    return _whole(1, IR_VERSION) + _block(2, "cudock bench") + _block(7, graph) + operators
