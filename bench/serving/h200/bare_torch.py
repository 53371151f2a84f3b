#!/usr/bin/env python3
"""Measures PyTorch alone with the same network: images/s from host memory to host memory, printed as JSON.

Usage: bare_torch.py [--image SIZE] [--batches 1,32,128] [--seconds 1]
"""
import argparse
import json
import pathlib
import sys
import time

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import resnet50  # noqa: E402

CUDA = torch.cuda.is_available()


def rate(work, batch, seconds):
    """Returns images per second, after a warm-up."""
    for _ in range(3):
        work()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        work()
        count += batch
    return count / (time.perf_counter() - start)


def eager(net, batch, image, layout):
    host = torch.randn(batch, 3, image, image, dtype=next(net.parameters()).dtype)
    host = host.pin_memory() if CUDA else host
    device = next(net.parameters()).device

    def work():
        with torch.inference_mode():
            return net(host.to(device, memory_format=layout)).cpu()
    return work


def graphed(net, batch, image, layout):
    host = torch.randn(batch, 3, image, image, dtype=torch.float16).contiguous(memory_format=layout).pin_memory()
    inside = torch.empty_like(host, device="cuda", memory_format=layout)
    answer = torch.empty(batch, resnet50.CLASSES, dtype=torch.float16).pin_memory()
    stream = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(stream):
        for _ in range(3):
            net(inside)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            output = net(inside)

    def work():
        with torch.cuda.stream(stream):
            inside.copy_(host, non_blocking=True)
            graph.replay()
            answer.copy_(output, non_blocking=True)
        stream.synchronize()
    return work


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", type=int, default=resnet50.IMAGE[1])
    parser.add_argument("--batches", default="1,32,128")
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    net = resnet50.build()
    net = net.half().cuda() if CUDA else net
    runs = []
    ways = [("eager", eager, torch.contiguous_format)]
    if CUDA:
        ways += [("eager, channels last", eager, torch.channels_last),
                 ("graph, channels last", graphed, torch.channels_last)]
    for name, make, layout in ways:
        net = net.to(memory_format=layout)
        for batch in map(int, options.batches.split(",")):
            try:
                runs.append({"way": name, "batch": batch,
                             "rows_per_second": rate(make(net, batch, options.image, layout), batch, options.seconds)})
            except RuntimeError as error:
                runs.append({"way": name, "batch": batch, "error": str(error)[:300]})
    name = torch.cuda.get_device_name() if CUDA else "cpu"
    json.dump({"torch": torch.__version__, "device": name, "runs": runs}, sys.stdout)


if __name__ == "__main__":
    main()
