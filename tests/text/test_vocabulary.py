import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import MAX_WORD, Vocabulary, VocabularyRules, choose_words

WORDS = ["b", "a", "rare", "everywhere", "the"]
COUNTS = np.array([4, 4, 1, 9, 20])
DOCUMENTS = np.array([3, 2, 1, 10, 9])


def chosen(**rules: object) -> tuple[str, ...]:
    places = choose_words(WORDS, COUNTS, DOCUMENTS, 10, VocabularyRules(**rules))  # type: ignore[arg-type]
    return tuple(WORDS[i] for i in places)


def test_frequent_words_come_first_and_equal_ones_by_code_point() -> None:
    assert chosen() == ("the", "everywhere", "a", "b", "rare")


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"min_count": 4}, ("the", "everywhere", "a", "b")),
        ({"min_df": 3}, ("the", "everywhere", "b")),
        ({"min_df": 0.3}, ("the", "everywhere", "b")),
        ({"max_df": 9}, ("the", "a", "b", "rare")),
        ({"max_df": 0.5}, ("a", "b", "rare")),
        ({"max_size": 2}, ("the", "everywhere")),
        ({"stop_words": {"the"}, "max_size": 1}, ("everywhere",)),
    ],
)
def test_rules_choose_words(rules: dict[str, object], words: tuple[str, ...]) -> None:
    assert chosen(**rules) == words


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({}, ("red", "red wine", "wine", "old red wine", "rare")),
        ({"min_ngram_count": 2}, ("red", "red wine", "wine", "rare")),
        ({"min_ngram_count": 5}, ("red", "wine", "rare")),
        ({"min_count": 2}, ("red", "red wine", "wine")),
        ({"min_count": 3, "min_ngram_count": 2}, ("red", "red wine", "wine")),
        ({"min_count": 2, "min_ngram_count": 5, "max_size": 1}, ("red",)),
    ],
)
def test_ngrams_may_have_to_be_more_frequent_than_words(rules: dict[str, object], words: tuple[str, ...]) -> None:
    names, counts = ["wine", "red", "red wine", "old red wine", "rare"], np.array([3, 5, 4, 1, 1])
    places = choose_words(names, counts, counts, 10, VocabularyRules(**rules))  # type: ignore[arg-type]
    assert tuple(names[i] for i in places) == words


def test_only_rare_ngrams_are_explained() -> None:
    with pytest.raises(InputError, match="2 are n-grams that occur fewer than 3 times"):
        choose_words(["a b", "b c"], np.array([1, 2]), np.array([1, 1]), 2, VocabularyRules(min_ngram_count=3))
    with pytest.raises(InputError, match="of the 6 distinct ones: 6 are n-grams that occur fewer than 3 times"):
        choose_words(["a b"], np.array([1]), np.array([1]), 2, VocabularyRules(min_ngram_count=3), n_rare=5)


def test_words_with_a_space_are_ngrams() -> None:
    assert Vocabulary(["a", "a b", "it's", "a b c", "b"]).are_ngrams.tolist() == [False, True, False, True, False]
    assert Vocabulary([]).are_ngrams.shape == (0,)
    assert Vocabulary([]).are_ngrams.dtype == bool


def test_counts_follow_their_words() -> None:
    vocabulary = Vocabulary(WORDS, COUNTS, DOCUMENTS).part(np.array([4, 0, 2]))
    assert vocabulary.words == ("the", "b", "rare")
    assert vocabulary.counts.tolist() == [20, 4, 1]
    assert vocabulary.document_counts[vocabulary.id_of("b")] == 3


def test_no_word_left_says_which_rule_took_how_many() -> None:
    with pytest.raises(InputError, match=r"1 are stop words; 5 occur fewer than 99 times \(min_count\)"):
        chosen(min_count=99, stop_words={"a"})


def test_no_word_and_no_ngram_of_many_characters_is_kept() -> None:
    """Else a fit to encoded data could not be saved; no path of prediction has a rule of its own for them."""
    kept, dropped = "a" * MAX_WORD, "b" * (MAX_WORD + 1)
    texts = [f"red {kept}", f"red wine {dropped}", "red wine"]
    corpus = Corpus.from_texts(texts, ngram_range=(1, 2))
    assert corpus.vocabulary.words == ("red", "red wine", "wine", kept)
    with pytest.raises(InputError, match="1 are longer than 1,000 characters"):
        Corpus.from_texts([dropped])


def test_a_fit_to_long_words_can_be_saved_and_predicts_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "x" * 9_000_000  # beyond what a folder may hold
    texts = ["red wine", "fast car", f"red {long} figs", f"fast {long}"]
    with pytest.warns(WGCNWarning, match="characters between blanks"):
        fitted = WGCNTextClassifier(n_jobs=1).fit(texts, ["a", "b"] * 2)
    fitted.save(tmp_path / "model")
    loaded, texts = TextModel.load(tmp_path / "model"), [long, f"{long} wine", "wine"]
    expected = loaded.predict_proba(texts).tobytes()
    assert fitted.predict_proba(texts).tobytes() == expected
    monkeypatch.setattr("wgcn.text.tokenize.term_code.is_compiled", False)
    assert loaded.predict_proba(texts).tobytes() == expected


def test_unknown_word_is_answered_with_words_like_it() -> None:
    with pytest.raises(InputError, match=r"'everywher' is not among the 5 words.*'everywhere'"):
        Vocabulary(WORDS).id_of("everywher")


@pytest.mark.parametrize(
    "rules",
    [
        {"min_count": 0},
        {"min_ngram_count": 0},
        {"max_size": 0},
        {"min_df": -1},
        {"max_df": 1.5},
        {"min_df": float("nan")},
        {"stop_words": "the"},
    ],
)
def test_senseless_rules_are_refused(rules: dict[str, object]) -> None:
    with pytest.raises(InputError):
        VocabularyRules(**rules)  # type: ignore[arg-type]


def test_a_word_twice_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        Vocabulary(["a", "a"])


def test_order_does_not_depend_on_the_hash_seed() -> None:
    script = "from wgcn import Corpus; print(Corpus.from_texts(['d c b a', 'e d c']).vocabulary.words)"
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "1"}, capture_output=True, text=True, check=True)
    assert run.stdout == "('c', 'd', 'a', 'b', 'e')\n"
