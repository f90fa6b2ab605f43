"""A picture of a word and its neighbourhood."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wgcn.errors import InputError, needs
from wgcn.graph.pictures import figure
from wgcn.graph.word_graph import WordGraph

if TYPE_CHECKING:
    import networkx

__all__ = ["plot_neighbourhood"]

_WORD_COLOUR, _NEAR_COLOUR, _FAR_COLOUR, _EDGE_COLOUR = "#d1495b", "#2e6f95", "#8fb8cc", "#9aa5ad"


def plot_neighbourhood(
    graph: WordGraph, word: str, path: str | Path, *, k: int = 12, further: int = 3, min_count: int | None = None
) -> None:
    """Draw a word, its strongest neighbours, and the strongest neighbours of these.

    The same graph and word give the same picture, byte for byte.

    Parameters
    ----------
    graph : WordGraph
    word : str
    path : path
        Where to write; the ending says the format: .png, .svg or .pdf.
    k : int
        Neighbours of the word.
    further : int
        Neighbours of each of these.
    min_count : int, optional
        As for `WordGraph.neighbours`.
    """
    with needs("A picture of a graph"):
        import networkx
    near = [neighbour.word for neighbour in graph.neighbours(word, k, min_count=min_count)]
    if not near:
        raise InputError(f"The word {word!r} has no neighbours to draw. Build the graph with a lower threshold.")
    picture = _neighbourhood(graph, word, near, further, min_count)
    weights = np.array([weight for *_, weight in picture.edges(data="weight")])
    strength = (weights - weights.min()) / max(float(np.ptp(weights)), 1e-9)
    positions = networkx.spring_layout(picture, weight=None, seed=0, iterations=300, k=1.9 / np.sqrt(len(picture)))

    with figure(path, (10, 7)) as axes:
        for (a, b), s in zip(picture.edges, strength, strict=True):
            axes.plot(
                *np.transpose([positions[a], positions[b]]), color=_EDGE_COLOUR, lw=0.5 + 2 * s, alpha=0.55, zorder=1
            )
        for name, (x, y) in positions.items():
            colour = _WORD_COLOUR if name == word else _NEAR_COLOUR if name in near else _FAR_COLOUR
            box = {"boxstyle": "round,pad=0.3", "fc": colour, "ec": "white"}
            text_colour = "black" if colour == _FAR_COLOUR else "white"
            size = 13 if name == word else 10 if name in near else 8
            axes.text(
                x,
                y,
                name,
                ha="center",
                va="center",
                color=text_colour,
                fontsize=size,
                bbox=box,
                zorder=2,
                parse_math=False,
            )
        axes.margins(0.12)
        axes.set_axis_off()
        axes.set_title(f"{word}: {len(near)} nearest words and theirs", fontsize=11)


def _neighbourhood(graph: WordGraph, word: str, near: list[str], further: int, min_count: int | None) -> networkx.Graph:
    import networkx

    picture = networkx.Graph()
    for centre, reach in [(word, len(near)), *((name, further) for name in near)]:
        for neighbour in graph.neighbours(centre, reach, min_count=min_count):
            picture.add_edge(centre, neighbour.word, weight=neighbour.weight)
    return picture
