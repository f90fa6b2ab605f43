"""What wgcn predict does. Without options it runs without typer, which takes as long to load as all the rest."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wgcn.cli.console import say

if TYPE_CHECKING:
    import numpy.typing as npt

    from wgcn.inference.model import TextModel


def app() -> None:
    """Run `wgcn predict DIR [FILE|-]`."""
    predict_texts(*sys.argv[2:])
    sys.exit()


def predict_texts(
    folder: str | Path, texts: str = "-", *, proba: bool = False, output: Path | None = None, **columns: Any
) -> None:
    """Write a label for each text of a file, whose columns are as in `read_texts`, or of standard input."""
    from wgcn.files import open_whole
    from wgcn.inference.folder import check_target
    from wgcn.inference.model import TextModel
    from wgcn.text.encode import in_batches

    if output is not None:
        check_target(output)
    model = TextModel.load(folder)
    if texts == "-":
        source = (line.decode(errors="replace").rstrip("\r\n") for line in sys.stdin.buffer)
    else:
        from wgcn.text.read import read_texts

        source = read_texts(texts, **columns)
    size = 1 if texts == "-" and sys.stdin.isatty() else 1 << 20  # on a terminal, answer after every line
    n_tokens = n_unknown = n_texts = n_empty = 0
    classes = [str(name) for name in model.classes.tolist()]
    form = _csv_lines if output is not None and output.suffix.lower() == ".csv" else _plain_lines
    with nullcontext(sys.stdout.buffer) if output is None else open_whole(output) as file:
        if proba or form is _csv_lines:
            file.write(form([["label", *(classes if proba else [])]]).encode())
        for batch in in_batches(source, size):
            terms = model.terms(batch)
            file.write(form(_rows(model, model.scorer.scores(*terms[:3]), classes, proba)).encode())
            file.flush()
            n_texts += len(batch)
            n_tokens += terms.n_tokens
            n_unknown += terms.n_unknown
            n_empty += int((terms.offsets[1:] == terms.offsets[:-1]).sum())
    kinds = "words" if model.ngram_range == (1, 1) else "words and n-grams"
    unknown = f"{n_unknown / max(n_tokens, 1):.1%} of their {kinds} are unknown to the model"
    empty = f"; {n_empty:,} have no known word and got the most frequent class" if n_empty else ""
    say(f"{n_texts:,} text{'s' * (n_texts != 1)}. {unknown}{empty}.")


def _rows(model: TextModel, scores: npt.NDArray[Any], classes: list[str], proba: bool) -> Iterator[list[str]]:
    """Yield the label of each text, and, if asked for, the probabilities of the classes."""
    likely = model.scorer.probabilities(scores).tolist() if proba else [()] * len(scores)
    for decided, probabilities in zip(model.scorer.decide(scores), likely, strict=True):
        chosen = decided.nonzero()[0] if model.scorer.multilabel else [decided]
        yield [",".join(classes[i] for i in chosen), *map(repr, probabilities)]


def _plain_lines(rows: Iterable[list[str]]) -> str:
    """Return rows separated by tabs; each label stays on its line and in its column."""
    blank = str.maketrans("\t\n\r", "   ")
    return "".join("\t".join(value.translate(blank) for value in row) + "\n" for row in rows)


def _csv_lines(rows: Iterable[list[str]]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
