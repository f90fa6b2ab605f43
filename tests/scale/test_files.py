"""A fit to files out of core against the same fit in memory; with threads, with Dask, and after an interruption."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import InputError
from wgcn.io.read import read_rows
from wgcn.linear.task import Thresholds
from wgcn.scale import solver, training
from wgcn.scale.files import fit_files
from wgcn.scale.solver import FitPartition, Iterate, curved
from wgcn.scale.workers import Limits

Texts = tuple[list[str], list[str | None]]


def documents(n: int, seed: int = 0, n_classes: int = 4, length: int = 12, labelled: float = 1.0) -> Texts:
    """Make documents, whose words are those of their class or those of all, and labels for a share of them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    words = (120 ** rng.random((n, length))).astype(int)
    own = rng.random((n, length)) < 0.3
    texts = [
        " ".join(f"{'abcd'[code] if mine else 'x'}{word}" for word, mine in zip(row, flags, strict=True))
        for code, row, flags in zip(codes.tolist(), words.tolist(), own.tolist(), strict=True)
    ]
    return texts, [f"class {code}" if rng.random() < labelled else None for code in codes.tolist()]


def write(folder: Path, texts: list[str], labels: list[Any], n_files: int = 3) -> list[Path]:
    """Write texts and labels to a number of files."""
    paths = [folder / f"{number}.jsonl" for number in range(n_files)]
    for path, places in zip(paths, np.array_split(np.arange(len(texts)), n_files), strict=True):
        path.write_text("".join(json.dumps({"text": texts[i], "label": labels[i]}) + "\n" for i in places))
    return paths


Limited = Callable[..., None]


@pytest.fixture(autouse=True)
def limited(monkeypatch: pytest.MonkeyPatch) -> Limited:
    """Have several partitions of few documents; what is given changes other limits."""
    whole = Limits.of

    def limit(**sizes: int) -> None:
        few = {"partitions": 3, "partition_tokens": (100, 10_000), **sizes}
        monkeypatch.setattr(Limits, "of", lambda *given: replace(whole(*given), **few))

    limit()
    return limit


def check_same(found: TextModel, expected: TextModel, texts: list[str]) -> None:
    assert found.vocabulary == expected.vocabulary
    assert found.settings == expected.settings
    kept = "n_documents", "n_labelled", "n_edges", "n_held_out", "held_out_accuracy"
    assert [found.report[name] for name in kept] == [expected.report[name] for name in kept]
    np.testing.assert_allclose(found.predict_proba(texts), expected.predict_proba(texts), atol=1e-3)
    assert (found.predict(texts) == expected.predict(texts)).mean() >= 0.999


@pytest.mark.parametrize(
    ("made", "parameters"),
    [
        ({"n": 1200}, {}),  # settings are chosen
        ({"n": 700, "n_classes": 2}, {"stop_words": {"x1", "x2"}, "class_weight": "balanced"}),
        ({"n": 600, "labelled": 0.1}, {}),  # calibrated by the teacher
        ({"n": 1500, "labelled": 0.5}, {"class_prior": "uniform", "tune": False}),
    ],
    ids=["tuned", "binary", "few labels", "self-training"],
)
def test_the_model_is_that_of_a_fit_in_memory(made: dict[str, Any], parameters: dict[str, Any], tmp_path: Path) -> None:
    texts, labels = documents(**made)
    expected = WGCNTextClassifier(**parameters).fit(texts, labels).model_
    found = fit_files(write(tmp_path, texts, labels), memory="2GB", n_workers=2, **parameters)
    check_same(found, expected, documents(1000, seed=1, n_classes=made.get("n_classes", 4))[0])
    assert found.trust is not None
    assert expected.trust is not None
    np.testing.assert_allclose(found.trust.nonconformity, expected.trust.nonconformity, atol=1e-3)


@pytest.mark.parametrize("labelled", [1.0, 0.6], ids=["all labels", "self-training"])
def test_beyond_a_number_a_sample_is_judged_and_begins_the_fit(
    labelled: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limited: Limited
) -> None:
    texts, labels = documents(2_000, labelled=labelled)
    begun, fit_all = [], training.fit_sharded

    def fit(*given: Any, **options: Any) -> Any:
        begun.append((given[0].shape[0], options["start"] is not None, options["negligible"] > 0))
        return fit_all(*given, **options)

    monkeypatch.setattr(training, "fit_sharded", fit)
    limited(judged=400)
    paths = write(tmp_path, texts, labels)
    found = fit_files(paths, tune=False, n_workers=2)
    n_labelled = 2_000 - labels.count(None)
    n_fitted = {1.0: [2_000], 0.6: [400 + labels.count(None), n_labelled, 2_000]}[labelled]
    assert begun == [(n, labelled == 1.0 or n != n_fitted[0], True) for n in n_fitted]
    new, classes = documents(500, seed=1)
    expected = WGCNTextClassifier(tune=False).fit(texts, labels).model_
    right = [(model.predict(new) == np.array(classes)).mean() for model in (found, expected)]
    assert abs(right[0] - right[1]) <= 0.01
    assert (found.predict(new) == expected.predict(new)).mean() >= 0.98
    assert abs(found.report["held_out_accuracy"] - right[0]) < 0.06


def test_many_documents_choose_the_same_settings_as_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(many=1_500))
    texts, labels = documents(1_500)
    labels = [label if i % 3 else f"class {i % 4}" for i, label in enumerate(labels)]
    expected = WGCNTextClassifier(C=8.0).fit(texts, labels).model_
    found = fit_files(write(tmp_path, texts, labels), memory="2GB", n_workers=2, C=8.0)
    check_same(found, expected, documents(1000, seed=1)[0])
    assert found.settings["C"] <= 0.5


def test_classes_are_fitted_in_blocks_where_their_tables_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limited: Limited
) -> None:
    texts, labels = documents(900, labelled=0.7)
    paths, blocks = write(tmp_path, texts, labels), list[int]()
    whole = fit_files(paths, memory="2GB", tune=False)
    state = solver.ShardedState

    def watched(problem: Any, start: Any) -> Any:
        blocks.append(problem.columns.stop - problem.columns.start)
        return state(problem, start)

    monkeypatch.setattr(training, "ShardedState", watched)
    limited(tables=1)  # none but one column fits
    found = fit_files(paths, memory="2GB", tune=False)
    assert blocks == 4 * 4 * [1]  # four classes in fits to labels and to all, without what is held out and with it
    # Each block ends by its own duality gap, so both are within the tolerance of the same minimum, and not nearer.
    new = documents(1000, seed=1)[0]
    np.testing.assert_allclose(found.predict_proba(new), whole.predict_proba(new), atol=1e-2)
    assert (found.predict(new) == whole.predict(new)).mean() >= 0.999


def test_documents_may_have_several_labels_and_come_without(tmp_path: Path) -> None:
    texts, labels = documents(400)
    several = [[label, "even"] if i % 2 else [label] for i, label in enumerate(labels)]
    paths = write(tmp_path, texts, several)
    more = tmp_path / "more.txt"
    more.write_text("\n".join(documents(100, seed=2)[0]))
    expected = WGCNTextClassifier().fit(texts, several, unlabeled=documents(100, seed=2)[0]).model_
    found = fit_files(paths, unlabeled=[more], memory="2GB")
    np.testing.assert_allclose(found.predict_proba(texts), expected.predict_proba(texts), atol=1e-3)


def test_long_texts_may_have_a_lead(tmp_path: Path) -> None:
    texts, labels = documents(1000, length=130)
    beginnings, _ = documents(1000, length=20, seed=5)
    texts = [f"{text} {' '.join(reversed(start.split()))}" for text, start in zip(texts, beginnings, strict=True)]
    expected = WGCNTextClassifier().fit(texts, labels).model_
    check_same(fit_files(write(tmp_path, texts, labels), memory="2GB"), expected, texts[:300])


def test_an_interrupted_fit_goes_on_from_the_last_fit_that_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, labels = documents(400)
    paths, work = write(tmp_path, texts, labels), tmp_path / "work"
    expected = fit_files(paths, memory="2GB", tune=False)
    whole, n_fits = training.fit_sharded, []

    def interrupted(*given: Any, **how: Any) -> Any:
        if len(n_fits) == 1:
            raise KeyboardInterrupt
        n_fits.append(1)
        return whole(*given, **how)

    monkeypatch.setattr(training, "fit_sharded", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit_files(paths, memory="2GB", work=work, tune=False)
    monkeypatch.setattr(training, "fit_sharded", whole)
    begun: list[int] = []
    monkeypatch.setattr(training, "ShardedState", lambda *given: begun.append(1) or solver.ShardedState(*given))
    found = fit_files(paths, memory="2GB", work=work, tune=False)
    assert len(begun) == 1  # of two: the other was done
    assert found.scorer.word_embeddings.tobytes() == expected.scorer.word_embeddings.tobytes()
    assert not work.exists()


def test_what_cannot_be_done_out_of_core_is_said(tmp_path: Path) -> None:
    paths = write(tmp_path, *documents(30))
    with pytest.raises(InputError, match="tokenizer"):
        fit_files(paths, tokenizer=str.split)
    with pytest.raises(InputError, match="No document has a label"):
        fit_files(write(tmp_path, ["a b", "c d"], [None, None], 1), memory="2GB")


def deadly_curved(part: FitPartition, iterate: Iterate, direction: Any) -> Any:
    """Kill the process the first time."""
    flag = Path(part.work.path) / "killed"
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return curved(part, iterate, direction)


def test_labels_are_told_apart_and_left_out_as_in_memory(tmp_path: Path) -> None:
    texts, labels = documents(60)
    with pytest.raises(InputError, match=r"class [0-3]\\x00"):
        fit_files(write(tmp_path, texts, [f"{label}\0" if i % 2 else label for i, label in enumerate(labels)]))
    marked = ["N/A" if i % 5 == 0 else label for i, label in enumerate(labels)]
    for missing in ("N/A,None", ["None", "N/A"]):
        model = fit_files(write(tmp_path, texts, marked), missing=missing)
        assert model.report["n_labelled"] == 48
        assert "N/A" not in model.classes


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Callable[[int], str]]:
    distributed = pytest.importorskip("distributed", reason="needs Dask: pip install '.[scale]'")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:

        def scaled(n: int) -> str:
            cluster.scale(n)
            cluster.wait_for_workers(n) if n > 1 else None
            return str(cluster.scheduler_address)

        yield scaled


def test_dask_gives_the_same_bits_with_any_workers_and_when_one_is_killed(
    scheduler: Callable[[int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, labels = documents(120, n_classes=2, length=8)  # enough to hold some out: one fit by them, one to all
    paths, how = write(tmp_path, texts, labels), {"memory": "2GB", "tune": False}
    expected = fit_files(paths, **how).scorer.word_embeddings.tobytes()
    for n in (2, 1):
        assert fit_files(paths, scheduler=scheduler(n), **how).scorer.word_embeddings.tobytes() == expected
    monkeypatch.setattr(solver, "curved", deadly_curved)
    found = fit_files(paths, scheduler=scheduler(2), work=tmp_path / "work", **how)
    assert found.scorer.word_embeddings.tobytes() == expected


def test_a_third_of_r8_is_predicted_as_in_memory(data_folder: Path, tmp_path: Path) -> None:
    def read(part: str) -> tuple[list[str], list[str]]:
        labels, texts = zip(*read_rows(data_folder / f"text/r8/{part}.tsv.gz", [0, 1], header=False), strict=True)
        return list(texts[::3]), list(labels[::3])  # enough to choose settings by; benchmarks.agreement has all

    texts, labels = read("train")
    expected = WGCNTextClassifier().fit(texts, labels).model_
    found = fit_files(write(tmp_path, texts, labels), memory="2GB")
    test = read("test")[0]
    assert (found.predict(test) == expected.predict(test)).mean() >= 0.999


def test_a_teacher_of_a_sample_learns_from_the_labels_that_it_knows(tmp_path: Path, limited: Limited) -> None:
    limited(taught=200)
    texts, labels = documents(900, labelled=0.4)
    found = fit_files(write(tmp_path, texts, labels), memory="2GB", tune=False)
    test, truth = documents(500, seed=1)
    assert np.mean(found.predict(test) == np.array(truth)) > 0.8
