"""A small set of texts for the experiments of the labelling loop."""

import numpy as np
import pytest

from wgcn_paper.datasets import Dataset

NAMES = ("crude", "grain", "ship")
SEEDS = {
    "crude": ["oil", "barrels", "petroleum", "opec"],
    "grain": ["wheat", "crop", "corn", "harvest"],
    "ship": ["vessel", "port", "cargo", "tanker"],
}


@pytest.fixture(scope="session")
def made() -> Dataset:
    """Return texts of three classes: a seed word in every other text, words of the class, and words of none."""
    rng = np.random.default_rng(0)
    labels = np.array([NAMES[i % 3] for i in range(330)])
    texts = tuple(
        " ".join(
            [
                *(SEEDS[label][int(rng.integers(4))] for _ in range(i % 2)),
                *(f"{label}{k}" for k in rng.integers(0, 15, 4)),
                *(f"word{k}" for k in rng.integers(0, 40, 8)),
            ]
        )
        for i, label in enumerate(labels)
    )
    return Dataset("r8", texts, None, labels, np.arange(240), np.arange(240, 330))


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Put the seed words of the made-up set in the place of those of every set."""
    monkeypatch.setattr("wgcn_paper.measures.seeds.seed_words", lambda name: SEEDS)
    return SEEDS
