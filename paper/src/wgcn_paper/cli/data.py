"""wgcn-paper data: list the data sets of the paper, and download them."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import TaskID
from rich.table import Table

from wgcn.base.errors import InputError
from wgcn.cli.console import say, steps

app = typer.Typer(help="List the data sets of the paper, and download them.", no_args_is_help=True)

out = Console(highlight=False, soft_wrap=True)

ALL = "all"
ABSENT = "not here"


@app.command("list")
def show() -> None:
    """List the data sets and the folders they are in.

    Example: wgcn-paper data list
    """
    rows = _rows()
    columns = ("name", "kind", "documents", "classes", "split", "where")
    if out.is_terminal:
        table = Table(*columns, box=None)
        for row in rows:
            table.add_row(*row)
        out.print(table)
    else:
        for row in rows:
            typer.echo("\t".join(row))
    if any(row[-1] == ABSENT for row in rows):
        say("Get a set with: wgcn-paper data prepare NAME  (or set WGCN_DATA to a folder that has it)")


def _rows() -> list[tuple[str, ...]]:
    from wgcn_paper.datasets import layout, registry

    rows: list[tuple[str, ...]] = []
    for name, known in registry.DATASETS.items():
        split = "/".join(str(n) for n in (known.train, getattr(known, "validation", None), known.test) if n is not None)
        where = ABSENT
        with suppress(InputError):
            where = str(layout.set_path(layout.find_folder(name), known))
        rows.append((name, known.kind, str(known.documents), str(known.classes), split, where))
    rows.append((registry.DOCS, "text", "", "", "", "made from the installed packages"))
    where = ABSENT
    with suppress(InputError):
        where = str(layout.find_stop_words())
    rows.append((registry.STOP_WORDS, "words", str(registry.STOP_WORDS_COUNT), "", "", where))
    return rows


@app.command()
def prepare(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names from 'wgcn-paper data list', or 'all'.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Read the files from this folder or archive (.zip, .tar.gz) instead of the network: a data folder or "
            "a checkout of the source repository.",
        ),
    ] = None,
) -> None:
    """Download data sets into the cache folder, or copy them there.

    Example: wgcn-paper data prepare r8 cora
    """
    from wgcn_paper.datasets import registry
    from wgcn_paper.datasets.prepare import prepare as put

    if ALL in names:
        names = [*registry.DATASETS, registry.STOP_WORDS]
    with steps() as progress:
        tasks: dict[str, TaskID] = {}

        def report(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file, total=None, note="")
            progress.update(tasks[file], completed=done, total=total, note=f"{done / 1e6:.1f} MB")

        prepared = put(names, source, report)
    for name, new in prepared.items():
        say(f"'{name}' is ready." if new else f"'{name}' was there already.")
