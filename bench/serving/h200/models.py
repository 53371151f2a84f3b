"""The networks as models of cudock's Python engine: `cudock serve models.py --class ResNet50`."""
import pathlib
import sys
from typing import Annotated

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


class ResNet50:
    def load(self):
        import resnet50
        self.net = resnet50.build()

    def predict(self, images: Annotated[torch.Tensor, "float16[-1,3,224,224]"]) -> Annotated[torch.Tensor, "float16[-1,1000]"]:
        return self.net(images)


class Bert:
    def load(self):
        import bert
        self.net = bert.build()

    def predict(self, tokens: Annotated[torch.Tensor, "int64[-1,-1]"]) -> Annotated[torch.Tensor, "float16[-1,768]"]:
        return self.net(tokens)
