"""Opens hostile pages in headless Chromium, which attack servers by all means that a browser has.

    python attack.py CHROMIUM SCENES

SCENES is JSON: a list of {"page": URL, "targets": [{"url": URL, "paths": [PATH]}]}. A page with the port 0 is on a server
of the attacker; one with another port is from there, too, but its name then means the server at that port, as after DNS
rebinding. All names that end in `.test` are resolved to 127.0.0.1. Prints the responses that each page could read, as JSON.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

SCRIPT = Path(__file__).with_name("attack.js").read_text()
PAGE = f"<!doctype html><meta charset=utf-8><title>hostile</title><body><script>{SCRIPT}</script>"


class Attacker(BaseHTTPRequestHandler):
    def do_GET(self):
        body = PAGE.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def visit(context, own_port, scene):
    page = context.new_page()
    url = urlsplit(scene["page"])
    if url.port == 0:
        address = f"{url.scheme}://{url.hostname}:{own_port}/"
    else:
        address = f"{scene['page'].rstrip('/')}/attack"
        page.route(address, lambda route: route.fulfill(body=PAGE, content_type="text/html"))
    page.goto(address)
    # Whatever is open at the end has had its time.
    readable = page.evaluate("targets => attack(targets)", scene["targets"])
    page.close()
    return readable


def main(chromium, scenes):
    attacker = ThreadingHTTPServer(("127.0.0.1", 0), Attacker)
    threading.Thread(target=attacker.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=[
                "--no-sandbox",
                "--host-resolver-rules=MAP *.test 127.0.0.1",
                # A browser without this protection, as most were for years.
                "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
            ],
        )
        context = browser.new_context()
        print(json.dumps([visit(context, attacker.server_port, scene) for scene in scenes]))
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
