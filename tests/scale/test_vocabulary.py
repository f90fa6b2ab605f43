"""What is counted piece by piece is what is counted in memory."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn.base.errors import InputError, NoWordError
from wgcn.scale.corpus import Coding, Piece, Span, choose_vocabulary, find_shards, tokenised
from wgcn.scale.store import open_work
from wgcn.scale.workers import Limits, LocalWorkers, Site
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary, VocabularyRules

words = st.sampled_from(["a", "b", "c", "d", "e", "é", "漢", "x's", "👍", "long" * 100, "longest" * 1000])
texts = st.lists(st.lists(words, max_size=12).map(" ".join), min_size=1, max_size=6)
corpora = st.lists(texts, min_size=1, max_size=3)
rules = st.builds(
    VocabularyRules,
    min_count=st.integers(1, 2),
    min_ngram_count=st.integers(1, 3),
    min_df=st.integers(1, 2),
    max_size=st.sampled_from([None, 5]),
    max_ngrams=st.sampled_from([None, 1, 4]),
    stop_words=st.sampled_from([(), ("a", "c")]),
)


@contextmanager
def pieces_of(shards: list[list[str]], limits: Limits | None = None) -> Iterator[tuple[Site, list[Piece]]]:
    with tempfile.TemporaryDirectory() as folder:
        for number, shard in enumerate(shards):
            Path(folder, f"{number}.txt").write_text("".join(f"{text}\n" for text in shard), encoding="utf-8")
        found = find_shards(Path(folder, f"{number}.txt") for number in range(len(shards)))
        inputs = [shard.identity() for shard in found]
        with open_work(Path(folder, "work"), {}, inputs) as work:
            site = Site(work, LocalWorkers(2), limits or Limits(), inputs)
            yield site, tokenised(found, site)


def encoded(pieces: list[Piece], site: Site, coding: Coding, vocabulary: Vocabulary) -> Corpus:
    """Put pieces together again, as a corpus in memory."""
    spans = []
    for piece in pieces:
        middle = piece.n_documents // 2
        spans += [Span(piece, 0, middle), Span(piece, middle, piece.n_documents)]
    return Corpus(*coding.encode(site.work, spans), vocabulary)


@given(corpora, rules, st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3), (2, 3)]), st.sampled_from([1, 30, 1 << 26]))
def test_vocabulary_and_ids_are_those_in_memory(
    shards: list[list[str]], rules: VocabularyRules, ngram_range: tuple[int, int], characters: int
) -> None:
    everything = [text for shard in shards for text in shard]
    with pieces_of(shards, Limits(characters=characters, merged=40)) as (site, pieces):
        assert sum(piece.n_documents for piece in pieces) == len(everything)
        how = {"ngram_range": ngram_range, "rules": rules}
        try:
            corpus = Corpus.from_texts(everything, **how)
        except InputError as error:
            with pytest.raises(type(error), match=f"^{re.escape(str(error))}$"):
                choose_vocabulary(pieces, site, **how)
            return
        vocabulary, coding = choose_vocabulary(pieces, site, **how)
        assert vocabulary == corpus.vocabulary
        np.testing.assert_array_equal(vocabulary.counts, corpus.vocabulary.counts)
        np.testing.assert_array_equal(vocabulary.document_counts, corpus.vocabulary.document_counts)
        same = encoded(pieces, site, coding, vocabulary)
        np.testing.assert_array_equal(same.ids, corpus.ids)
        np.testing.assert_array_equal(same.offsets, corpus.offsets)
        keep = np.arange(len(vocabulary)) % 2 == 0
        fewer, expected = encoded(pieces, site, coding.part(keep), vocabulary), corpus.with_words(keep)
        np.testing.assert_array_equal(fewer.ids, expected.ids)
        np.testing.assert_array_equal(fewer.offsets, expected.offsets)


def test_texts_without_words_are_an_error() -> None:
    with pieces_of([["...", ""]]) as (site, pieces), pytest.raises(NoWordError):
        choose_vocabulary(pieces, site)
