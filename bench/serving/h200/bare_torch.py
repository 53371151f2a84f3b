#!/usr/bin/env python3
"""Measures PyTorch alone with the same networks: rows/s from host memory to host memory, printed as JSON.

Usage: bare_torch.py [--image SIZE] [--batches 1,32,128] [--seconds 1] [--lanes 1,3] [--lengths 64,128]

With --lanes, only the limit of the card is measured: CUDA graphs in several lanes, each with a stream of its own, so that
copies overlap with the computation. With --lengths, the network is BERT and not ResNet-50.
"""
import argparse
import json
import pathlib
import sys
import time

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import bert  # noqa: E402
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


class Lane:
    """A captured batch with its buffers."""

    def __init__(self, net, host):
        self.host, self.stream = host.pin_memory(), torch.cuda.Stream()
        self.inside = torch.empty_like(self.host, device="cuda").copy_(self.host)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            for _ in range(3):
                net(self.inside)
            self.stream.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.output = net(self.inside)
        self.answer = torch.empty(self.output.shape, dtype=self.output.dtype).pin_memory()

    def run(self):
        """Waits for the last batch and starts the next one."""
        self.stream.synchronize()
        with torch.cuda.stream(self.stream):
            self.inside.copy_(self.host, non_blocking=True)
            self.graph.replay()
            self.answer.copy_(self.output, non_blocking=True)


def images(batch, image, layout):
    return torch.randn(batch, 3, image, image, dtype=torch.float16).contiguous(memory_format=layout)


def tokens(batch, length):
    return torch.randint(1, bert.WORDS, (batch, length))


def graphed(net, batch, image, layout):
    return in_lanes(net, 1, images(batch, image, layout))


def in_lanes(net, count, host):
    """Returns the work of one round of all lanes."""
    lanes = [Lane(net, host) for _ in range(count)]

    def work():
        for lane in lanes:
            lane.run()
    return work


def limits(options):
    """Measures every combination of lanes and sizes."""
    counts, batches = ([int(item) for item in text.split(",")] for text in (options.lanes, options.batches))
    lengths = [int(item) for item in options.lengths.split(",")] if options.lengths else [None]
    layout = torch.channels_last
    net = bert.build().half().cuda() if options.lengths else resnet50.build().half().cuda().to(memory_format=layout)
    runs = []
    for length in lengths:
        for count in counts:
            for batch in batches:
                host = tokens(batch, length) if length else images(batch, options.image, layout)
                found = rate(in_lanes(net, count, host), batch * count, options.seconds)
                runs.append({"way": f"{count} lanes" + (f", length {length}" if length else ""), "batch": batch,
                             "rows_per_second": found})
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", type=int, default=resnet50.IMAGE[1])
    parser.add_argument("--batches", default="1,32,128")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--lanes", help="numbers of lanes")
    parser.add_argument("--lengths", help="numbers of tokens")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    if options.lanes:
        json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "runs": limits(options)}, sys.stdout)
        return
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
