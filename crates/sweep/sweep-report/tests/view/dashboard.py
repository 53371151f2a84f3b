"""Opens a journal file with optuna-dashboard, as a user does, and looks at the study in headless Chromium.

    python dashboard.py OPTUNA_PYTHON FILE CHROMIUM DIRECTORY STUDY

Leaves a screenshot in DIRECTORY.
"""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

python, file, chromium, directory, study = sys.argv[1:]
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
url = f"http://127.0.0.1:{port}"
start = "from optuna_dashboard._cli import main; main()"
arguments = [python, "-c", start, file, "--host", "127.0.0.1", "--port", str(port), "--server", "wsgiref"]
server = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def get(path):
    with urllib.request.urlopen(url + path, timeout=30) as answer:
        return json.load(answer)


try:
    for attempt in range(300):
        assert server.poll() is None, f"optuna-dashboard ended with {server.returncode}"
        try:
            studies = get("/api/studies")
            break
        except OSError:
            time.sleep(0.2)
    else:
        raise SystemExit("optuna-dashboard does not answer")
    (summary,) = studies["study_summaries"]
    assert summary["study_name"] == study, summary
    detail = get(f"/api/studies/{summary['study_id']}")
    states = [trial["state"] for trial in detail["trials"]]
    expected = {"digits": ["Complete", "Pruned", "Complete", "Fail", "Running"], "tradeoff": ["Complete"] * 3}[study]
    assert states == expected, states
    if study == "digits":
        curve = [(point["step"], point["value"]) for point in detail["trials"][2]["intermediate_values"]]
        assert curve == [(1, 0.7), (2, "nan"), (3, 0.9132)], curve
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{url}/dashboard/studies/{summary['study_id']}/trials")
        expect(page.locator("body")).to_contain_text("Trial 2", timeout=60_000)
        page.goto(f"{url}/dashboard/studies/{summary['study_id']}")
        expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=60_000)
        page.screenshot(path=Path(directory) / f"{study}.png")
        assert errors == [], errors
        browser.close()
finally:
    server.terminate()
    server.wait()
