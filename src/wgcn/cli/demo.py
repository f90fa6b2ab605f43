"""wgcn demo: the docs corpus, its word graph, neighbours and pictures."""

from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import out, say
from wgcn.cli.graph import build_graph, show_info

__all__ = ["demo"]

WORDS = ("eigenvalues", "fourier", "kurtosis", "cluster", "polynomial", "sparse")


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where to put what is made.")] = Path(
        "demo"
    ),
) -> None:
    """Build the word graph of a corpus that every machine has, and show it.

    The corpus is the documentation of numpy, scipy and scikit-learn: real text, no download.

    Example: wgcn demo --output demo
    """
    from wgcn.datasets import docs_corpus
    from wgcn.graph import EdgeRules
    from wgcn.graph.plot import plot_neighbourhood
    from wgcn.text.vocabulary import VocabularyRules

    say("Collecting the documentation of numpy, scipy and scikit-learn (a few seconds the first time) ...")
    docs = docs_corpus()
    assert docs.texts is not None
    assert docs.document_graph is not None
    say(f"{len(docs):,} documents in {len(docs.classes)} classes, with {docs.document_graph.nnz:,} links between them.")
    graph = build_graph(
        docs.texts,
        tokenizer="words",
        rules=VocabularyRules(min_df=5),
        window=20,
        weight="npmi",
        edge_rules=EdgeRules(),
    )
    graph.save(output / "graph")
    out.print()
    show_info(graph.info())
    out.print()
    out.print("Words that stand near each other:")
    shown = [word for word in WORDS if word in graph.vocabulary]
    for word in shown:
        near = "  ".join(neighbour.word for neighbour in graph.neighbours(word, 7))
        out.print(f"  {word:<12} {near}", markup=False)
    picture = output / f"{shown[0]}.png"
    plot_neighbourhood(graph, shown[0], picture)
    out.print()
    out.print(f"The graph is in {output / 'graph'}, a picture in {picture}.", markup=False)
    out.print(f"Ask it for another word:  wgcn graph neighbours {output / 'graph'} variance", markup=False)
