"""Seed words: how they are used, and what is done with them for comparison."""

import numpy as np
import pytest

from wgcn_paper.datasets import Dataset
from wgcn_paper.measures.seeds import Seeds, class_names, count_seeds, seed_words, with_wrong_seeds

SEEDS = {"a": ["one", "two"], "b": ["three", "four"], "c": ["five", "six"]}


@pytest.mark.parametrize(("name", "n_classes"), [("r8", 8), ("20ng", 20), ("20ng-coarse", 5)])
def test_there_are_at_most_four_seed_words_per_class(name: str, n_classes: int) -> None:
    seeds = seed_words(name)
    assert len(seeds) == n_classes
    assert all(1 <= len(words) <= 4 for words in seeds.values())


def test_counting_takes_the_class_with_most_seeds_and_of_equals_the_common_one() -> None:
    train = ["one", "three four", "three", "five"]  # b is the most common, then a and c
    test = ["one two three", "five five one", "one three", "one five", "nothing"]
    assert count_seeds(train, test, SEEDS).tolist() == ["a", "c", "b", "a", "b"]


def test_names_are_the_words_that_the_fewest_names_have() -> None:
    seeds = {"talk.politics.guns": ["gun"], "talk.politics.misc": ["tax"], "talk.misc": ["word"], "acq": ["stake"]}
    texts = ["talk politics guns misc"]
    assert class_names(seeds, texts) == {
        "talk.politics.guns": ["guns"],
        "talk.politics.misc": ["politics", "misc"],
        "talk.misc": ["misc"],
        "acq": ["stake"],
    }


def test_one_seed_of_each_class_is_replaced_by_one_of_another() -> None:
    draws = [with_wrong_seeds(SEEDS, draw) for draw in range(20)]
    for draw in draws:
        for name, words in draw.items():
            [wrong] = set(words) - set(SEEDS[name])
            assert any(wrong in theirs for other, theirs in SEEDS.items() if other != name)
            assert len(set(words) & set(SEEDS[name])) == 1
    assert len({str(draw) for draw in draws}) > 10
    assert with_wrong_seeds(SEEDS, 3) == draws[3]


@pytest.mark.filterwarnings("ignore::wgcn.base.errors.WGCNWarning")  # of a wrong seed, which two classes share
@pytest.mark.parametrize("way", ["wgcn", "wrong", "counting", "improvised"])
def test_every_way_is_better_than_chance(way: str, made: Dataset, seeds: dict[str, list[str]]) -> None:
    assert Seeds({"way": way}).measure(made)["accuracy"] > (0.4 if way == "wrong" else 0.6)


@pytest.mark.parametrize("method", ["linear-svc", "wgcn-linear"])
def test_labels_per_class_give_a_curve(method: str, made: Dataset) -> None:
    found = Seeds({"way": "labels", "method": method, "per_class": [1, 30]}, seed=1).measure(made)
    assert set(found) == {"accuracy", "1", "30"}
    assert found["1"] <= found["30"] == found["accuracy"]
    assert found["30"] > 0.9


def test_names_of_classes_are_seeds(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "wgcn_paper.measures.seeds.seed_words", lambda _: {name: [f"{name}1"] for name in np.unique(made.labels)}
    )
    assert Seeds({"way": "names"}).measure(made)["accuracy"] > 0.6  # no text has a name, so their first seeds
