"""wgcn predict: labels for texts, streamed."""

from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.answer import answer
from wgcn.cli.options import Header, ModelFolder, TextColumn

__all__ = ["predict"]


def predict(
    folder: ModelFolder,
    texts: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Texts to classify; - or nothing: standard input, one per line.")
    ] = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Also print the probability of every class.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file; .csv: with a header and commas."),
    ] = None,
    text_column: TextColumn = None,
    header: Header = True,
) -> None:
    """Classify texts, however many: they are read and answered in batches.

    Prints one label per text; several labels are separated by a comma. With --proba, columns are separated by tabs and
    have a header. Example: wgcn predict my-model new.csv --proba --output labels.csv
    """
    answer(folder, texts, proba=proba, output=output, text_column=text_column, header=header)
