"""Pictures: a word with its neighbourhood in the graph, the confusion matrix of a classifier, a learning curve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wgcn.base.arrays import Ints
from wgcn.base.errors import InputError, needs
from wgcn.base.files import write_file
from wgcn.store.folder import check_target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wgcn.active.curve import CurvePoint
    from wgcn.graph import WordGraph

_DATES: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}  # left out
# Background, text colour and font size of the word, its neighbours, and their neighbours.
_STYLES = (("#d1495b", "white", 13), ("#2e6f95", "white", 10), ("#8fb8cc", "black", 8))
_EDGE_COLOUR = "#9aa5ad"


def check_picture(path: str | Path, *, overwrite: bool = True, inputs: Iterable[str | Path] = ()) -> None:
    """Raise an error if a picture could not be written. Called before the work whose result it shows.

    It may not be one of the `inputs`, and what is there is replaced only with `overwrite`.
    """
    if Path(path).suffix.lower() not in _DATES:
        raise InputError(f"A picture ends in {', '.join(_DATES)}, got {Path(path).name!r}.")
    check_target(path, overwrite=overwrite, inputs=inputs)
    with needs("A picture"):
        import matplotlib  # noqa: F401


@contextmanager
def drawing(size: tuple[float, float], *paths: str | Path) -> Iterator[Figure]:
    """Give a figure of a size in inches and write it to the paths; the same drawing gives the same bytes."""
    for path in paths:
        check_picture(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "wgcn", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=size, layout="tight")
        yield figure
        for path in map(Path, paths):
            suffix = path.suffix.lower()
            write_file(path, partial(figure.savefig, format=suffix[1:], dpi=130, metadata=_DATES[suffix]))


def plot_confusion(truth: Ints, predicted: Ints, names: list[str], path: str | Path) -> None:
    """Draw the confusion matrix, coloured by the shares of each true class; `truth`, `predicted`: indices of names."""
    n = len(names)
    counts = np.bincount(truth * n + predicted, minlength=n * n).reshape(n, n)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = min(max(5.0, 0.42 * n), 24.0)
    labels = [name if len(name) <= 30 else name[:29] + "…" for name in names]
    with drawing((side + 1.5, side), path) as figure:
        axes = figure.subplots()
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(n), labels, rotation=90, parse_math=False)
        axes.set_yticks(range(n), labels, parse_math=False)
        axes.set_xlabel("predicted")
        axes.set_ylabel("true")
        axes.set_title(f"{np.trace(counts):,} of {counts.sum():,} right ({np.trace(counts) / counts.sum():.1%})")
        for i, j in zip(*np.nonzero(counts), strict=True):
            colour = "white" if shares[i, j] > 0.5 else "black"
            axes.text(j, i, str(counts[i, j]), ha="center", va="center", color=colour, fontsize=7)


def plot_neighbourhood(
    graph: WordGraph, word: str, path: str | Path, *, k: int = 12, further: int = 3, min_count: int | None = None
) -> None:
    """Draw a word, its k strongest neighbours, and the strongest neighbours of these; the same bytes every time."""
    with needs("A picture of a graph"):
        import networkx
    near = [neighbour.word for neighbour in graph.neighbours(word, k, min_count=min_count)]
    if not near:
        raise InputError(f"The word {word!r} has no neighbours to draw. Build the graph with a lower threshold.")
    picture = networkx.Graph()
    for centre, reach in [(word, k), *((name, further) for name in near)]:
        for neighbour in graph.neighbours(centre, reach, min_count=min_count):
            picture.add_edge(centre, neighbour.word, weight=neighbour.weight)
    weights = np.array([weight for *_, weight in picture.edges(data="weight")])
    strength = (weights - weights.min()) / max(float(np.ptp(weights)), 1e-9)
    positions = networkx.spring_layout(picture, weight=None, seed=0, iterations=300, k=1.9 / np.sqrt(len(picture)))
    with drawing((10, 7), path) as figure:
        axes = figure.subplots()
        for edge, s in zip(picture.edges, strength, strict=True):
            ends = np.transpose([positions[name] for name in edge])
            axes.plot(*ends, color=_EDGE_COLOUR, lw=0.5 + 2 * s, alpha=0.55, zorder=1)
        for name in picture:
            colour, text_colour, size = _STYLES[0 if name == word else 1 if name in near else 2]
            x, y = positions[name]
            style: dict[str, Any] = {"ha": "center", "va": "center", "color": text_colour, "fontsize": size}
            box = {"boxstyle": "round,pad=0.3", "fc": colour, "ec": "white"}
            axes.text(x, y, name, bbox=box, zorder=2, parse_math=False, **style)
        axes.margins(0.12)
        axes.set_axis_off()
        axes.set_title(f"{word}: {len(near)} nearest words and theirs", fontsize=11)


def plot_curve(points: Sequence[CurvePoint], n_labelled: int, path: str | Path) -> None:
    """Draw a learning curve with its 95 % intervals, and dashed what a power law expects up to twice the labels."""
    from wgcn.active.curve import extrapolate  # it loads scikit-learn, which other pictures do not need

    colour, sizes = _STYLES[1][0], [point.n_labels for point in points]
    accuracies = np.array([100 * point.accuracy for point in points])
    ends = 100 * np.array([point.interval for point in points])
    with drawing((6.5, 4), path) as figure:
        axes = figure.subplots()
        reach = np.abs(ends - accuracies[:, None]).T
        axes.errorbar(sizes, accuracies, yerr=reach, marker="o", color=colour, capsize=3, label="held-out texts")
        further = np.geomspace(sizes[0], 2 * n_labelled)
        expected = [extrapolate(points, n) for n in further]
        if None not in expected:
            percent = [100 * (share or 0) for share in expected]
            axes.plot(further, percent, "--", color=_EDGE_COLOUR, label="extrapolation", zorder=1)
        axes.set_xscale("log")
        marks = [*sizes, 2 * n_labelled]
        axes.set_xticks(marks, [f"{mark:,}" for mark in marks])
        axes.minorticks_off()
        axes.set_xlabel("labels")
        axes.set_ylabel("accuracy in percent")
        axes.legend(loc="lower right", frameon=False)
