"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from wgcn.errors import InputError

__all__ = [
    "Header",
    "LabelColumn",
    "LabelSeparator",
    "ModelFolder",
    "StopWords",
    "TextColumn",
    "read_class_shares",
    "read_stop_words",
]

TextColumn = Annotated[
    str | None, typer.Option(help="Column with the text: its name, or its position from 0. Default: 'text'.")
]
LabelColumn = Annotated[str, typer.Option(help="Column with the label: its name, or its position from 0.")]
LabelSeparator = Annotated[
    str | None, typer.Option(metavar="CHAR", help="A document may have several labels, separated by this.")
]
Header = Annotated[
    bool, typer.Option("--header/--no-header", help="Whether .csv and .tsv files begin with column names.")
]
StopWords = Annotated[
    str | None, typer.Option(metavar="FILE|english", help="Words to drop: a file, one a line, or 'english'.")
]
ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a model that 'wgcn fit' wrote.")]


def read_class_shares(given: list[str] | None) -> dict[str, float] | Literal["uniform"] | None:
    """Return the shares of classes that an option gives; a label may have a "=" in it."""
    if not given:
        return None
    if given == ["uniform"]:
        return "uniform"
    shares = {}
    for part in given:
        label, _, share = part.rpartition("=")
        try:
            shares[label] = float(share)
        except ValueError:
            label = ""
        if not label:
            raise InputError(
                f"--class-prior is 'uniform' or LABEL=SHARE, such as --class-prior spam=0.1, got {part!r}."
            )
    return shares


def read_stop_words(given: str | None) -> frozenset[str]:
    """Return the words that an option names."""
    if given is None:
        return frozenset()
    if given == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    try:
        return frozenset(Path(given).read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The stop words cannot be read from {given!r}: {error}. Give a file or 'english'.") from error
