"""The networks as models of cudock's Python engine: `cudock serve cudock_models.py --class Mlp`."""
from typing import Annotated

import networks
import torch


class Mlp:
    def load(self):
        self.net = networks.build("torch-mlp")

    def predict(self, input: Annotated[torch.Tensor, "float32[-1,512]"]) -> Annotated[torch.Tensor, "float32[-1,10]"]:
        return self.net(input)


class Deep:
    def load(self):
        self.net = networks.build("torch-deep")

    def predict(self, input: Annotated[torch.Tensor, "float32[-1,64]"]) -> Annotated[torch.Tensor, "float32[-1,10]"]:
        return self.net(input)


class ResNet18:
    def load(self):
        self.net = networks.build("resnet18")

    def predict(self, input: Annotated[torch.Tensor, "float32[-1,3,64,64]"]) -> Annotated[torch.Tensor, "float32[-1,1000]"]:
        return self.net(input)
