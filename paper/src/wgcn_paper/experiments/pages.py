"""Pages of results: ``docs/results/NAME.md`` of a checkout shows the report of a table between two comments.

The report is written between ``<!-- NAME -->`` and ``<!-- end -->``; what stands around it is written by hand. The
tables of the README are kept so too. For results in another folder than ``paper/results`` of a checkout, a report is a
file of its own there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from textwrap import fill

from wgcn.base.errors import InputError
from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.report import provenance
from wgcn_paper.experiments.results import ResultFile, write_if_changed
from wgcn_paper.experiments.search import search_report
from wgcn_paper.experiments.table import Table, load_table

# Each table and the module that reports it, with the name of the function where that is not `report`.
TABLES = {
    "datasets": "statistics",
    "accuracy": "accuracy",
    "orders": "orders",
    "sensitivity": "sensitivity",
    "efficiency": "efficiency",
    "citations": "accuracy",
    "citation-orders": "orders",
    "labels": "labels",
    "summary": "default_model:summary",
    "worth": "default_model:summary",
    "ablation": "default_model:ablation",
    "embedder": "default_model:embedder",
    "unseen": "default_model:unseen",
    "explanations": "labelling_loop:explanations",
    "seeds": "seeds",
    "suggest": "suggest",
    "review": "labelling_loop:review",
    "abstain": "abstain",
    "update": "labelling_loop:update",
    "elements": "elements",
    "readme": "front_page",
}


@dataclass(frozen=True)
class Page:
    """Where the report of a table stands: a part of a page, or a file of its own."""

    path: Path
    name: str
    is_shared: bool  # with text around the report

    @classmethod
    def of(cls, name: str, folder: Path) -> Page:
        """Return the page of a table whose runs are in a folder."""
        if folder.absolute().parts[-2:] == ("paper", "results"):
            root = folder.absolute().parents[1]
            path = root / ("README.md" if name == "readme" else f"docs/results/{name}.md")
            if path.is_file():
                return cls(path, name, True)
        return cls(folder / f"{name}.md", name, False)

    @property
    def _place(self) -> re.Match[str] | None:
        pattern = rf"(?s)(?<=<!-- {self.name} -->\n\n).*?(?=\n\n?<!-- end -->)"
        return re.search(pattern, self.path.read_text(encoding="utf-8"))

    def shown(self) -> str:
        """Return the report that stands there; nothing if there is none."""
        if not self.is_shared:
            return self.path.read_text(encoding="utf-8") if self.path.is_file() else ""
        place = self._place
        if place is None:
            raise InputError(
                f"{self.path} has no place for its table: the lines <!-- {self.name} --> and <!-- end -->."
            )
        return place[0]

    def report(self, table: Table, runs: Sequence[Run], folder: Path) -> str:
        """Return the report of a table as it stands there: title, source of the figures, and body."""
        body = reporter(self.name)[0](table, runs, folder) + search_report(table, folder)
        if table.rows:
            body = f"{provenance(f'wgcn-paper reproduce {table.name}', runs)}\n{body}"
        if not self.is_shared:
            body = f"# {table.title}\n\n{body}"
        text = "\n".join(map(_wrapped, body.split("\n")))
        if not self.is_shared:
            return text
        text = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n", "", text, flags=re.M)  # pictures are at the head of the page
        return re.sub(r"\]\(([a-z-]+\.json)\)", r"](../../paper/results/\1)", text).strip()

    def write(self, report: str) -> None:
        """Put a report there, unless it has not changed."""
        if report == self.shown():
            return
        if self.is_shared and (place := self._place):
            report = place.string[: place.start()] + report + place.string[place.end() :]
        write_if_changed(self.path, report)


def reporter(name: str) -> tuple[Callable[..., str], Callable[..., None] | None]:
    """Return the functions that report a table and draw its figures, if it has some."""
    place, _, function = TABLES[name].partition(":")
    module = import_module(f"wgcn_paper.experiments.{place}")
    return getattr(module, function or "report"), getattr(module, "draw", None)


def _wrapped(line: str) -> str:
    """Return a line of prose in lines of at most 120 characters; tables, headings and pictures stay as they are."""
    if line.startswith(("|", "#", "!", "<", " ")) or len(line) <= 120:
        return line
    return fill(line, 120, break_long_words=False, break_on_hyphens=False)


def write_report(table: Table, runs: Sequence[Run], folder: Path) -> Path:
    """Write the report of a table and its figures from its runs, unless the report has not changed."""
    page, (_, draw) = Page.of(table.name, folder), reporter(table.name)
    text = page.report(table, runs, folder)
    figures = [folder / f"{table.name}.{ending}" for ending in ("png", "svg")]
    if draw is not None and runs and (page.shown() != text or not all(path.is_file() for path in figures)):
        draw(table, runs, figures)
    page.write(text)
    return page.path


def check_pages(root: Path, *, fix: bool = False) -> list[str]:
    """Make every report of a checkout again from its committed runs; return which pages show something else.

    With `fix`, these are written.
    """
    folder = root / "paper" / "results"
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}. Give the folder of a checkout.")
    stale = [name for name in TABLES if not is_current(name, folder, fix=fix)]
    return [str(Page.of(name, folder).path) for name in stale]


def is_current(name: str, folder: Path, *, fix: bool = False) -> bool:
    """Return whether the page of a table shows what the runs in a folder say; with `fix`, write it if not."""
    table, page = load_table(name), Page.of(name, folder)
    runs = ResultFile(folder, name, reuse=False).runs(table.all_cells()) if table.rows else []
    current = page.shown() == page.report(table, runs, folder)
    if fix and not current:
        write_report(table, runs, folder)
    return current
