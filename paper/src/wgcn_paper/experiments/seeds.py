"""Training from seed words, beside other uses of them and beside labels: ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.pictures import label_counts, panels
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import (
    NOTHING,
    Score,
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

_LEAST = {"r8": 96.0, "20ng-coarse": 90.0, "20ng": 80.0}  # what the project aims at, in percent
_LINES = {"wgcn": "-", "names": "--", "counting": ":"}  # the ways that the picture has, and their style
_MOST_LOST = 5.0  # points, with one wrong seed word per class
# What a fit tells without labels, in percent.
_KNOWN = {
    "coverage": "texts with a seed",
    "conflicts": "with seeds of several classes",
    "agreement": "agreement",
    "by_chance": "by chance",
    "kappa": "kappa",
}
_COUNTING = "counting seed words"


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return the ways to use seed words, what labels reach, and how many labels the seeds are worth."""
    found = by_dataset(table, runs)
    if not found:
        return ""
    seeds, wrong, *_ = ways = [row.name for row in table.rows if not row.settings.get("per_class")]
    header = [TITLES[name] for name in found]
    rows = [[way, *(shown(score(of_row(of, way))) for of in found.values())] for way in ways]
    parts = [
        "Test accuracy in percent; mean ± standard deviation over draws of the wrong seeds.\n",
        markdown_table(["no labels", *header], rows),
        "What a fit tells of its seeds without a label, in percent: *agreement* is the share of texts with seeds whose "
        "other words, the seeds being hidden, tell the same class; *kappa* is this between 0, by chance, and 100.\n",
        _known(found, seeds),
        "With labels instead of seeds: mean ± standard deviation over draws of the labels.\n",
    ]
    worths = []
    for row in table.rows:
        if sizes := row.settings.get("per_class"):
            curves = {name: _curve(of_row(of, row.name), sizes) for name, of in found.items()}
            lines = [[f"{n}", *(shown(curve.get(n)) for curve in curves.values())] for n in sizes]
            parts.append(markdown_table([f"{row.name}, labels per class", *header], lines))
            worths.append([row.name, *(worth(score(of_row(found[n], seeds)), curves[n]) for n in found)])
    parts += [
        "How many labels the seeds are worth: with how many per class a method reaches the accuracy of the first line "
        "of the first table, interpolated between the logarithms of the numbers.\n",
        markdown_table(["labels per class", *header], worths),
        *_targets(found, ways, wrong),
        f"![Accuracy without labels and with some]({table.name}.png)\n",
    ]
    return "\n".join(parts)


def _known(found: dict[str, list[Run]], seeds: str) -> str:
    """Return what a fit tells of its seeds without a label, and whether it warns."""
    lines = []
    for name, of in found.items():
        told = {key: metric(of_row(of, seeds), key) for key in _KNOWN}
        warned = metric(of_row(of, seeds), "warned")
        cells = (NOTHING if value is None else f"{value.mean:.1f}" for value in told.values())
        lines.append([TITLES[name], *cells, NOTHING if warned is None else "yes" if warned.mean else "no"])
    return markdown_table(["", *_KNOWN.values(), "warning"], lines)


def _curve(runs: Sequence[Run], sizes: Sequence[int]) -> dict[int, Score]:
    return {n: found for n in sizes if (found := metric(runs, str(n))) is not None}


def worth(reached: Score | None, curve: dict[int, Score]) -> str:
    """Return the number of labels with which a curve has reached an accuracy."""
    if reached is None or not curve:
        return NOTHING
    points = list(curve.items())
    if points[0][1].mean >= reached.mean:
        return f"at most {points[0][0]}"
    for (n, low), (m, high) in pairwise(points):
        if high.mean >= reached.mean:
            part = (reached.mean - low.mean) / (high.mean - low.mean)
            return f"{exp(log(n) + part * (log(m) - log(n))):.0f}"
    return f"more than {points[-1][0]}"


def _targets(found: dict[str, list[Run]], ways: Sequence[str], wrong: str) -> list[str]:
    lines = []
    for name, of in found.items():
        reached = {way: score(of_row(of, way)) for way in ways if way == ways[0] or "shares given" in way}
        means = {way: each.mean for way, each in reached.items() if each is not None}
        counted, changed = (score(of_row(of, row)) for row in (_COUNTING, wrong))
        for way, mean in means.items():
            least = max(_LEAST.get(name, 0.0), 0.0 if counted is None else counted.mean)
            lines.append(target(f"{TITLES[name]}, {way}: at least {least:.1f} %", f"{mean:.1f} %", mean >= least))
        if changed is not None and name in _LEAST and ways[0] in means:
            lost = means[ways[0]] - changed.mean
            aim = f"{TITLES[name]} at most {_MOST_LOST:.0f} points less with one wrong seed word in every class"
            lines.append(target(aim, f"{lost:.1f} points", lost <= _MOST_LOST))
    return lines


def draw(table: Table, runs: Sequence[Run], paths: Sequence[Path]) -> None:
    """Draw one panel per data set: accuracy against labels per class, and without labels as level lines."""
    found = by_dataset(table, runs)
    with panels(paths, (3.6 * len(found) + 0.6, 3.6), len(found)) as axes:
        for axis, (name, of) in zip(axes, found.items(), strict=True):
            for row, marker in zip((row for row in table.rows if row.settings.get("per_class")), "so^", strict=False):
                curve = _curve(of_row(of, row.name), row.settings["per_class"])
                draw_scores(axis, list(curve.items()), f"{row.name}, with labels", marker)
            for row in table.rows:
                style = _LINES.get(row.settings.get("way", "wgcn"))
                if style and (reached := score(of_row(of, row.name))) is not None:
                    axis.axhline(reached.mean, color="#d1495b", linestyle=style, linewidth=1.2, label=row.name)
            label_counts(axis, [1, 2, 5, 10, 20, 50, 100], TITLES[name], "labels per class")
        axes[0].set_ylabel("test accuracy (%)")
        axes[-1].legend(loc="lower right", fontsize=6)
