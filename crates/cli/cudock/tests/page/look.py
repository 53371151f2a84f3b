"""Looks at the status page of a running server as a person would, in headless Chromium.

    python look.py URL CHROMIUM FOLDER

The server has the digits model and has answered nothing yet. Exits with 1 and says what was promised and not kept;
leaves screenshots in FOLDER.
"""

import re
import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

PATIENCE_MS = 30_000
PEAK = re.compile("requests each second over the last minute: .* at most")

# Strokes on a sheet of 1 by 1, y downwards, as a quick hand draws them.
DIGITS = {
    "1": [[(0.38, 0.30), (0.55, 0.12), (0.53, 0.88)]],
    "0": [[(0.5, 0.1), (0.3, 0.25), (0.25, 0.5), (0.3, 0.75), (0.5, 0.9), (0.7, 0.75), (0.74, 0.5), (0.7, 0.25), (0.5, 0.1)]],
    "7": [[(0.22, 0.16), (0.76, 0.14), (0.44, 0.9)]],
}


def draw(page, strokes):
    pad = page.locator("#pad")
    pad.scroll_into_view_if_needed()
    frame = pad.bounding_box()
    for stroke in strokes:
        for index, (x, y) in enumerate(stroke):
            # Between corners the hand passes points too.
            page.mouse.move(frame["x"] + x * frame["width"], frame["y"] + y * frame["height"], steps=6 if index else 1)
            if index == 0:
                page.mouse.down()
        page.mouse.up()


def the_page_says_that_the_server_is_healthy_and_the_model_ready(page):
    expect(page.locator("#state-word")).to_have_text("healthy")
    row = page.locator("#models tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("digits")
    expect(row).to_contain_text("ready")
    expect(row).to_contain_text("image FP32[·, 64]")
    expect(page.locator("#about")).to_contain_text("up ")
    expect(page.locator("[data-total=requests]")).to_have_text("0")
    expect(page.locator("#devices li")).to_have_count(1)


def a_drawn_digit_is_read_at_once(page):
    for digit, strokes in DIGITS.items():
        draw(page, strokes)
        expect(page.locator("#guess")).to_contain_text(f"It is {digit},")
        expect(page.locator("#classes .best b")).to_have_text(digit)
        page.locator("#clear").click()
        expect(page.locator("#guess")).to_have_text("Draw something.")


def a_digit_can_be_drawn_with_keys_alone(page):
    page.locator("#pad").focus()
    for key in ["ArrowUp"] * 10 + ["Space"] + ["ArrowDown"] * 20 + ["Space"]:
        page.keyboard.press(key)
    expect(page.locator("#guess")).to_contain_text("It is 1,")
    page.keyboard.press("Delete")
    expect(page.locator("#guess")).to_have_text("Draw something.")


def the_form_sends_its_example_and_shows_the_answer(page):
    page.locator("#json summary").click()
    page.locator("#example").click()
    page.locator("#request-form button[type=submit]").click()
    expect(page.locator("#outcome")).to_contain_text("200")
    expect(page.locator("#answer")).to_contain_text('"prediction"')


def a_mistake_in_the_form_is_shown_with_the_servers_words(page):
    page.locator("#body").fill('{"input": [1, 2, 3]}')
    page.locator("#body").press("Control+Enter")
    expect(page.locator("#outcome")).to_contain_text("400")
    expect(page.locator("#outcome")).to_have_attribute("data-ok", "false")
    expect(page.locator("#answer")).to_contain_text("64")
    page.locator("#json summary").click()


def figures_move_with_the_requests(page):
    before = int(page.locator("[data-total=requests]").inner_text().replace(",", ""))
    # Each waits for its answer: a browser has six connections to a server, and the page needs one.
    page.evaluate(
        """() => {
            const row = (index) => Array.from({ length: 64 }, (_, at) => (at * index) % 17);
            const body = (rows) => JSON.stringify({ input: Array.from({ length: rows }, (_, at) => row(at)) });
            window.flowing = true;
            const flow = async (rows) => {
                while (window.flowing) {
                    const headers = { "Content-Type": "application/json" };
                    await fetch("/predict/digits", { method: "POST", body: body(rows), headers });
                }
            };
            for (const rows of [1, 2, 5, 8]) flow(rows);
        }"""
    )
    try:
        page.wait_for_function(
            """(before) => Number(document.querySelector("[data-total=requests]").textContent.replaceAll(",", ""))
                > before + 100""",
            arg=before,
        )
        page.wait_for_function("Number(document.querySelector('#requests').textContent.replaceAll(',', '')) > 1")
        page.wait_for_function(
            """Number(document.querySelector("#rows").textContent.replaceAll(",", ""))
                > Number(document.querySelector("#requests").textContent.replaceAll(",", ""))"""
        )
        page.wait_for_function("document.querySelectorAll('#batches li').length > 1")
        for stage in ("queue", "compute", "total"):
            for cell in page.locator(f"#latency [data-stage={stage}] td:not(.range)").all():
                expect(cell).to_contain_text("s")
        expect(page.locator("#requests-curve .line")).to_have_count(1)
        expect(page.locator("#requests-curve")).to_have_attribute("aria-label", PEAK)
    finally:
        page.evaluate("window.flowing = false")


def every_control_has_a_name_and_nothing_is_wider_than_a_small_screen(page):
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, textarea, canvas[tabindex], svg[role=img]")]
            .filter((control) => !(control.labels?.length || control.getAttribute("aria-label") || control.textContent.trim()))
            .map((control) => control.outerHTML)"""
    )
    assert nameless == [], nameless
    page.set_viewport_size({"width": 360, "height": 740})
    too_wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert too_wide <= 0, f"the page is {too_wide} pixels too wide"


def what_the_page_decides_is_decided_by_tables(page):
    failures = page.evaluate((Path(__file__).with_name("decisions.js")).read_text())
    assert failures == [], "\n".join(failures)


def a_server_that_is_gone_is_told(page):
    page.route("**/status", lambda route: route.abort())
    expect(page.locator("#state-word")).to_have_text("no answer from the server")
    page.unroute("**/status")
    expect(page.locator("#state-word")).to_have_text("healthy")


def a_key_is_asked_for_and_sent(page):
    def guarded(route):
        if route.request.headers.get("authorization") == "Bearer open sesame":
            route.continue_()
        else:
            route.fulfill(status=401, body="{}")

    page.route("**/status", guarded)
    expect(page.locator("#key-form")).to_be_visible()
    expect(page.locator("#state-word")).to_have_text("the server answers 401")
    page.locator("#key").fill("open sesame")
    page.locator("#key").press("Enter")
    expect(page.locator("#state-word")).to_have_text("healthy")
    expect(page.locator("#key-form")).to_be_hidden()
    page.unroute("**/status")


def main(url, chromium, folder):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="light")
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        complaints = []
        page.on("pageerror", lambda error: complaints.append(f"{error}"))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        foreign = []
        page.on("request", lambda request: foreign.append(request.url) if not request.url.startswith(url) else None)
        page.goto(url)

        look(page, the_page_says_that_the_server_is_healthy_and_the_model_ready)
        look(page, what_the_page_decides_is_decided_by_tables)
        look(page, a_drawn_digit_is_read_at_once)
        look(page, a_digit_can_be_drawn_with_keys_alone)
        look(page, the_form_sends_its_example_and_shows_the_answer)
        assert complaints == [], complaints
        # Chromium writes each answer of 400 or 401, and each request that is cut off, as an error of the page.
        look(page, a_mistake_in_the_form_is_shown_with_the_servers_words)
        look(page, figures_move_with_the_requests)
        draw(page, DIGITS["7"])
        expect(page.locator("#guess")).to_contain_text("It is 7,")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/page-{scheme}.png", full_page=True)
        look(page, a_server_that_is_gone_is_told)
        look(page, a_key_is_asked_for_and_sent)
        look(page, every_control_has_a_name_and_nothing_is_wider_than_a_small_screen)
        page.screenshot(path=f"{folder}/page-small.png", full_page=True)
        unexpected = [text for text in complaints if "Failed to load resource" not in text]
        assert unexpected == [], unexpected
        assert foreign == [], foreign
        browser.close()


def look(page, promise):
    print(promise.__name__, flush=True)
    promise(page)


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/") + "/", sys.argv[2], sys.argv[3])
