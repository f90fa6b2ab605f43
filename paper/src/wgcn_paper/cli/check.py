"""wgcn-paper check: compare the figures in the documentation with the committed runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import say

__all__ = ["check"]


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the checkout.")] = Path(),
    fix: Annotated[bool, typer.Option("--fix", help="Write the figures of the runs into reports and pages.")] = False,
) -> None:
    """Compare every figure of the reports, README and docs with the committed runs. Needs no data sets."""
    from wgcn_paper.experiments.copies import check_copies
    from wgcn_paper.experiments.quotes import check_quotes

    outcome = check_quotes(folder, fix=fix)
    check_copies(folder, outcome, fix=fix)
    for page in outcome.rewritten:
        say(f"Rewritten: {page}. Read the sentences again: words may no longer fit the figures.")
    for finding in outcome.findings:
        print(finding)
    checked = f"checked {outcome.n_figures:,} figures on {outcome.n_pages} pages"
    if outcome.findings:
        say(f"{checked}: {len(outcome.findings)} findings. paper/results/quotes has the sentences and recipes.")
        raise typer.Exit(1)
    print(f"{checked}: all as the runs say")
