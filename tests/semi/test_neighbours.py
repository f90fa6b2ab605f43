"""The nearest documents, against all cosines in double precision."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from wgcn.semi.space import Nearest, NeighbourSearch, keep_nearest, nearest_documents, tree_parts

seeds = st.integers(0, 10_000)


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """Matrices so small take a hundred times longer on several threads of a busy machine."""
    with threadpool_limits(1, "blas"):
        yield


def topics(n: int, n_topics: int = 5, columns: int = 20, seed: int = 0) -> np.ndarray:
    """Return rows of length 1 around a few centres."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n_topics, columns))[rng.integers(0, n_topics, n)] + rng.standard_normal((n, columns))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def found(rows: np.ndarray, n_near: int, n_threads: int = 2, **how: int) -> Nearest:
    with ThreadPoolExecutor(n_threads) as pool:
        return nearest_documents(rows, n_near, pool, NeighbourSearch(**how))


def neighbour_sets(nearest: Nearest) -> list[set[int]]:
    """Return the nearest documents of each, by their own numbers."""
    sets: list[set[int]] = [set() for _ in nearest.order]
    for document, places in zip(nearest.order, nearest.places, strict=True):
        sets[document] = set(nearest.order[places[places >= 0]].tolist())
    return sets


def expected_sets(rows: np.ndarray, n_near: int) -> list[set[int]]:
    cosines = rows.astype(float) @ rows.T.astype(float)
    np.fill_diagonal(cosines, -1)
    return [{int(j) for j in np.argsort(-row)[:n_near] if row[j] > 1e-5} for row in cosines]


@pytest.mark.parametrize("block", [7, 60, 500])
@pytest.mark.parametrize("n_near", [1, 6, 100])
@given(seed=seeds)
@settings(max_examples=20)
def test_below_the_limit_they_are_the_nearest_of_all(n_near: int, block: int, seed: int) -> None:
    rows = topics(60, seed=seed)
    nearest = found(rows, n_near, part=block)
    assert neighbour_sets(nearest) == expected_sets(rows, n_near)
    assert np.array_equal(nearest.order, np.arange(60))


@given(seed=seeds)
@settings(max_examples=20)
def test_trees_of_one_part_find_the_nearest_of_all(seed: int) -> None:
    rows = topics(60, seed=seed)
    exact, trees = found(rows, 6), found(rows, 6, most_exact=59, part=60)
    assert neighbour_sets(trees) == neighbour_sets(exact)
    np.testing.assert_allclose(trees.graph().toarray(), exact.graph().toarray(), atol=1e-6)


@given(
    st.lists(st.lists(st.integers(0, 19), min_size=1, unique=True), min_size=1, max_size=5), st.integers(1, 25), seeds
)
@settings(max_examples=50)
def test_the_heap_keeps_the_nearest_of_what_it_has_seen_once_each(
    parts: list[list[int]], n_near: int, seed: int
) -> None:
    cosines = np.random.default_rng(seed).permutation(np.linspace(0.01, 1, 40)).reshape(2, 20).astype(np.float32)
    near, kept = np.full((20, n_near), -1, np.int32), np.full((20, n_near), 1e-5, np.float32)
    rows = np.array([3, 8], np.int32)
    for part in parts:
        keep_nearest(cosines[:, part], rows, np.array(part, np.int32), near, kept)
    for row, values in zip(rows, cosines, strict=True):
        seen = sorted({j for part in parts for j in part} - {int(row)}, key=lambda j: -values[j])[:n_near]
        assert sorted(near[row][near[row] >= 0].tolist()) == sorted(seen)
        assert np.array_equal(np.sort(kept[row][near[row] >= 0]), np.sort(values[seen]))


@given(n=st.integers(1, 300), seed=seeds, alike=st.booleans())
@settings(max_examples=30)
def test_each_document_is_in_one_part_and_no_part_is_large_or_small(n: int, seed: int, alike: bool) -> None:
    rows = np.full((n, 4), 0.5, np.float32) if alike else topics(n, columns=4, seed=seed)
    how = NeighbourSearch(part=20)
    parts = tree_parts(rows, np.arange(n, dtype=np.int32), np.random.default_rng(seed), how)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    assert all(min(10, n) <= len(part) <= 20 for part in parts)
    assert all((np.diff(part) > 0).all() for part in parts)


def test_trees_find_most_of_the_nearest() -> None:
    rows = topics(3000, n_topics=60, columns=30)
    exact = neighbour_sets(found(rows, 10))
    trees = neighbour_sets(found(rows, 10, most_exact=1000, part=200))
    recall = np.mean([len(a & b) / 10 for a, b in zip(exact, trees, strict=True)])
    assert recall > 0.8
    assert all(len(each) == 10 for each in trees)


@pytest.mark.parametrize("most_exact", [0, 1000])
@given(seed=seeds)
@settings(max_examples=10)
def test_the_graph_is_symmetric_and_no_document_is_its_own_neighbour(most_exact: int, seed: int) -> None:
    graph = found(topics(200, seed=seed), 5, most_exact=most_exact, part=50).graph().toarray()
    np.testing.assert_allclose(graph, graph.T, atol=1e-7)
    assert not graph.diagonal().any()
    assert np.linalg.eigvalsh(graph.astype(float)).max() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("most_exact", [0, 1000])
def test_the_bits_are_the_same_for_any_number_of_threads(most_exact: int) -> None:
    rows = topics(400)
    one, three = (found(rows, 8, n, most_exact=most_exact, part=64) for n in (1, 3))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, three, strict=True))


@pytest.mark.parametrize("most_exact", [0, 1000])
def test_documents_without_words_and_those_all_alike_are_no_trouble(most_exact: int) -> None:
    rows = np.zeros((90, 4), np.float32)
    rows[:60, 0] = 1
    nearest = found(rows, 5, most_exact=most_exact, part=20)
    sets = neighbour_sets(nearest)
    assert all(len(each) == 5 and max(each) < 60 for each in sets[:60])
    assert not any(sets[60:])
    assert np.isfinite(nearest.graph().data).all()


def test_one_document_has_no_neighbour() -> None:
    assert found(topics(1), 5).graph().toarray().tolist() == [[0]]
