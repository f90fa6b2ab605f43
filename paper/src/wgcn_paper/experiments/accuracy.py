"""The paper's two tables of test accuracy, on five text sets and on two citation networks, beside its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import against, comparison_table
from wgcn_paper.experiments.pictures import panels
from wgcn_paper.experiments.published import ACCURACY, CITATIONS, TITLES
from wgcn_paper.experiments.report import Published, comparison, group, scores_of
from wgcn_paper.experiments.table import Table


@dataclass(frozen=True)
class _Kind:
    """What differs between the two tables."""

    published: Published
    digits: int
    legend: str
    meaning: Mapping[str, str]  # the sentence above the table of each protocol
    picture: str = ""


_TEXTS = _Kind(
    ACCURACY,
    2,
    "Mean ± standard deviation in percent; in round brackets the difference from the published figure of the same "
    "method, in square brackets the number of seeds where a method that has seeds has fewer than {seeds}.\n",
    {
        "corpus": "Test texts, without labels, shape vocabulary, idf and word graph, as in the paper's published code; "
        "the paper's own figures are of this kind.",
        "inductive": "Nothing of the test documents is seen before prediction. The paper's WGCN, Text-GCN and Fast-GCN "
        "saw test text, so their published figures are here for comparison only.",
    },
    "![Accuracy of all methods]({name}.png)\n",
)
_CITATIONS = _Kind(
    CITATIONS,
    1,
    "Mean ± standard deviation in percent; in brackets the difference from the published figure of the same method.\n",
    {
        "corpus": "Test documents and their citations are part of the graph, as in the paper.",
        "inductive": "Test documents are neither in the graph nor seen in any other way before prediction; then a "
        "document brings its citations, which the graph networks and *attached citations* use. No published figure is "
        "of this kind.",
    },
)


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return one table per protocol, every row below its published figure, then the differences."""
    kind, groups = _CITATIONS if table.name == "citations" else _TEXTS, group(runs)
    titles = [TITLES[dataset] for dataset in table.datasets]
    parts = []
    for protocol in table.protocols:
        scores = scores_of(table, groups, protocol)
        if scores:
            parts.append(f"### Protocol: {protocol}\n\n{kind.meaning.get(protocol, '')}\n")
            parts.append(comparison(table, scores, kind.published, kind.digits))
            compared = against(groups, protocol, scores, table.references, table.datasets)
            parts.append(comparison_table(titles, compared))
    if not parts:
        return ""
    parts = [kind.legend.format(seeds=table.seeds), *parts, kind.picture.format(name=table.name)]
    return "\n".join(part for part in parts if part)


def draw(table: Table, runs: Sequence[Run], paths: Sequence[Path]) -> None:
    """Draw one panel per text set, with one line per method and one marker per protocol."""
    if table.name == "citations":
        return
    groups = group(runs)
    drawn = {protocol: scores for protocol in table.protocols if (scores := scores_of(table, groups, protocol))}
    names = [row.name for row in table.rows if any(row.name in scores for scores in drawn.values())][::-1]
    with panels(paths, (15, 0.8 + 0.3 * len(names)), len(table.datasets)) as axes:
        for axis, dataset in zip(axes, table.datasets, strict=True):
            for (protocol, scores), marker in zip(drawn.items(), "os^", strict=False):
                found = [(i, scores[name][dataset]) for i, name in enumerate(names) if dataset in scores.get(name, {})]
                axis.errorbar(
                    [s.mean for _, s in found],
                    [i for i, _ in found],
                    xerr=[s.sd or 0 for _, s in found],
                    fmt=marker,
                    markersize=5,
                    capsize=2,
                    label=protocol,
                )
            axis.set_title(TITLES[dataset])
            axis.set_xlabel("test accuracy (%)")
            axis.set_yticks(range(len(names)), names if axis is axes[0] else [""] * len(names))
            axis.set_ylim(-0.6, len(names) - 0.4)
            axis.grid(alpha=0.3)
        axes[0].legend(fontsize=8)
