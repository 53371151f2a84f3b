"""Sends the measurements of a flower to the server and prints its species: python client.py [LENGTH WIDTH LENGTH WIDTH]"""

import json
import sys
import urllib.request

URL = "http://localhost:8000/predict"

# Sepal and petal, in centimeters.
flower = [float(text) for text in sys.argv[1:]] or [6.1, 2.8, 4.7, 1.2]
request = urllib.request.Request(URL, json.dumps({"input": flower}).encode(), {"content-type": "application/json"})
with urllib.request.urlopen(request) as response:
    prediction = json.load(response)["prediction"]
print(f"{prediction['label']} ({max(prediction['probabilities']):.0%})")
