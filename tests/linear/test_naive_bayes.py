"""Naive Bayes scales of blocks of columns are those of all columns. What they are: tests/linear/test_model.py."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from wgcn.labels.targets import Targets
from wgcn.linear.naive_bayes import NaiveBayesScales, word_counts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales_of_blocks_are_those_of_all_columns(dtype: type) -> None:
    rng = np.random.default_rng(0)
    transposed = csr_array(random_array((12, 40), density=0.3, rng=rng)).astype(dtype)
    subwords = csr_array(random_array((12, 5), density=0.4, rng=rng)).astype(dtype)
    targets, weight = Targets.single(rng.integers(0, 7, 40), 7), rng.random(40) + 0.5
    count, every = word_counts(transposed, targets, weight), slice(0, 7)
    whole = NaiveBayesScales(count, 0.5, None, subwords, [every])(every)
    blocks = [slice(0, 3), slice(3, 4), slice(4, 7)]
    scales = NaiveBayesScales(count, 0.5, None, subwords, blocks)
    for block in (*blocks, *blocks[::-1]):
        for found, expected in zip(scales(block), whole, strict=True):
            assert found is not None
            assert expected is not None
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected[:, block], rtol=1e-6 if dtype == np.float32 else 1e-12)
