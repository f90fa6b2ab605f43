"""fastText with its search; what it shares with fastText is tested there."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fasttext")

from wgcn.base.errors import WGCNError
from wgcn_paper.methods import fasttext_autotune
from wgcn_paper.methods.fasttext_autotune import FastTextAutotuneMethod
from wgcn_paper.protocol import Query, Task

WORDS = ("red wine wine", "white wine and red wine", "fast car car", "slow car and fast car") * 6
TEXTS = tuple(f"{text} w{i}" for i, text in enumerate(WORDS))
LABELS = np.array(["drink", "drink", "drive", "drive"] * 6, object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
SMALL = {"hidden": 5, "seconds": 2, "validation_fraction": 0.25}


def test_the_search_chooses_on_held_out_documents_and_the_last_training_uses_all(
    capfd: pytest.CaptureFixture[str],
) -> None:
    method = FastTextAutotuneMethod(SMALL)
    fit = method.fit(TASK)
    assert fit.validation_accuracy == 1.0
    assert fit.epochs == method._model.epoch
    assert method._model.dim == 5
    assert {f"w{i}" for i in range(24)} <= set(method._model.get_words())
    assert method.predict(Query(("a red wine", "the car", ""), None, None)).tolist()[:2] == ["drink", "drive"]
    assert capfd.readouterr() == ("", "")


def test_a_search_whose_clock_is_silent_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fasttext_autotune, "_search", _silent)
    method = FastTextAutotuneMethod(SMALL)
    method.clock_patience, method.attempts = 0.1, 2
    with pytest.raises(WGCNError, match="was started 2 times and gave no result"):
        method.fit(TASK)


def _silent(folder: Path, given: object) -> None:
    (folder / "log.txt").touch()
    time.sleep(600)


def test_documents_for_validation_choose_and_do_not_train() -> None:
    method = FastTextAutotuneMethod(SMALL | {"seconds": 1})
    fit = method.fit(replace(TASK, validation=np.arange(20, 24)))
    assert fit.validation_accuracy == 1.0
    assert not {f"w{i}" for i in range(20, 24)} & set(method._model.get_words())


def test_without_held_out_documents_the_seed_decides() -> None:
    settings = SMALL | {"validation_fraction": 0.0}
    fits = [FastTextAutotuneMethod(settings | {"seconds": 10**6}, seed=seed).fit(TASK) for seed in (0, 0, 1)]
    assert [fit.validation_accuracy for fit in fits] == [None] * 3
    assert fits[0].digest == fits[1].digest != fits[2].digest
    others = {"hidden": 6, "min_count": 2, "tokenizer": "words"}
    texts = ("it's wine", *TEXTS[1:])
    for name, value in others.items():
        one, other = (
            FastTextAutotuneMethod(given).fit(replace(TASK, texts=texts))
            for given in (settings, settings | {name: value})
        )
        assert one.digest != other.digest
    assert set(FastTextAutotuneMethod.defaults) == {*others, "seconds", "validation_fraction"}
