"""Opens the pages of servers in headless Chromium, and predicts from there.

    python predict.py CHROMIUM [URL PATH]...

Names that end in `.test` are resolved to 127.0.0.1. Prints the status of each prediction.
"""

import sys

from playwright.sync_api import sync_playwright

PREDICT = """
    (path) => fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"input": [[1, 2, 3, 4]]}',
    }).then((response) => response.status)
"""


def main(chromium, *pages):
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--host-resolver-rules=MAP *.test 127.0.0.1"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page()
        for url, path in zip(pages[::2], pages[1::2]):
            page.goto(url)
            print(page.evaluate(PREDICT, path))
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
