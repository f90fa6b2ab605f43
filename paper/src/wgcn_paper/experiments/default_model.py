"""Reports on the default model, none of them a table of the paper.

Beside common alternatives (`summary`), with one hyper-parameter changed at a time (`ablation`), representations learnt
without labels beside latent semantic analysis (`embedder`), and words that training did not see (`unseen`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import Comparison, against, compare, comparison_rows, comparison_table
from wgcn_paper.experiments.published import ACCURACY, TITLES
from wgcn_paper.experiments.report import NOTHING, Groups, Score, group, markdown_table, score, scores_of
from wgcn_paper.experiments.table import Table
from wgcn_paper.protocol import Protocol

_MEANING = {
    "inductive": "All labels; nothing of the test documents is seen before prediction",
    "corpus": "All labels; the text of the test documents, without labels, is seen in training",
    "few-label": "{} of the labels; the other training texts are there without; test texts are not seen",
}


def summary(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return one table per protocol, with the published figures of the paper's model under corpus, and differences."""
    groups = group(runs)
    header = ["", *(TITLES[dataset] for dataset in table.datasets)]
    parts = []
    for protocol in table.protocols:
        scores = scores_of(table, groups, protocol)
        if not scores:
            continue
        rows = []
        for name, found in scores.items():
            cells = [found.get(dataset) for dataset in table.datasets]
            rows.append([name, *(NOTHING if cell is None else f"{cell}" for cell in cells)])
        parsed = Protocol.parse(protocol)
        if parsed.name == "corpus":
            rows += [
                [f"published: {row.published}", *(f"{ACCURACY[row.published][name][0]:.2f}" for name in table.datasets)]
                for row in table.rows
                if row.published in ACCURACY
            ]
        meaning = _MEANING[parsed.name].format(str(parsed).partition(":")[2])
        parts.append(f"### {meaning} (`{protocol}`)\n\n{markdown_table(header, rows)}")
        compared = against(groups, protocol, scores, list(scores)[:1], table.datasets)
        if compared:
            parts.append(comparison_table(header[1:], compared))
    if parts:
        parts.insert(0, "Mean ± standard deviation in percent over seeds or draws of the labels.\n")
    return "\n".join(parts)


_RETIRED = "\u2020"  # marks rows whose hyper-parameter the library no longer has


def ablation(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return one table per protocol: the accuracies of the first row, and the differences of all others from it."""
    groups = group(runs)
    retired = {row.name for row in table.rows if row.retired}
    marked = False
    parts = []
    for protocol in table.protocols:
        scores = scores_of(table, groups, protocol)
        first = table.rows[0].name
        if first not in scores:
            continue
        default = [first, *(str(scores[first].get(dataset, NOTHING)) for dataset in table.datasets)]
        changes = {}
        for name in scores:
            pairs = [[groups.get((protocol, row, dataset), ()) for row in (name, first)] for dataset in table.datasets]
            if name != first:
                shown = f"{name} {_RETIRED}" if name in retired else name
                marked = marked or name in retired
                changes[shown] = [_difference(*pair) for pair in pairs]
        legend, rows = comparison_rows(changes)
        header = ["", *(TITLES[dataset] for dataset in table.datasets)]
        note = f"{legend}\n\n" if rows else ""
        parts.append(f"### Protocol: {protocol}\n\n{note}{markdown_table(header, [default, *rows])}")
    if marked:
        parts.append(f"{_RETIRED} removed from the library in 0.2.0; runs kept\n")
    if parts:
        parts.insert(
            0,
            "Accuracy in percent of the default, and how much a change of one part of it adds or takes away.\n",
        )
    return "\n".join(parts)


def _difference(changed: Sequence[Run], default: Sequence[Run]) -> Comparison | None:
    """Compare runs with the same seeds; a change with fewer of them than the default is no figure."""
    same = {run.cell.seed for run in changed} == {run.cell.seed for run in default}
    return compare(changed, default) if same else None


_OURS = "WGCNEmbedder"
_PROBE, _NEAREST = "probe", "nearest"  # how the names of rows end


def embedder(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return a table for each protocol and head, with the differences between ours and the others."""
    groups = group(runs)
    parts = []
    for protocol in table.protocols:
        scores = scores_of(table, groups, protocol)
        for head, meaning in (
            (_PROBE, "a linear probe (logistic regression)"),
            (_NEAREST, "the share of test documents whose nearest training document has their class"),
        ):
            chosen = {name: found for name, found in scores.items() if name.endswith(f", {head}")}
            if chosen:
                parts.append(f"### {protocol}: {meaning}\n")
                parts += [_of_head(table, protocol, chosen), _differences(table, groups, protocol, head, chosen)]
    if parts:
        parts.insert(
            0,
            "Mean ± standard deviation over draws of labels, in percent; in square brackets the number of draws where "
            f"labels are drawn and there are fewer than {table.seeds}.\n",
        )
    return "\n".join(part for part in parts if part)


def _of_head(table: Table, protocol: str, scores: Mapping[str, Mapping[str, Score]]) -> str:
    wanted = table.seeds if protocol.startswith("few-label") else 1
    rows = []
    for name, found in scores.items():
        cells = [f"{found[each]}{found[each].counted(wanted)}" if each in found else NOTHING for each in table.datasets]
        rows.append([name, *cells])
    return markdown_table(["", *(TITLES[dataset] for dataset in table.datasets)], rows)


def _differences(table: Table, groups: Groups, protocol: str, head: str, names: Iterable[str]) -> str:
    ours = f"{_OURS}, {head}"
    compared = {
        f"{_OURS} \u2212 {other.removesuffix(f', {head}')}": [
            compare(*(groups.get((protocol, row, dataset), ()) for row in (ours, other))) for dataset in table.datasets
        ]
        for other in names
        if other != ours
    }
    return comparison_table([TITLES[dataset] for dataset in table.datasets], compared)


def unseen(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return two tables per protocol: accuracies, and gains over the first row, paired over the draws."""
    groups = group(runs)
    first, *others = table.rows
    parts = []
    for protocol in table.protocols:
        found = {(row, dataset): of for (under, row, dataset), of in groups.items() if under == protocol}
        if not found:
            continue
        titles = [TITLES[dataset] for dataset in table.datasets]
        sizes = ["documents per draw", *(_documents(found.get((first.name, name), ())) for name in table.datasets)]
        rows = [sizes]
        for row in table.rows:
            scores = [score(found.get((row.name, dataset), ())) for dataset in table.datasets]
            rows.append([row.name, *(str(each) if each else NOTHING for each in scores)])
        parts.append(f"### Protocol: {protocol}\n\n" + markdown_table(["accuracy, %", *titles], rows))
        gains = {
            row.name: [compare(*(found.get((each, d), ()) for each in (row.name, first.name))) for d in table.datasets]
            for row in others
        }
        parts.append(comparison_table(titles, gains, f"gain over {first.name}, points"))
    if parts:
        parts.insert(
            0,
            "Mean ± standard deviation over draws of the documents that are fitted. Only test documents with a word "
            "that these do not have are counted.\n",
        )
    return "\n".join(part for part in parts if part)


def _documents(runs: Sequence[Run]) -> str:
    return f"{mean(run.n_test for run in runs):,.0f}" if runs else NOTHING
