"""Parts of reports: means, Markdown tables, and the paragraph on how the figures were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, NamedTuple

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.table import Row, Table
from wgcn_paper.protocol import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Groups = Mapping[tuple[str, str, str], Sequence[Run]]
Published = Mapping[str, Mapping[str, tuple[float, float | None]]]


NOTHING = "\u2013"  # in a table, where there is no figure
OFF_LOCK = "\u2021"  # marks figures of runs with other package versions than those of the lock file

_MOST_COMMITS = 3  # that a report names


class Score(NamedTuple):
    """Accuracies in percent, or another measure."""

    mean: float
    sd: float | None  # None for a single run
    values: tuple[float, ...]
    off_lock: bool = False  # whether a run was made with other package versions than those of the lock file

    def __str__(self) -> str:
        return (f"{self.mean:.2f}" if self.sd is None else f"{self.mean:.2f} ± {self.sd:.2f}") + self.mark

    @property
    def mark(self) -> str:
        """What follows the figure in a table."""
        return OFF_LOCK if self.off_lock else ""

    def counted(self, wanted: int) -> str:
        """Return the number of seeds in square brackets, if it is not what was wanted."""
        return "" if len(self.values) >= wanted else f" [{len(self.values)}]"

    def beside(self, published: float | None) -> str:
        """Return mean, standard deviation and the difference from a published figure."""
        return str(self) if published is None else f"{self} ({self.mean - published:+.2f})"


def is_off_lock(runs: Iterable[Run]) -> bool:
    """Return whether a run is known to have other package versions than those of the lock file."""
    return any(run.environment.get("off_lock") for run in runs)


def score(runs: Iterable[Run]) -> Score | None:
    """Return the accuracy of runs that differ in their seeds, or None if there is none."""
    return _score((run, 100 * run.accuracy) for run in runs)


def metric(runs: Iterable[Run], name: str, scale: float = 100.0) -> Score | None:
    """Return what else runs measured, in percent unless there is another scale; None if no run has it."""
    return _score((run, scale * run.metrics[name]) for run in runs if name in run.metrics)


def ratio(runs: Iterable[Run], names: Sequence[str], to: str) -> Score | None:
    """Return the sum of some metrics of a run, divided by another."""
    return _score((run, sum(run.metrics[name] for name in names) / run.metrics[to]) for run in runs)


def _by_seed(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run.cell.seed)


def _score(figures: Iterable[tuple[Run, float]]) -> Score | None:
    found = sorted(figures, key=lambda pair: pair[0].cell.seed)
    if not found:
        return None
    values = tuple(value for _, value in found)
    spread = stdev(values) if len(values) > 1 else None
    return Score(mean(values), spread, values, is_off_lock(run for run, _ in found))


def group(runs: Iterable[Run]) -> dict[tuple[str, str, str], list[Run]]:
    """Sort runs by (protocol, variant, data set)."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.cell.protocol, run.cell.variant, run.cell.dataset), []).append(run)
    return groups


def by_dataset(table: Table, runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return the runs of each data set that has some, in the order of the table."""
    groups: dict[str, list[Run]] = {name: [] for name in table.datasets}
    for run in runs:
        groups[run.cell.dataset].append(run)
    return {name: _by_seed(found) for name, found in groups.items() if found}


def of_row(runs: Iterable[Run], row: str) -> list[Run]:
    """Return the runs of a row of a table."""
    return [run for run in runs if run.cell.variant == row]


def scores_of(table: Table, groups: Groups, protocol: str) -> dict[str, dict[str, Score]]:
    """Return the scores of all rows that have some, by row and data set."""
    scores = {}
    for row in table.rows:
        found = {dataset: score(groups.get((protocol, row.name, dataset), ())) for dataset in table.datasets}
        measured = {dataset: each for dataset, each in found.items() if each is not None}
        if measured:
            scores[row.name] = measured
    return scores


def comparison(table: Table, scores: Mapping[str, Mapping[str, Score]], published: Published, digits: int) -> str:
    """Return a table of all rows, each below its published figures."""
    rows: list[list[str]] = []
    shown = set()
    for row in table.rows:
        if row.name not in scores:
            continue
        if row.published in published and row.published not in shown:
            shown.add(row.published)
            rows.append(_published(row.published, published, table.datasets, digits))
        rows.append(_beside(row, scores[row.name], published, table))
    return markdown_table(["", *(TITLES[dataset] for dataset in table.datasets)], rows)


def _beside(row: Row, scores: Mapping[str, Score], published: Published, table: Table) -> list[str]:
    """Return a row of measured figures, each with its difference from the published one and its number of seeds."""
    wanted = table.seeds if table.has_seeds(row) else 1
    cells = [row.name]
    for dataset in table.datasets:
        found = scores.get(dataset)
        paper = published.get(row.published, {}).get(dataset, (None,))[0]
        cells.append(NOTHING if found is None else found.beside(paper) + found.counted(wanted))
    return cells


def _published(name: str, published: Published, datasets: Sequence[str], digits: int) -> list[str]:
    """Return a row of published figures."""
    cells = [f"published: {name}"]
    for dataset in datasets:
        mean, sd = published[name].get(dataset, (None, None))
        spread = "" if sd is None else f" ± {sd:.{digits}f}"
        cells.append(NOTHING if mean is None else f"{mean:.{digits}f}{spread}")
    return cells


def p_text(p: float) -> str:
    """Return a p-value as a report shows it."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def draw_scores(axis: Axes, points: Sequence[tuple[float, Score]], label: str, marker: str) -> None:
    """Draw scores against a number, with their standard deviations."""
    axis.errorbar(
        [x for x, _ in points],
        [found.mean for _, found in points],
        [found.sd or 0 for _, found in points],
        marker=marker,
        markersize=4,
        capsize=2,
        label=label,
    )


def shown(found: Score | None) -> str:
    """Return a score as a cell of a table."""
    return NOTHING if found is None else str(found)


def target(aim: str, measured: str, met: bool) -> str:
    """Return a line on a target of the project: what was measured, and whether it is met."""
    return f"Target: {aim}. Measured: {measured}, {'met' if met else 'NOT met'}.\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def provenance(command: str, runs: Sequence[Run]) -> str:
    """Return the paragraph on how the figures were made: command, date, seeds, protocol, machines, code, packages."""
    if not runs:
        return f"Made by `{command}`. Nothing has been run yet.\n"
    dates = sorted({run.date for run in runs})
    seeds = sorted({run.cell.seed for run in runs})
    protocols = sorted({Protocol.parse(run.cell.protocol).name for run in runs})
    return (
        f"Made by `{command}`: {_runs(len(runs))}, {dates[0]}{f' to {dates[-1]}' if len(dates) > 1 else ''}, "
        f"seeds {seeds[0]} to {seeds[-1]}, protocol {' and '.join(protocols)}. Machines: {_machines(runs)}. "
        f"Threads: {_threads(runs)}. Commits: {_commits(runs)}. {_packages(runs)}\n"
    )


def _machines(runs: Sequence[Run]) -> str:
    """Return the processors with their numbers of cores, and the GPUs that runs used."""
    cores: dict[str, set[int]] = {}
    cards: Counter[str] = Counter()
    for run in runs:
        processor, *others = run.environment.get("machine", "unknown").split(", ")
        number, _, name = processor.rpartition("\u00d7 ")
        cores.setdefault(name, set()).update({int(number)} if number else ())
        cards.update(card.partition("\u00d7 ")[2] for card in others if run.device == "cuda")
    parts = [f"{_range(of, 'core')} of {name}" if of else name for name, of in sorted(cores.items())]
    return "; ".join([*parts, *(f"{name} in {_runs(n)}" for name, n in sorted(cards.items()))])


def _threads(runs: Sequence[Run]) -> str:
    known = [int(run.environment["threads"]) for run in runs if "threads" in run.environment]
    found = [_range(set(known))] if known else []
    return "; ".join(found + _not_recorded(len(runs) - len(known), len(runs)))


def _commits(runs: Sequence[Run]) -> str:
    """Return the commits with the most runs, and how many more there are."""
    known = Counter(_short(run.environment["commit"]) for run in runs if run.environment.get("commit"))
    named = [commit for commit, _ in sorted(known.items(), key=lambda pair: (-pair[1], pair[0]))]
    rest = f" and {len(named) - _MOST_COMMITS} more" if len(named) > _MOST_COMMITS else ""
    found = [", ".join(named[:_MOST_COMMITS]) + rest] if named else []
    return "; ".join(found + _not_recorded(len(runs) - known.total(), len(runs)))


def _short(commit: str) -> str:
    """Return a commit by the first digits of its hash; what follows the hash, such as "+changes", is kept."""
    digits, plus, changes = commit.partition("+")
    return digits[:7] + plus + changes


def _packages(runs: Sequence[Run]) -> str:
    """Return how many runs were made with other package versions than those of the lock file, and with which."""
    known = [run.environment["off_lock"] for run in runs if "off_lock" in run.environment]
    differing = [found for found in known if found]
    missing = _not_recorded(len(runs) - len(known), len(runs))
    if not known:
        return f"Package versions beside requirements.lock: {missing[0]}."
    rest = f"; {missing[0]}" if missing else ""
    if not differing:
        return f"Packages: those of requirements.lock{rest}."
    names = sorted({name for found in differing for name in found.split(", ")})
    return (
        f"{OFF_LOCK} marks figures with runs whose packages are not those of requirements.lock: {_runs(len(differing))}"
        f" ({', '.join(names)}){rest}."
    )


def _not_recorded(n: int, of: int) -> list[str]:
    """Return that something is not recorded for n runs, if there are any."""
    return [] if n == 0 else ["not recorded"] if n == of else [f"not recorded for {_runs(n)}"]


def _range(numbers: set[int], unit: str = "") -> str:
    low, high = min(numbers), max(numbers)
    name = f" {unit}{'' if high == 1 else 's'}" if unit else ""
    return f"{low}{name}" if low == high else f"{low} to {high}{name}"


def _runs(n: int) -> str:
    return "1 run" if n == 1 else f"{n:,} runs"
