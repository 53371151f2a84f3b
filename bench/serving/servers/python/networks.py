"""The networks of the comparison with Python models, in plain torch with seeded random weights.

torch-mlp  512→1024→1024→10 with ReLU, as `mlp` of the ONNX models
resnet18   ResNet-18 for images of 3×64×64, so that one core can run it: 224×224 takes twelve times the work
torch-deep a small row through 16 wide layers, as `deep` of the ONNX models: for `overload`
"""
import os

import torch
from torch import nn

BLOCKS = ((64, 1), (128, 2), (256, 2), (512, 2))


class BasicBlock(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.bn2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.shortcut = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        inner = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(inner)) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks, before = [], 64
        for width, stride in BLOCKS:
            blocks += [BasicBlock(before, width, stride), BasicBlock(width, width, 1)]
            before = width
        self.blocks = nn.Sequential(*blocks)
        self.classes = nn.Linear(before, 1000)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn(self.conv(x))))
        return self.classes(self.blocks(x).mean((2, 3)))


def _mlp():
    return nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def _deep():
    layer = nn.Linear(1024, 1024)
    return nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), *[layer, nn.ReLU()] * 16, nn.Linear(1024, 10))


NETWORKS = {"torch-mlp": _mlp, "resnet18": ResNet18, "torch-deep": _deep}


def build(name):
    """Returns a network, ready for inference with one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return NETWORKS[name]().eval()


class RawModel:
    """The network named in the environment, for servers that pass on the bodies of requests: a row of float32 each."""

    def __init__(self):
        self.shape = [int(size) for size in os.environ["MODEL_SHAPE"].split(",")]
        self.net = build(os.environ["MODEL_NAME"])

    @torch.inference_mode()
    def predict(self, bodies):
        """Returns the bodies of the responses, a row of float32 each."""
        # Bytes are read-only, which tensors cannot be.
        rows = torch.frombuffer(bytearray().join(bodies), dtype=torch.float32).reshape(len(bodies), *self.shape)
        return [row.tobytes() for row in self.net(rows).numpy()]
