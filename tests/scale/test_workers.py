"""Threads and a real Dask cluster give the same results, also when a worker is lost; memory is split among them."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn.base.errors import InputError
from wgcn.scale.workers import DaskWorkers, Limits, LocalWorkers, Workers, connect, memory_bytes

ANY_PORT = {"dashboard_address": "127.0.0.1:0"}  # of the dashboard: one that is free
THREADS = [LocalWorkers(1), LocalWorkers(2), LocalWorkers(5)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Workers]:
    """Two processes; they live as long as the tests of this module."""
    pytest.importorskip("distributed", reason="needs Dask: pip install '.[scale]'")
    with connect("local", 2) as workers:
        yield workers


def scaled(item: int, factors: Any, power: int) -> Any:
    return (item * factors) ** power, item


def shown(item: int, log: list[int]) -> int:
    log.append(item)
    return item


def tree(parts: list[Any]) -> Any:
    """Add neighbours, level by level: what `total` is meant to do."""
    while len(parts) > 1:
        parts = [sum(parts[i + 1 : i + 2], start=parts[i]) for i in range(0, len(parts), 2)]
    return parts[0]


@pytest.mark.parametrize("workers", THREADS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 23])
def test_threads_add_up_in_a_fixed_order(workers: Workers, n: int) -> None:
    factors = np.random.default_rng(n).random(5)
    results = list(workers.map(scaled, range(n), factors, 3))
    assert [item for _, item in results] == list(range(n))
    total = workers.total(scaled, range(n), factors, 3)
    np.testing.assert_array_equal(total[0], tree([values for values, _ in results]))
    assert total[1] == n * (n - 1) // 2


def test_few_items_are_under_way_at_a_time() -> None:
    log: list[int] = []
    results = LocalWorkers(2).map(shown, range(1000), log)
    assert next(results) == 0
    assert len(log) <= 4
    results.close()  # type: ignore[attr-defined]
    assert len(log) <= 4


def fail(item: int) -> None:
    raise InputError(f"item {item}")


@pytest.mark.parametrize("n", [1, 23])
def test_a_cluster_gives_the_same_bits(cluster: Workers, n: int) -> None:
    factors = np.random.default_rng(n).random(5)
    assert cluster.n_workers == 2
    expected = LocalWorkers(1).total(scaled, range(n), factors, 3)
    total = cluster.total(scaled, range(n), factors, 3)
    np.testing.assert_array_equal(total[0], expected[0])
    assert total[1] == expected[1]
    assert [item for _, item in cluster.map(scaled, range(n), factors, 3)] == list(range(n))


def test_errors_of_work_are_raised(cluster: Workers) -> None:
    for workers in (cluster, LocalWorkers(2)):
        with pytest.raises(InputError, match="item 0"):
            list(workers.map(fail, range(3)))
        with pytest.raises(InputError, match="item"):
            workers.total(fail, range(3))


def deadly(item: int, folder: Path, fatal: set[int], factors: Any) -> Any:
    """Kill the process that works on one of the fatal items for the first time."""
    if item in fatal and not (folder / f"{item}").exists():
        (folder / f"{item}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * factors


@pytest.mark.parametrize("how", ["map", "total"])
def test_lost_workers_cost_time_only(cluster: Workers, how: str, tmp_path: Path) -> None:
    factors = np.random.default_rng(0).random(50_000)
    expected = getattr(LocalWorkers(1), how)(deadly, range(20), tmp_path, set(), factors)
    found = getattr(cluster, how)(deadly, range(20), tmp_path, {10}, factors)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)
    assert {path.name for path in tmp_path.iterdir()} == {"10"}


def test_shared_arguments_that_are_lost_with_the_only_worker_are_sent_again(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs Dask: pip install '.[scale]'")
    factors = np.random.default_rng(0).random(50_000)
    with connect("local", 1) as workers:
        for how, fatal in (("map", 5), ("total", 6)):
            expected = getattr(LocalWorkers(1), how)(deadly, range(12), tmp_path, set(), factors)
            found = getattr(workers, how)(deadly, range(12), tmp_path, {fatal}, factors)
            for left, right in zip(found, expected, strict=True):
                np.testing.assert_array_equal(left, right)
            assert (tmp_path / f"{fatal}").exists()


def test_a_cluster_is_found_by_its_address_and_listens_on_this_machine_alone(cluster: Workers) -> None:
    cluster.client.wait_for_workers(2)  # type: ignore[attr-defined]  # those that were killed are started again
    address = cluster.client.scheduler.address  # type: ignore[attr-defined]
    assert address.startswith("tcp://127.0.0.1:")
    with connect(address) as workers:
        assert workers.n_workers == 2
        assert list(workers.map(abs, [-1, 2])) == [1, 2]


def test_a_scheduler_that_is_not_there_is_named() -> None:
    pytest.importorskip("distributed", reason="needs Dask: pip install '.[scale]'")
    found = connect("tcp://127.0.0.1:1", timeout="1s")
    with pytest.raises(InputError, match=r"no Dask scheduler at 'tcp://127\.0\.0\.1:1'"), found:
        pass


@pytest.mark.parametrize("how", ["map", "total"])
def test_a_scheduler_that_is_lost_is_one_error(how: str) -> None:
    distributed = pytest.importorskip("distributed", reason="needs Dask: pip install '.[scale]'")
    import dask

    def lose() -> Iterator[int]:
        for item in range(50):
            if item == 10:
                cluster.close()
            yield item

    def work(workers: Workers) -> object:
        given = abs, lose()
        return list(workers.map(*given)) if how == "map" else workers.total(*given)

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}),
        distributed.LocalCluster(n_workers=1, processes=False, protocol="tcp", **ANY_PORT) as cluster,
        distributed.Client(cluster.scheduler_address) as client,
        pytest.raises(InputError, match="scheduler was lost"),
    ):
        work(DaskWorkers(client))


def test_a_cluster_without_workers_is_one_error() -> None:
    distributed = pytest.importorskip("distributed", reason="needs Dask: pip install '.[scale]'")
    with (
        distributed.LocalCluster(n_workers=0, **ANY_PORT) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(InputError, match="lost all its workers"),
    ):
        DaskWorkers(client, replaced=0.2).total(scaled, [1], np.ones(2), 1)


@pytest.mark.parametrize(
    ("given", "expected"), [("4GB", 4 * 10**9), ("512 MiB", 2**29), ("1.5gb", 15 * 10**8), ("2000000000", 2 * 10**9)]
)
def test_sizes_have_units(given: str, expected: int) -> None:
    assert memory_bytes(given) == expected


@pytest.mark.parametrize("given", ["", "GB", "4 apples", "-4GB", "4e9", "1" * 40])
def test_what_is_no_size_is_an_error(given: str) -> None:
    with pytest.raises(InputError, match="is no size"):
        memory_bytes(given)


def test_more_workers_hold_less_each() -> None:
    one, four = (Limits.of(4 * 10**9, n) for n in (1, 4))
    assert one.tokens > four.tokens
    assert one.merged > four.merged
    processes = Limits.of(4 * 10**9, 4, 4)
    assert processes.tokens < four.tokens


def test_too_little_memory_is_an_error_that_says_how_much_is_needed() -> None:
    with pytest.raises(InputError, match=r"900 MB of memory are too few: 2 workers need 1,000 MB"):
        Limits.of(9 * 10**8, 2)
