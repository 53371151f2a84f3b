#!/usr/bin/env python3
"""Sends images to a server one by one and then all at once, and checks that each response belongs to its own image.

Usage: check_answers.py PORT [--images 64] [--rounds 8] [--image 224]

Half precision rounds differently in batches of different sizes, so responses are compared by distance: a response must be
closer to the one that its image got alone than to that of any other image, and nearly the same.
"""
import argparse
import concurrent.futures
import http.client
import json
import sys

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--image", type=int, default=224)
    options = parser.parse_args()
    random = np.random.default_rng(7)
    # Images of different brightness and noise, so that their results differ clearly.
    images = [(random.normal(size=(3, options.image, options.image)) * scale + shift).astype(np.float16)
              for scale, shift in zip(random.uniform(0.2, 3, options.images), random.uniform(-2, 2, options.images))]

    def ask(number):
        connection = http.client.HTTPConnection("127.0.0.1", options.port, timeout=60)
        connection.request("POST", "/predict", images[number].tobytes(), {"Content-Type": "application/octet-stream"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {body[:200]}")
        return np.frombuffer(body, np.float16).astype(np.float64)

    alone = np.stack([ask(number) for number in range(options.images)])
    again = max(np.abs(ask(number) - alone[number]).max() for number in range(8))
    largest, mixed, count = 0.0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.images) as pool:
        for _ in range(options.rounds):
            numbers = random.permutation(options.images)
            for number, answer in zip(numbers, pool.map(ask, numbers)):
                distances = np.abs(alone - answer).max(axis=1)
                mixed += int(distances.argmin() != number)
                largest = max(largest, distances[number] / np.abs(alone[number]).max())
                count += 1
    apart = min(np.abs(alone[a] - alone[b]).max() for a in range(options.images) for b in range(a))
    print(json.dumps({"answers": count, "of_another_image": mixed, "largest_difference": largest,
                      "same_image_alone_again": float(again), "nearest_two_images": float(apart)}))
    return 1 if mixed else 0


if __name__ == "__main__":
    sys.exit(main())
