"""When a model does not know, beside logistic regression: ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.pictures import panels
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import (
    NOTHING,
    by_dataset,
    draw_scores,
    markdown_table,
    metric,
    of_row,
    score,
    shown,
    target,
)
from wgcn_paper.experiments.table import Table

_SHOWN = (50, 70, 80, 90)  # percent of the texts
_COVERAGE, _WITHIN = 90.0, 2.0  # percent, and points that a coverage may differ by
_MIN_PAIRS = 15


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return risk and coverage, sets of labels, and how well texts of other sets are told apart."""
    found = by_dataset(table, runs)
    if not found:
        return ""
    header = [TITLES[name] for name in found]
    parts = ["Mean ± standard deviation over draws of the labels and of the documents that wgcn is calibrated by.\n"]
    for row in table.rows:
        own = {name: of_row(of, row.name) for name, of in found.items()}
        if any(own.values()):
            lines = [[f"{c} % of the texts", *(shown(metric(of, f"at {c}")) for of in own.values())] for c in _SHOWN]
            lines.append(["all", *(shown(score(of)) for of in own.values())])
            lines.append(["mean error over all shares (area)", *(shown(metric(of, "area")) for of in own.values())])
            head = f"**{row.name}**: accuracy on the texts that it is most certain of\n\n"
            parts.append(head + markdown_table(["", *header], lines))
    parts.append(f"![Accuracy against the share of texts that are answered]({table.name}.png)\n")
    parts += _sets(table, found)
    ours, theirs, *_ = (row.name for row in table.rows)
    for first, second in ((ours, theirs), *_few(table)):
        parts += _pairs(found, first, second)
    return "\n".join(parts)


def _few(table: Table) -> list[tuple[str, str]]:
    """Return the pairs of rows after the first two."""
    names = [row.name for row in table.rows][2:]
    return list(zip(names[::2], names[1::2], strict=False))


def _sets(table: Table, found: dict[str, list[Run]]) -> list[str]:
    rows = []
    for row in table.rows:
        own = [of_row(of, row.name) for of in found.values()]
        if any(metric(of, "covered") for of in own):
            rows.append([f"{row.name}: true label in the set, %", *(shown(metric(of, "covered")) for of in own)])
            rows.append([f"{row.name}: labels per set", *(shown(metric(of, "size", 1.0)) for of in own)])
    first = table.rows[0].name
    covered = {n: each.mean for n, of in found.items() if (each := metric(of_row(of, first), "covered")) is not None}
    if not covered:
        return []
    worst = max(covered, key=lambda name: abs(covered[name] - _COVERAGE))
    aim = f"with all labels, sets cover {_COVERAGE:.0f} ± {_WITHIN:.0f} % on every set"
    measured = f"{covered[worst]:.1f} % on the worst ({TITLES[worst]})"
    return [
        f"Sets of labels for a coverage of {_COVERAGE:.0f} %.\n",
        markdown_table(["", *(TITLES[name] for name in found)], rows),
        target(aim, measured, abs(covered[worst] - _COVERAGE) <= _WITHIN),
    ]


def _pairs(found: dict[str, list[Run]], ours: str, theirs: str) -> list[str]:
    """Return the table of all pairs of sets for two rows, and in how many of them the first is better."""
    lines, better, n_pairs = [], 0, 0
    for name, of in found.items():
        cells = [TITLES[name]]
        for other in found:
            if other == name:
                cells.append("")
                continue
            known, own, baseline = (
                metric(of_row(of, ours), f"auroc {other}"),
                metric(of_row(of, ours), f"auroc-probability {other}"),
                metric(of_row(of, theirs), f"auroc-probability {other}"),
            )
            if known is None or own is None or baseline is None:
                cells.append(NOTHING)
                continue
            n_pairs += 1
            better += known.mean > baseline.mean
            text = f"{known.mean:.1f} / {own.mean:.1f} / {baseline.mean:.1f}{known.mark or own.mark or baseline.mark}"
            cells.append(f"**{text}**" if known.mean > baseline.mean else text)
        lines.append(cells)
    if not n_pairs:
        return []
    return [
        f"AUROC in percent of telling the test texts of another set (column) from those of the model's set (row): the "
        f"out-of-scope score of *{ours}* / its highest probability / the highest probability of *{theirs}*. Bold where "
        "the first is above the last.\n",
        markdown_table(["", *(TITLES[name] for name in found)], lines),
        target(
            f"the out-of-scope score is above the highest probability of {theirs} on at least {_MIN_PAIRS} of 20 pairs",
            f"on {better} of {n_pairs}",
            better >= _MIN_PAIRS,
        ),
    ]


def draw(table: Table, runs: Sequence[Run], paths: Sequence[Path]) -> None:
    """Draw one panel per data set: accuracy on the texts that a model is most certain of, against their share."""
    found = by_dataset(table, runs)
    with panels(paths, (3.1 * len(found) + 0.6, 3.6), len(found)) as axes:
        for axis, (name, of) in zip(axes, found.items(), strict=True):
            for row, marker in zip(table.rows, "osv^", strict=False):
                points = [(c, metric(of_row(of, row.name), f"at {c}")) for c in range(10, 101, 10)]
                measured = [(c, each) for c, each in points if each is not None]
                if measured:
                    draw_scores(axis, measured, row.name, marker)
            axis.set_title(TITLES[name])
            axis.set_xlabel("texts answered (%)")
            axis.grid(alpha=0.3)
        axes[0].set_ylabel("accuracy on them (%)")
        axes[0].legend(loc="lower left", fontsize=7)
