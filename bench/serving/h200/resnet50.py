"""ResNet-50 (v1.5: the stride is in the 3×3 convolutions) in plain torch, with seeded random weights.

Speed does not depend on the weights, as long as they are ordinary numbers: the last normalization of each block is small, so
that the sum of sixteen blocks fits into half precision.
"""
import torch
from torch import nn

BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
CLASSES = 1000
IMAGE = (3, 224, 224)


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        after = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after)
        self.shortcut = None
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        straight = x if self.shortcut is None else self.shortcut(x)
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return torch.relu(self.bn3(self.conv3(x)) + straight)


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks, before = [], 64
        for width, count, stride in BLOCKS:
            for index in range(count):
                blocks.append(Bottleneck(before, width, stride if index == 0 else 1))
                before = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.classes = nn.Linear(before, CLASSES)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn(self.conv(x))))
        return self.classes(self.blocks(x).mean((2, 3)))


def build(seed=0):
    """Returns the network, ready for inference, in single precision."""
    torch.manual_seed(seed)
    net = ResNet50()
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.8, 1.2)
            nn.init.normal_(module.bias, 0.0, 0.1)
            nn.init.normal_(module.running_mean, 0.0, 0.1)
            nn.init.uniform_(module.running_var, 0.8, 1.2)
    for block in net.blocks:
        nn.init.uniform_(block.bn3.weight, 0.1, 0.3)
    return net.eval()
