"""A BERT-base encoder in plain torch with seeded random weights, and the same network as an ONNX file.

Input: token numbers [N, length], 0 for padding, which attention leaves out. Output: the hidden state of the first token,
FP16 [N, 768]. Usage as a script: bert.py OUT.onnx
"""
import pathlib
import sys

import torch
from torch import nn

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import onnxfile  # noqa: E402

LAYERS, HEADS, WIDTH, INNER, WORDS, LONGEST = 12, 12, 768, 3072, 30522, 512
HEAD = WIDTH // HEADS


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, mask):
        rows, length, _ = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        found = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + self.out(found.transpose(1, 2).reshape(rows, length, WIDTH)))
        return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, tokens):
        x = self.norm(self.words(tokens) + self.places.weight[: tokens.shape[1]])
        mask = (tokens != 0)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return x[:, 0]


def build(seed=0):
    """Returns the network, ready for inference, in single precision."""
    torch.manual_seed(seed)
    net = Bert()
    for parameter in net.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, 0.0, 0.02)
    return net.eval()


class Graph:
    """Nodes and constants of an ONNX file."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def half(self, value):
        data = value.detach().half().contiguous().cpu().numpy()
        return self._constant(onnxfile.FLOAT16, data)

    def whole(self, *values):
        return self._constant(onnxfile.INT64, torch.tensor(values, dtype=torch.int64).numpy())

    def _constant(self, element, data):
        name = f"w{len(self.constants)}"
        self.constants.append(onnxfile.tensor(name, element, list(data.shape), data.tobytes()))
        return name

    def node(self, operator, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(onnxfile.node(operator, list(inputs), [name], **attributes))
        return name

    def linear(self, x, module):
        product = self.node("MatMul", x, self.half(module.weight.t()))
        return self.node("Add", product, self.half(module.bias))

    def norm(self, x, module):
        return self.node("LayerNormalization", x, self.half(module.weight), self.half(module.bias), axis=-1,
                         epsilon=module.eps)

    def gelu(self, x):
        inner = self.node("Erf", self.node("Mul", x, self.half(torch.tensor(0.5 ** 0.5))))
        inner = self.node("Add", inner, self.half(torch.tensor(1.0)))
        return self.node("Mul", self.node("Mul", x, inner), self.half(torch.tensor(0.5)))

    def layer(self, x, layer, mask, shape):
        weights, biases = layer.qkv.weight.chunk(3), layer.qkv.bias.chunk(3)
        heads = []
        for weight, bias, order in zip(weights, biases, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])):
            one = self.node("Add", self.node("MatMul", x, self.half(weight.t())), self.half(bias))
            heads.append(self.node("Transpose", self.node("Reshape", one, shape), perm=order))
        scores = self.node("Mul", self.node("MatMul", heads[0], heads[1]), self.half(torch.tensor(HEAD ** -0.5)))
        found = self.node("MatMul", self.node("Softmax", self.node("Add", scores, mask), axis=-1), heads[2])
        found = self.node("Reshape", self.node("Transpose", found, perm=[0, 2, 1, 3]), self.whole(0, 0, WIDTH))
        x = self.norm(self.node("Add", x, self.linear(found, layer.out)), layer.norm1)
        inner = self.linear(self.gelu(self.linear(x, layer.up)), layer.down)
        return self.norm(self.node("Add", x, inner), layer.norm2)


def onnx_bytes(net):
    """Returns the ONNX file."""
    graph = Graph()
    length = graph.node("Gather", graph.node("Shape", "tokens"), graph.whole(1))
    places = graph.node("Slice", graph.half(net.places.weight), graph.whole(0), length, graph.whole(0))
    x = graph.node("Add", graph.node("Gather", graph.half(net.words.weight), "tokens"), places)
    x = graph.norm(x, net.norm)
    is_padding = graph.node("Unsqueeze", graph.node("Equal", "tokens", graph.whole(0)), graph.whole(1, 2))
    mask = graph.node("Mul", graph.node("Cast", is_padding, to=onnxfile.FLOAT16),
                      graph.half(torch.tensor(-10000.0)))
    shape = graph.whole(0, 0, HEADS, HEAD)
    for layer in net.layers:
        x = graph.layer(x, layer, mask, shape)
    first = graph.node("Gather", x, graph._constant(onnxfile.INT64, torch.tensor(0).numpy()), axis=1)
    graph.nodes.append(onnxfile.node("Identity", [first], ["output"]))
    return onnxfile.model("bert", graph.nodes, graph.constants,
                          [onnxfile.value("tokens", onnxfile.INT64, ["N", "length"])],
                          [onnxfile.value("output", onnxfile.FLOAT16, ["N", WIDTH])])


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_bytes(onnx_bytes(build()))
