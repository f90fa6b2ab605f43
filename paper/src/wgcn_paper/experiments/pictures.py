"""Figures of the reports: several panels side by side, written in several formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wgcn.plots import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@contextmanager
def panels(paths: Sequence[str | Path], size: tuple[float, float], n: int) -> Iterator[list[Axes]]:
    """Give the axes of n panels side by side to draw on; they are then written to the paths as one figure."""
    with drawing(size, *paths) as figure:
        yield list(figure.subplots(1, n, squeeze=False)[0])


def label_counts(axis: Axes, counts: Sequence[int], title: str, name: str = "labels") -> None:
    """Give a panel its title and a logarithmic axis of numbers of labels."""
    axis.set_xscale("log")
    axis.set_xticks(counts, [str(n) for n in counts])
    axis.minorticks_off()
    axis.set_title(title)
    axis.set_xlabel(name)
    axis.grid(alpha=0.3)
