"""Looks at an HTML report in headless Chromium.

    python look.py digits|tradeoff PAGE CHROMIUM DIRECTORY

Exits with 1 if the page does not show the sweep of that name in `tests/it/view_support.rs`, or loads or runs anything
that it should not. Leaves screenshots in DIRECTORY.
"""

import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright


def drawn(page, selector):
    """The elements that take up room on the page."""
    return page.locator(selector).evaluate_all(
        "(found) => found.filter((one) => { const box = one.getBoundingClientRect(); return box.width + box.height > 1; }).length"
    )


def digits(page):
    expect(page.locator("#answer")).to_contain_text("best: trial 2, accuracy 0.9132 (maximize)")
    expect(page.locator("#answer")).to_contain_text("lr=0.003")
    expect(page.locator("h2")).to_have_text(["Learning curves", "Parallel coordinates", "Trials"])
    curves, parallel = page.locator("svg").all()
    expect(curves.locator("title")).to_have_text("accuracy by step, one line per trial")
    # Trial 3 reported nothing in its last attempt, and trial 2 is interrupted by a value that is not a number.
    assert drawn(page, "section:nth-of-type(1) path.trial") == 3
    assert drawn(page, "section:nth-of-type(1) circle.trial.t2.best") == 2
    assert drawn(page, "section:nth-of-type(2) path.trial") == 4
    for axis in ["lr", "layers", "optimizer", "momentum", "weight_decay", "accuracy", "adam", "sgd", "inactive"]:
        assert parallel.locator("text", has_text=axis).count() >= 1, axis
    best = page.locator("section:nth-of-type(2) path.best").evaluate("(line) => getComputedStyle(line).strokeWidth")
    other = page.locator("section:nth-of-type(2) path.t0").evaluate("(line) => getComputedStyle(line).strokeWidth")
    assert (best, other) == ("3px", "1.5px"), (best, other)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(5)
    expect(rows.nth(3)).to_contain_text("at step 2: 0.61 < 0.8 / (1 + 0.2) = 0.667")

    # A trial is picked by pointer and by keys, in all charts.
    page.locator("tr[data-trial='1'] button").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#detail")).to_contain_text("trial 1 stopped at step 2")
    assert page.locator("path.trial.on").count() == 2
    assert page.locator("svg.picked").count() == 2
    expect(page.locator("tr[data-trial='1'] button")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    assert page.locator(".on").count() == 0
    curves.scroll_into_view_if_needed()
    x, y = page.locator("section:nth-of-type(1) path.t0").evaluate(
        """(line) => { const middle = line.getPointAtLength(line.getTotalLength() / 4).matrixTransform(line.getScreenCTM());
            return [middle.x, middle.y]; }"""
    )
    page.mouse.move(x, y)
    expect(page.locator("#detail")).to_contain_text("trial 0 succeeded")

    # The table is sorted, with empty cells last.
    ids = lambda: page.locator("tbody tr").evaluate_all("(rows) => rows.map((row) => row.dataset.trial)")
    assert ids() == ["2", "0", "4", "1", "3"], ids()
    page.get_by_role("button", name="accuracy").click()
    assert ids() == ["1", "4", "0", "2", "3"], ids()
    page.get_by_role("button", name="accuracy").click()
    assert ids() == ["2", "0", "4", "1", "3"], ids()
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "descending")


def tradeoff(page):
    expect(page.locator("#answer")).to_contain_text("best: 2 trials on the Pareto front of accuracy")
    expect(page.locator("h2")).to_have_text(["Pareto front", "Learning curves", "Parallel coordinates", "Trials"])
    assert drawn(page, "section:nth-of-type(1) circle.trial") == 3
    assert drawn(page, "section:nth-of-type(1) circle.trial.best") == 2
    assert drawn(page, "section:nth-of-type(1) path.front") == 1
    assert page.locator("section:nth-of-type(2) svg").count() == 2


def every_control_has_a_name_and_nothing_is_wider_than_a_small_screen(page):
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, svg[role=img]")]
            .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim())).map((one) => one.outerHTML)"""
    )
    assert nameless == [], nameless
    page.set_viewport_size({"width": 360, "height": 740})
    too_wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert too_wide <= 0, f"the page is {too_wide} pixels too wide"


def injected_scripts_do_not_run(page):
    page.evaluate(
        """() => { const script = document.createElement("script"); script.textContent = "window.ran = true";
            document.body.append(script); }"""
    )
    assert page.evaluate("window.ran") is None, "the content security policy lets other scripts run"


name, file, chromium, directory = sys.argv[1:]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    for shade in ("light", "dark"):
        page = browser.new_page(color_scheme=shade, viewport={"width": 1100, "height": 900})
        problems, requests = [], []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(Path(file).resolve().as_uri())
        {"digits": digits, "tradeoff": tradeoff}[name](page)
        assert problems == [] and len(requests) == 1, (problems, requests)
        page.mouse.move(0, 0)
        page.screenshot(path=Path(directory) / f"{name}-{shade}.png", full_page=True)
    every_control_has_a_name_and_nothing_is_wider_than_a_small_screen(page)
    page.screenshot(path=Path(directory) / f"{name}-small.png", full_page=True)
    injected_scripts_do_not_run(page)
    browser.close()
