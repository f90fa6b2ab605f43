"""Ctrl-C in an experiment: status 130, and the finished runs are kept."""

import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from wgcn.base.errors import InterruptWarning
from wgcn_paper.datasets import Dataset, layout
from wgcn_paper.experiments import cells

Run = Callable[..., tuple[int, str, str]]

TEXTS = ["red wine", "white wine", "fast car", "slow car"] * 3
LABELS = ["drink", "drink", "drive", "drive"] * 3


@pytest.fixture(autouse=True)
def _heed_interrupts() -> Iterator[None]:
    """What a shell starts in the background ignores Ctrl-C, and so would these tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(*_: object, **__: object) -> None:
    """A training that Ctrl-C ends."""
    warnings.warn("interrupted", InterruptWarning, stacklevel=2)


def test_ctrl_c_in_reproduce_keeps_the_finished_runs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset("r8", tuple(TEXTS), None, np.array(LABELS), np.arange(8), np.arange(8, 12))
    (tmp_path / "data/text/r8").mkdir(parents=True)
    layout.write_text_set(tmp_path / "data/text/r8", dataset)
    monkeypatch.setenv("WGCN_DATA", str(tmp_path / "data"))
    cells._dataset.cache_clear()
    (tmp_path / "small.toml").write_text(
        'title = "Small"\ndatasets = ["r8"]\nprotocols = ["inductive"]\n[[row]]\nname = "SVC"\nmethod = "linear-svc"\n'
        '[[row]]\nname = "network"\nmethod = "wgcn"\nsettings = {stop_words = false, min_count = 1}\n'
    )
    monkeypatch.setattr("wgcn.estimators.network.WGCNNetworkClassifier.fit", interrupted)
    command = ["reproduce", "accuracy", "--settings", tmp_path / "small.toml", "-o", tmp_path / "results", "--seeds", 1]
    code, out, err = run(*command, "--device", "cpu")
    cells._dataset.cache_clear()
    assert (code, out) == (130, "")
    assert err == "Interrupted. The finished runs are saved; repeat the command to continue.\n"
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["accuracy.json"]
    assert (tmp_path / "results/accuracy.json").read_text().count('"method"') == 1
