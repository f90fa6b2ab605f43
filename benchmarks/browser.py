"""Is a model in the browser the model in Python, and how fast is it? ``python -m benchmarks.browser --models FOLDER``.

A model of each set is read from FOLDER/SET; where there is none, it is fitted with the defaults and saved there. All
test documents are classified in Chromium, and their labels, scores and probabilities compared with those of Python.
Needs playwright and Debian's chromium. Exits with 1 if a label differs, or a probability by more than 1e-5.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import sets
from benchmarks.measure import Cell, machine, machine_lines

HOST = "http://wgcn.test/"
LARGEST = 1e-5
TYPES = {".js": "text/javascript", ".json": "application/json"}
COLUMNS = {
    "set": "set",
    "texts": "test texts",
    "labels": "labels that differ",
    "bits": "scores that differ",
    "probabilities": "largest difference of probabilities",
    "speed": "texts per second",
    "package": "table, MB",
    "page": "page, MB",
    "loading": "loading the page, s",
}
CLASSIFY = """async () => {
    const { load } = await import("/index.js"), texts = await (await fetch("/texts.json")).json();
    const model = await load(), scores = [], probabilities = [], start = performance.now();
    const answers = texts.map((text) => model.classify(text));
    const seconds = (performance.now() - start) / 1000;
    for (const answer of answers) {
        scores.push(...answer.scores);
        probabilities.push(...answer.probabilities);
    }
    return JSON.stringify([seconds, answers.map((answer) => answer.label), scores, probabilities]);
}"""


def model_of(name: str, folder: Path) -> Any:
    from wgcn import TextModel, WGCNTextClassifier

    if not (folder / name).exists():
        texts, labels, _ = sets.split(name)
        WGCNTextClassifier().fit(texts, labels).save(folder / name)
    return TextModel.load(folder / name)


def measure(name: str, folder: Path, browser: Any, scratch: Path) -> Cell:
    import numpy as np

    from wgcn.browser.export import as_page, write_package

    model, texts = model_of(name, folder), sets.split(name)[2]
    page_file = scratch / f"{name}.html"
    page_file.write_text(as_page(model, name))
    write_package(model, scratch / name)
    (scratch / name / "texts.json").write_text(json.dumps(texts))

    def answer(route: Any) -> None:
        path = scratch / name / route.request.url.removeprefix(HOST)
        if path == scratch / name:
            route.fulfill(body="<!doctype html><title>benchmark</title>", content_type="text/html")
        else:
            route.fulfill(path=path, content_type=TYPES.get(path.suffix, "application/octet-stream"))

    context = browser.new_context()
    page = context.new_page()
    start = time.perf_counter()
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-loaded]", state="attached", timeout=120_000)
    loading = time.perf_counter() - start
    context.close()
    context = browser.new_context()
    context.route("**/*", answer)
    page = context.new_page()
    page.goto(HOST)
    seconds, labels, scores, probabilities = json.loads(page.evaluate(CLASSIFY))
    context.close()
    expected = model.scores(texts)
    difference = np.reshape(probabilities, expected.shape) - model.scorer.probabilities(expected)
    return {
        "set": name,
        "texts": len(texts),
        "labels": int(sum(one != other for one, other in zip(labels, model.predict(texts).tolist(), strict=True))),
        "bits": int((np.reshape(scores, expected.shape).astype(np.float32) != expected).sum()),
        "probabilities": float(np.abs(difference).max()),
        "speed": round(len(texts) / seconds),
        "package": (scratch / name / "model.bin").stat().st_size / 1e6,
        "page": page_file.stat().st_size / 1e6,
        "loading": loading,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.browser", description=__doc__)
    parser.add_argument("--models", type=Path, required=True, help="folder of the models, one folder per set")
    parser.add_argument("--sets", default=",".join([*sets.SETS, sets.DOCS]), help="comma-separated (default: all)")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    cells = []
    with TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in options.sets.split(","):
            print(f"Measuring {name} ...", file=sys.stderr, flush=True)
            cells.append(measure(name, options.models, browser, Path(scratch)))
        version = browser.version
        browser.close()
    print("\n".join([*machine_lines(machine())[:3], f"Chromium {version}", "", *report(cells)]))
    return 1 if any(cell["labels"] or cell["probabilities"] > LARGEST for cell in cells) else 0


def report(cells: list[Cell]) -> list[str]:
    """Return a table of the cells."""
    shown = ({**cell, "probabilities": f"{cell['probabilities']:.0e}"} for cell in cells)
    rows = [
        [f"{cell[key]:.1f}" if isinstance(cell[key], float) else f"{cell[key]}" for key in COLUMNS] for cell in shown
    ]
    lines = [list(COLUMNS.values()), ["---", *["---:"] * (len(COLUMNS) - 1)], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    sys.exit(main())
