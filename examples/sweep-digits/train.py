"""Trains a small convolutional network on handwritten digits, and prints its accuracy after each epoch.

Needs torch and numpy alone. The data is digits.csv.gz, see README.md; the last fifth of it is by other writers than the
rest, and is used for validation. Each epoch shows every image several times, moved and with noise.

    python train.py --lr 0.003 --batch 64 --width 16 --dropout 0.2

A trial that was interrupted continues from its last epoch: `cudock sweep` names a directory for checkpoints.
"""

import argparse
import csv
import gzip
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

VALIDATION = 360


def load():
    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt") as file:
        rows = np.array([[int(cell) for cell in row] for row in csv.reader(file)], dtype=np.int64)
    images = torch.from_numpy(rows[:, :64].astype(np.float32) / 16).reshape(-1, 1, 8, 8)
    return images, torch.from_numpy(rows[:, 64])


class Network(nn.Sequential):
    def __init__(self, width, dropout):
        super().__init__(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(dropout),
            nn.Linear(2 * width * 16, 64), nn.ReLU(), nn.Linear(64, 10),
        )


def varied(images, noise):
    """Returns images moved by up to one pixel, with noise."""
    down, right = torch.randint(-1, 2, (2,)).tolist()
    moved = torch.roll(images, (down, right), (2, 3))
    return moved + noise * torch.randn_like(moved)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=10, help="how often an epoch shows each image")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    images, labels = (tensor.to(device) for tensor in load())
    train_images, train_labels = images[:-VALIDATION], labels[:-VALIDATION]

    network = Network(args.width, args.dropout).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=args.lr, momentum=0.9)
    checkpoint = Path(os.environ.get("CUDOCK_CHECKPOINT_DIR", ".")) / "last.pt"
    first = 1
    if "CUDOCK_CHECKPOINT_DIR" in os.environ and checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"] + 1

    for epoch in range(first, args.epochs + 1):
        network.train()
        for _ in range(args.repeats):
            for part in torch.randperm(len(train_labels), device=device).split(args.batch):
                loss = F.cross_entropy(network(varied(train_images[part], 0.1)), train_labels[part])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        network.eval()
        with torch.no_grad():
            scores = network(images[-VALIDATION:])
            accuracy = (scores.argmax(1) == labels[-VALIDATION:]).float().mean().item()
        if "CUDOCK_CHECKPOINT_DIR" in os.environ:
            state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, checkpoint.with_suffix(".new"))
            os.replace(checkpoint.with_suffix(".new"), checkpoint)
        print(f"step={epoch} accuracy={accuracy:.4f} loss={loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
