from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wgcn.base.errors import InputError, WGCNWarning
from wgcn.io.read import read_texts
from wgcn.text import corpus as tokens
from wgcn.text import kernels
from wgcn.text.corpus import Corpus
from wgcn.text.ngrams import ngrams
from wgcn.text.tokenize import text_gcn, words
from wgcn.text.vocabulary import Vocabulary, VocabularyRules
from wgcn_paper.datasets.docstrings import DocsCorpus

texts = st.lists(st.text(alphabet="ab c'Éß", max_size=30), min_size=1).filter(lambda t: any(map(words, t)))


def documents(corpus: Corpus) -> list[list[str]]:
    return [corpus.document(i) for i in range(len(corpus))]


@given(texts)
def test_documents_come_back_as_their_tokens(given_texts: list[str]) -> None:
    corpus = Corpus.from_texts(given_texts)
    assert documents(corpus) == [words(text) for text in given_texts]
    assert corpus.vocabulary.counts.tolist() == [
        sum(words(text).count(word) for text in given_texts) for word in corpus.vocabulary
    ]
    assert corpus.vocabulary.document_counts.tolist() == [
        sum(word in words(text) for text in given_texts) for word in corpus.vocabulary
    ]


@given(texts, st.integers(1, 3), st.integers(0, 2))
def test_ngrams_equal_those_of_each_token_list(given_texts: list[str], shortest: int, more: int) -> None:
    ngram_range = (shortest, shortest + more)
    expected = [ngrams(words(text), ngram_range) for text in given_texts]
    if not any(expected):
        with pytest.raises(InputError):
            Corpus.from_texts(given_texts, ngram_range=ngram_range)
        return
    assert documents(Corpus.from_texts(given_texts, ngram_range=ngram_range)) == expected


@given(texts, st.sampled_from([(1, 1), (1, 2), (1, 4), (2, 3)]), st.integers(1, 3), st.integers(1, 3))
def test_rare_ngrams_are_those_of_a_counter(
    given_texts: list[str], ngram_range: tuple[int, int], min_count: int, min_ngram_count: int
) -> None:
    tokens = [ngrams(words(text), ngram_range) for text in given_texts]
    counts = Counter(chain.from_iterable(tokens))
    kept = [ngram for ngram in counts if counts[ngram] >= max(min_count, min_ngram_count if " " in ngram else 1)]
    rules = VocabularyRules(min_count=min_count, min_ngram_count=min_ngram_count)
    if not kept:
        with pytest.raises(InputError, match="No word remains of the" if counts else "no word in"):
            Corpus.from_texts(given_texts, ngram_range=ngram_range, rules=rules)
        return
    corpus = Corpus.from_texts(given_texts, ngram_range=ngram_range, rules=rules)
    assert list(corpus.vocabulary) == sorted(kept, key=lambda ngram: (-counts[ngram], ngram))
    assert documents(corpus) == [[ngram for ngram in document if ngram in kept] for document in tokens]
    assert corpus.n_unknown == sum(map(len, tokens)) - corpus.n_tokens


def test_stop_words_go_before_ngrams_are_formed() -> None:
    corpus = Corpus.from_texts(["king of spain"], ngram_range=(2, 2), rules=VocabularyRules(stop_words=["of"]))
    assert corpus.document(0) == ["king spain"]


@pytest.mark.parametrize(("n_jobs", "batch"), [(1, 1), (2, 40), (5, 2000), (2, 1 << 21)])
def test_result_does_not_depend_on_threads_or_batches(docs: DocsCorpus, n_jobs: int, batch: int) -> None:
    assert docs.texts is not None
    whole = tokens.Tokens.from_texts(docs.texts[:100], "words", 1)
    parts = tokens.Tokens.from_texts(docs.texts[:100], "words", n_jobs, batch)
    assert parts.words == whole.words
    assert np.array_equal(parts.ids, whole.ids)
    assert np.array_equal(parts.offsets, whole.offsets)


def test_a_callable_gives_what_the_compiled_tokenizer_gives(docs: DocsCorpus) -> None:
    assert docs.texts is not None
    for name, function in (("words", words), ("text_gcn", text_gcn)):
        compiled = Corpus.from_texts(docs.texts[:200], tokenizer=name)
        plain = Corpus.from_texts(docs.texts[:200], tokenizer=lambda text, f=function: f(text))
        assert plain.vocabulary == compiled.vocabulary
        assert np.array_equal(plain.ids, compiled.ids)


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2)])
def test_a_given_vocabulary_keeps_its_ids_and_counts_the_unknown(ngram_range: tuple[int, int]) -> None:
    corpus = Corpus.from_texts(["b a zzz", "", "a a"], vocabulary=Vocabulary(["a", "b"]), ngram_range=ngram_range)
    assert corpus.ids.tolist() == [1, 0, 0, 0]
    assert corpus.offsets.tolist() == [0, 2, 2, 4]
    assert corpus.n_unknown == {(1, 1): 1, (1, 2): 1 + 3}[ngram_range]


def test_the_first_words_are_what_pruning_by_count_keeps(docs: DocsCorpus) -> None:
    assert docs.texts is not None
    whole = Corpus.from_texts(docs.texts[:100])
    cut = whole.with_words(whole.vocabulary.counts >= 3)
    pruned = Corpus.from_texts(docs.texts[:100], rules=VocabularyRules(min_count=3))
    assert cut.vocabulary == pruned.vocabulary
    assert np.array_equal(cut.vocabulary.document_counts, pruned.vocabulary.document_counts)
    assert np.array_equal(cut.ids, pruned.ids)
    assert np.array_equal(cut.offsets, pruned.offsets)
    assert cut.n_unknown == pruned.n_unknown


@given(texts, st.sampled_from([(1, 1), (1, 2), (2, 3)]), st.data())
def test_some_of_the_words_are_what_encoding_with_them_alone_gives(
    given_texts: list[str], ngram_range: tuple[int, int], data: st.DataObject
) -> None:
    assume(any(ngrams(words(text), ngram_range) for text in given_texts))
    whole = Corpus.from_texts(given_texts, ngram_range=ngram_range)
    n_words = len(whole.vocabulary)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=n_words, max_size=n_words)), bool)
    assume(keep.any())
    some = whole.with_words(keep)
    names = [word for word, kept in zip(whole.vocabulary, keep, strict=True) if kept]
    expected = Corpus.from_texts(given_texts, ngram_range=ngram_range, vocabulary=Vocabulary(names))
    assert some.vocabulary.words == expected.vocabulary.words
    for part in ("counts", "document_counts"):
        assert np.array_equal(getattr(some.vocabulary, part), getattr(expected.vocabulary, part))
    assert some.ids.tolist() == expected.ids.tolist()
    assert (some.ids.dtype, some.offsets.dtype) == (expected.ids.dtype, expected.offsets.dtype)
    assert some.offsets.tolist() == expected.offsets.tolist()
    assert some.n_unknown == expected.n_unknown


def test_words_can_be_left_out_one_after_another_and_the_corpus_stays() -> None:
    corpus = Corpus.from_texts(["a b c", "b a", "c"], vocabulary=Vocabulary(["a", "b", "c"]))
    without_a = corpus.with_words(np.array([False, True, True]))
    assert documents(without_a.with_words(np.array([False, True]))) == [["c"], [], ["c"]]
    assert without_a.with_words(np.array([False, True])).n_unknown == 4
    assert documents(corpus) == [["a", "b", "c"], ["b", "a"], ["c"]]
    assert np.array_equal(corpus.with_words(np.ones(3, bool)).ids, corpus.ids)
    none = corpus.with_words(np.zeros(3, bool))
    assert (len(none), none.n_tokens, none.n_unknown, len(none.vocabulary)) == (3, 0, 6, 0)


def test_pruned_words_leave_the_documents() -> None:
    corpus = Corpus.from_texts(["a b a", "c a"], rules=VocabularyRules(min_count=2))
    assert documents(corpus) == [["a", "a"], ["a"]]
    assert corpus.n_unknown == 2


def test_a_generator_is_read_once_and_not_ahead_of_need(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    done: list[int] = []

    def stream() -> Iterator[str]:
        for i in range(50):
            assert i - sum(done) <= 4, "texts pile up"
            taken.append(i)
            yield f"text {i}"

    def encode_new(texts: Any) -> Any:
        encoded = kernels.encode_new(texts)
        done.append(len(texts.offsets) - 1)
        return encoded

    monkeypatch.setattr(tokens, "encode_new", encode_new)
    assert len(tokens.Tokens.from_texts(stream(), "words", 2, batch_characters=1).offsets) == 51
    assert taken == list(range(50))


@pytest.mark.parametrize(
    ("given_texts", "message"),
    [
        ([], "no word in the 0 documents"),
        (["", " \n", "!?"], "no word in the 3 documents"),
        ("one text", "put it into a list"),
        (["ok", None], "must be a str, got NoneType at place 1"),
        (["ok", 3.5], "got float"),
    ],
)
def test_unusable_texts_are_explained(given_texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Corpus.from_texts(given_texts)


def test_only_stop_words_are_explained() -> None:
    with pytest.raises(InputError, match="2 are stop words"):
        Corpus.from_texts(["the of", "of"], rules=VocabularyRules(stop_words=["the", "of"]))


@pytest.mark.parametrize("bad", [(0, 1), (2, 1)])
def test_a_senseless_ngram_range_is_refused(bad: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="ngram_range"):
        Corpus.from_texts(["a"], ngram_range=bad)


@pytest.mark.parametrize("tokens", [["a\nb"], [""], ["ok", "\n"], "a string"])
def test_a_tokenizer_that_breaks_its_promise_is_refused(tokens: list[str]) -> None:
    with pytest.raises(InputError, match="tokenizer must return"):
        Corpus.from_texts(["text"], tokenizer=lambda text: tokens)


def test_lone_surrogates_are_replaced_and_counted() -> None:
    with pytest.warns(WGCNWarning, match="1 texts"):
        corpus = Corpus.from_texts(["good \ud800 word", "fine"])
    assert documents(corpus) == [["good", "word"], ["fine"]]


def test_docs_corpus_counts_equal_a_counter(docs: DocsCorpus) -> None:
    assert docs.texts is not None
    corpus = Corpus.from_texts(docs.texts)
    expected = Counter(token for text in docs.texts for token in words(text))
    assert dict(zip(corpus.vocabulary.words, corpus.vocabulary.counts.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    ("name", "n_words", "mean_length"),
    [
        ("20ng", 42757, 221.26),
        ("mr", 18764, 20.39),
        ("ohsumed", 14157, 135.82),
        ("r52", 8892, 69.82),
        ("r8", 7688, 65.72),
    ],
)
def test_statistics_of_the_paper_come_out(data_folder: Path, name: str, n_words: int, mean_length: float) -> None:
    stop_words = (data_folder / "stopwords_english.txt").read_text().split()
    rules = None if name == "mr" else VocabularyRules(min_count=5, stop_words=stop_words)
    files = [data_folder / "text" / name / f"{part}.tsv.gz" for part in ("train", "test")]
    texts = chain.from_iterable(read_texts(path, text_column=1, header=False) for path in files)
    corpus = Corpus.from_texts(texts, tokenizer="text_gcn", rules=rules)
    assert len(corpus.vocabulary) == n_words
    # 20ng comes out as 221.255, which the paper rounds up.
    assert round(corpus.lengths.mean(), 3) == pytest.approx(mean_length, abs=0.00501)


def test_of_very_many_ngrams_the_more_frequent_ones_are_kept() -> None:
    texts = ["a b c d", "a b c", "a b", "x y", "x y"]
    rules = VocabularyRules(max_ngrams=2)
    words = Corpus.from_texts(texts, ngram_range=(1, 2), rules=rules).vocabulary
    assert [word for word in words if " " in word] == ["a b"]  # "b c" and "x y" occur equally often, so neither is kept
    everything = Corpus.from_texts(texts, ngram_range=(1, 2), rules=VocabularyRules(max_ngrams=4)).vocabulary
    assert sorted(word for word in everything if " " in word) == ["a b", "b c", "c d", "x y"]
