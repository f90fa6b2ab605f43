"""Pictures: what all of them share, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wgcn.errors import InputError, needs
from wgcn.files import write_file
from wgcn.inference.folder import check_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_picture", "figure", "panels", "plot_confusion"]

_DATE_KEYS = {".png": None, ".svg": "Date", ".pdf": "CreationDate"}


def check_picture(path: str | Path) -> None:
    """Raise an error if a picture could not be written: before the work whose result it is to show."""
    _check_ending(Path(path))
    check_target(path)
    with needs("A picture"):
        import matplotlib  # noqa: F401


def _check_ending(path: Path) -> None:
    if path.suffix.lower() not in _DATE_KEYS:
        raise InputError(f"A picture ends in {', '.join(_DATE_KEYS)}, got {path.name!r}.")


@contextmanager
def figure(path: str | Path, size: tuple[float, float]) -> Iterator[Axes]:
    """Draw on the axes that this gives; the picture is then written, whole or not at all, with no date in it.

    Parameters
    ----------
    path : path
        The ending says the format: .png, .svg or .pdf.
    size : (float, float)
        Width and height in inches.
    """
    with panels([path], size, 1) as axes:
        yield axes[0]


@contextmanager
def panels(paths: Sequence[str | Path], size: tuple[float, float], n: int) -> Iterator[list[Axes]]:
    """Draw several pictures side by side, and write them to one file or to several of different formats."""
    for path in map(Path, paths):
        _check_ending(path)
    with needs("A picture"):
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    with rc_context({"svg.hashsalt": "wgcn", "svg.fonttype": "none", "font.size": 10}):
        drawing = Figure(figsize=size, layout="tight")
        yield list(drawing.subplots(1, n, squeeze=False)[0])
        for path in map(Path, paths):
            ending = path.suffix.lower()
            key = _DATE_KEYS[ending]
            save = partial(drawing.savefig, format=ending[1:], dpi=130, metadata={key: None} if key else {})
            write_file(path, save)


def plot_confusion(
    truth: npt.NDArray[np.int64], guess: npt.NDArray[np.int64], names: list[str], path: str | Path
) -> None:
    """Draw which classes are taken for which: a row a true class, as shares of its documents.

    Parameters
    ----------
    truth, guess : int arrays of shape (documents,)
        Places of the true and of the predicted classes among the names.
    names : list of str
    path : path
    """
    n = len(names)
    counts = np.zeros((n, n), np.int64)
    np.add.at(counts, (truth, guess), 1)
    shares: npt.NDArray[Any] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = min(max(5.0, 0.42 * n), 24.0)
    with figure(path, (side + 1.5, side)) as axes:
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(n), [_short(name) for name in names], rotation=90, parse_math=False)
        axes.set_yticks(range(n), [_short(name) for name in names], parse_math=False)
        axes.set_xlabel("predicted")
        axes.set_ylabel("true")
        axes.set_title(f"{np.trace(counts):,} of {counts.sum():,} right ({np.trace(counts) / counts.sum():.1%})")
        for i, j in zip(*np.nonzero(counts), strict=True):
            colour = "white" if shares[i, j] > 0.5 else "black"
            axes.text(j, i, str(counts[i, j]), ha="center", va="center", color=colour, fontsize=7)


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:29] + "…"
