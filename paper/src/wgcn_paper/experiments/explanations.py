"""Explanations: whether sums are exact and named words decide, with examples; ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import by_dataset, markdown_table, metric, score, shown, target
from wgcn_paper.experiments.table import Table

# What a line of the table shows: the metric and its scale.
_LINES = {
    "contributions + bias = score, in every bit, % of texts": ("exact", 100.0),
    "the three most decisive words lower the score more, % of texts": ("decisive", 100.0),
    "texts per draw with six known words": ("deleted", 1.0),
    "score lost without the three most decisive words": ("drop", 1.0),
    "score lost without three other words at random": ("drop_random", 1.0),
}


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return the table, the targets and the examples."""
    found = by_dataset(table, runs)
    if not found:
        return ""
    rows = [[line, *(shown(metric(of, *what)) for of in found.values())] for line, what in _LINES.items()]
    rows.append(["test accuracy on the texts of a draw, %", *(shown(score(of)) for of in found.values())])
    exact, decisive = ({name: metric(of, what) for name, of in found.items()} for what in ("exact", "decisive"))
    lowest = min(each.mean for each in decisive.values() if each)
    return "\n".join(
        [
            "Mean ± standard deviation over draws of the texts and of the random words. Deleting a word deletes all "
            "its occurrences, and the n-grams that it is in.\n",
            markdown_table(["", *(TITLES[name] for name in found)], rows),
            target(
                "contributions and bias sum to the score on every text",
                f"{min(min(each.values) for each in exact.values() if each):.2f} % on the worst draw",
                all(min(each.values) == 100 for each in exact.values() if each),
            ),
            target(
                "the three most decisive words matter more than three random ones on at least 95 % of the documents",
                f"{lowest:.1f} % on the worst set",
                lowest >= 95,
            ),
            "### Examples\n\nOf the first test texts of the first draw, the score of the class that is predicted, and "
            "the five terms that speak most for it.\n",
            markdown_table(["set", "score", "of which"], _examples(found)),
        ]
    )


def _examples(found: dict[str, list[Run]]) -> list[list[str]]:
    return [
        [
            TITLES[name],
            f"{each['label']}: {each['score']:+.2f}",
            f"bias {each['bias']:+.2f}, " + ", ".join(f"*{term}* {value:+.2f}" for term, value in each["terms"]),
        ]
        for name, of in found.items()
        for run in of
        for each in run.metrics["examples"]
    ]
