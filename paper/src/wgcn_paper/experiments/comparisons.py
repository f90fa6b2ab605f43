"""Differences between methods: which test a comparison takes, its interval, and Holm's correction over a table.

A test can only tell of what varies in it. Over draws of labels, the documents that are tested stay the same; over test
documents, the training set does. Runs with the same seed are a pair only where the seed draws the labels: with all
labels it starts a network, and the first start of one method has nothing to do with the first of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import mean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn_paper.experiments.cells import Run, rights
from wgcn_paper.experiments.report import NOTHING, OFF_LOCK, Groups, is_off_lock, markdown_table, p_text
from wgcn_paper.protocol import Protocol

_Z = 1.959963984540054  # the normal distribution has 95 % between -z and z
_ROUNDING = 1e-9  # points; a standard error below this is one of rounding


class Kind(NamedTuple):
    """A kind of test, and how a report marks and names it."""

    mark: str
    name: str


PAIRED = Kind("\u1d48", "t-test paired by draw")
MCNEMAR = Kind("\u1d50", "exact McNemar test by document")
BY_DOCUMENT = Kind("\u1d47", "t-test by document with the variance over seeds added")
WELCH = Kind("\u02b7", "Welch's t-test over seeds alone")
ONE_SAMPLE = Kind("\u00b9", "one-sample t-test of the seeds alone against a single run")


@dataclass(frozen=True)
class Comparison:
    """The difference of two methods."""

    difference: float  # ours minus theirs, in points of accuracy
    low: float | None = None  # its 95 % interval
    high: float | None = None
    # Two-sided. None, like the interval and the test, where nothing varies that a test could use.
    p: float | None = None
    test: Kind | None = None
    # Whether a run of either side was made with other package versions than those of the lock file
    off_lock: bool = False

    def __str__(self) -> str:
        text = f"{self.difference:+.2f}"
        if self.low is not None and self.high is not None:
            text += f" [{self.low:+.2f}, {self.high:+.2f}]"
        if self.p is not None:
            text += f" ({p_text(self.p)})"
        return text


def compare(ours: Sequence[Run], theirs: Sequence[Run]) -> Comparison | None:
    """Compare the runs of two methods, one per seed, on the same data set under the same protocol.

    Where labels are drawn, the test is `paired`, over the draws that both have. With all labels it is by document if
    all runs tell which documents they got right: McNemar's exact test between two runs, otherwise a t-test in which
    documents and seeds vary. Without that, only seeds are left to vary: Welch's t-test, or the one-sample test if one
    side is a single run. None if a side has no runs, or if the two have no draw in common.
    """
    if not ours or not theirs:
        return None
    [(_, protocol)] = {(run.cell.dataset, run.cell.protocol) for run in (*ours, *theirs)}
    found = _by_draw(ours, theirs) if Protocol.parse(protocol).is_drawn else _with_all_labels(ours, theirs)
    return None if found is None else replace(found, off_lock=is_off_lock([*ours, *theirs]))


def _by_draw(ours: Sequence[Run], theirs: Sequence[Run]) -> Comparison | None:
    known = {run.cell.seed: run.accuracy for run in theirs}
    points = [100 * (run.accuracy - known[run.cell.seed]) for run in ours if run.cell.seed in known]
    return paired(points) if points else None


def _with_all_labels(ours: Sequence[Run], theirs: Sequence[Run]) -> Comparison:
    right = _same_documents(ours, theirs)
    if right is None:
        return _over_seeds([100 * run.accuracy for run in ours], [100 * run.accuracy for run in theirs])
    mine, other = right[: len(ours)], right[len(ours) :]
    return _mcnemar(mine[0], other[0]) if len(right) == 2 else _by_document(mine, other)


def _same_documents(ours: Sequence[Run], theirs: Sequence[Run]) -> npt.NDArray[np.bool_] | None:
    """Return which documents each run got right, of shape (runs, documents); None unless all runs tell."""
    found = [rights(run) for run in (*ours, *theirs)]
    known = [each for each in found if each is not None]
    if len(known) < len(found) or len({len(each) for each in known}) > 1:
        return None
    return np.stack(known)


def paired(points: Sequence[float], *, off_lock: bool = False) -> Comparison:
    """Test differences in points, one per draw, by a t-test; neither p nor interval if they do not vary."""
    return replace(_t_test(mean(points), [points], PAIRED), off_lock=off_lock)


def _over_seeds(ours: Sequence[float], theirs: Sequence[float]) -> Comparison:
    """Test accuracies in percent over seeds, without pairs: what the seed changes, on these test documents."""
    single = len(ours) == 1 or len(theirs) == 1
    return _t_test(mean(ours) - mean(theirs), [ours, theirs], ONE_SAMPLE if single else WELCH)


def _t_test(difference: float, samples: Iterable[npt.ArrayLike], test: Kind) -> Comparison:
    """Test a difference in points whose variance is the sum of the variances of the means of samples.

    The degrees of freedom are Satterthwaite's. With one sample that is the one-sample or the paired test, with two it
    is Welch's. A sample of one value adds nothing, as its variance is not known.
    """
    from scipy.stats import t

    arrays = [np.asarray(sample) for sample in samples]
    parts = [(float(x.var(ddof=1)) / len(x), len(x) - 1) for x in arrays if len(x) > 1]
    variance = sum(part for part, _ in parts)
    error = sqrt(variance)
    if error < _ROUNDING:
        return Comparison(difference)
    freedom = variance**2 / sum(part**2 / own for part, own in parts)
    half = float(t.ppf(0.975, freedom)) * error
    p = 2 * float(t.sf(abs(difference) / error, freedom))
    return Comparison(difference, difference - half, difference + half, p, test)


def _mcnemar(ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_]) -> Comparison:
    """Test two runs by the documents that only one of them gets right, which under the null are ours half the time.

    The interval is that of Agresti and Min (Statistics in Medicine, 2005): Wald's for the difference of paired
    proportions, after half a document is added to each of the four cells. Without that it has no width where both runs
    are right on the same documents.
    """
    from scipy.stats import binomtest

    won, lost, n = int((ours & ~theirs).sum()), int((theirs & ~ours).sum()), len(ours)
    p = float(binomtest(won, won + lost).pvalue) if won + lost else 1.0
    centre = (won - lost) / (n + 2)
    half = _Z * sqrt(((won + lost + 1) / (n + 2) - centre**2) / (n + 2))
    return Comparison(100 * (won - lost) / n, 100 * (centre - half), 100 * (centre + half), p, MCNEMAR)


def _by_document(ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_]) -> Comparison:
    """Test two sets of runs by document, each given as (runs, documents).

    A document's difference is the share of our runs that get it right minus the share of theirs. The variance of the
    mean difference has up to three parts, for which documents and which seeds there happen to be:
    var(documents) / n + var(our seeds) / k + var(their seeds) / k'. What a seed changes on single documents is in the
    first part as well, so the test is slightly conservative.
    """
    each = 100 * (ours.mean(axis=0) - theirs.mean(axis=0))  # (documents,)
    seeds = [100 * right.mean(axis=1) for right in (ours, theirs)]
    return _t_test(float(each.mean()), [each, *seeds], BY_DOCUMENT)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's correction (Scandinavian Journal of Statistics, 1979) for their number.

    The smallest of m is multiplied by m, the next by m - 1 and so on; none becomes less than one before it.

    Examples
    --------
    >>> holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min((len(p_values) - rank) * p_values[place], 1.0))
        adjusted[place] = highest
    return adjusted


def against(
    groups: Groups, protocol: str, names: Iterable[str], references: Sequence[str], datasets: Sequence[str]
) -> dict[str, list[Comparison | None]]:
    """Compare reference rows with every other row, on each data set: a comparison per set, by the title of a line.

    References that are not among `names` are left out, and two of them are compared once.
    """
    there = list(names)
    found = {}
    done: list[str] = []
    for reference in references:
        if reference not in there:
            continue
        done.append(reference)
        for other in there:
            if other not in done:
                pairs = [[groups.get((protocol, row, d), ()) for row in (reference, other)] for d in datasets]
                found[f"{reference} \u2212 {other}"] = [compare(*pair) for pair in pairs]
    return found


def comparison_rows(
    comparisons: Mapping[str, Sequence[Comparison | None]], scope: str = "this table"
) -> tuple[str, list[list[str]]]:
    """Correct all comparisons of a table together, and return a sentence on them and the lines of the table.

    `comparisons` are by the first cell of a line; `scope` says what the correction is over.
    """
    found = [each for cells in comparisons.values() for each in cells if each is not None]
    p_values = [each.p for each in found if each.p is not None]
    adjusted = iter(holm(p_values))
    kinds = list(dict.fromkeys(each.test for each in found if each.test is not None))
    lines = []
    for name, cells in comparisons.items():
        corrected = [each if each is None or each.p is None else replace(each, p=next(adjusted)) for each in cells]
        lines.append([name, *(_cell(each, marked=len(kinds) > 1) for each in corrected)])
    return _legend(kinds, len(p_values), len(found) - len(p_values), scope), lines


def comparison_table(
    header: Sequence[str],
    comparisons: Mapping[str, Sequence[Comparison | None]],
    title: str = "difference, points",
    scope: str = "this table",
) -> str:
    """Return the sentence and the table of `comparison_rows`, without lines that have no comparison."""
    legend, lines = comparison_rows({name: cells for name, cells in comparisons.items() if any(cells)}, scope)
    return f"{legend}\n\n{markdown_table([title, *header], lines)}" if lines else ""


def _cell(found: Comparison | None, *, marked: bool) -> str:
    if found is None:
        return NOTHING
    kind = found.test.mark if marked and found.test is not None else ""
    # A space before the mark keeps a figure without p a number of its own.
    return f"{found}{kind}" + (f" {OFF_LOCK}" if found.off_lock else "")


def _legend(kinds: Sequence[Kind], n_tested: int, n_untested: int, scope: str) -> str:
    if not kinds:
        return "Differences in points. No p: single runs without a record by document, or runs that do not vary."
    if len(kinds) == 1:
        tests = f"Test: {kinds[0].name}"
    else:
        tests = "Tests: " + ", ".join(f"{kind.mark} {kind.name}" for kind in kinds)
    number = "one comparison" if n_tested == 1 else f"{n_tested:,} comparisons"
    rest = " Without p: single runs without a record by document, or runs that do not vary." if n_untested else ""
    return (
        f"Differences in points [95 % interval] (two-sided p after Holm's correction over the {number} of {scope}; the "
        f"intervals are not corrected). {tests}.{rest}"
    )
