"""From a table to an exported model on the labelling page, at the pace of a person: ``python -m benchmarks.person``.

A browser does what the page of the documentation says (docs/label.md), and waits as long as somebody would take: words
are read at 240 per minute, of a text 40 at most, which is its beginning; a decision takes a second and a half, and a
character of a name a quarter of a second. The labels are those of the docs corpus, so nobody errs. Prints how long each
step took, and how many of the texts that were not labelled get the right class from the exported model.
"""

from __future__ import annotations

import argparse
import shutil
import time
from typing import Any

from benchmarks import sets
from benchmarks.label import Page, folder_of, labelled_texts
from benchmarks.measure import machine, machine_lines

_CLASSES = ["numpy", "scipy.signal", "scipy.special", "scipy.stats"]
_WORDS_PER_SECOND = 240 / 60
_MOST_WORDS = 40
_DECIDING = 1.5  # seconds
_TYPING = 0.25  # seconds per character
_LOOKING = 15.0  # seconds at the words of the classes, and at the review


def name_classes(tab: Any) -> None:
    tab.wait_for_selector("#start:not([hidden])")
    for number, name in enumerate(_CLASSES, 1):
        tab.wait_for_timeout(1000 * _DECIDING)
        tab.type("#add-name", name, delay=1000 * _TYPING)
        tab.press("#add-name", "Enter")
        tab.wait_for_selector(f".choice >> nth={number - 1}")
    tab.press("#add-name", "Escape")


def label(tab: Any, texts: list[str], truth: list[str], number: int) -> set[int]:
    """Label texts that the page suggests with the number keys; return which."""
    tab.wait_for_selector("#card:not([hidden])")
    labelled = set()
    for _ in range(number):
        title = tab.text_content("#text-title")
        shown = int(title.split()[-1].replace(",", "")) - 1
        n_words = min(len(texts[shown].split()), _MOST_WORDS)
        tab.wait_for_timeout(1000 * (n_words / _WORDS_PER_SECOND + _DECIDING))
        tab.keyboard.press(str(_CLASSES.index(truth[shown]) + 1))
        tab.wait_for_function("title => document.querySelector('#text-title').textContent !== title", arg=title)
        labelled.add(shown)
    return labelled


def look(tab: Any) -> None:
    for view in ("classes", "review"):
        tab.click(f"nav a[href='#{view}']")
        tab.wait_for_timeout(1000 * _LOOKING)


def export(tab: Any) -> None:
    tab.click("nav a[href='#export']")
    tab.wait_for_timeout(1000 * _DECIDING)
    tab.click("#export-button")
    tab.wait_for_selector("#exported-to:not([hidden])", timeout=300_000)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.person", description=__doc__)
    parser.add_argument("--labels", type=int, default=16, metavar="N", help="texts to label (default: %(default)s)")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    from wgcn import TextModel

    rows = [row for row in zip(*labelled_texts(sets.DOCS), strict=True) if row[1] in _CLASSES]
    texts, truth = (list(column) for column in zip(*rows, strict=True))
    print(
        "\n".join([*machine_lines(machine())[:3], "", f"{len(texts):,} texts of {len(_CLASSES)} classes"]), flush=True
    )
    seconds: dict[str, float] = {}
    with folder_of(texts) as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        begin = time.perf_counter()

        def done(step: str) -> None:
            seconds[step] = time.perf_counter() - begin - sum(seconds.values())
            print(f"{seconds[step]:6.1f} s  {step}", flush=True)

        page = Page(folder, "texts.csv")
        tab = browser.new_context(viewport={"width": 1200, "height": 800}).new_page()
        tab.goto(page.address)
        done("start the page")
        name_classes(tab)
        done("name the classes")
        labelled = label(tab, texts, truth, options.labels)
        done(f"label {options.labels} texts")
        look(tab)
        done("look at the classes and at the review")
        export(tab)
        done("export")
        print(f"{sum(seconds.values()):6.1f} s  in all", flush=True)
        browser.close()
        page.stop()
        guesses = TextModel.load(folder / "work-model").predict(texts).tolist()
    others = [guess == label for n, (guess, label) in enumerate(zip(guesses, truth, strict=True)) if n not in labelled]
    print(f"{sum(others) / len(others):.1%} of the {len(others):,} other texts get the right class")


if __name__ == "__main__":
    main()
