import json
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from wgcn.base.errors import InputError
from wgcn_paper.datasets import Dataset
from wgcn_paper.experiments import cells
from wgcn_paper.experiments.cells import Cell, Run, make_cell, renamed, rights, run_cell, validate_cell
from wgcn_paper.experiments.environment import environment
from wgcn_paper.methods.baseline import method_class
from wgcn_paper.methods.linear_svc import LinearSVCMethod
from wgcn_paper.protocol import Query

CELL = Cell("r8", "corpus", "linear-svc", {"C": 1.0, "ngrams": 1}, 3, "a name")


@pytest.fixture
def pets(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A small set that every name stands for."""
    texts = ("a cat purrs", "the dog barks", "my cat", "his dog") * 30
    labels = np.array(["cat", "dog"] * 60)
    dataset = Dataset("pets", texts, None, labels, np.arange(116), np.arange(116, 120))
    monkeypatch.setattr(cells, "_dataset", lambda name: dataset)
    return dataset


def test_key_depends_on_all_but_the_variant() -> None:
    others = [
        replace(CELL, dataset="r52"),
        replace(CELL, protocol="inductive"),
        replace(CELL, method="wgcn-linear"),
        replace(CELL, settings={"C": 2.0, "ngrams": 1}),
        replace(CELL, settings={"C": 1.0}),
        replace(CELL, seed=4),
        replace(CELL, version=2),
    ]
    assert len({cell.key for cell in (CELL, *others)}) == 8
    assert replace(CELL, variant="another").key == CELL.key
    assert replace(CELL, settings={"ngrams": 1, "C": 1.0}).key == CELL.key


def test_place_depends_on_all_but_the_settings() -> None:
    assert replace(CELL, settings={}).place == CELL.place
    for change in ({"dataset": "mr"}, {"protocol": "inductive"}, {"method": "x"}, {"variant": "b"}, {"seed": 0}):
        assert replace(CELL, **change).place != CELL.place  # type: ignore[arg-type]


def test_a_cell_spells_out_all_settings() -> None:
    cell = make_cell("r8", "few-label:05.0%", "linear-svc", {"C": 2.0}, 1, "row")
    assert cell.settings == {**LinearSVCMethod.defaults, "C": 2.0}
    assert (cell.dataset, cell.protocol, cell.seed, cell.variant) == ("r8", "few-label:5%", 1, "row")


def test_a_changed_default_is_a_changed_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    before = make_cell("r8", "corpus", "linear-svc", {}).key
    monkeypatch.setattr(LinearSVCMethod, "defaults", {**LinearSVCMethod.defaults, "C": 2.0})
    assert make_cell("r8", "corpus", "linear-svc", {}).key != before
    assert make_cell("r8", "corpus", "linear-svc", {"C": 1.0}).key == before


def test_a_cell_of_an_earlier_version_has_the_defaults_of_that_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinearSVCMethod, "version", 4)
    monkeypatch.setattr(LinearSVCMethod, "defaults", {**LinearSVCMethod.defaults, "C": 4.0, "ngrams": 3})
    monkeypatch.setattr(LinearSVCMethod, "former", {1: {"C": 1.0}, 3: {"C": 3.0, "ngrams": 2}})

    def settings(version: int | None, **given: Any) -> tuple[Any, Any]:
        cell = make_cell("r8", "corpus", "linear-svc", given, version=version)
        assert cell.version == (version or 4)
        assert cell.settings.keys() == LinearSVCMethod.defaults.keys()
        return cell.settings["C"], cell.settings["ngrams"]

    assert {version: settings(version) for version in (1, 2, 3, 4, None)} == {
        1: (1.0, 2), 2: (3.0, 2), 3: (3.0, 2), 4: (4.0, 3), None: (4.0, 3)
    }  # fmt: skip
    # What a table says comes first.
    assert [settings(version, C=7.0) for version in (1, 3, 4)] == [(7.0, 2), (7.0, 2), (7.0, 3)]


def test_earlier_versions_of_the_linear_model_had_no_subwords_and_were_not_tuned() -> None:
    defaults = method_class("wgcn-linear").defaults
    changed = {"subwords": 0.0, "tune": False, "teacher": 2.0}
    for version in (1, 2):
        assert make_cell("r8", "corpus", "wgcn-linear", {}, version=version).settings == {**defaults, **changed}
    assert make_cell("r8", "corpus", "wgcn-linear", {"tune": True}, version=2).settings["tune"] is True
    assert make_cell("r8", "corpus", "wgcn-linear", {}, version=3).settings == {**defaults, "teacher": 2.0}
    assert make_cell("r8", "corpus", "wgcn-linear", {}).settings == defaults
    with pytest.raises(InputError, match="is at version 4; runs of version 2 are kept"):
        run_cell(make_cell("r8", "corpus", "wgcn-linear", {}, version=2))


def test_unusable_cells_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no setting colour"):
        make_cell("r8", "corpus", "linear-svc", {"colour": 1})
    with pytest.raises(InputError, match="no method"):
        make_cell("r8", "corpus", "bert", {})
    with pytest.raises(InputError, match="is not a protocol"):
        make_cell("r8", "open", "linear-svc", {})
    monkeypatch.setattr(LinearSVCMethod, "protocols", ("corpus",))
    monkeypatch.setattr(LinearSVCMethod, "why_not", "It has a reason.")
    with pytest.raises(InputError, match=r"cannot run under the protocol inductive. It has a reason\.$"):
        make_cell("r8", "inductive", "linear-svc", {})


def test_a_run_survives_json(pets: Dataset) -> None:
    run = run_cell(make_cell("pets", "inductive", "linear-svc", {}, 2, "row"), "cpu")
    again = Run.from_json(json.loads(json.dumps(run.as_json())))
    assert again == run
    assert again.cell.key == run.as_json()["key"]


def test_a_run_whose_key_does_not_fit_is_refused(pets: Dataset) -> None:
    content = run_cell(make_cell("pets", "inductive", "linear-svc", {}), "cpu").as_json()
    for change in ({"seed": 1}, {"settings": {}}, {"key": "0"}):
        with pytest.raises(ValueError, match="key"):
            Run.from_json({**content, **change})


def test_a_run_says_what_came_of_it(pets: Dataset) -> None:
    cell = make_cell("pets", "inductive", "linear-svc", {})
    run = run_cell(cell, "cpu")
    assert (run.cell, run.accuracy, run.n_test) == (cell, 1.0, 4)
    assert (run.epochs, run.ms_per_epoch, run.validation_accuracy, run.gpu_memory) == (None, None, None, None)
    assert run.device == "cpu"
    assert run.memory > 1
    assert run.fit_seconds >= 0
    assert len(run.model or "") == 64
    assert run.environment == environment()
    assert run.predict_one_ms is not None
    assert run.predict_one_ms > 0


def test_documents_that_come_alone_are_new_ones(pets: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    queries: list[Query] = []
    predict = LinearSVCMethod.predict

    def recorded(method: LinearSVCMethod, query: Query) -> npt.NDArray[Any]:
        queries.append(query)
        return predict(method, query)

    monkeypatch.setattr(LinearSVCMethod, "predict", recorded)
    larger = replace(pets, train=np.arange(90), test=np.arange(90, 120))
    for dataset, n in ((pets, 4), (larger, 20)):
        queries.clear()
        monkeypatch.setattr(cells, "_dataset", lambda name, dataset=dataset: dataset)
        run_cell(make_cell("pets", "corpus", "linear-svc", {}), "cpu")
        all_at_once, *alone = queries
        assert all_at_once.places is not None
        assert [query.texts for query in alone] == [(text,) for text in (all_at_once.texts or ())[:n]]
        assert {query.places for query in alone} == {None}


def test_what_cannot_take_a_new_document_has_no_time_for_one(pets: Dataset) -> None:
    settings = {"stop_words": False, "min_count": 1, "hidden": 4, "max_epochs": 2}
    run = run_cell(make_cell("pets", "corpus", "text-gcn", settings), "cpu")
    assert run.predict_one_ms is None
    assert (run.epochs, run.n_test) == (2, 4)


def test_a_run_from_before_documents_came_alone_is_still_read(pets: Dataset) -> None:
    run = run_cell(make_cell("pets", "inductive", "linear-svc", {}), "cpu")
    content = run.as_json()
    del content["predict_one_ms"]
    assert Run.from_json(content) == replace(run, predict_one_ms=None)


def test_accuracy_is_that_of_the_test_documents(pets: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = pets.labels.copy()
    labels[pets.test[0]] = "dog"
    monkeypatch.setattr(cells, "_dataset", lambda name: replace(pets, labels=labels))
    assert run_cell(make_cell("pets", "corpus", "linear-svc", {}), "cpu").accuracy == 0.75


def test_seed_of_a_cell_draws_the_labels(pets: Dataset) -> None:
    models = [run_cell(make_cell("pets", "few-label:4", "linear-svc", {}, seed), "cpu").model for seed in (0, 0, 1)]
    assert models[0] == models[1] != models[2]


@pytest.mark.parametrize("protocol", ["corpus", "inductive"])
def test_validation_knows_no_test_labels(pets: Dataset, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    cell = make_cell("pets", protocol, "wgcn-linear", {})
    before = validate_cell(cell, "cpu")
    labels = pets.labels.astype(object)
    labels[pets.test] = "poison"
    monkeypatch.setattr(cells, "_dataset", lambda name: replace(pets, labels=labels))
    assert validate_cell(cell, "cpu") == before


def test_a_method_that_holds_nothing_out_cannot_be_validated(pets: Dataset) -> None:
    with pytest.raises(InputError, match="linear-svc held out no documents"):
        validate_cell(make_cell("pets", "inductive", "linear-svc", {}), "cpu")


def test_validation_documents_of_the_set_decide_where_there_are_any(
    pets: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = pets.labels.copy()
    labels[112] = "dog"
    parts = replace(pets, labels=labels, train=np.arange(112), validation=np.arange(112, 116))
    monkeypatch.setattr(cells, "_dataset", lambda name: parts)
    monkeypatch.setattr(LinearSVCMethod, "fit", _fit_without_validation)
    assert validate_cell(make_cell("pets", "inductive", "linear-svc", {}), "cpu") == 0.75


_fit = LinearSVCMethod.fit


def _fit_without_validation(method, task):  # type: ignore[no-untyped-def]
    labels = task.labels.copy()
    labels[task.validation] = None
    return _fit(method, replace(task, labels=labels))


def test_environment_names_the_machine_and_no_user() -> None:
    found = environment()
    assert {"wgcn", "python", "machine", "numpy", "torch"} <= set(found)
    assert "\u00d7" in found["machine"]


def test_a_run_can_have_another_name(pets: Dataset) -> None:
    run = run_cell(make_cell("pets", "inductive", "linear-svc", {}), "cpu")
    other = replace(run.cell, variant="other")
    assert renamed(run, other).cell == other
    assert replace(renamed(run, other), cell=run.cell) == run


def test_under_unseen_only_documents_with_a_new_word_count(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("a cat purrs", "the dog barks", "my cat", "his dog") * 5 + ("a cat purrs", "his horse barks", "cat bird")
    labels = np.array(["cat", "dog"] * 10 + ["dog", "dog", "dog"])
    dataset = Dataset("pets", texts, None, labels, np.arange(20), np.arange(20, 23))
    monkeypatch.setattr(cells, "_dataset", lambda name: dataset)
    run = run_cell(make_cell("pets", "unseen:50%", "linear-svc", {}, 1), "cpu")
    # Of the documents with a new word, the second is a dog and the third is taken for a cat.
    assert (run.n_test, run.accuracy) == (2, 0.5)


def test_a_run_knows_which_documents_it_got_right(pets: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinearSVCMethod, "predict", lambda method, query: np.array(["cat", "cat", "dog", "dog"]))
    run = run_cell(make_cell("pets", "inductive", "linear-svc", {}))
    found = rights(Run.from_json(json.loads(json.dumps(run.as_json()))))
    assert found is not None
    assert found.tolist() == [True, False, False, True]
    assert rights(replace(run, right=None)) is None
