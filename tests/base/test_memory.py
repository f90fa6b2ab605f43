"""What is large is cut into pieces, or refused before it is made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn.base import arrays as sizes
from wgcn.base.arrays import (
    BlockArrays,
    check_memory,
    check_table,
    column_blocks,
    labels_array,
    machine_memory,
    row_batches,
    row_blocks,
)
from wgcn.base.errors import InputError


@given(st.integers(0, 50), st.integers(0, 40), st.integers(1, 200))
def test_batches_have_every_row_once_and_a_bounded_number_of_values(n_rows: int, n_columns: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "BATCH_VALUES", most)
        batches = list(row_batches(n_rows, n_columns))
    assert [row for batch in batches for row in range(batch.start, batch.stop)] == list(range(n_rows))
    assert all((b.stop - b.start) * n_columns <= most or b.stop - b.start == 1 for b in batches)
    assert batches


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 30))
def test_blocks_have_every_row_once_and_a_bounded_number_of_entries(sizes_of_rows: list[int], most: int) -> None:
    offsets = np.cumsum([0, *sizes_of_rows])
    blocks = list(row_blocks(offsets, most))
    assert [row for first, last in blocks for row in range(first, last)] == list(range(len(sizes_of_rows)))
    assert all(offsets[last] - offsets[first] <= most or last - first == 1 for first, last in blocks)


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 300))
def test_blocks_have_every_column_once_and_are_about_equal(n_columns: int, size: int, limit: int) -> None:
    blocks = column_blocks(n_columns, size, limit)
    widths = [block.stop - block.start for block in blocks]
    assert [column for block in blocks for column in range(block.start, block.stop)] == list(range(n_columns))
    assert max(widths) * size <= limit or max(widths) == 1
    assert max(widths) - min(widths) <= 1
    whole, matrix = BlockArrays(n_columns), np.arange(2.0 * n_columns).reshape(2, n_columns)
    for block in blocks:
        whole.put(block, two=matrix[:, block], one=matrix[0, block], none=np.empty((2, 0)))
    assert np.array_equal(whole.arrays["two"], matrix)
    assert np.array_equal(whole.arrays["one"], matrix[0])
    assert whole.arrays["none"].shape == (2, 0)


def test_the_memory_of_a_container_counts(tmp_path: Path) -> None:
    limit, unlimited = tmp_path / "limit", tmp_path / "unlimited"
    limit.write_text("1000000\n")
    unlimited.write_text("max\n")
    assert machine_memory([str(unlimited), str(tmp_path / "none")]) > 1_000_000
    assert machine_memory([str(unlimited), str(limit)]) == 1_000_000


def test_too_large_a_model_is_refused_with_its_size_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "machine_memory", lambda: 16 * 10**9)
    check_memory("It", 8 * 10**9, "Do less.")
    with pytest.raises(InputError, match=r"It would take 8\.1 GB, more than half of the 16\.0 GB .* Do less\."):
        check_memory("It", 8_100_000_000, "Do less.")
    check_table(50_000, 20_000, 1000, 4)
    message = (
        r"50,000 words and 20,000 subwords by 100,000 classes would take 48\.0 GB.*min_count, ngram_range=\(1, 1\)"
    )
    with pytest.raises(InputError, match=message):
        check_table(50_000, 20_000, 100_000, 4)


def test_one_long_label_among_many_does_not_widen_all(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["b" * 1000, *(f"a{i}" for i in range(99))]
    assert labels_array(names).dtype == np.dtype("U1000")
    monkeypatch.setattr(sizes, "WIDE_BYTES", 100_000)
    assert labels_array(names).dtype == object
    assert labels_array(names).tolist() == names
    assert labels_array(names[1:]).dtype.kind == "U"
    assert labels_array([3, 1]).dtype.kind == "i"
