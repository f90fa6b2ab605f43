"""Options that several commands share.

A command that has a parameter `reading`, `labels` or `resources` gets all options of that group, and their values as
one dictionary, if it is decorated with `grouped`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wgcn.base.errors import InputError, interrupts_raised
from wgcn.cli.console import say

_ENDINGS = "txt, csv, tsv, jsonl, json, parquet or xlsx"
TextFiles = Annotated[list[Path], typer.Argument(metavar="FILE...", help=f"Texts: {_ENDINGS}, most also gzipped.")]
ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a model that 'wgcn fit' wrote.")]
LabelColumn = Annotated[str, typer.Option(metavar="NAME", help="Column with the label: name, or position from 0.")]
Missing = Annotated[
    str | None, typer.Option(metavar="LABELS", help="Labels that mean a missing one, separated by commas: N/A,None.")
]
TokenizerName = Annotated[
    Literal["words", "characters", "text_gcn"],
    typer.Option(metavar="NAME", help="'words', 'characters' (Chinese, Thai, …) or 'text_gcn' (as in earlier papers)."),
]
StopWords = Annotated[
    str | None, typer.Option(metavar="FILE", help="Words to ignore: a file with one per line, or 'english'.")
]
MinCount = Annotated[int | None, typer.Option(min=1, metavar="N", help="Ignore words that occur less often than this.")]
Window = Annotated[
    int, typer.Option(min=2, metavar="N", help="Words per window: those that share windows get an edge.")
]

_SEED = "Words that stand for a class: sport=game,team. Repeatable."
Seed = Annotated[list[str] | None, typer.Option(metavar="CLASS=WORDS", help=_SEED)]
SeedsFile = Annotated[
    Path | None, typer.Option("--seeds", metavar="FILE", help="File of seed words: lines 'class: word, word'.")
]

to_file = partial(typer.Option, "--output", "-o")
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")]
_Text = str | None
_file = partial(typer.Option, rich_help_panel="Reading files")
_limit = partial(typer.Option, rich_help_panel="Text that does not fit into memory")


def _reading(
    text_column: Annotated[
        _Text, _file(metavar="NAME", help="Text column: name, or position from 0. Default: text.")
    ] = None,
    header: Annotated[bool, _file("--header/--no-header", help="Whether tables begin with column names.")] = True,
    delimiter: Annotated[_Text, _file(metavar="CHAR", help="Separator of fields in .csv. Default: detected.")] = None,
    encoding: Annotated[_Text, _file(metavar="NAME", help="Such as utf-8 or cp1252. Default: detected.")] = None,
    format: Annotated[_Text, _file(metavar="NAME", help=f"{_ENDINGS}. Default: by the name.")] = None,  # noqa: A002
) -> None:
    pass


def _labels(
    label_column: LabelColumn = "label",
    label_separator: Annotated[
        _Text, typer.Option(metavar="CHAR", help="Separator between several labels of a text.")
    ] = None,
    missing: Missing = None,
) -> None:
    pass


def _resources(
    memory: Annotated[_Text, _limit(metavar="SIZE", help="Work out of core within this memory, such as 4GB.")] = None,
    scheduler: Annotated[
        _Text, _limit(metavar="ADDRESS", help="Dask cluster to use, or 'local'. Default: threads, without Dask.")
    ] = None,
    workers: Annotated[int | None, _limit(min=1, metavar="N", help="Threads or processes. Default: all cores.")] = None,
    work: Annotated[Path | None, _limit(metavar="DIR", help="Intermediate files. Default: DIR.work")] = None,
    restart: Annotated[bool, _limit("--restart", help="Discard the work of an interrupted run.")] = False,
) -> None:
    pass


Given = dict[str, Any]  # the values of the options of a group
_GROUPS: dict[str, Callable[..., None]] = {"reading": _reading, "labels": _labels, "resources": _resources}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the groups that are among its parameters."""
    own = signature(command).parameters
    groups = {name: signature(_GROUPS[name]).parameters for name in own if name in _GROUPS}

    @wraps(command)
    def run(**given: Any) -> None:
        command(**{name: {option: given.pop(option) for option in group} for name, group in groups.items()}, **given)

    options = chain.from_iterable(groups[name].values() if name in groups else [each] for name, each in own.items())
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in options]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


@contextmanager
def interrupts_told(advice: Callable[[], str | None]) -> Iterator[None]:
    """Say after Ctrl-C what has become of the work, if there is something to say."""
    try:
        with interrupts_raised():
            yield
    except KeyboardInterrupt:
        if told := advice():
            say(f"Interrupted. {told}")
        raise


def advice_to_go_on(work: Path | None) -> str | None:
    """Return how to go on with work out of core."""
    return None if work is None else f"The same command goes on from {work}. To give it up, remove that folder."


def check_output(
    path: Path | None, kind: str | None = None, *, overwrite: bool, inputs: Iterable[str | Path | None] = ()
) -> None:
    """Raise an InputError if an output that is asked for could not be written, or would replace one of the inputs.

    It is a file, a "picture", or a folder of a kind.
    """
    from wgcn.store.folder import check_target

    if path is None:
        return
    given = [each for each in inputs if each is not None]
    if kind == "picture":
        from wgcn.plots import check_picture

        check_picture(path, overwrite=overwrite, inputs=given)
    else:
        check_target(path, kind, overwrite=overwrite, inputs=given)


def read_files(paths: Iterable[Path], reading: Given) -> Iterator[str]:
    """Read the texts of files, one file after another; all files are opened and checked first."""
    from wgcn.io.read import read_texts

    return chain.from_iterable([read_texts(path, **reading) for path in paths])


def read_labelled_rows(
    path: Path, labels: Given, reading: Given, *, optional: bool = False
) -> Iterator[tuple[str, str | list[str] | None]]:
    """Read the texts of a file with their labels."""
    from wgcn.io.read import read_labelled

    how = {"label_column": labels["label_column"], "separator": labels["label_separator"], "missing": labels["missing"]}
    return read_labelled(path, optional=optional, **how, **reading)


def read_labelled_texts(
    path: Path, labels: Given, reading: Given, *, optional: bool = False
) -> tuple[list[str], list[Any]]:
    """Return the texts of a file and their labels, and say how many there are."""
    from wgcn.io.read import texts_and_labels

    texts, found = texts_and_labels(read_labelled_rows(path, labels, reading, optional=optional))
    say(f"Read {len(texts):,} texts, {sum(label is not None for label in found):,} of them labelled.")
    return texts, found


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
