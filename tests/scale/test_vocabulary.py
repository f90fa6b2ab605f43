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
from wgcn.scale.shards import find_shards
from wgcn.scale.store import WorkFolder, open_work
from wgcn.scale.tokens import Piece, tokenise
from wgcn.scale.vocabulary import Coding, choose_vocabulary
from wgcn.scale.workers import LocalWorkers
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary, VocabularyRules

WORKERS = LocalWorkers(2)
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
def pieces_of(shards: list[list[str]], characters: int = 1 << 26) -> Iterator[tuple[WorkFolder, list[Piece]]]:
    with tempfile.TemporaryDirectory() as folder:
        for number, shard in enumerate(shards):
            Path(folder, f"{number}.txt").write_text("".join(f"{text}\n" for text in shard), encoding="utf-8")
        found = find_shards(Path(folder, f"{number}.txt") for number in range(len(shards)))
        with open_work(Path(folder, "work"), {}, [shard.identity() for shard in found]) as work:
            yield work, [piece for own in tokenise(found, work, WORKERS, "words", characters) for piece in own]


def encoded(pieces: list[Piece], work: WorkFolder, coding: Coding, vocabulary: Vocabulary) -> Corpus:
    """Put pieces together again, as a corpus in memory."""
    ids, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
    for piece in pieces:
        middle = piece.n_documents // 2
        for first, last in ((0, middle), (middle, None)):
            own_ids, own_offsets = coding.encode(work, piece, first, last)
            ids.append(own_ids)
            lengths.append(np.diff(own_offsets))
    return Corpus(np.concatenate(ids), np.cumsum(np.concatenate(lengths)), vocabulary)


@given(corpora, rules, st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3), (2, 3)]), st.sampled_from([1, 30, 1 << 26]))
def test_vocabulary_and_ids_are_those_in_memory(
    shards: list[list[str]], rules: VocabularyRules, ngram_range: tuple[int, int], characters: int
) -> None:
    everything = [text for shard in shards for text in shard]
    with pieces_of(shards, characters) as (work, pieces):
        assert sum(piece.n_documents for piece in pieces) == len(everything)
        how = {"ngram_range": ngram_range, "rules": rules}
        try:
            corpus = Corpus.from_texts(everything, **how)
        except InputError as error:
            with pytest.raises(type(error), match=f"^{re.escape(str(error))}$"):
                choose_vocabulary(pieces, work, WORKERS, **how)
            return
        vocabulary, coding = choose_vocabulary(pieces, work, WORKERS, **how, merged=40)
        assert vocabulary == corpus.vocabulary
        np.testing.assert_array_equal(vocabulary.counts, corpus.vocabulary.counts)
        np.testing.assert_array_equal(vocabulary.document_counts, corpus.vocabulary.document_counts)
        same = encoded(pieces, work, coding, vocabulary)
        np.testing.assert_array_equal(same.ids, corpus.ids)
        np.testing.assert_array_equal(same.offsets, corpus.offsets)
        keep = np.arange(len(vocabulary)) % 2 == 0
        fewer, expected = encoded(pieces, work, coding.part(keep), vocabulary), corpus.with_words(keep)
        np.testing.assert_array_equal(fewer.ids, expected.ids)
        np.testing.assert_array_equal(fewer.offsets, expected.offsets)


def test_texts_without_words_are_an_error() -> None:
    with pieces_of([["...", ""]]) as (work, pieces), pytest.raises(NoWordError):
        choose_vocabulary(pieces, work, WORKERS)
