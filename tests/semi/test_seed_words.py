import warnings
from pathlib import Path

import numpy as np
import pytest

from wgcn import Corpus
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.semi.seed_words import (
    SeedRows,
    SeedTrust,
    SeedWord,
    find_seeds,
    near_words,
    problems,
    read_seed_options,
    read_seeds,
    seed_report,
    shown_shares,
    shown_words,
)
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting, document_terms, smooth_idf

TEXTS = ["game team score", "game team", "vote party law", "vote party", "hard disk drive", "disk drive", "hard work"]


def _found(seeds: object, classes: list[str], ngram_range: tuple[int, int] = (1, 2)) -> SeedRows:
    corpus = Corpus.from_texts(TEXTS, ngram_range=ngram_range)
    weighting = TermWeighting(smooth_idf(corpus.vocabulary.document_counts, len(corpus)))
    terms = document_terms(corpus, weighting)
    return find_seeds(read_seeds(seeds), classes, corpus.vocabulary, weighting, terms, "words", ngram_range)


def test_words_with_a_minus_are_struck_and_a_list_of_names_is_its_own_seeds() -> None:
    given = read_seeds({"sport": ["game", "-card", "game"], "law": "court"})
    assert given.classes == ("sport", "law")
    assert given.seeds == (("game",), ("court",))
    assert given.struck == (("card",), ())
    assert read_seeds(["sport", "law"]).seeds == (("sport",), ("law",))
    assert read_seeds(given) is given


@pytest.mark.parametrize("wrong", ["sport", 3, {}, [], ["a", "a"], {"a": []}, {"a": ["-b"]}, {"a": [""]}, {"a": [3]}])
def test_what_is_no_seeds_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"seed"):
        read_seeds(wrong)


def test_options_and_a_file_give_the_same(tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("# a note\nsport: game, free kick\n\nlaw\n", encoding="utf-8")
    assert read_seed_options(None, file) == {"sport": ["game", "free kick"], "law": ["law"]}
    assert read_seed_options(["sport=game,free kick", "law"]) == read_seed_options(None, file)
    assert read_seed_options(["sport=-card"], file)["sport"] == ["-card", "game", "free kick"]
    with pytest.raises(InputError, match="class=word"):
        read_seed_options(["sport="])
    with pytest.raises(InputError, match="There is no file"):
        read_seed_options([], tmp_path / "none.txt")


def test_seeds_are_rows_of_their_words_and_count_their_texts() -> None:
    found = _found({"b": ["Game", "hard disk"], "a": ["vote", "-law"]}, ["a", "b"])
    assert found.names == ("Game", "hard disk", "vote", "law")
    assert found.classes.tolist() == [1, 1, 0, 0]
    assert found.struck.tolist() == [False, False, False, True]
    assert found.counts.tolist() == [2, 1, 2, 1]
    words = [found.vocabulary[i] for i in found.rows[[1]].indices]
    assert sorted(words) == ["disk", "hard", "hard disk"]
    np.testing.assert_allclose(np.sqrt(found.rows.power(2).sum(axis=1)), 1, rtol=1e-6)


def test_a_phrase_that_is_no_term_needs_a_text_with_all_its_words() -> None:
    assert _found({"a": ["hard drive"], "b": ["vote"]}, ["a", "b"]).counts.tolist() == [1, 2]
    with pytest.raises(InputError, match="'hard vote' of class 'a' is in no text"):
        _found({"a": ["hard vote"], "b": ["vote"]}, ["a", "b"])


def test_a_seed_in_no_text_is_an_error_with_near_words() -> None:
    with pytest.raises(InputError, match=r"'gaem' of class 'a' is in no text\. Near it are 'game'") as caught:
        _found({"a": ["gaem", "team"], "b": ["xyzzy"]}, ["a", "b"])
    assert "'xyzzy'" in str(caught.value)  # all of them at once


def test_near_words_are_those_spelt_alike_frequent_ones_first() -> None:
    vocabulary = Vocabulary(["the", "cryptography", "crypt", "crypts", "game"])
    assert near_words("crypto", vocabulary) == ["cryptography", "crypt", "crypts"]
    assert near_words("zzz", vocabulary) == []


def test_problems_and_the_report_name_seeds_to_look_at() -> None:
    words = {
        "a": [SeedWord("x", 1.0, 20, True), SeedWord("rare", 1.0, 1, True), SeedWord("near", 0.1, 1, False)],
        "b": [SeedWord("x", 0.1, 20, True)],
    }
    found = problems(words)
    assert len(found) == 3
    assert "'x' is a seed of 'a' and 'b'" in found[0]
    assert "Only 1 text has 'rare'" in found[1]
    assert "another class than 'b'" in found[2]
    given, trust = read_seeds({"a": ["x", "rare", "-y"], "b": ["x"]}), SeedTrust(0.4, 0.1, 0.9, 0.5, 0.8, 500)
    with pytest.warns(WGCNWarning, match="rare"):
        report = seed_report(given, words, trust, {"a": 0.7, "b": 0.3})
    assert report["seeds"] == {"a": ["x", "rare", "-y"], "b": ["x"]}
    assert report["seed_problems"] == found
    assert report["seed_trust"] == {**trust._asdict(), "shares": {"a": 0.7, "b": 0.3}}


def test_the_report_warns_of_low_agreement_and_of_given_shares_that_the_texts_do_not_have() -> None:
    words = {"a": [SeedWord("x", 1.0, 20, True)], "b": [SeedWord("y", 1.0, 20, True)]}
    trust, shares = SeedTrust(0.4, 0.1, 0.9, 0.5, 0.8, 500), {"a": 0.7, "b": 0.3}
    with pytest.warns(WGCNWarning, match="hardly serve here. 40% of the texts have a seed"):
        report = seed_report(None, words, trust._replace(kappa=0.3), shares, [0.1, 0.9])
    assert len(report["seed_problems"]) == 1
    with pytest.warns(WGCNWarning, match=r"class_prior says that 90.0% of the texts are 'b'; by its seeds, 30.0% are"):
        seed_report(None, words, trust, shares, [0.1, 0.9])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert seed_report(None, words, trust, shares, [0.6, 0.4])["seed_problems"] == []


def test_shares_are_shown_the_largest_first() -> None:
    assert shown_shares({"a": 0.2, "b": 0.8}) == "Estimated shares: b 80.0%, a 20.0%."
    assert shown_shares(dict.fromkeys("abcdefghijkl", 1 / 12)).endswith("j 8.3% and 2 more.")


def test_words_are_shown_with_the_number_of_their_texts() -> None:
    shown = shown_words({"a": [SeedWord("x", 1.0, 2000, True)], "b": [SeedWord("y", 1.0, 1, True)]})
    assert shown.splitlines() == [
        "a",
        "  given  x (2,000)",
        "  added  no word",
        "b",
        "  given  y (1)",
        "  added  no word",
    ]
