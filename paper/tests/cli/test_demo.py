from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wgcn import TextModel, WordGraph
from wgcn.text.tokenize import resolve_tokenizer
from wgcn_paper.cli.demo import SENTENCE, WORDS
from wgcn_paper.datasets.docstrings import DocsCorpus


def small_docs() -> DocsCorpus:
    """Return documents of three classes, each with words of its own."""
    rng = np.random.default_rng(0)
    own = {"scipy.signal": "filter design signal iir fir", "numpy.random": "draw normal distribution", "numpy": "array"}
    labels = np.array(list(own) * 40)
    texts = tuple(
        " ".join([*rng.choice(own[label].split(), 4), *rng.choice(["the", "of", "a", "value"], 4)]) for label in labels
    )
    rows = np.arange(len(texts))
    return DocsCorpus(texts, labels, rows[:90], rows[90:], tuple(map(str, rows)))


def test_demo_trains_compares_and_says_where_things_are(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("wgcn_paper.datasets.docstrings.docs_corpus", small_docs)
    folder = tmp_path / "demo"
    code, out, err = run("demo", "--output", folder)
    assert code == 0
    rows = [line.split() for line in out.splitlines() if "labels (" in line]
    assert [row[0] for row in rows] == ["all", "5%"]
    assert all(row[-1].endswith("%") and row[-2].endswith("%") for row in rows)
    assert "120 documents in 3 classes: 90 to train on, 30 to test on" in err
    assert SENTENCE in out
    likeliest = out[out.index(SENTENCE) :].splitlines()[1]
    assert likeliest.split()[0] == "scipy.signal"
    assert "Try next:" in out
    assert f"wgcn predict {folder / 'model'}" in out
    assert TextModel.load(folder / "model").classes.tolist() == ["numpy", "numpy.random", "scipy.signal"]
    assert "filter" in WordGraph.load(folder / "graph").vocabulary
    for picture in ("filter.png", "errors.png"):
        assert str(folder / picture) in out
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_the_sentence_and_the_words_of_the_demo_are_in_the_docs_corpus(docs: DocsCorpus) -> None:
    tokens = resolve_tokenizer("words")
    known = {token for text in docs.texts for token in tokens(text)}
    assert set(tokens(SENTENCE)) <= known
    assert set(WORDS) <= known


def test_a_folder_that_cannot_be_written_is_told_before_any_work(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("wgcn_paper.datasets.docstrings.docs_corpus", lambda: pytest.fail("the work was begun"))
    (tmp_path / "file").write_text("mine")
    code, _, err = run("demo", "-o", tmp_path / "file")
    assert code == 2
    assert "cannot be written" in err
