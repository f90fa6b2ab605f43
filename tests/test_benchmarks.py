"""What the benchmarks measure is what they say; how long it takes is no matter here."""

from collections import Counter
from itertools import islice

import pytest
from benchmarks import fit, growth, measure, sets

TEXTS = ["a glass of red wine " * 5, "the old white wine " * 5, "a fast red car " * 6, "the slow old car " * 6] * 5
LABELS = ["drink", "drink", "drive", "drive"] * 5


@pytest.fixture
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny set in place of the public ones, and cells in this process."""
    monkeypatch.setattr(sets, "split", lambda name: (TEXTS, LABELS, TEXTS))
    monkeypatch.setattr(sets, "available", lambda: True)
    for module in (fit, growth):
        monkeypatch.setattr(module, "run_cell", lambda label, function, **given: function(**given))
    monkeypatch.setattr(growth, "N_TYPES", 500)
    monkeypatch.setattr(growth, "TOPIC_TYPES", 20)


def test_few_labels_are_a_share_of_every_class_and_at_least_one() -> None:
    labels = ["many"] * 300 + ["some"] * 100 + ["one"]
    kept = sets.few_labels(labels, 0.05)
    assert Counter(kept) == {"many": 15, "some": 5, "one": 1, None: 380}
    assert all(given in (label, None) for given, label in zip(kept, labels, strict=True))
    assert kept == sets.few_labels(labels, 0.05)


@pytest.mark.usefixtures("_tiny")
@pytest.mark.parametrize("source", growth.CORPORA)
def test_a_larger_corpus_begins_with_the_smaller_ones(source: str) -> None:
    texts = list(islice(growth.CORPORA[source](), 60))
    assert texts[:7] == list(islice(growth.CORPORA[source](), 7))
    assert all(growth.LENGTHS[0] <= len(text.split()) <= growth.LENGTHS[1] for text, _ in texts)
    assert len({label for _, label in texts}) > 1


@pytest.mark.usefixtures("_tiny")
def test_copies_of_real_texts_have_words_of_their_own() -> None:
    pairs = list(islice(growth.real_corpus(), 5 * 2 * len(TEXTS)))
    first, others = pairs[: len(TEXTS)], pairs[len(TEXTS) :]
    own = {word for text, _ in first for word in text.split()}
    assert own == {word for text in TEXTS for word in text.split()}
    new = {word for text, _ in others for word in text.split()} - own
    assert new
    assert all(word.partition("x")[0] in own for word in new)


def test_spellings_are_distinct_words() -> None:
    words = [growth.spelling(i) for i in range(2_000)]
    assert len(set(words)) == len(words)
    assert all(word.isalpha() for word in words)


@pytest.mark.usefixtures("_tiny")
def test_fits_are_compared_with_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "REPEATS", 2)
    monkeypatch.setattr(sets, "SETS", ("r8", "20ng"))
    section = fit.measure_fit()
    assert [(cell["set"], cell["method"]) for cell in section.cells] == [
        (name, method) for name in ("r8", "20ng") for method in fit.METHODS
    ]
    assert all(len(cell["times"]) == 2 for cell in section.cells)
    assert [cell["ratio"] for cell in section.cells if cell["method"] == fit.PEER] == [1, 1]
    assert len(section.targets) == 2 * 2 + 2  # ratios of both sets, and the memory of 20ng
    section = fit.measure_crossval()
    assert [cell["accuracy"] for cell in section.cells] == [1, 1]
    assert len(section.targets) == 1


@pytest.mark.usefixtures("_tiny")
@pytest.mark.filterwarnings("ignore:.* have a copy with another label")  # the tiny set stands for all sets
def test_growth_is_measured_per_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "SIZES", (20, 30, 40))
    section = growth.measure_fit_growth((30, 40))
    assert [cell["texts"] for cell in section.cells] == [30, 40] * 4
    assert all(cell["tokens"] >= 20 * cell["texts"] for cell in section.cells)
    # Time and memory of both corpora with all labels and with few; and, with all, the limits.
    assert len(section.targets) == 2 * (2 + 2 + 1)
    assert growth.measure_fit_growth((20,)).targets == []


def test_a_target_says_whether_it_was_met() -> None:
    assert str(measure.Target("quick", "1 s", True)) == "Target: quick. Measured: 1 s, met."
