"""Finding wrong labels, beside cleanlab: average precision and time; ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import NOTHING, by_dataset, markdown_table, metric, ratio, score, shown, target
from wgcn_paper.experiments.table import Table

_RANKINGS = {
    "WGCN, `review`": "wgcn",
    "cleanlab, self-confidence": "cleanlab_confidence",
    "cleanlab, normalized margin": "cleanlab_margin",
}
_SECONDS = {"WGCN, fit": "fit_cpu", "WGCN, `review`": "review_cpu", "cleanlab with its five fits": "cleanlab_cpu"}
_MIN_SETS = 4
_MOST_TIME = 0.1  # of cleanlab's


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
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
        for name, names in (("`review` / cleanlab", ["review_cpu"]), ("fit and `review` / cleanlab", _OURS))
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


_OURS = ["fit_cpu", "review_cpu"]


def _is_better(runs: Sequence[Run]) -> bool:
    ours, *theirs = (found.mean for key in _RANKINGS.values() if (found := metric(runs, key)) is not None)
    return ours >= max(theirs)
