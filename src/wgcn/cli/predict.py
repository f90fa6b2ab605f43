"""wgcn predict: labels for texts, streamed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wgcn.cli.console import say
from wgcn.cli.options import Header, ModelFolder, TextColumn

if TYPE_CHECKING:
    import numpy.typing as npt

    from wgcn.inference.model import TextModel

__all__ = ["predict"]


def predict(
    folder: ModelFolder,
    texts: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Texts to classify; - or nothing: standard input, one a line.")
    ] = "-",
    proba: Annotated[
        bool, typer.Option("--proba", help="Also print the probability of every class, tab-separated with a header.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file, whole or not at all.")
    ] = None,
    text_column: TextColumn = None,
    header: Header = True,
) -> None:
    """Classify texts, however many: they are read and answered in batches.

    Prints a label a text; several labels are separated by a comma. Example: wgcn predict my-model new.csv --proba
    """
    from wgcn.inference.folder import check_target
    from wgcn.inference.model import TextModel
    from wgcn.text.encode import in_batches
    from wgcn.text.read import read_texts

    if output is not None:
        check_target(output)
    model = TextModel.load(folder)
    source = _standard_input() if texts == "-" else read_texts(texts, text_column=text_column, header=header)
    # Somebody who types wants an answer after every line.
    size = 1 if texts == "-" and sys.stdin.isatty() else 1 << 20
    n_tokens = n_unknown = n_texts = n_empty = 0
    classes = [str(name) for name in model.classes.tolist()]
    with _destination(output) as write:
        if proba:
            write("\t".join(["label", *map(_plain, classes)]) + "\n")
        for batch in in_batches(source, size):
            terms = model.terms(batch)
            scores = model.scorer.scores(*terms[:3])
            write("".join(f"{line}\n" for line in _lines(model, scores, classes, proba)))
            n_texts += len(batch)
            n_tokens += terms.n_tokens
            n_unknown += terms.n_unknown
            n_empty += int((terms.offsets[1:] == terms.offsets[:-1]).sum())
    kinds = "words" if model.ngram_range == (1, 1) else "words and n-grams"
    unknown = f"{n_unknown / max(n_tokens, 1):.1%} of their {kinds} are unknown to the model"
    empty = f"; {n_empty:,} have no known word and got the most frequent class" if n_empty else ""
    say(f"{n_texts:,} texts. {unknown}{empty}.")


def _lines(model: TextModel, scores: npt.NDArray[Any], classes: list[str], proba: bool) -> Iterator[str]:
    if model.scorer.multilabel:
        labels = [",".join(classes[i] for i in (row > 0).nonzero()[0]) for row in scores]
    else:
        labels = [classes[i] for i in scores.argmax(axis=1)]
    if not proba:
        yield from map(_plain, labels)
        return
    for label, row in zip(labels, model.scorer.probabilities(scores).tolist(), strict=True):
        yield "\t".join([_plain(label), *map(repr, row)])


def _plain(label: str) -> str:
    """Keep a label on its line and in its column."""
    return label.replace("\t", " ").replace("\n", " ").replace("\r", " ")


def _standard_input() -> Iterator[str]:
    for line in sys.stdin.buffer:
        yield line.decode(errors="replace").rstrip("\r\n")


@contextmanager
def _destination(output: Path | None) -> Iterator[Callable[[str], object]]:
    if output is None:

        def write(text: str) -> None:
            sys.stdout.write(text)
            sys.stdout.flush()

        yield write
        return
    from wgcn.files import open_whole

    with open_whole(output) as file:
        yield lambda text: file.write(text.encode())
