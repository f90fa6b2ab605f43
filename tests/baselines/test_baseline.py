import sys

import numpy as np
import pytest

from wgcn.baselines import Baseline, make_baseline, method_names
from wgcn.baselines.baseline import array_digest, method_class
from wgcn.errors import InputError, MissingDependencyError
from wgcn.protocol import Protocol

NAMES = ("wgcn", "wgcn-linear", "wgcn-citations", "linear-svc")


def test_registry_names_every_method() -> None:
    assert method_names()[: len(NAMES)] == NAMES


@pytest.mark.parametrize("name", method_names())
def test_every_method_is_made_by_its_name(name: str) -> None:
    kind = method_class(name)
    made = make_baseline(name, seed=3, device="cpu")
    assert isinstance(made, Baseline)
    assert isinstance(made, kind)
    assert (made.name, made.seed, made.device) == (name, 3, "cpu")
    assert made.settings == kind.defaults
    assert made.settings is not kind.defaults
    assert {Protocol(p, 0.1 if p == "few-label" else None).name for p in kind.protocols} == set(kind.protocols)  # type: ignore[arg-type]
    assert kind.why_not or len(kind.protocols) == 3


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


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wgcn.baselines.linear_svc", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(
        MissingDependencyError, match=r"The method linear-svc needs.*'sklearn'.*pip install 'wgcn\[train\]'"
    ):
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
