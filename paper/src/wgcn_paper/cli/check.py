"""wgcn-paper check: compare the tables of README and docs with the committed runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import say


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the checkout.")] = Path(),
    fix: Annotated[bool, typer.Option("--fix", help="Write the tables of the runs into the pages.")] = False,
) -> None:
    """Make all tables again from the committed runs, and compare them with the pages. Needs no data sets."""
    from wgcn_paper.experiments.pages import TABLES, check_pages

    stale = check_pages(folder, fix=fix)
    for path in stale:
        say(f"{'Rewritten' if fix else 'Not what the committed runs say'}: {path}")
    if stale and not fix:
        say("Write the tables of the runs with: wgcn-paper check --fix")
        raise typer.Exit(1)
    if not stale:
        print(f"all {len(TABLES)} tables are what the committed runs say")
