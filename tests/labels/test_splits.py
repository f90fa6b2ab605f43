"""Stratified splits: their sizes, what they leave of each class, and that they depend on the seed alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wgcn.labels.splits import cross_validation_parts, folds, held_out_mask, validation_rows
from wgcn.labels.targets import Targets

class_sizes = st.lists(st.integers(1, 30), min_size=1, max_size=6)
seeds = st.integers(0, 100)


def shuffled(counts: list[int], seed: int) -> np.ndarray:
    """Return the classes of documents in random order."""
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))


@given(class_sizes, st.floats(0, 0.999), seeds)
@settings(max_examples=60)
def test_about_the_share_is_held_out_and_never_the_only_document_of_a_class(
    counts: list[int], fraction: float, seed: int
) -> None:
    codes = shuffled(counts, seed)
    mask = held_out_mask(codes, fraction, np.random.RandomState(seed))
    assert mask.sum() == min(round(fraction * len(codes)), len(codes) - len(counts))
    alone = np.flatnonzero(np.array(counts) == 1)
    assert not np.isin(codes[mask], alone).any()
    assert np.array_equal(held_out_mask(codes, fraction, np.random.RandomState(seed)), mask)


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
@given(st.lists(st.integers(20, 60), min_size=1, max_size=5), seeds)
@settings(max_examples=20)
def test_each_class_gives_its_share(fraction: float, counts: list[int], seed: int) -> None:
    codes = shuffled(counts, seed)
    held_out = np.bincount(codes[held_out_mask(codes, fraction, np.random.RandomState(seed))], minlength=len(counts))
    assert np.abs(held_out - fraction * np.array(counts)).max() <= 1 + 1e-9


@pytest.mark.parametrize(
    "codes",
    [np.arange(120), np.maximum(np.arange(120) - 4, 0), np.arange(120) // 2, np.maximum(np.arange(120) - 100, 0)],
    ids=["one per class", "a class of five", "two per class", "long tail"],
)
@pytest.mark.parametrize("fraction", [0.001, 0.1])
def test_a_long_tail_keeps_a_document_of_each_class(codes: np.ndarray, fraction: float) -> None:
    held_out = held_out_mask(codes, fraction, np.random.RandomState(0))
    assert set(codes[~held_out]) == set(codes)


@given(class_sizes, st.integers(2, 6), seeds)
@settings(max_examples=60)
def test_folds_cover_every_document_of_a_common_class_once(counts: list[int], n_folds: int, seed: int) -> None:
    codes = shuffled(counts, seed)
    parts = folds(codes, n_folds, np.random.RandomState(seed))
    common = np.flatnonzero(np.array(counts)[codes] > 1)
    assert sorted(np.concatenate([np.empty(0, int), *parts]).tolist()) == common.tolist()
    assert len(parts) == (min(n_folds, max(counts)) if len(common) else 0)
    for part in parts:
        held_out = np.bincount(codes[part], minlength=len(counts))
        assert (np.array(counts) - held_out >= 1).all()
    again = folds(codes, n_folds, np.random.RandomState(seed))
    assert [part.tolist() for part in again] == [part.tolist() for part in parts]


def test_no_documents_give_no_folds() -> None:
    assert folds(np.empty(0, np.int64), 5, np.random.RandomState(0)) == []


@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), seeds)
@settings(max_examples=60)
def test_cross_validation_repeats_few_documents_and_leaves_something_of_each_class(
    counts: list[int], seed: int
) -> None:
    codes = shuffled(counts, seed)
    parts = cross_validation_parts(codes, Targets.single(codes, len(counts)), np.random.RandomState(seed))
    if max(counts) < 2:
        assert parts == []
        return
    common = np.flatnonzero(np.array(counts)[codes] > 1)
    repeats = 3 if len(common) < 100 else 1
    assert sorted(np.concatenate(parts).tolist()) == np.repeat(common, repeats).tolist()
    size = min(5, max(counts))
    assert len(parts) == repeats * size
    for i in range(repeats):
        held = [np.bincount(codes[part], minlength=len(counts)) for part in parts[i * size : (i + 1) * size]]
        assert np.ptp(held, axis=0).max() <= 1
        assert np.all(np.array(counts) - np.max(held, axis=0) >= 1)


@pytest.mark.parametrize(("n", "sizes"), [(30_000, [6000]), (5000, [1000, 1000])])
def test_of_many_documents_some_folds_are_enough(n: int, sizes: list[int]) -> None:
    codes = np.arange(n) % 2
    parts = cross_validation_parts(codes, Targets.single(codes, 2), np.random.RandomState(0))
    assert [len(part) for part in parts] == sizes


@pytest.mark.parametrize("y", [np.arange(120), np.maximum(np.arange(120) - 4, 0), np.arange(120) // 2])
@pytest.mark.parametrize("fraction", [0.1, 0.9])
def test_validation_leaves_a_document_of_each_of_many_classes(y: np.ndarray, fraction: float) -> None:
    assert set(np.delete(y, validation_rows(y, fraction, 0))) == set(y)


def test_validation_takes_its_share_of_each_class_and_never_the_last_document() -> None:
    y = np.repeat([0, 1, 2, 3, 4], [20, 12, 8, 1, 1])
    for seed in range(20):
        rows = validation_rows(y, 0.25, seed)
        assert len(set(rows)) == len(rows) == 10
        assert np.abs(np.bincount(y[rows], minlength=5) - [5, 3, 2, 0, 0]).max() <= 1
        assert not (y[rows] >= 3).any()
