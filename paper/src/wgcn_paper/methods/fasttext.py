"""fastText: a linear classifier on the mean of vectors of words and of word n-grams.

A. Joulin, E. Grave, P. Bojanowski, T. Mikolov: Bag of Tricks for Efficient Text Classification. EACL 2017.

    P(c | x) = softmax(B A x)_c

x holds 1 / n for each of the n words and word n-grams of a document, and for its end; n-grams share the rows of A by
hashing. A and B are learnt by stochastic gradient descent, with a rate that falls to 0 linearly. The paper has 10
hidden units, bigrams, 5 epochs, and a rate chosen among 0.05, 0.1, 0.25 and 0.5 on validation documents; these are the
defaults.

This is the authors' own implementation. We differ in two points: it runs in one thread, because several give another
result each time; and there are 2 million rows for n-grams, as is its default, rather than the paper's 10 million, which
were for data sets of millions of documents. A first training without the validation documents gives
the accuracy on them; a second one uses them too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from wgcn.text.tokenize import resolve_tokenizer
from wgcn_paper.methods.baseline import Baseline, Fit, array_digest, hold_out, in_fixed_order

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


# Prefix of a label in the file that fastText reads. No tokeniser gives a word with it, with white space or with "<",
# which marks the end of a document; so no text can be taken for a label or for two documents.
_LABEL = "#"


class FastTextMethod(Baseline):
    """fastText's supervised mode, on the labelled documents."""

    name = "fasttext"
    packages = ("fasttext",)
    defaults: ClassVar = {
        "tokenizer": "text_gcn",
        "min_count": 1,
        "ngrams": 2,
        "buckets": 2_000_000,
        "hidden": 10,
        "learning_rate": 0.5,
        "epochs": 5,
        "validation_fraction": 0.1,
    }

    def fit(self, task: Task) -> Fit:
        """Train twice: without a held-out share of the labelled documents, to measure the accuracy, and with it."""
        task, _ = in_fixed_order(task)
        assert task.texts is not None
        labelled = np.flatnonzero([label is not None for label in task.labels])
        self.classes, codes = np.unique(np.array(task.labels[labelled].tolist()), return_inverse=True)
        lines = self._lines([task.texts[i] for i in labelled])
        held_out = np.isin(labelled, task.validation)
        rows = ~held_out  # validation labels never train
        if not len(task.validation):
            held_out = hold_out(codes, self.settings["validation_fraction"], self.seed)
        accuracy, values = None, self._values(lines, codes, held_out)
        if held_out.any():
            seconds = self._train(lines, codes, ~held_out, values)
            accuracy = float(np.mean(self._guess([lines[i] for i in np.flatnonzero(held_out)]) == codes[held_out]))
        if accuracy is None or not np.array_equal(rows, ~held_out):
            seconds = self._train(lines, codes, rows, values)
        model, epochs = self._model, values["epoch"]
        digest = array_digest(model.get_words(), model.get_input_matrix(), model.get_output_matrix())
        return Fit(epochs, accuracy, seconds / epochs, digest)

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return one label per text."""
        assert query.texts is not None
        return self.classes[self._guess(self._lines(query.texts))]

    def _lines(self, texts: Sequence[str]) -> list[str]:
        tokenize = resolve_tokenizer(self.settings["tokenizer"])
        return [" ".join(tokenize(text)) for text in texts]

    def _values(
        self, lines: list[str], codes: npt.NDArray[np.int64], held_out: npt.NDArray[np.bool_]
    ) -> Mapping[str, Any]:
        """Return the hyper-parameters by fastText's names: here those that are given."""
        return {
            "lr": self.settings["learning_rate"],
            "epoch": self.settings["epochs"],
            "wordNgrams": self.settings["ngrams"],
            "bucket": self.settings["buckets"],
        }

    def _train(
        self,
        lines: list[str],
        codes: npt.NDArray[np.int64],
        rows: npt.NDArray[np.bool_],
        values: Mapping[str, Any],
    ) -> float:
        """Train the model, and return the time in seconds."""
        import fasttext

        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "train.txt")
            write_documents(file, lines, codes, rows)
            self._model = fasttext.train_supervised(str(file), **self._fixed(), **values)
        return time.perf_counter() - started

    def _fixed(self) -> dict[str, Any]:
        """Return what no search chooses, by fastText's names."""
        return {
            "label": _LABEL,
            "dim": self.settings["hidden"],
            "minCount": self.settings["min_count"],
            "seed": self.seed + 1,  # its random numbers are the same for 0 and 1
            "thread": 1,
            "verbose": 0,
        }

    def _guess(self, lines: list[str]) -> npt.NDArray[np.int64]:
        # The package's own `predict` breaks with numpy 2 on a single text, and only wraps this function.
        labels, _ = self._model.f.multilinePredict([line + "\n" for line in lines], 1, 0.0, "strict")
        return np.array([int(found[0].removeprefix(_LABEL)) for found in labels], np.int64)


def write_documents(file: Path, lines: list[str], codes: npt.NDArray[np.int64], rows: npt.NDArray[np.bool_]) -> None:
    """Write documents as fastText reads them."""
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{_LABEL}{codes[i]} {lines[i]}\n" for i in np.flatnonzero(rows))
