"""The compiled tokeniser is held equal to the plain one, id for id."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wgcn.text import kernels
from wgcn.text.kernels import SECRET, LookUpTable, count_words, encode_new, number_keys
from wgcn.text.ngrams import NgramTable
from wgcn.text.tokenize import WordBytes, characters, lay_out, text_gcn, words

texts = st.lists(
    st.one_of(
        st.text(),
        st.text(alphabet="ntsved'NT (,!’`aÉß\u0301\u200d हिन"),
        st.text(alphabet="a'1é\u0301\u200d\u200c\ufe0f\u20e3👍❤👩🏽🇩🇪🏴\U000e0067\U000e007f #©中ก็\ufffd"),
        st.just("Σίσυφος ΟΔΟΣ"),
    )
)

# `words` is compiled; the others give their tokens one per line.
RULES = {"words": words, "lines": text_gcn, "characters": characters}


def tokens_of(documents: list[str], rule: str) -> list[list[str]]:
    ids, offsets, distinct = encode_new(lay_out(documents, RULES[rule]))
    return [[distinct[i] for i in ids[a:b]] for a, b in itertools.pairwise(offsets)]


@pytest.mark.parametrize("rule", RULES)
@given(documents=texts)
@example(documents=["it's", "", "isn't it", "a'"])
@example(
    documents=["a❤" * 9 + "a", "❤\u200d", "❤\u200d❤", "🇩", "🇪", "👍", "🏽", "好\ud83d", "\ude00好", "\ud83d\ude00"]
)
def test_compiled_tokens_equal_the_plain_ones(rule: str, documents: list[str]) -> None:
    assert tokens_of(documents, rule) == [RULES[rule](text) for text in documents]


@pytest.mark.parametrize("rule", RULES)
@given(documents=texts, known=st.sets(st.sampled_from(["it", "n't", "'s", "é", "a", "हिन", "nt", "(", "οδος"])))
def test_look_up_gives_the_id_or_minus_one(rule: str, documents: list[str], known: set[str]) -> None:
    vocabulary = sorted(known)
    index = {word: i for i, word in enumerate(vocabulary)}
    tokens = [RULES[rule](text) for text in documents]
    expected = [[index.get(token, -1) for token in each] for each in tokens]
    unknown = [(i, token) for i, token in enumerate(itertools.chain(*tokens)) if token not in index]
    given, table = lay_out(documents, RULES[rule]), NgramTable(vocabulary, (1, 1))
    ids, offsets, places, numbers, found, n_words = LookUpTable(table).encode(given)
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)] == expected
    assert n_words == sum(map(len, tokens))
    words = found.decoded()
    new = [words[i] for i in numbers]
    assert list(zip(places.tolist(), new, strict=True)) == unknown
    assert words == list(dict.fromkeys(new))


def test_many_distinct_words_get_ids_by_first_occurrence() -> None:
    text = " ".join(f"w{i}" for i in range(10_000))
    ids, _, distinct = encode_new(lay_out([text, text], words))
    assert distinct == [f"w{i}" for i in range(10_000)]
    assert np.array_equal(ids, np.tile(np.arange(10_000), 2))


def test_every_character_is_classed_as_the_plain_tokeniser_does() -> None:
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    documents = ["".join(f"a{c}b {c} 👍{c} " for c in points[i : i + 4096]) for i in range(0, len(points), 4096)]
    assert tokens_of(documents, "words") == [words(text) for text in documents]


def test_a_word_counts_once_per_document() -> None:
    ids = np.array([0, 0, 1, 0, 2, -1, 2], np.int32)
    counts, document_counts = count_words(ids, np.array([0, 3, 3, 7]), 4)
    assert (counts.tolist(), document_counts.tolist()) == ([3, 1, 2, 0], [2, 1, 1, 0])


@given(st.lists(st.integers(-1, 2**40), max_size=60))
def test_numbers_of_keys_are_those_of_a_dictionary(keys: list[int]) -> None:
    numbers, distinct = number_keys(np.array(keys, np.int64), SECRET)
    index: dict[int, int] = {}
    expected = [-1 if key < 0 else index.setdefault(key, len(index)) for key in keys]
    assert numbers.tolist() == expected
    assert distinct.tolist() == list(index)


def test_a_table_of_keys_grows_with_them() -> None:
    keys = np.random.default_rng(0).permutation(np.arange(20_000, dtype=np.int64) * 977)
    numbers, distinct = number_keys(np.concatenate([keys, keys]), SECRET)
    assert np.array_equal(numbers, np.tile(np.arange(20_000), 2))
    assert np.array_equal(distinct, keys)


def test_words_of_all_lengths_are_told_apart() -> None:
    tokens = [*("a" * n for n in range(1, 20)), *("a" * n + "b" for n in range(1, 20)), "\0", "a\0", "\0a", "é" * 4]
    data = lay_out([" ".join(tokens * 2)], lambda text: text.split(" "))
    ids, _, distinct = encode_new(data)
    assert distinct == tokens
    assert ids.tolist() == list(range(len(tokens))) * 2
    table = LookUpTable(NgramTable(tokens[::2], (1, 1)))
    assert table.encode(data).ids.tolist() == [i // 2 if i % 2 == 0 else -1 for i in range(len(tokens))] * 2


def test_long_words_that_share_a_key_are_compared_byte_by_byte() -> None:
    data, begins, ends = WordBytes.of(["long words", "long wordy", "long word", "long wordy", "long words"])
    keys = np.full(5, kernels._LONG, np.uint64)
    ids, found = kernels._numbered(data, begins, ends, keys)
    assert (ids.tolist(), found.decoded()) == ([0, 1, 2, 1, 0], ["long words", "long wordy", "long word"])
