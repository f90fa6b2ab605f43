"""What of an earlier training can be used again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn.labels.targets import places_in
from wgcn.linear.additions import Added, are_few, earlier_terms, find_texts, renumbered, warm_start
from wgcn.text.tokenize import text_digest
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting

TEXTS = st.lists(st.sampled_from("abcde"), max_size=8)


@given(TEXTS, TEXTS)
def test_texts_are_found_as_often_as_they_are_there(known: list[str], wanted: list[str]) -> None:
    found = find_texts(np.array(list(map(text_digest, known)), np.int64), wanted)
    pairs = {(i, j) for i, text in enumerate(wanted) for j, other in enumerate(known) if text == other}
    assert set(zip(found.given.tolist(), found.documents.tolist(), strict=True)) == pairs
    assert len(found.given) == len(pairs)
    assert found.new.tolist() == [i for i, text in enumerate(wanted) if text not in known]


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9)))
def test_places(earlier: list[int], now: list[int]) -> None:
    expected = [earlier.index(value) if value in earlier else -1 for value in now]
    assert places_in(np.array(earlier, int), np.array(now, int)).tolist() == expected


@given(st.lists(st.booleans(), max_size=6), st.data())
def test_documents_keep_their_places_when_they_get_labels(before: list[bool], data: st.DataObject) -> None:
    now = data.draw(st.lists(st.booleans(), min_size=len(before), max_size=len(before) + 4))
    added = Added.to(np.array(before, bool), np.array(now, bool), np.arange(2))
    earlier = [i for i, is_labelled in enumerate(before) if is_labelled] + [i for i, b in enumerate(before) if not b]
    order = [i for i, is_labelled in enumerate(now) if is_labelled] + [i for i, b in enumerate(now) if not b]
    assert added.documents.tolist() == [earlier.index(i) if i < len(before) else -1 for i in order]


def test_duals_of_two_classes_become_columns_of_three() -> None:
    dual = np.array([[0.5], [-1.0]])  # of documents 0 and 1, for the second of two classes
    start = warm_start(dual, np.array([1, 5, -1, 0]), np.array([1, -1, 0]))
    assert start.tolist() == [[-1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.0, -0.5]]
    assert Added(np.array([1, 0]), np.array([1, 0])).starts([dual], 1, binary=True)[0].tolist() == [[1.0]]


def test_held_out_scores_are_the_newest_of_documents_that_are_still_labelled() -> None:
    rows, scores = np.array([0, 2, 1]), np.arange(6.0).reshape(3, 2)
    added = Added(np.array([2, 0, -1, 3]), np.arange(2), (np.array([2]), np.array([[9.0, 9.0]])))
    found = added.held_out(rows, scores, 3, 1.0)
    assert found is not None
    assert found[0].tolist() == [1, 0, 2]
    assert found[1].tolist() == [[0.0, 1.0], [2.0, 3.0], [9.0, 9.0]]
    fewer = added.held_out(rows, scores, 3, 0.6)
    assert fewer is not None
    assert fewer[0].tolist() == [0, 2]
    assert added._replace(classes=np.array([0, 1, -1])).held_out(rows, scores, 3, 1.0) is None
    assert added._replace(scored=None).held_out(rows[:1], scores[:1], 3, 1.0) is None


def test_terms_are_weighted_as_by_the_earlier_model() -> None:
    now = Vocabulary(["c", "a", "b"]), TermWeighting(np.array([3.0, 2.0, 1.5], np.float32))
    before = Vocabulary(["a", "b"]), TermWeighting(np.array([1.0, 2.0], np.float32))
    counts, words, offsets = np.array([2, 1, 3, 5]), np.array([0, 1, 2, 0]), np.array([0, 3, 4])
    terms = csr_array((now[1].weigh(counts, words, offsets), words, offsets), (2, 3))
    expected = before[1].weigh(np.array([1, 3]), np.array([0, 1]), np.array([0, 2]))
    assert np.allclose(earlier_terms(terms, now, before).toarray(), np.vstack([expected, np.zeros(2)]))


@given(st.permutations("abcdefg"), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_a_renumbered_graph_joins_the_same_words(words: list[str], n_before: int, seed: int) -> None:
    rng, before = np.random.default_rng(seed), sorted(words[:n_before])
    weights = np.triu(rng.random((n_before, n_before)) * (rng.random((n_before, n_before)) < 0.5))
    weights = (weights + weights.T).astype(np.float32)
    found = renumbered(csr_array(weights), Vocabulary(before), Vocabulary(words))
    assert found is not None
    graph, places = found
    edged = weights.any(axis=1)
    assert [words[place] for place in places[edged]] == [word for word, has in zip(before, edged, strict=True) if has]
    assert (places[~edged] == -1).all()
    assert graph.nnz == np.count_nonzero(weights)
    assert graph.has_sorted_indices
    assert np.array_equal(graph.toarray()[np.ix_(places[edged], places[edged])], weights[np.ix_(edged, edged)])


def test_a_graph_whose_words_are_gone_is_not_renumbered() -> None:
    assert renumbered(csr_array(np.eye(2)), Vocabulary(["a", "b"]), Vocabulary(["b", "c"])) is None
    assert renumbered(csr_array(np.diag([0.0, 1.0])), Vocabulary(["a", "b"]), Vocabulary(["b", "c"])) is not None


def test_few_documents_are_a_small_share_of_many() -> None:
    assert are_few(1000, 10_000)
    assert not are_few(1300, 10_000)
    assert not are_few(1, 100)
