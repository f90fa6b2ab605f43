"""Options that several commands share."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wgcn.base.errors import InputError
from wgcn.cli.console import say

_ENDINGS = "txt, csv, tsv, jsonl, json, parquet or xlsx"
TextFiles = Annotated[list[Path], typer.Argument(metavar="FILE...", help=f"Texts: {_ENDINGS}, most also .gz.")]
ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a model that 'wgcn fit' wrote.")]
LabelColumn = Annotated[str, typer.Option(metavar="NAME", help="Column with the label: name, or position from 0.")]
LabelSeparator = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Texts may have several labels, separated by this.")
]
Missing = Annotated[
    str | None, typer.Option(metavar="LABELS", help="Labels that stand for none, separated by commas: N/A,None.")
]
TokenizerName = Annotated[
    Literal["words", "characters", "text_gcn"],
    typer.Option(metavar="NAME", help="'words', 'characters' (Chinese, Thai, …) or 'text_gcn' (as in earlier papers)."),
]
StopWords = Annotated[
    str | None, typer.Option(metavar="FILE", help="Words to ignore: a file with one per line, or 'english'.")
]
MinCount = Annotated[int | None, typer.Option(min=1, metavar="N", help="Ignore words that occur less often than this.")]
Window = Annotated[int, typer.Option(min=2, metavar="N", help="Words at most this far apart are joined in the graph.")]

_SEED = "Words that stand for a class: sport=game,team. Repeatable."
Seed = Annotated[list[str] | None, typer.Option(metavar="CLASS=WORDS", help=_SEED)]
SeedsFile = Annotated[Path | None, typer.Option("--seeds", metavar="FILE", help="The same: lines 'class: word, word'.")]

to_file = partial(typer.Option, "--output", "-o")
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it is there already.")]
_Text = str | None
_file = partial(typer.Option, rich_help_panel="Reading files")


def _reading(
    text_column: Annotated[
        _Text, _file(metavar="NAME", help="Text column: name, or position from 0. Default: text.")
    ] = None,
    header: Annotated[bool, _file("--header/--no-header", help="Whether tables begin with column names.")] = True,
    delimiter: Annotated[_Text, _file(metavar="CHAR", help="Between the fields of .csv. Default: found.")] = None,
    encoding: Annotated[_Text, _file(metavar="NAME", help="Such as utf-8 or cp1252. Default: found.")] = None,
    format: Annotated[_Text, _file(metavar="NAME", help=f"{_ENDINGS}. For - and odd names.")] = None,  # noqa: A002
) -> None:
    """Have the options of every command that reads files."""


_limit = partial(typer.Option, rich_help_panel="Text that does not fit into memory")


def _resources(
    memory: Annotated[_Text, _limit(metavar="SIZE", help="Work out of core in so much memory, such as 4GB.")] = None,
    scheduler: Annotated[
        _Text, _limit(metavar="ADDRESS", help="Of a Dask cluster, or 'local'. Default: threads, without Dask.")
    ] = None,
    workers: Annotated[int | None, _limit(min=1, metavar="N", help="Threads or processes. Default: all cores.")] = None,
    work: Annotated[Path | None, _limit(metavar="DIR", help="For files in between. Default: DIR.work")] = None,
    restart: Annotated[bool, _limit("--restart", help="Begin anew after an interruption.")] = False,
) -> None:
    """Have the options of every command that works out of core."""


def _grouped(shared_by: Callable[..., None], name: str, command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a function; it gets them as one dictionary of this name."""
    shared = signature(shared_by).parameters

    @wraps(command)
    def run(**given: Any) -> None:
        command(**{name: {option: given.pop(option) for option in shared}}, **given)

    own = [each for own_name, each in signature(command).parameters.items() if own_name != name]
    both = [*own, *shared.values()]
    run.__signature__ = Signature([each.replace(kind=Parameter.KEYWORD_ONLY) for each in both])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in both}
    return run


reads_files = partial(_grouped, _reading, "reading")
uses_resources = partial(_grouped, _resources, "resources")


@contextmanager
def resumable(work: Path | None) -> Iterator[None]:
    """Say how to go on after Ctrl-C, if there is a work folder."""
    try:
        yield
    except KeyboardInterrupt:
        if work is not None:
            say(f"Interrupted. The same command goes on from {work}. To give it up, remove that folder.")
        raise


def read_files(paths: Iterable[Path], reading: dict[str, Any]) -> Iterator[str]:
    """Read the texts of files, one file after another; all files are opened and checked first."""
    from wgcn.io.read import read_texts

    return chain.from_iterable([read_texts(path, **reading) for path in paths])


def read_labelled_texts(
    path: Path,
    label_column: str,
    label_separator: str | None,
    reading: dict[str, Any],
    *,
    missing: str | None = None,
    optional: bool = False,
) -> tuple[list[str], list[Any]]:
    """Return the texts of a file and their labels, and say how many there are."""
    from wgcn.io.read import read_labelled, texts_and_labels

    labels_as: dict[str, Any] = {"label_column": label_column, "separator": label_separator, "missing": missing}
    rows = read_labelled(path, **labels_as, optional=optional, **reading)
    texts, labels = texts_and_labels(rows)
    say(f"Read {len(texts):,} texts, {sum(label is not None for label in labels):,} of them labelled.")
    return texts, labels


def read_stop_words(given: str | None) -> frozenset[str]:
    """Return the words that an option names."""
    if given is None:
        return frozenset()
    if given == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    from wgcn.io.read import read_texts

    try:
        return frozenset(word for line in read_texts(given, format="txt") for word in line.split())
    except InputError as error:
        raise InputError(f"The stop words cannot be read: {error} Give a file or 'english'.") from error
