"""fastText with hyper-parameters that its own search chooses.

A. Joulin, E. Grave, P. Bojanowski, T. Mikolov: Bag of Tricks for Efficient Text Classification. EACL 2017; the search
is that of the authors' implementation since 0.9.1 (`autotuneValidationFile`).

For a fixed time the search tries rates, numbers of epochs, lengths of n-grams of words and of characters, and numbers
of rows for them, by the F1 on held-out documents. A last training with the best of them uses the held-out documents
too. The hidden units are not searched but are the paper's 10: the search may take 10 million rows, and with hundreds of
units a row the tables have tens of gigabytes.

How many settings can be tried depends on the speed of the machine, so this is the one method whose model the seed does
not determine. Its accuracy on the held-out documents is the best of many.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import WGCNError
from wgcn_paper.methods.fasttext import FastTextMethod, write_documents

# What the search chooses, by fastText's names.
_TUNED = ("lr", "epoch", "wordNgrams", "minn", "maxn", "bucket")


class FastTextAutotuneMethod(FastTextMethod):
    """fastText's supervised mode after a search of `seconds`."""

    name = "fasttext-autotune"
    defaults: ClassVar = {
        "seconds": 120,
        "tokenizer": "text_gcn",
        "min_count": 1,
        "hidden": 10,
        "validation_fraction": 0.1,
    }
    clock_patience = 20.0  # seconds until the clock of a search must have been heard of; it strikes twice a second
    attempts = 10

    def _values(
        self, lines: list[str], codes: npt.NDArray[np.int64], held_out: npt.NDArray[np.bool_]
    ) -> Mapping[str, Any]:
        """Return the hyper-parameters that are best on the held-out documents; without such, fastText's defaults."""
        if not held_out.any():
            return {"epoch": 5}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_documents(folder / "train.txt", lines, codes, ~held_out)
            write_documents(folder / "held-out.txt", lines, codes, held_out)
            # Whatever else is given would not be searched.
            given = {**self._fixed(), "autotuneDuration": self.settings["seconds"]}
            for _ in range(self.attempts):
                if _finished(folder, given, self.clock_patience):
                    found: dict[str, Any] = json.loads((folder / "found.json").read_bytes())
                    return found
        raise WGCNError(f"fastText's search was started {self.attempts} times and gave no result.")


def _finished(folder: Path, given: Mapping[str, Any], patience: float) -> bool:
    """Run a search in a process of its own, and return whether it has ended well.

    If the clock of fastText's search starts before the search itself, it stops at once, and the search never ends. That
    is rare, but not on a busy machine. The clock prints as it goes, so a silent one is noticed.
    """
    log = folder / "log.txt"
    log.unlink(missing_ok=True)
    process = multiprocessing.get_context("spawn").Process(target=_search, args=(folder, given))
    process.start()
    try:
        heard, silent_since = False, None
        while process.is_alive():
            process.join(0.2)
            if not heard and log.exists():
                silent_since = silent_since or time.monotonic()
                heard = b"Progress" in log.read_bytes()
                if not heard and time.monotonic() - silent_since > patience:
                    return False
        return process.exitcode == 0
    finally:
        process.kill()
        process.join()


def _search(folder: Path, given: Mapping[str, Any]) -> None:
    """Search, and write what was chosen to a file; in a process of its own."""
    import fasttext

    # The search prints whatever it is told.
    os.dup2(os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT), 2)
    model = fasttext.train_supervised(
        str(folder / "train.txt"), autotuneValidationFile=str(folder / "held-out.txt"), **given
    )
    (folder / "found.json").write_text(json.dumps({name: getattr(model, name) for name in _TUNED}), encoding="utf-8")
