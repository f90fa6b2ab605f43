"""The compiled tokenisers hold to the plain ones, id for id."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wgcn.text.kernels import LookUpTable, count_documents, encode_new
from wgcn.text.tokenize import TOKENIZERS, fold

texts = st.lists(st.one_of(st.text(), st.text(alphabet="ntsved'NT (,!’`aÉß\u0301\u200d हिन"), st.just("Σίσυφος ΟΔΟΣ")))


def laid_out(documents: list[str], rule: str) -> tuple[np.ndarray, np.ndarray]:
    encoded = [(fold(text) if rule == "words" else text).encode() for text in documents]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return np.frombuffer(bytearray(b"".join(encoded)), np.uint8), offsets


@pytest.mark.parametrize("rule", ["words", "text_gcn"])
@given(documents=texts)
@example(documents=["it's", "", "isn't it", "a'"])
def test_compiled_tokens_equal_the_plain_ones(rule: str, documents: list[str]) -> None:
    ids, offsets, words = encode_new(*laid_out(documents, rule), rule)
    decoded = [word.decode() for word in words]
    got = [[decoded[i] for i in ids[a:b]] for a, b in itertools.pairwise(offsets)]
    assert got == [TOKENIZERS[rule](text) for text in documents]


@pytest.mark.parametrize("rule", ["words", "text_gcn"])
@given(documents=texts, known=st.sets(st.sampled_from(["it", "n't", "'s", "é", "a", "हिन", "nt", "(", "οδος"])))
def test_look_up_gives_the_id_or_minus_one(rule: str, documents: list[str], known: set[str]) -> None:
    vocabulary = sorted(known)
    ids, offsets = LookUpTable([word.encode() for word in vocabulary]).encode(*laid_out(documents, rule), rule)
    index = {word: i for i, word in enumerate(vocabulary)}
    expected = [[index.get(token, -1) for token in TOKENIZERS[rule](text)] for text in documents]
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)] == expected


def test_many_distinct_words_survive_the_growth_of_the_table() -> None:
    text = " ".join(f"w{i}" for i in range(50_000))
    ids, _, words = encode_new(*laid_out([text, text], "words"), "words")
    assert words == [f"w{i}".encode() for i in range(50_000)]
    assert np.array_equal(ids, np.tile(np.arange(50_000), 2))


def test_every_character_is_classed_as_the_plain_tokeniser_does() -> None:
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    documents = ["".join(f"a{c}b " for c in points[i : i + 4096]) for i in range(0, len(points), 4096)]
    ids, offsets, words = encode_new(*laid_out(documents, "words"), "words")
    decoded = [word.decode() for word in words]
    for i, text in enumerate(documents):
        assert [decoded[j] for j in ids[offsets[i] : offsets[i + 1]]] == TOKENIZERS["words"](text)


def test_a_word_counts_once_a_document() -> None:
    ids = np.array([0, 0, 1, 0, 2, 2], np.int32)
    assert count_documents(ids, np.array([0, 3, 3, 6]), 4).tolist() == [2, 1, 1, 0]
