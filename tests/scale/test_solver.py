"""The solver in coordinates of words against that in coordinates of documents."""

import io
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn.linear.solver import Problem, Solution, descend, minimize
from wgcn.scale.documents import Partition
from wgcn.scale.solver import FitPartition, ShardedProblem, ShardedState, write_scratch
from wgcn.scale.store import Outputs, WorkFolder
from wgcn.scale.workers import LocalWorkers


class Documents:
    """Random documents X with scales of their words, classes, costs and given scores."""

    def __init__(self, seed: int, n: int, v: int, k: int) -> None:
        rng = np.random.default_rng(seed)
        self.x = csr_array(rng.standard_normal((n, v)) * (rng.random((n, v)) < 0.6))
        self.squares = rng.random((v, k)) + 0.1
        self.targets = (rng.random((n, k)) < 0.4).astype(float)
        self.targets[:2] = [[0.0], [1.0]]
        self.cost = rng.random(n) * (rng.random(n) < 0.8) + (np.arange(n) < 2)
        self.given = rng.normal(0, 0.3, (v, k)), rng.normal(0, 0.1, k)

    def in_memory(self, tol: float, start: np.ndarray | None = None) -> Solution:
        def product(columns: np.ndarray):  # type: ignore[no-untyped-def]
            return lambda dual: np.asarray(self.x @ (self.squares[:, columns] * (self.x.T @ dual)))

        given = self.x @ self.given[0] + self.given[1]
        problem = Problem(product, 2 * self.targets - 1, self.cost[:, None], given)
        return minimize(problem, tol=tol, max_iter=100, start=start)

    def sharded(
        self, folder: Path, tol: float, cuts: list[int], n_jobs: int = 1, start: np.ndarray | None = None
    ) -> Solution:
        (folder / "files").mkdir(exist_ok=True)
        parts, edges = [], [0, *sorted(cuts), self.x.shape[0]]
        for number, (begin, end) in enumerate(pairwise(edges)):
            place, rows = folder / str(number), csr_array(self.x[begin:end])
            place.mkdir(exist_ok=True)
            outputs = Outputs(WorkFolder(folder), str(number))
            outputs.save("values-0", rows.data)
            outputs.save("words", rows.indices.astype(np.int32))
            outputs.save("offsets", rows.indptr.astype(np.int64))
            partition = Partition(str(number), begin, end - begin, 0, "uint8", "float64")
            parts.append(FitPartition(partition, outputs.work, str(place), self.x.shape[1]))
            parts[-1].write_labels(csr_array(self.targets[begin:end]), self.cost[begin:end])
        problem = ShardedProblem(
            lambda columns: lambda u: u * self.squares[:, columns],
            parts,
            LocalWorkers(n_jobs),
            folder,
            slice(0, self.targets.shape[1]),
            np.float64,
            self.given,
        )
        return descend(ShardedState(problem, start), tol=tol, max_iter=100)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 30),
    v=st.integers(1, 8),
    k=st.integers(1, 3),
    cuts=st.lists(st.integers(0, 30), max_size=3),
)
@settings(max_examples=25, deadline=None)
def test_iterates_are_those_of_the_solver_in_memory(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n: int, v: int, k: int, cuts: list[int]
) -> None:
    documents = Documents(seed, n, v, k)
    expected = documents.in_memory(1e-6)
    found = documents.sharded(tmp_path_factory.mktemp("fit"), 1e-6, [min(cut, n) for cut in cuts])
    assert len(found.history) == len(expected.history)
    for key in ("loss", "gap"):
        ours, theirs = ([record[key] for record in each.history] for each in (found, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(found.dual, documents.x.T @ expected.dual, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.bias, expected.bias, rtol=1e-4, atol=1e-6)


def test_a_warm_start_ends_where_a_cold_one_does(tmp_path: Path) -> None:
    documents = Documents(1, 30, 6, 2)
    cold = documents.sharded(tmp_path, 1e-8, [10])
    warm = documents.sharded(tmp_path, 1e-8, [10, 20], start=cold.dual)
    np.testing.assert_allclose(warm.dual, cold.dual, rtol=1e-3, atol=1e-5)
    assert len(warm.history) < len(cold.history)


def test_the_number_of_workers_does_not_show_in_the_bits(tmp_path: Path) -> None:
    documents, cuts = Documents(2, 30, 6, 2), [5, 9, 20]
    one, three = (documents.sharded(tmp_path, 1e-6, cuts, n_jobs) for n_jobs in (1, 3))
    assert one.dual.tobytes() == three.dual.tobytes()
    assert one.bias.tobytes() == three.bias.tobytes()


@pytest.mark.parametrize("lost", [Path.unlink, lambda path: os.truncate(path, 9)])
def test_lost_scores_are_made_again(
    lost: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = Documents(3, 30, 6, 2)
    expected = documents.sharded(tmp_path, 1e-6, [12])
    total = LocalWorkers.total

    def lose(self: LocalWorkers, *given: object) -> object:
        for path in tmp_path.glob("*/scores-*"):
            lost(path)
        return total(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalWorkers, "total", lose)
    assert documents.sharded(tmp_path, 1e-6, [12]).dual.tobytes() == expected.dual.tobytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("header", [True, False])
def test_a_full_disk_is_named(header: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "open", lambda self, mode: io.FileIO("/dev/full", "w"))
    with pytest.raises(InputError, match=r"scores cannot be written: No space left on device"):
        write_scratch(tmp_path / "scores", np.ones((3, 2)), header=header)
