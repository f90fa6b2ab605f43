"""The space of words against numpy's singular value decomposition."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from threadpoolctl import threadpool_limits

from wgcn.semi.space import WordSpace, find_space

seeds = st.integers(0, 10_000)


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """Matrices so small take a hundred times longer on several threads of a busy machine."""
    with threadpool_limits(1, "blas"):
        yield


def documents(n: int = 30, v: int = 15, seed: int = 0) -> csr_array:
    """Return random documents of length 1; every word has one, and every document has a word."""
    rng = np.random.default_rng(seed)
    dense = random_array((n, v), density=0.3, rng=rng).toarray()
    dense[np.arange(n), rng.integers(0, v, n)] += 0.5
    dense[rng.integers(0, n, v), np.arange(v)] += 0.5
    return csr_array((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))


def graph(v: int = 15, seed: int = 1) -> csr_array:
    half = random_array((v, v), density=0.3, rng=np.random.default_rng(seed)).toarray()
    return csr_array((half + half.T + np.eye(v)).astype(np.float32))


def placed(terms: csr_array, found: WordSpace) -> np.ndarray:
    return found.place(terms @ found.words)


def singular_vectors(terms: csr_array, rank: int) -> np.ndarray:
    """Return the first right singular vectors, one row a word."""
    return np.linalg.svd(terms.toarray().astype(float), full_matrices=False)[2][:rank].T


def without_common(terms: csr_array, block: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return vectors of words without the first singular direction of the documents, if that stands out."""
    values, directions = np.linalg.svd(terms @ block, full_matrices=False)[1:]
    assume(abs(values[0] ** 2 / values[1] ** 2 - 2) > 0.01)
    stands_out = values[0] ** 2 > 2 * values[1] ** 2
    return (block - np.outer(block @ directions[0], directions[0]) if stands_out else block), bool(stands_out)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("with_graph", [False, True])
@given(seed=seeds)
@settings(max_examples=20)
def test_documents_have_length_one_and_those_without_words_zero(with_graph: bool, seed: int) -> None:
    terms = documents(seed=seed)
    found = find_space(terms, graph() if with_graph else None, n_components=10)
    rows = placed(csr_array(np.vstack([terms.toarray(), np.zeros((2, 15), np.float32)])), found)
    np.testing.assert_allclose(np.linalg.norm(rows[:-2], axis=1), 1, rtol=1e-5)
    assert not rows[-2:].any()


@given(seed=seeds)
@settings(max_examples=20)
def test_a_document_has_the_same_place_however_long_it_is(seed: int) -> None:
    terms = documents(seed=seed)
    found = find_space(terms, graph(), n_components=10)
    np.testing.assert_allclose(placed(terms * np.float32(3), found), placed(terms, found), atol=1e-5)


@pytest.mark.parametrize("n_components", [2, 6, 12])
@given(seed=seeds)
@settings(max_examples=20)
def test_without_a_graph_it_is_latent_semantic_analysis(n_components: int, seed: int) -> None:
    terms = documents(v=12, seed=seed)
    found = find_space(terms, None, n_components=n_components)
    assert found.weights == (1,)
    assert found.words.shape == (12, n_components)
    expected = unit(terms @ singular_vectors(terms, n_components))
    rows = placed(terms, found)
    # The vectors themselves are known up to sign, or rotation; the angles between documents are known.
    np.testing.assert_allclose(rows @ rows.T, expected @ expected.T, atol=1e-3)


@given(seed=seeds)
@settings(max_examples=20)
def test_with_all_components_the_angles_are_those_of_the_documents(seed: int) -> None:
    terms = documents(seed=seed)
    rows = placed(terms, find_space(terms, None))
    np.testing.assert_allclose(rows @ rows.T, (terms @ terms.T).toarray(), atol=1e-4)


@pytest.mark.parametrize("weight", [0.5, 1.0, 2.0])
@given(seed=seeds)
@settings(max_examples=20)
def test_with_a_graph_the_second_half_is_what_the_neighbours_are(weight: float, seed: int) -> None:
    terms, adjacency = documents(seed=seed), graph(seed=seed + 1)
    found = find_space(terms, adjacency, n_components=12, graph_weight=weight)
    assert found.weights == (1, weight)
    own, near = np.hsplit(found.words.astype(float), 2)
    vectors = singular_vectors(terms, 6)
    np.testing.assert_allclose(own @ own.T / np.sum(own**2), vectors @ vectors.T / 6, atol=1e-4)
    through, _ = without_common(terms, adjacency @ own)
    factor = np.sum(through * near) / np.sum(through**2)
    assert factor > 0
    np.testing.assert_allclose(near, factor * through, atol=1e-4 * np.abs(near).max())
    # The halves make these documents about as long as they weigh, also in the angle between two documents.
    for half, length in ((own, 1), (near, weight)):
        assert np.linalg.norm(terms @ half, axis=1).mean() == pytest.approx(length, rel=1e-4)
    cosines = [unit(terms @ half) @ unit(terms @ half).T for half in (own, near)]
    expected = np.average(cosines, axis=0, weights=[1, weight**2])
    rows = placed(terms, found)
    np.testing.assert_allclose(rows @ rows.T, expected, atol=1e-4)


@pytest.mark.parametrize("with_graph", [False, True])
def test_a_second_call_gives_the_same_bits(with_graph: bool) -> None:
    once, twice = (find_space(documents(), graph() if with_graph else None, n_components=6) for _ in range(2))
    assert once.words.tobytes() == twice.words.tobytes()
    assert placed(documents(), once).tobytes() == placed(documents(), twice).tobytes()


@pytest.mark.parametrize("with_graph", [False, True])
def test_the_bits_are_the_same_for_any_number_of_threads(with_graph: bool) -> None:
    terms, adjacency = documents(900, 80), graph(80) if with_graph else None
    one, three = (find_space(terms, adjacency, n_components=40, n_jobs=n) for n in (1, 3))
    assert one.words.tobytes() == three.words.tobytes()


def test_documents_that_are_all_alike_span_one_column() -> None:
    terms = csr_array(np.full((9, 4), 0.5, np.float32))
    found = find_space(terms, csr_array(np.eye(4, dtype=np.float32)), n_components=6)
    assert found.words.shape == (4, 6)
    np.testing.assert_allclose(np.abs(found.words[:, 0]), 0.5, atol=1e-5)
    assert not found.words[:, 1:3].any()


def test_a_further_block_has_its_weight_in_the_angles() -> None:
    terms = documents()
    own, more = find_space(terms, None, n_components=6), np.random.default_rng(0).random((15, 4), np.float32)
    rows = placed(terms, own.joined(more, 2.0))
    cosines = [unit(terms @ words) @ unit(terms @ words).T for words in (own.words, more)]
    np.testing.assert_allclose(rows @ rows.T, np.average(cosines, axis=0, weights=[1, 4]), atol=1e-5)


def test_another_start_leads_to_the_same_angles() -> None:
    terms = documents()
    rows, others = (placed(terms, find_space(terms, None, n_components=6, random_state=seed)) for seed in (0, 1))
    np.testing.assert_allclose(rows @ rows.T, others @ others.T, atol=1e-3)


@pytest.mark.parametrize(("n", "v", "columns"), [(3, 15, 3), (30, 4, 4), (1, 15, 1), (30, 1, 1), (1, 1, 1)])
@pytest.mark.parametrize("with_graph", [False, True])
def test_fewer_documents_or_words_than_components_are_enough(n: int, v: int, columns: int, with_graph: bool) -> None:
    terms = documents(n, v)
    found = find_space(terms, graph(v) if with_graph else None)
    assert found.words.shape == (v, columns * (1 + with_graph))
    assert np.isfinite(found.words).all()
    np.testing.assert_allclose(np.linalg.norm(placed(terms, found), axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_documents_in_double_precision_have_the_same_places(dtype: type) -> None:
    terms = documents()
    found = find_space(terms.astype(dtype), graph().astype(dtype), n_components=6)
    expected = find_space(terms, graph(), n_components=6)
    np.testing.assert_allclose(placed(terms, found), placed(terms, expected), atol=1e-3)


def test_a_graph_without_edges_leaves_half_of_the_space_empty() -> None:
    terms = documents()
    found = find_space(terms, csr_array((15, 15), dtype=np.float32), n_components=12)
    own, near = np.hsplit(found.words, 2)
    assert own.any()
    assert not near.any()
    assert np.isfinite(placed(terms, found)).all()


def test_of_very_many_documents_a_part_is_taken_evenly() -> None:
    terms = documents(41)
    few = find_space(terms[np.arange(0, 41, 4)], graph(), n_components=6)
    many = find_space(terms, graph(), n_components=6, most_documents=11)
    assert many.words.tobytes() == few.words.tobytes()
    np.testing.assert_allclose(np.linalg.norm(placed(terms, many), axis=1), 1, rtol=1e-5)


def test_words_of_the_same_documents_are_near_each_other_and_so_are_neighbours() -> None:
    # Words 0 and 1 share documents, as do 2 and 3. Words 4 and 5 stand alone, but the graph ties them to 0 and 2.
    kinds = [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]]
    terms = csr_array(np.repeat(kinds, 4, axis=0).astype(np.float32))
    tied = np.eye(6, dtype=np.float32)
    tied[[0, 4, 2, 5], [4, 0, 5, 2]] = 1
    single = csr_array(np.eye(6, dtype=np.float32))
    for adjacency, columns in ((None, 4), (csr_array(tied), 8)):
        rows = placed(single, find_space(terms, adjacency, n_components=columns, graph_weight=1))
        cosines = rows @ rows.T
        assert cosines[0, 1] > 0.7
        assert abs(cosines[0, 2]) < 1e-3
        assert cosines[0, 4] == pytest.approx(0 if adjacency is None else 0.5, abs=1e-3)


@given(seed=seeds)
@settings(max_examples=20)
def test_what_documents_have_in_common_is_left_out_of_the_neighbours(seed: int) -> None:
    terms, adjacency = documents(60, seed=seed), graph(seed=seed + 1)
    own, near = np.hsplit(find_space(terms, adjacency, n_components=8).words.astype(float), 2)
    expected, stands_out = without_common(terms, adjacency @ own)
    assert stands_out
    expected *= 2 / np.linalg.norm(terms @ expected, axis=1).mean()
    np.testing.assert_allclose(near, expected, atol=1e-3)


def test_of_two_kinds_of_documents_neither_is_left_out() -> None:
    terms = csr_array(np.repeat(np.eye(2, dtype=np.float32), 4, axis=0))
    same = csr_array(np.repeat([[1, 0]], 4, axis=0).astype(np.float32))
    adjacency = csr_array(np.eye(2, dtype=np.float32))
    for rows in (terms, same):
        own, near = np.hsplit(find_space(rows, adjacency, graph_weight=2.0).words, 2)
        assert own.any()
        assert np.array_equal(near, 2 * own)
