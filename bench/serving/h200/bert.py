"""A BERT-base encoder in plain torch with seeded random weights, and the same network as an ONNX file with ONNX Runtime's
fused operators.

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
        return self._nodes(operator, inputs, 1, attributes)[0]

    def fused(self, operator, *inputs, outputs=1, **attributes):
        """An operator of ONNX Runtime, as its optimizer for transformers writes them."""
        return self._nodes(operator, inputs, outputs, {"domain": onnxfile.RUNTIME_DOMAIN, **attributes})

    def _nodes(self, operator, inputs, outputs, attributes):
        names = [f"t{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(onnxfile.node(operator, list(inputs), names, **attributes))
        return names

    def add_and_norm(self, x, skip, linear, norm):
        """The product with a layer's weights, its bias, the skipped input and the norm."""
        product = self.node("MatMul", x, self.half(linear.weight.t()))
        return self.fused("SkipLayerNormalization", product, skip, self.half(norm.weight), self.half(norm.bias),
                          self.half(linear.bias), epsilon=norm.eps)[0]

    def layer(self, x, layer, lengths):
        found, = self.fused("Attention", x, self.half(layer.qkv.weight.t()), self.half(layer.qkv.bias), lengths,
                            num_heads=HEADS)
        x = self.add_and_norm(found, x, layer.out, layer.norm1)
        inner = self.node("MatMul", x, self.half(layer.up.weight.t()))
        inner, = self.fused("BiasGelu", inner, self.half(layer.up.bias))
        return self.add_and_norm(inner, x, layer.down, layer.norm2)


def onnx_bytes(net):
    """Returns the ONNX file. Padding must be at the end of a row."""
    graph = Graph()
    numbers = graph.node("Cast", "tokens", to=onnxfile.INT32)
    is_token = graph.node("Not", graph.node("Equal", "tokens", graph.whole(0)))
    mask = graph.node("Cast", is_token, to=onnxfile.INT32)
    x, lengths = graph.fused("EmbedLayerNormalization", numbers, "", graph.half(net.words.weight),
                             graph.half(net.places.weight), "", graph.half(net.norm.weight), graph.half(net.norm.bias),
                             mask, outputs=2, epsilon=net.norm.eps)
    for layer in net.layers:
        x = graph.layer(x, layer, lengths)
    first = graph.node("Gather", x, graph._constant(onnxfile.INT64, torch.tensor(0).numpy()), axis=1)
    graph.nodes.append(onnxfile.node("Identity", [first], ["output"]))
    return onnxfile.model("bert", graph.nodes, graph.constants,
                          [onnxfile.value("tokens", onnxfile.INT64, ["N", "length"])],
                          [onnxfile.value("output", onnxfile.FLOAT16, ["N", WIDTH])])


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_bytes(onnx_bytes(build()))
