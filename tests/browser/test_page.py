"""The exported page and module in a real browser: Debian's Chromium, driven by Playwright."""

import csv
import json
import runpy
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from wgcn.browser.export import as_page, write_package

HERE = Path(__file__).parent
MAKE = runpy.run_path(str(HERE / "make_vectors.py"))
VECTORS = json.loads((HERE / "vectors.json").read_text())
CHROMIUM = shutil.which("chromium")
HOST = "http://wgcn.test/"
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".json": "application/json"}
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=1</script> red wine </textarea>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("needs chromium, which is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, which is not installed")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(as_page(MAKE["made"]("words"), "Drinks & cars"))
    return path


@pytest.fixture
def page(browser: Any, file: Path) -> Iterator[Any]:
    """The page, loaded, without a network; at the end it must have asked for nothing and reported no error."""
    context = browser.new_context(offline=True, viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    opened, asked, errors = context.new_page(), list[str](), list[str]()
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text))
    opened.goto(file.as_uri())
    opened.wait_for_selector("html[data-loaded]", state="attached")
    yield opened
    assert [url for url in asked if not url.startswith("blob:")] == [file.as_uri()]
    assert errors == []
    context.close()


def paste(page: Any, text: str) -> None:
    """Paste into the box as a person does."""
    page.focus("#text")
    page.evaluate(
        """(text) => {
            const data = new DataTransfer(), box = document.activeElement;
            data.setData("text/plain", text);
            box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
            box.value = text;
            box.dispatchEvent(new Event("input", { bubbles: true }));
        }""",
        text,
    )


def violations(page: Any) -> list[str]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    return [found["id"] for found in axe.Axe().run(page).response["violations"]]


def test_chromium_says_what_the_vectors_say(browser: Any, tmp_path: Path) -> None:
    for name in VECTORS["models"]:
        write_package(MAKE["made"](name), tmp_path / name)
    shutil.copy(HERE / "check.mjs", tmp_path)

    def answer(route: Any) -> None:
        path = tmp_path / route.request.url.removeprefix(HOST)
        if path == tmp_path:
            route.fulfill(body="<!doctype html><title>vectors</title>", content_type="text/html")
        else:
            route.fulfill(body=path.read_bytes(), content_type=TYPES.get(path.suffix, "application/octet-stream"))

    context = browser.new_context()
    context.route("**/*", answer)
    opened = context.new_page()
    opened.goto(HOST)
    found = opened.evaluate(
        """async (vectors) => {
            const { check } = await import("/check.mjs"), found = {};
            for (const name of Object.keys(vectors.models)) {
                const { load } = await import(`/${name}/index.js`);
                found[name] = check(name, await load(), vectors);
            }
            return found;
        }""",
        VECTORS,
    )
    context.close()
    assert found == {name: [] for name in VECTORS["models"]}


def test_the_page_labels_and_explains_as_python_does(page: Any) -> None:
    model = MAKE["made"]("words")
    page.fill("#text", text := "A fast car, the CAR and a regrettable glass of wine.")
    page.wait_for_selector("#one:not([hidden])")
    why = model.explain([text])[0]
    assert page.inner_text("#answer") == why.label
    assert page.inner_text("#status") == f"Label: {why.label}, {100 * why.probabilities.max():.1f} %."
    rows = [row.split("\t") for row in page.inner_text("#terms").splitlines()]
    term, part = why.top(n=1)[0]
    assert rows[0][:2] == [term, f"+{part:.3f}"]
    assert rows[-1][:2] == ["all terms and bias", f"{why.scores.max():+.3f}".replace("-", "−")]
    assert page.inner_text("#marked") == text
    assert page.locator("#marked mark").count() > 1
    assert all(word in page.inner_text("#unknown") for word in why.unknown)


def test_hostile_texts_and_labels_never_become_markup(page: Any) -> None:
    for text in (HOSTILE, f"{HOSTILE}\n{HOSTILE}"):
        paste(page, text)
        page.wait_for_selector("#many:not([hidden])" if "\n" in text else "#one:not([hidden])")
        assert page.locator("img, main script, i").count() == 0
        assert page.title() == "Drinks & cars"
        page.click("#clear")
    page.fill("#text", HOSTILE)
    page.wait_for_selector("#one:not([hidden])")
    assert "<i>other</i>" in page.locator("#classes .name").all_inner_texts()
    assert page.inner_text("#marked") == HOSTILE


def test_the_policy_refuses_requests_scripts_and_markup(browser: Any, file: Path) -> None:
    """Whatever got into the page could neither run nor send anything."""
    context = browser.new_context()
    opened, answered, failed = context.new_page(), list[str](), list[str]()
    opened.on("response", lambda response: answered.append(response.url))
    opened.on("requestfailed", lambda request: failed.append(f"{request.url} {request.failure}"))
    opened.goto(file.as_uri())
    opened.wait_for_selector("html[data-loaded]", state="attached")
    refused = opened.evaluate(
        """async () => {
            const refused = new Set();
            document.addEventListener("securitypolicyviolation", (event) => refused.add(event.effectiveDirective));
            await fetch("http://wgcn.test/").catch(() => {});
            const image = document.createElement("img"), button = document.createElement("button");
            image.src = "http://wgcn.test/x.png";
            for (const attempt of [
                () => (document.body.innerHTML = "<b>markup</b>"),
                () => button.setAttribute("onclick", "document.title = 'run'"),
                () => button.click(),
                () => document.body.append(Object.assign(document.createElement("style"), { textContent: "b {}" })),
            ]) try { attempt(); } catch { }
            await new Promise((done) => setTimeout(done, 100));
            return [...refused].sort();
        }"""
    )
    assert refused == ["connect-src", "img-src", "require-trusted-types-for", "style-src-elem"]
    assert opened.title() == "Drinks & cars"
    assert (answered, failed) == ([file.as_uri()], ["http://wgcn.test/x.png csp"])
    context.close()


def test_many_lines_become_a_table_and_a_csv(page: Any) -> None:
    model, lines = MAKE["made"]("words"), ["red wine, with cheese", 'a "fast" car', "=1+1", "ΟΔΟΣ 👍🏽"]
    paste(page, "\r\n".join([*lines[:2], "", *lines[2:]]))
    page.wait_for_selector("#many:not([hidden])")
    assert page.is_checked("#lines")
    labels = model.predict(lines).tolist()
    assert page.locator("#rows td:nth-child(2)").all_inner_texts() == labels
    with page.expect_download() as download:
        page.click("#download")
    rows = list(csv.DictReader(StringIO(download.value.path().read_text(encoding="utf-8"))))
    assert [row["text"] for row in rows] == lines
    assert [row["label"] for row in rows] == labels
    assert [float(row["confidence"]) for row in rows] == pytest.approx(model.predict_proba(lines).max(axis=1), abs=1e-6)
    page.uncheck("#lines")  # all of it is one text
    page.wait_for_selector("#one:not([hidden])")
    assert page.is_hidden("#many")


def test_a_very_long_text_is_labelled(page: Any) -> None:
    page.evaluate(
        """() => {
            const box = document.getElementById("text");
            box.value = "red wine with zebra cheese, ".repeat(15_000);
            box.dispatchEvent(new Event("input"));
        }"""
    )
    page.wait_for_selector("#one:not([hidden])")
    assert page.inner_text("#answer") == MAKE["made"]("words").predict(["red wine with zebra cheese, " * 15_000])[0]


def test_answers_may_be_left_out(page: Any) -> None:
    model = MAKE["made"]("words")
    unsure = next(text for text in VECTORS["texts"] if text.strip() and model.predict([text], abstain=0.95)[0] is None)
    page.fill("#text", unsure)
    page.select_option("#abstain", "0.95")
    page.wait_for_selector("#one:not([hidden])")
    page.wait_for_selector("#note:not([hidden])")
    assert page.inner_text("#answer") == "no label"
    assert "stranger than" in page.inner_text("#note")


def test_the_keyboard_is_enough(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.type("red wine with cheese")
    page.wait_for_selector("#one:not([hidden])")
    page.focus("#clear")
    page.keyboard.press("Tab")  # the first class
    page.keyboard.press("Tab")
    name = page.locator("#classes .name").nth(1).inner_text()
    page.keyboard.press("Enter")
    assert page.inner_text("#explained") == name
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_a_phone_shows_all(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert violations(page) == []
    page.fill("#text", "red wine with cheese and a fast car, unforeseen " + "x" * 100)
    page.wait_for_selector("#one:not([hidden])")
    assert violations(page) == []
    assert page.evaluate(fits)
    page.check("#lines")
    page.wait_for_selector("#many:not([hidden])")
    assert violations(page) == []
    assert page.evaluate(fits)
