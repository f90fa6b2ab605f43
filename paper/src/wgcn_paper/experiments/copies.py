"""Reports and their copies: ``paper/results/NAME.md`` is what the runs say, and ``docs/results/NAME.md`` shows it.

The part of a page between ``<!-- NAME -->`` and ``<!-- end -->`` is a copy of the report, without title and figures.
"""

from __future__ import annotations

import re
from pathlib import Path

from wgcn.base.errors import WGCNError
from wgcn_paper.experiments.quotes import Finding, Outcome
from wgcn_paper.experiments.recipes import NUMBER
from wgcn_paper.experiments.reproduce import TABLES, all_cells, report_text, table_of, write_report
from wgcn_paper.experiments.results import ResultFile, write_if_changed

__all__ = ["check_copies"]

_MADE_FROM_DATA = "datasets"  # sizes of the data sets: no run has them


def check_copies(root: Path, outcome: Outcome, *, fix: bool = False) -> None:
    """Make every report anew from the runs, compare it with the committed one and with its page, and add what is wrong.

    With `fix`, reports and pages that differ are written.
    """
    results = root / "paper" / "results"
    for name in TABLES:
        page = root / "docs" / "results" / f"{name}.md"
        if not page.is_file():
            continue
        try:
            report = _made(name, results, fix)
        except (WGCNError, OSError) as error:
            outcome.findings.append(Finding(f"paper/results/{name}.md", 1, f"cannot be made: {error}"))
            continue
        text = page.read_text(encoding="utf-8")
        place = re.search(rf"<!-- {name} -->\n.*?<!-- end -->", text, re.S)
        if place is None:
            outcome.findings.append(Finding(f"docs/results/{name}.md", 1, f"has no part {name}"))
            continue
        whole = text[: place.start()] + _part(name, report) + text[place.end() :]
        _compare(results / f"{name}.md", f"paper/results/{name}.md", report, report, outcome, fix=fix)
        _compare(page, f"docs/results/{name}.md", report, whole, outcome, fix=fix)


def _made(name: str, results: Path, fix: bool) -> str:
    """Return the report of a table, made from its runs; with `fix` it is also written, with its figures."""
    if name == _MADE_FROM_DATA:
        return (results / f"{name}.md").read_text(encoding="utf-8")
    table = table_of(name)
    runs = ResultFile(results, name, reuse=False).runs(all_cells(table)) if table.rows else []
    if fix:
        return write_report(table, runs, results).read_text(encoding="utf-8")
    return report_text(table, runs, results)


def _part(name: str, report: str) -> str:
    """Return a report as its page shows it."""
    body = report.partition("\n")[2]
    body = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n", "", body, flags=re.M)
    body = re.sub(r"\]\(([a-z-]+\.json)\)", r"](../../paper/results/\1)", body)
    return f"<!-- {name} -->\n\n{body.strip()}\n\n<!-- end -->"


def _compare(path: Path, name: str, report: str, wanted: str, outcome: Outcome, *, fix: bool) -> None:
    """Compare the tables of a file with those of a report, and the whole of it if they are the same."""
    found = path.read_text(encoding="utf-8") if path.is_file() else ""
    outcome.n_figures += len(re.findall(NUMBER, "\n".join(_rows(report))))
    if found == wanted:
        return
    if fix:
        write_if_changed(path, wanted)
        outcome.rewritten.append(name)
        return
    lines, known = found.splitlines() or [""], set(wanted.splitlines())
    other = next((i for i, line in enumerate(lines) if line not in known), 0)
    outcome.findings.append(
        Finding(name, other + 1, f"is not what the runs say\n    page: {lines[other].strip()[:400]}")
    )


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]
