import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from wgcn.base.errors import InputError
from wgcn_paper.datasets import Dataset
from wgcn_paper.experiments import cells
from wgcn_paper.methods import Baseline, Fit, baseline, make_baseline, method_names, register_method
from wgcn_paper.methods.baseline import array_digest, method_class
from wgcn_paper.packages import MissingPackageError
from wgcn_paper.protocol import Protocol, Query, Task

NAMES = (
    "wgcn",
    "wgcn-linear",
    "wgcn-citations",
    "linearised-wgcn",
    "linearised-text-gcn",
    "cnn",
    "lstm",
    "graph-cnn",
    "text-gcn",
    "text-level-gnn",
    "fast-gcn",
    "gcn",
    "gin",
    "sgc",
    "linear-svc",
    "linear-svc-characters",
    "self-training-svc",
    "logistic",
    "fasttext",
    "fasttext-autotune",
    "wide-mlp",
    "static-embedding",
    "sentence-embedding",
    "setfit",
    "embedding",
)


def test_registry_names_every_method() -> None:
    assert method_names()[: len(NAMES)] == NAMES  # an example may have registered one of its own


@pytest.mark.parametrize("name", method_names())
def test_every_method_is_made_by_its_name(name: str) -> None:
    kind = method_class(name)
    made = make_baseline(name, seed=3, device="cpu")
    assert isinstance(made, Baseline)
    assert isinstance(made, kind)
    assert (made.name, made.seed, made.device) == (name, 3, "cpu")
    assert made.settings == kind.defaults
    assert made.settings is not kind.defaults
    drawn = ("few-label", "unseen")
    assert {Protocol(p, 0.1 if p in drawn else None).name for p in kind.protocols} == set(kind.protocols)  # type: ignore[arg-type]
    assert kind.why_not or len(kind.protocols) == 4


@pytest.mark.parametrize("name", method_names())
def test_given_settings_come_before_the_defaults(name: str) -> None:
    first, *others = method_class(name).defaults
    made = make_baseline(name, {first: "mine"})
    assert made.settings[first] == "mine"
    assert all(made.settings[other] == method_class(name).defaults[other] for other in others)
    assert make_baseline(name).settings == method_class(name).defaults


@pytest.mark.parametrize("name", method_names())
def test_unknown_settings_are_one_error_that_names_them_all(name: str) -> None:
    with pytest.raises(InputError) as caught:
        make_baseline(name, {"zeta": 1, "alfa": 2})
    assert f"{name} has no setting alfa, zeta. It has: " in str(caught.value)
    for setting in method_class(name).defaults:
        assert setting in str(caught.value)


def test_unknown_method_is_an_error_that_names_the_known() -> None:
    for make in (make_baseline, method_class):
        with pytest.raises(InputError, match=r"no method 'bert'. There are: wgcn, wgcn-linear"):
            make("bert")


class Majority(Baseline):
    """A method from outside the package."""

    name = "majority"

    def fit(self, task: Task) -> Fit:
        labels, counts = np.unique([label for label in task.labels if label is not None], return_counts=True)
        self.label = labels[counts.argmax()]
        return Fit()

    def predict(self, query: Query) -> npt.NDArray[Any]:
        return np.full(len(query.texts or ()), self.label)


def test_methods_from_outside_are_registered_by_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "_registered", {})
    with pytest.raises(InputError, match="no method 'majority'"):
        method_class("majority")
    assert register_method(Majority) is Majority
    assert method_names() == (*NAMES, "majority")
    assert isinstance(make_baseline("majority", seed=4), Majority)
    # A class that is defined once more, as in a notebook, takes the place of the first.
    again = type("Majority", (Majority,), {})
    register_method(again)
    assert method_class("majority") is again
    assert method_names() == (*NAMES, "majority")


def test_names_of_the_package_cannot_be_taken() -> None:
    taken = type("Mine", (Majority,), {"name": "linear-svc"})
    with pytest.raises(InputError, match=r"has a method 'linear-svc' already. Give Mine another name"):
        register_method(taken)
    assert method_class("linear-svc") is not taken


def test_a_registered_method_runs_as_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = ("a", "b", "c", "d"), np.array(["x", "x", "y", "y"])
    made = Dataset("made", texts, None, labels, np.array([0, 1, 2]), np.array([3]), None, None, None)
    monkeypatch.setattr(baseline, "_registered", {})
    monkeypatch.setattr(cells, "_dataset", lambda name: made)
    register_method(Majority)
    assert cells.run_cell(cells.make_cell("made", "inductive", "majority", {}), "cpu").accuracy == 0.0


@pytest.mark.parametrize(
    ("name", "package", "source"),
    [
        ("fasttext", "fasttext-wheel", "'./paper[fasttext]'"),
        ("static-embedding", "wordllama", "'./paper[static]'"),
        ("gcn", "torch-geometric", "./paper"),
        ("graph-cnn", "torch-geometric", "./paper"),
    ],
)
def test_a_method_is_described_without_the_package_that_only_fitting_needs(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, source: str
) -> None:
    for module in (baseline._METHODS[name][0], "wgcn_paper.methods.geometric"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package.removesuffix("-wheel").replace("-", "_"), None)
    assert method_class(name)({}).settings == method_class(name).defaults
    with pytest.raises(MissingPackageError) as raised:
        make_baseline(name)
    assert f"{name} needs the package '{package}'" in str(raised.value)
    assert str(raised.value).endswith(f"pip install {source}")


def test_missing_package_of_a_module_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wgcn_paper.methods.linear_svc", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(MissingPackageError, match=r"The method linear-svc needs.*'scikit-learn'.*pip install ./paper"):
        method_class("linear-svc")


def test_digest_of_arrays_tells_values_shapes_types_and_words_apart() -> None:
    numbers = np.arange(6, dtype=np.float32)
    parts = [
        (numbers, ["a"]),
        (numbers.reshape(2, 3), ["a"]),
        (numbers.astype(np.float64), ["a"]),
        (numbers[::-1], ["a"]),
        (numbers, ["b"]),
        (numbers, None),
        (None, ["a"]),
    ]
    assert len({array_digest(*part) for part in parts}) == len(parts)
    assert array_digest(numbers, ["a"]) == array_digest(numbers.copy(), np.array(["a"], object))
