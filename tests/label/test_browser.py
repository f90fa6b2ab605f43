"""The labelling page in a real browser: from texts to a model, through a kill, with hostile texts, for everybody.

With WGCN_PICTURES=DIR the pictures of the documentation are taken on the way.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wgcn import TextModel
from wgcn.label.project import Project
from wgcn_paper.datasets.docstrings import DocsCorpus

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
)
CLASSES = ["numpy", "scipy.signal", "scipy.special", "scipy.stats"]
HOSTILE = [
    "<script>document.title = 'taken'</script> one",
    "<img src=x onerror=\"document.title='taken'\"> two",
    "</div></article><h1 id=intruder>three</h1>",
    "javascript:alert(1) <a href='javascript:alert(1)'>four</a>",
    "<svg onload=alert(1)> five {{7*7}} ${7*7}",
    "\u202e\u2028 six \U0001f469\u200d\U0001f52c e\u0301",
    "<style>*{display:none}</style> seven",
    "x" * 30_000,
]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
Start = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright.expect.set_options(timeout=60_000)  # machines may be busy
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A tab that remembers what went wrong in it, and every request to elsewhere."""
    context = browser.new_context(viewport={"width": 1200, "height": 800}, accept_downloads=True)
    tab = context.new_page()
    tab.set_default_timeout(60_000)
    tab.wrong = []
    tab.on("pageerror", lambda error: tab.wrong.append(f"error: {error}"))
    tab.on("dialog", lambda dialog: (tab.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    tab.on("request", lambda asked: asked.url.startswith("http://127.0.0.1") or tab.wrong.append(asked.url))
    yield tab
    context.close()


def expect(tab: Any, selector: str) -> Any:
    return playwright.expect(tab.locator(selector))


def see(tab: Any, view: str) -> None:
    tab.click(f"nav a[href='#{view}']")
    expect(tab, f"#view-{view}").to_be_visible()


def picture(tab: Any, name: str) -> None:
    if folder := os.environ.get("WGCN_PICTURES"):
        tab.screenshot(path=Path(folder, f"label-{name}.png"))


def add_classes(tab: Any, names: list[str]) -> None:
    for n, name in enumerate(names, 1):
        tab.fill("#add-name", name)
        tab.press("#add-name", "Enter")
        expect(tab, ".choice").to_have_count(n)
    tab.press("#add-name", "Escape")
    expect(tab, "#card").to_be_visible()


def shown(tab: Any) -> int:
    return int(tab.text_content("#text-title").split()[-1].replace(",", "")) - 1


def label_with_keys(tab: Any, truth: list[str], n: int) -> list[int]:
    """Label the texts that the page suggests, with number keys alone."""
    labelled = []
    for _ in range(n):
        title = tab.text_content("#text-title")
        labelled.append(shown(tab))
        tab.keyboard.press(str(CLASSES.index(truth[labelled[-1]]) + 1))
        expect(tab, "#text-title").not_to_have_text(title)
    return labelled


def knows(tab: Any, n: int) -> None:
    expect(tab, "#status").to_contain_text(f"The model knows {n} labels", timeout=120_000)


@pytest.fixture(scope="module")
def few_docs(docs: DocsCorpus) -> tuple[list[str], list[str]]:
    labels = docs.labels.tolist()
    rows = [place for place, label in enumerate(labels) if label in CLASSES][::4]
    assert docs.texts is not None
    return [docs.texts[row] for row in rows], [labels[row] for row in rows]


def test_from_zero_to_a_model_through_a_kill(
    open_page: Start, tab: Any, few_docs: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    texts, truth = few_docs
    page = open_page(texts)
    tab.goto(page.url)
    expect(tab, "#start").to_be_visible()
    assert "token" not in tab.url
    picture(tab, "start")
    add_classes(tab, CLASSES)
    expect(tab, "#status").to_contain_text("Ready")
    labelled = label_with_keys(tab, truth, 10)
    knows(tab, 10)
    picture(tab, "ten")

    page.stop(signal.SIGKILL)
    tab.keyboard.press("1")
    expect(tab, "#alert").to_contain_text("does not answer")
    again = open_page(None)
    tab.goto(again.url)
    expect(tab, "#progress").to_contain_text("10 of")
    with Project(tmp_path / "work.sqlite") as project:
        assert set(project.state.labels) == set(labelled)

    expect(tab, "#card").to_be_visible()
    labelled += label_with_keys(tab, truth, 14)
    knows(tab, 24)
    expect(tab, "#accuracy").to_contain_text("95 % interval")
    expect(tab, "#text .l4, #text .m4").not_to_have_count(0)
    expect(tab, "#why button").not_to_have_count(0)
    picture(tab, "explanation")
    tab.keyboard.press("u")
    expect(tab, "#progress").to_contain_text("23 of")
    expect(tab, "#text-title").to_have_text(f"Text {labelled[-1] + 1}")
    label_with_keys(tab, truth, 1)
    tab.keyboard.press("s")
    expect(tab, "#progress").to_contain_text("24 of")
    expect(tab, "#progress").to_contain_text("1 skipped")

    wrong = labelled[0]  # a label that is clearly wrong
    answer = again.decide("label", text=wrong, label=1 + (CLASSES.index(truth[wrong]) + 2) % 4)
    assert answer.status_code == 200
    seen = answer.json()["seq"]
    while again.client.get("/api/state").json().get("fitted", {}).get("seq", 0) < seen:
        tab.wait_for_timeout(200)
    knows(tab, 24)
    expect(tab, "#n-doubts").to_be_visible()
    see(tab, "review")
    expect(tab, "#doubts button").not_to_have_count(0)
    picture(tab, "review")
    see(tab, "words")
    tab.fill("#word", "distribution")
    tab.press("#word", "Enter")
    expect(tab, "#graph .node").not_to_have_count(0)
    picture(tab, "words")
    second = tab.locator("#graph .node").nth(1)
    word = second.get_attribute("aria-label").split(",")[0]
    second.focus()
    tab.keyboard.press("Enter")
    expect(tab, "#graph .node.centre").to_contain_text(word)

    see(tab, "export")
    tab.click("#export-button")
    expect(tab, "#exported-to").to_be_visible()
    picture(tab, "export")
    with tab.expect_download() as download:
        tab.click("text=Download the labels")
    assert Path(download.value.path()).read_text().startswith('"text","label"\n')
    model = TextModel.load(tmp_path / "work-model")
    assert sorted(model.classes.tolist()) == sorted(set(CLASSES))
    right = sum(guess == label for guess, label in zip(model.predict(texts), truth, strict=True))
    assert right > 0.5 * len(texts)
    assert not tab.wrong


def test_two_tabs_the_list_and_the_classes(open_page: Start, tab: Any) -> None:
    page = open_page(["red wine", "white wine", "fast car", "slow car", "a bus and a car", "beer or wine"] * 10)
    tab.goto(page.url)
    add_classes(tab, ["drink", "drive", "other"])
    other = tab.context.new_page()
    other.goto(page.address)
    expect(other, "#card").to_be_visible()
    assert shown(other) != shown(tab)  # nobody labels what somebody else is looking at
    other.keyboard.press("1")
    expect(tab, "#progress").to_contain_text("1 of")
    other.keyboard.press("u")
    expect(tab, "#progress").to_contain_text("0 of")
    other.close()

    tab.keyboard.press("/")
    tab.keyboard.type("bus")
    expect(tab, "#rows li").to_have_count(10)
    tab.locator("#rows .open").first.focus()
    for _ in range(3):
        row = tab.evaluate("document.activeElement.dataset.text")
        tab.keyboard.press("2")
        expect(tab, f"#rows [data-text='{row}']").not_to_be_focused()
    expect(tab, "#progress").to_contain_text("3 of")
    tab.fill("#query", "")
    tab.select_option("#show", "labelled")
    expect(tab, "#rows li").to_have_count(3)
    tab.select_option("#class-filter", label="drink")
    expect(tab, "#rows li").to_have_count(0)

    see(tab, "classes")
    card = tab.locator("#class-cards .card").nth(2)
    card.locator("input").first.fill("bus")
    card.get_by_role("button", name="Rename").click()
    expect(tab, "#shares").to_contain_text("bus")
    card.locator("select").focus()
    card.locator("select").select_option(label="drive")
    card.get_by_role("button", name="Merge").click()
    expect(tab, "#class-cards .card").to_have_count(2)
    for n, words in enumerate(["wine, beer", "car"]):
        card = tab.locator("#class-cards .card").nth(n)
        card.locator("input").nth(1).fill(words)
        with tab.expect_response("**/api/decide"):
            card.get_by_role("button", name="Keep").click()
    expect(tab, "#shares").to_contain_text("% of texts")
    card.locator("input").nth(1).fill("submarine")
    card.get_by_role("button", name="Keep").click()
    expect(tab, "#alert").to_contain_text("in no text")
    assert not tab.wrong


def test_a_link_on_another_site_opens_the_page(open_page: Start, tab: Any) -> None:
    """Terminals in a browser, such as that of Jupyter, show the address as a link."""
    page = open_page(["red wine", "fast car"])
    tab.context.route("http://terminal.test/", lambda route: route.fulfill(body=f"<a href='{page.url}'>link</a>"))
    tab.goto("http://terminal.test/")
    tab.click("a")
    expect(tab, "#start").to_be_visible()
    assert "token" not in tab.url


def test_nothing_can_be_used_before_the_script_runs(open_page: Start, tab: Any) -> None:
    """The browser would send the form by itself."""
    page = open_page(["red wine", "fast car"])
    tab.context.route("**/label.js", lambda route: route.abort())
    tab.goto(page.url)
    expect(tab, "#add").to_be_hidden()
    expect(tab, "header").to_be_visible()
    expect(tab, "main").to_be_hidden()
    tab.context.unroute("**/label.js")
    tab.reload()
    expect(tab, "#add").to_be_visible()


def test_what_was_said_of_a_lost_server_goes_when_it_answers(open_page: Start, tab: Any) -> None:
    page = open_page(["red wine", "white wine", "fast car", "slow car"])
    tab.goto(page.url)
    add_classes(tab, ["drink", "drive"])
    tab.context.route("**/api/decide", lambda route: route.abort())
    tab.keyboard.press("1")
    expect(tab, "#alert").to_contain_text("does not answer")
    expect(tab, "#alert").to_be_empty()
    expect(tab, "#progress").to_contain_text("0 of")
    tab.context.unroute("**/api/decide")
    tab.keyboard.press("1")
    expect(tab, "#progress").to_contain_text("1 of")


def test_keys_that_follow_fast_label_a_row_once(open_page: Start, tab: Any) -> None:
    page = open_page(["red wine", "white wine", "fast car", "slow car"])
    tab.goto(page.url)
    add_classes(tab, ["drink", "drive"])
    see(tab, "list")
    tab.locator("#rows .open").first.focus()
    press = "(key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))"
    tab.evaluate(f"[...'12'].forEach({press})")
    expect(tab, "#progress").to_contain_text("1 of")
    expect(tab, "#rows li:first-child .tag").to_have_text("drink")
    expect(tab, "#rows li:nth-child(2) .open").to_be_focused()


def test_any_of_200_classes_is_found_by_its_name(open_page: Start, tab: Any) -> None:
    """With the keyboard alone, for the text that is shown and for a row of the list."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    page = open_page([f"text {n} of wine" for n in range(6)])
    for n in range(198):
        assert page.decide("add", value=f"class {n}").status_code == 200
    for name in ("\u00dcber uns", "zebra"):
        assert page.decide("add", value=name).status_code == 200
    tab.goto(page.url)
    expect(tab, "#card").to_be_visible()
    expect(tab, "#find-button").to_be_visible()
    text = shown(tab)
    tab.keyboard.press("f")
    expect(tab, "#find-name").to_be_focused()
    expect(tab, "#find-list li").to_have_count(200)
    for width in (360, 1200):
        tab.set_viewport_size({"width": width, "height": 740})
        found = axe.run(tab).response["violations"]
        assert not [each["id"] for each in found if each["impact"] in ("serious", "critical")]
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.keyboard.type("CLASS 17")
    expect(tab, "#find-list li").to_have_count(11)  # 17 and 170 to 179
    tab.keyboard.press("ArrowUp")
    chosen = tab.locator("#find-list [aria-selected=true]")
    playwright.expect(chosen).to_have_text("class 179")
    expect(tab, "#find-name").to_have_attribute("aria-activedescendant", chosen.get_attribute("id"))
    tab.keyboard.press("Enter")
    expect(tab, "#find").to_be_hidden()
    expect(tab, "#progress").to_contain_text("1 of 6")
    tab.keyboard.press("f")
    tab.keyboard.type("nothing like it")
    tab.keyboard.press("Enter")
    expect(tab, "#find-note").to_have_text("No class is named so.")
    tab.keyboard.press("Escape")
    expect(tab, "#find").to_be_hidden()

    tab.keyboard.press("l")
    expect(tab, "#rows li").to_have_count(6)
    tab.evaluate("document.activeElement.blur()")
    tab.keyboard.press("f")
    expect(tab, "#alert").to_contain_text("Move to a row")
    row = (text + 1) % 5
    tab.locator(f"#rows [data-text='{row}']").focus()
    tab.keyboard.press("f")
    tab.keyboard.type("uber")
    expect(tab, "#find-list li").to_have_count(1)
    tab.keyboard.press("Enter")
    expect(tab, f"#rows li:nth-child({row + 1}) .tag").to_have_text("\u00dcber uns")
    expect(tab, f"#rows [data-text='{row + 1}']").to_be_focused()
    expect(tab, f"#rows li:nth-child({text + 1}) .tag").to_have_text("class 179")
    tab.keyboard.press("?")
    expect(tab, "#help").to_contain_text("find a class")
    assert not tab.wrong


def test_a_label_that_is_kept_stays_so_for_everybody(open_page: Start, tab: Any) -> None:
    texts = ["red wine", "white wine", "old wine", "sweet wine", "fast car", "slow car", "blue car", "new car"] * 3
    page = open_page(texts)
    tab.goto(page.url)
    add_classes(tab, ["drink", "drive"])
    for text in range(16):
        assert page.decide("label", text=text, label=1 + (text % 8 > 3)).status_code == 200
    assert page.decide("label", text=0, label=2).status_code == 200
    knows(tab, 16)
    expect(tab, "#n-doubts").to_be_visible()
    other = tab.context.new_page()
    for each in (tab, other):
        each.goto(f"{page.address}/#review")
        expect(each, "#doubts .number >> text=/^1$/").to_have_count(1)
    n = tab.locator("#doubts li").count()
    keep = tab.locator("#doubts li", has=tab.locator(".number >> text=/^1$/")).get_by_role("button", name="Keep")
    keep.focus()
    tab.keyboard.press("Enter")
    for each in (tab, other):
        expect(each, "#doubts .number >> text=/^1$/").to_have_count(0)
    if n == 1:
        expect(tab, "#main").to_be_focused()
    tab.reload()
    expect(tab, "#doubts li").not_to_have_count(0)
    expect(tab, "#doubts .number >> text=/^1$/").to_have_count(0)
    tab.keyboard.press("u")
    for each in (tab, other):
        expect(each, "#doubts .number >> text=/^1$/").to_have_count(1)
    assert not tab.wrong


def test_a_slow_click_counts_though_the_page_changes(open_page: Start, tab: Any) -> None:
    page = open_page([f"text {n} of wine" for n in range(8)])
    tab.goto(page.url)
    add_classes(tab, ["drink", "drive"])
    expect(tab, "#status").to_contain_text("Ready")
    text = shown(tab)
    box = tab.locator(".choice").first.bounding_box()
    tab.mouse.move(box["x"] + 5, box["y"] + 5)
    tab.mouse.down()
    with tab.expect_response(lambda answer: "/api/state" in answer.url and "classes" in answer.json()):
        assert page.decide("label", text=(text + 1) % 8, label=2).status_code == 200
    tab.wait_for_timeout(100)
    tab.mouse.up()
    expect(tab, "#progress").to_contain_text("2 of 8")
    assert page.client.get(f"/api/text/{text}").json()["label"] == 1
    assert not tab.wrong


def test_what_is_typed_or_chosen_for_a_class_stays_while_others_label(open_page: Start, tab: Any) -> None:
    page = open_page(["red wine", "white wine", "fast car", "slow car"] * 4)
    for name in ("drink", "drive", "other"):
        page.decide("add", value=name)
    for text in range(4):
        page.decide("label", text=text, label=1 + text // 2)
    tab.goto(page.url)
    knows(tab, 4)
    see(tab, "classes")
    card = tab.locator("#class-cards .card").nth(2)
    card.locator("input").first.fill("new name")
    card.locator("select").focus()
    card.locator("select").select_option(label="drive")
    page.decide("label", text=4, label=1)
    page.decide("add", value="late")
    knows(tab, 5)
    expect(tab, "#class-cards .card").to_have_count(4)
    assert card.locator("input").first.input_value() == "new name"
    playwright.expect(card.locator("select")).to_be_focused()
    assert card.locator("select").evaluate("(e) => e.selectedOptions[0].textContent") == "drive"
    tab.locator("#shares").get_by_text("wine", exact=True).first.focus()
    page.decide("label", text=5, label=1)
    knows(tab, 6)
    playwright.expect(tab.locator("#shares").get_by_text("wine", exact=True).first).to_be_focused()
    tab.locator("#class-cards .card").nth(3).get_by_role("button", name="Merge").click()
    expect(tab, "#class-cards .card").to_have_count(4)  # nothing was chosen to merge into
    card.get_by_role("button", name="Merge").click()
    expect(tab, "#class-cards .card").to_have_count(3)
    assert not tab.wrong


def test_a_key_held_down_and_a_double_click_decide_once(open_page: Start, tab: Any) -> None:
    page = open_page([f"text {n} of wine" for n in range(8)])
    tab.goto(page.url)
    add_classes(tab, ["drink", "drive"])
    for _ in range(5):
        tab.keyboard.down("1")
        tab.wait_for_timeout(200)
    tab.keyboard.up("1")
    expect(tab, "#progress").to_contain_text("1 of 8")
    tab.locator(".choice").first.click(click_count=2, delay=200)
    tab.wait_for_timeout(300)
    expect(tab, "#progress").to_contain_text("2 of 8")
    tab.fill("#add-name", "other")
    tab.evaluate("for (const _ of '12') document.getElementById('add').requestSubmit()")
    expect(tab, ".choice").to_have_count(3)
    tab.wait_for_timeout(300)
    expect(tab, "#alert").to_be_empty()
    tab.press("#add-name", "Escape")
    tab.set_viewport_size({"width": 640, "height": 300})
    tab.keyboard.press("?")
    assert tab.evaluate("document.getElementById('help').scrollTop") == 0  # the list is read from its beginning
    assert not tab.wrong


def test_odd_texts_are_shown_as_they_are(open_page: Start, tab: Any) -> None:
    """An empty one is said to be so, a long word is wrapped, and scripts have their direction."""
    texts = ["", "wine " + "x" * 3_000, "\u05e9\u05dc\u05d5\u05dd wine", "red wine", "fast car"]
    page = open_page(texts)
    tab.goto(page.url)
    add_classes(tab, ["drink", "drive"])
    for text, number in ((3, 1), (4, 2), (1, 1), (2, 2)):
        assert page.decide("label", text=text, label=number).status_code == 200
    knows(tab, 4)
    for text in range(3):
        see(tab, "list")
        tab.locator(f"#rows [data-text='{text}']").click()
        expect(tab, "#text-title").to_have_text(f"Text {text + 1}")
        expect(tab, "#guess").to_contain_text("Guess")
        expect(tab, "#why").to_contain_text("For " if text else "")
        tab.wait_for_timeout(300)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        expect(tab, "#text").to_contain_text(texts[text][:50] or "This text is empty")
    box, word = (tab.locator(place).first.bounding_box() for place in ("#text", "#text span"))
    assert word["x"] + word["width"] > box["x"] + box["width"] - 20  # it begins on the right
    assert not tab.wrong


def test_names_of_any_length_and_script_fit(open_page: Start, tab: Any) -> None:
    """Long ones are wrapped, and do not turn what stands beside them round."""
    hebrew = "\u05e9\u05dc\u05d5\u05dd"
    page = open_page([f"{'wine' if n % 2 else 'car'} and {n}" for n in range(20)])
    tab.goto(page.url)
    add_classes(tab, ["W" * 100, hebrew, "a b " * 24 + "c"])
    for text in range(10):
        assert page.decide("label", text=text, label=1 + text % 3).status_code == 200
    knows(tab, 10)
    expect(tab, "#n-doubts").to_be_visible()
    for width in (1200, 640, 360):
        tab.set_viewport_size({"width": width, "height": 740})
        for view in ("label", "list", "classes", "review", "words", "export"):
            see(tab, view)
            if view == "review":
                expect(tab, "#doubts button").not_to_have_count(0)
            if view == "label":
                for row in range(3):  # each guess is of one of the names
                    page.decide("label", text=row, label=1 + row)
                    see(tab, "list")
                    tab.locator(f"#rows [data-text='{row}']").click()
                    expect(tab, "#text-title").to_have_text(f"Text {row + 1}")
                    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), (row, width)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)
    see(tab, "label")
    tab.locator("#guess bdi").first.wait_for()
    assert not tab.wrong


def test_hostile_texts_and_names_stay_text(open_page: Start, tab: Any) -> None:
    page = open_page(HOSTILE)
    tab.goto(page.url)
    add_classes(tab, ["<b>bold</b>", "<img src=x onerror=alert(1)>"])
    for text, name in enumerate([1, 2, 1, 2]):
        assert page.decide("label", text=text, label=name).status_code == 200
    knows(tab, 4)
    for view in ("list", "classes", "review", "words", "export", "label"):
        see(tab, view)
        tab.wait_for_timeout(200)
    for text in range(len(HOSTILE)):
        see(tab, "list")
        tab.locator(f"#rows [data-text='{text}']").click()
        expect(tab, "#text-title").to_have_text(f"Text {text + 1}")
        expect(tab, "#text").to_contain_text(HOSTILE[text].split()[-1][:100])
    expect(tab, "#text-left").to_contain_text("10,000 more")
    tab.goto(f"{page.address}/#words")
    tab.fill("#word", HOSTILE[0][:90])
    tab.press("#word", "Enter")
    expect(tab, "#word-note").to_contain_text("do not have this word")
    assert tab.locator("#intruder, #text img, #text svg, #text script, #choices img, main style").count() == 0
    assert tab.title() == "work – wgcn label"
    assert not tab.wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(open_page: Start, tab: Any, scheme: str) -> None:
    """No serious finding of axe in any view, wide or narrow; and nothing is wider than a phone."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    page = open_page(["red wine and cheese", "white wine", "fast car", "slow car with an engine"] * 5)
    tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    tab.goto(page.url)
    add_classes(tab, ["drink", "drive"])
    for text, number in ((0, 1), (2, 2), (1, 1), (3, 2), (4, 2)):
        page.decide("label", text=text, label=number)
    knows(tab, 5)
    for width in (1200, 360):
        tab.set_viewport_size({"width": width, "height": 740})
        for view in ("label", "list", "classes", "review", "words", "export"):
            see(tab, view)
            if view == "words":
                tab.fill("#word", "wine")
                tab.press("#word", "Enter")
                expect(tab, "#graph .node").not_to_have_count(0)
            tab.wait_for_timeout(150)
            found = axe.run(tab).response["violations"]
            serious = [each for each in found if each["impact"] in ("serious", "critical")]
            told = [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in serious]
            assert not told, (view, width)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)
    see(tab, "label")
    tab.set_viewport_size({"width": 1200, "height": 800})
    tab.evaluate("document.activeElement.blur()")
    tab.keyboard.press("?")
    expect(tab, "#help").to_be_visible()
    assert not [each for each in axe.run(tab).response["violations"] if each["impact"] in ("serious", "critical")]
    tab.keyboard.press("Escape")
    assert not tab.wrong
