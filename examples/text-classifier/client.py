"""Sends texts to the server and prints their labels: python client.py [TEXT ...]"""

import json
import sys
import urllib.request

URL = "http://localhost:8000/predict"

texts = sys.argv[1:] or ["what a gripping story , the cast is superb", "a lazy script . i want my money back"]
request = urllib.request.Request(URL, json.dumps({"input": texts}).encode(), {"content-type": "application/json"})
with urllib.request.urlopen(request) as response:
    answer = json.load(response)
for text, labels in zip(texts, answer["labels"]):
    best = labels[0]
    print(f"{best['label']} ({best['score']:.0%}): {text}")
