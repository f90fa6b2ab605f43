"""Stages are reported where somebody listens, and cost nothing elsewhere."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from sklearn.base import clone

from wgcn import WGCNClassifier, WGCNEmbedder, WGCNTextClassifier
from wgcn.base.progress import Stage, reporting, shown, stage

TEXTS = ["red wine", "white wine", "fast car", "slow car", "a fast red car"] * 2
LABELS = ["drink", "drink", "drive", "drive", None] * 2


def names(printed: str) -> list[str]:
    """The names of the stages in lines such as "  0.1 s  Name: detail"."""
    lines = [line.split(maxsplit=2) for line in printed.splitlines()]
    assert all(float(seconds) >= 0 and unit == "s" for seconds, unit, _ in lines)
    return [rest.partition(":")[0] for *_, rest in lines]


def test_a_stage_is_reported_when_it_begins_and_when_it_has_ended() -> None:
    found: list[tuple[str, str, bool]] = []

    def report(stage: Stage) -> None:
        found.append((stage.name, stage.detail, stage.seconds is not None))

    with reporting(report):
        with stage("One", "first") as one:
            one.detail = "last"
        with pytest.raises(ZeroDivisionError), stage("Two"):
            raise ZeroDivisionError
    with stage("Three"):
        pass
    assert found == [("One", "first", False), ("One", "last", True), ("Two", "", False)]


def test_a_stage_within_another_is_a_part_of_it() -> None:
    found: list[str] = []
    with reporting(lambda stage: found.append(stage.name)):
        with stage("Outer"), stage("Inner"):
            pass
        with stage("Next"), shown(False), stage("Inner"):
            pass
    assert found == ["Outer", "Outer", "Next", "Next"]


def test_the_stages_of_another_thread_are_not_reported() -> None:
    found: list[str] = []

    def work() -> None:
        with stage("Elsewhere"):
            pass

    with reporting(lambda stage: found.append(stage.name)), ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    assert found == []


def test_a_line_has_seconds_name_and_detail() -> None:
    assert str(Stage("Tokenising", "11,314 texts", 1.23)) == "  1.2 s  Tokenising: 11,314 texts"
    assert str(Stage("Training", "", 123.4)) == "123.4 s  Training"
    assert str(Stage("Training")).index("Training") == str(Stage("Training", "", 1.0)).index("Training")


@pytest.mark.parametrize("terminal", [False, True])
def test_the_running_stage_is_shown_on_a_terminal(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with shown(True), stage("Counting", "of words"):
        assert capsys.readouterr().out == ("  ...    Counting\r" if terminal else "")
    assert capsys.readouterr().out.endswith(" s  Counting: of words\n")


def test_verbose_prints_the_stages_of_a_fit_and_changes_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    silent = WGCNTextClassifier().fit(TEXTS, LABELS)
    assert capsys.readouterr() == ("", "")
    talking = clone(silent).fit(TEXTS, LABELS, verbose=True)
    shown, err = capsys.readouterr()
    assert err == ""
    assert names(shown)[:3] == ["Tokenising", "Weighting terms", "Counting windows"]
    assert "10 texts" in shown
    assert len(names(shown)) > 3
    assert talking.get_params() == silent.get_params()
    assert (talking.word_embeddings_ == silent.word_embeddings_).all()
    X = silent.session_.prepared.document_terms
    WGCNClassifier().fit(X, LABELS)
    WGCNEmbedder(n_components=4).fit(TEXTS)
    assert capsys.readouterr() == ("", "")
    WGCNClassifier().fit(X, LABELS, verbose=True)
    assert names(capsys.readouterr().out)
    WGCNEmbedder(n_components=4).fit(TEXTS, verbose=True)
    assert names(capsys.readouterr().out)[0] == "Tokenising"
    WGCNEmbedder(n_components=4).fit_transform(TEXTS, verbose=True)
    assert names(capsys.readouterr().out)[0] == "Tokenising"
