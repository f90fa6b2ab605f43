"""Reports on explanations, wrong labels and updates, all of one line per measure; ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import (
    NOTHING,
    by_dataset,
    markdown_table,
    metric,
    of_row,
    ratio,
    score,
    shown,
    target,
)
from wgcn_paper.experiments.table import Table

# What a line of the table shows: the metric and its scale.
_EXPLAINED = {
    "contributions + bias = score, in every bit, % of texts": ("exact", 100.0),
    "the three most decisive words lower the score more, % of texts": ("decisive", 100.0),
    "texts per draw with six known words": ("deleted", 1.0),
    "score lost without the three most decisive words": ("drop", 1.0),
    "score lost without three other words at random": ("drop_random", 1.0),
}


def explanations(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return the table, the targets and the examples."""
    found = by_dataset(table, runs)
    if not found:
        return ""
    rows = [[line, *(shown(metric(of, *what)) for of in found.values())] for line, what in _EXPLAINED.items()]
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


_RANKINGS = {
    "WGCN, `review`": "wgcn",
    "cleanlab, self-confidence": "cleanlab_confidence",
    "cleanlab, normalized margin": "cleanlab_margin",
}
_SECONDS = {"WGCN, fit": "fit_cpu", "WGCN, `review`": "review_cpu", "cleanlab with its five fits": "cleanlab_cpu"}
_MIN_SETS = 4
_MOST_TIME = 0.1  # of cleanlab's


def review(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return average precisions, seconds and their ratios."""
    found = by_dataset(table, runs)
    if not found:
        return ""
    header = [TITLES[name] for name in found]
    precisions = [[name, *(shown(metric(of, key)) for of in found.values())] for name, key in _RANKINGS.items()]
    precisions.append(["test accuracy of WGCN with the wrong labels", *(shown(score(of)) for of in found.values())])
    seconds = [[name, *(shown(metric(of, key, 1.0)) for of in found.values())] for name, key in _SECONDS.items()]
    ratios = {
        name: [ratio(of, names, "cleanlab_cpu") for of in found.values()]
        for name, names in (("`review` / cleanlab", ["review_cpu"]), ("fit and `review` / cleanlab", _FIT_AND_REVIEW))
    }
    shares = [
        [name, *(f"{each.mean:.4f}{each.mark}" if each else NOTHING for each in of)] for name, of in ratios.items()
    ]
    better = [name for name, of in found.items() if _is_better(of)]
    times = [each for each in ratios["`review` / cleanlab"] if each]
    quick = [name for name, each in zip(found, times, strict=True) if each.mean <= _MOST_TIME]
    return "\n".join(
        [
            "Average precision in percent with which the wrong labels are ranked first; mean ± standard deviation over "
            "draws of the wrong labels.\n",
            markdown_table(["", *header], precisions),
            "CPU seconds, all in one process, and as shares. cleanlab's have tf-idf, five fits of logistic regression "
            "and the ranking.\n",
            markdown_table(["", *header], [*seconds, *shares]),
            target(
                f"average precision at or above the better ranking of cleanlab on at least {_MIN_SETS} of {len(found)} "
                "sets",
                f"on {len(better)}" + (f" ({', '.join(TITLES[name] for name in better)})" if better else ""),
                len(better) >= _MIN_SETS,
            ),
            target(
                f"`review` takes at most a tenth of cleanlab's time on at least {_MIN_SETS} of {len(found)} sets",
                f"on {len(quick)}" + (f" ({', '.join(TITLES[name] for name in quick)})" if quick else ""),
                len(quick) >= _MIN_SETS,
            ),
        ]
    )


_FIT_AND_REVIEW = ["fit_cpu", "review_cpu"]


def _is_better(runs: Sequence[Run]) -> bool:
    ours, *theirs = (found.mean for key in _RANKINGS.values() if (found := metric(runs, key)) is not None)
    return ours >= max(theirs)


_UPDATED = {
    "test documents with the same label, %": ("equal", 100.0),
    "test accuracy after a fit from scratch, %": ("accuracy_fit", 100.0),
    "fit to nine tenths, CPU seconds": ("first_cpu", 1.0),
    "update with a tenth, CPU seconds": ("update_cpu", 1.0),
    "fit from scratch, CPU seconds": ("fit_cpu", 1.0),
}
_JUDGED = "20ng"  # the set on which the time is a target


def update(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return for each row equality, accuracies and seconds, with the ratio of the seconds."""
    parts = [
        "Mean ± standard deviation over draws of the documents that are added; times of a draw are of one process.\n"
    ]
    for row in table.rows:
        found = by_dataset(table, of_row(runs, row.name))
        if not found:
            continue
        rows = [[line, *(shown(metric(of, *what)) for of in found.values())] for line, what in _UPDATED.items()]
        rows.insert(1, ["test accuracy after the update, %", *(shown(score(of)) for of in found.values())])
        for kind in ("cpu", "wall"):
            ratios = (shown(ratio(of, [f"update_{kind}"], f"fit_{kind}")) for of in found.values())
            rows.append([f"update / fit from scratch, {kind}", *ratios])
        parts.append(markdown_table([row.name, *(TITLES[name] for name in found)], rows))
        parts += _targets(row.name, found.get(_JUDGED, []))
    return "\n".join(parts) if len(parts) > 1 else ""


def _targets(row: str, runs: list[Run]) -> list[str]:
    taken, equal = ratio(runs, ["update_wall"], "fit_wall"), metric(runs, "equal")
    if taken is None or equal is None:
        return []
    time = f"{row}: an update with a tenth more documents takes at most a third of a fit on {TITLES[_JUDGED]}"
    same = f"{row}: it predicts the same label for at least 99.5 % of the test documents of {TITLES[_JUDGED]}"
    return [
        target(time, f"{taken.mean:.2f}", taken.mean <= 1 / 3),
        target(same, f"{equal.mean:.2f} %", equal.mean >= 99.5),
    ]
