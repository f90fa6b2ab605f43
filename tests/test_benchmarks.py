"""What the benchmarks measure is what they say; how long it takes is no matter here."""

import math
import re
from collections import Counter
from itertools import islice

import pytest
from benchmarks import fit, growth, measure, sets, tuning, windows

from wgcn.linear.task import Thresholds
from wgcn_paper.datasets.docstrings import DocsCorpus

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


def test_a_fit_below_the_earlier_peak_of_the_process_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def cell(texts: int, fit_mb: float) -> measure.Cell:
        return {"source": "zipf", "few": True, "texts": texts, "seconds": 1.0, "fit_mb": fit_mb, "peak_mb": 100.0}

    monkeypatch.setattr(growth, "SIZES", (20, 30, 60))
    for before, after, measured, met in (
        (0.0, 0.0, "1.00 times", True),
        (0.0, 5.0, "inf times", False),
        (5.0, 0.0, "0.00 times", True),
        (5.0, 15.0, "1.50 times", True),
        (5.0, 15.1, "1.51 times", False),
        (math.nan, math.nan, "nan times", False),  # the system does not tell
    ):
        time, memory = growth.growth_targets([cell(30, before), cell(60, after)])
        assert (time.measured, time.met) == ("0.50 times", True)
        assert (memory.measured, memory.met) == (measured, met)


@pytest.mark.usefixtures("_tiny")
def test_the_memory_of_a_fit_is_never_below_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "resident_megabytes", lambda: 100.0)
    for peak, expected in ((99.0, 0.0), (100.0, 0.0), (103.0, 3.0)):
        monkeypatch.setattr(growth, "peak_megabytes", lambda peak=peak: peak)
        assert growth.fit_corpus("zipf", few=False, size=20)["fit_mb"] == expected


@pytest.mark.filterwarnings("ignore:.* have a copy with another label")  # their first words may be the same
@pytest.mark.parametrize("name", ["docs", "docs:10"])
def test_the_choice_of_settings_is_compared_with_none(
    docs: DocsCorpus, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert docs.texts is not None
    train = docs.train[::8]
    given = [docs.texts[i] for i in train], docs.labels[train].tolist(), []
    fitted: list[tuple[bool, list[str]]] = []
    fit_texts = tuning.WGCNTextClassifier.fit

    def recorded(model: tuning.WGCNTextClassifier, texts: list[str], *labels: object) -> tuning.WGCNTextClassifier:
        fitted.append((model.tune, texts))
        return fit_texts(model, texts, *labels)

    monkeypatch.setattr(tuning.WGCNTextClassifier, "fit", recorded)
    monkeypatch.setattr(sets, "split", {"docs": given}.__getitem__)
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=0))
    tuning.measure(name, splits=2)
    assert re.fullmatch(
        rf"{name}: [+-]\d+\.\d\d points, standard error \d+\.\d\d; other settings in [012] of 2 splits; "
        r"\d+\.\d\d times the CPU time\n",
        capsys.readouterr().out,
    )
    assert [tune for tune, _ in fitted] == [False, True] * 2
    (_, first), (_, same), (_, second), _ = fitted
    assert first == same != second
    assert 0.7 * len(train) < len(first) < 0.9 * len(train)
    longest = max(len(text.split()) for text in first)
    assert longest == 10 if name == "docs:10" else longest > 10


def test_a_target_says_whether_it_was_met() -> None:
    assert str(measure.Target("quick", "1 s", True)) == "Target: quick. Measured: 1 s, met."


@pytest.mark.usefixtures("_tiny")
def test_windows_of_a_post_are_all_known_or_all_new() -> None:
    known, new = windows.windows(6)
    assert sorted(set(known[1]) | set(new[1])) == ["drink", "drive"]
    assert {len(text.split()) for text in (*known[0], *new[0])} <= {4, 5, 6}
    n_windows = [len(range(0, len(text.split()) - 3, 6)) for text in TEXTS]
    assert len(known[0]) + len(new[0]) == sum(n_windows)
    assert (known, new) == windows.windows(6)
