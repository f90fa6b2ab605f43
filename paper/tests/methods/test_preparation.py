from typing import Any

import pytest

from wgcn_paper.methods import preparation
from wgcn_paper.methods.preparation import Kept, make_corpus

TEXTS = ("the red wine, the cask", "the cask", "a red car")
SETTINGS = {"tokenizer": "words", "stop_words": False, "min_count": 1}


def test_what_was_made_is_found_again() -> None:
    kept: Kept[list[int]] = Kept(most=2)
    first = kept.find(["digest", {"window": 3}], lambda: [1])
    assert kept.find(["digest", {"window": 3}], lambda: [2]) is first
    assert kept.find(["digest", {"window": 4}], lambda: [3]) == [3]
    assert kept.find(["other", {"window": 3}], lambda: [4]) == [4]


def test_the_one_not_asked_for_the_longest_gives_way_before_the_next_is_made() -> None:
    kept: Kept[int] = Kept(most=2)
    sizes = []
    for source in (1, 2, 1, 3, 1, 2):
        kept.find(source, lambda: sizes.append(len(kept)) or source)  # type: ignore[func-returns-value]  # noqa: B023
    assert list(kept.values()) == [1, 2]
    assert sizes == [0, 1, 1, 1]


def test_what_could_not_be_made_is_not_kept() -> None:
    kept: Kept[float] = Kept(most=2)
    with pytest.raises(ZeroDivisionError):
        kept.find("x", lambda: 1 / 0)
    assert kept.find("x", lambda: 1.0) == 1.0


@pytest.mark.parametrize(
    ("settings", "max_size", "words"),
    [
        ({}, None, ("the", "cask", "red", "a", "car", "wine")),
        ({"min_count": 2}, None, ("the", "cask", "red")),
        ({"stop_words": True}, None, ("cask", "red", "car", "wine")),
        ({"tokenizer": "text_gcn"}, None, ("the", "cask", "red", ",", "a", "car", "wine")),
        ({}, 2, ("the", "cask")),
    ],
)
def test_settings_choose_the_words(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], max_size: int | None, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(preparation, "stop_words", lambda: frozenset({"a", "the"}))
    assert make_corpus(TEXTS, SETTINGS | settings, max_size).vocabulary.words == words
