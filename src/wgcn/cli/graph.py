"""wgcn graph: build a word graph, look at it, draw it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wgcn.cli import options
from wgcn.cli.console import counter, say, show, stages
from wgcn.cli.options import to_file

if TYPE_CHECKING:
    from wgcn.graph import GraphInfo

app = typer.Typer(help="Build a word graph from text, and inspect it.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a graph that 'wgcn graph build' wrote.")]
Word = Annotated[str, typer.Argument(help="A word of the graph, as its tokenizer writes it: usually in lower case.")]
MinNeighbour = Annotated[
    int | None,
    typer.Option(metavar="N", help="Leave out rarer words. Default: a fiftieth of the word's own frequency."),
]


@app.command()
@options.grouped
def build(
    files: options.TextFiles,
    output: Annotated[Path, to_file(metavar="DIR", help="Folder to write the graph to.")],
    tokenizer: options.TokenizerName = "words",
    stop_words: options.StopWords = None,
    min_count: Annotated[int, typer.Option(min=1, help="Keep words that occur at least this often.")] = 2,
    min_df: Annotated[int, typer.Option(min=1, help="Keep words in at least this many documents.")] = 1,
    max_df: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Keep words in at most this share of the documents.")
    ] = 1.0,
    max_words: Annotated[int | None, typer.Option(min=1, help="Keep only the N most frequent words.")] = None,
    window: options.Window = 20,
    weight: Annotated[
        Literal["npmi", "pmi", "count", "cosine", "product"],
        typer.Option(help="Edge weight: npmi, pmi or count over windows; cosine (tf-idf) or product over documents."),
    ] = "npmi",
    threshold: Annotated[float, typer.Option(help="Keep edges with a weight above this.")] = 0.0,
    min_pairs: Annotated[int, typer.Option(min=1, help="Keep pairs that share at least this many windows.")] = 1,
    top_k: Annotated[int | None, typer.Option(min=1, help="Keep only the k strongest edges per word.")] = None,
    diagonal: Annotated[Literal["self", "one", "none"], typer.Option(help="Weight of a word with itself.")] = "self",
    normalize: Annotated[bool, typer.Option(help="Symmetric normalisation of the graph.")] = True,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Given,
    resources: options.Given,
) -> None:
    """Build the word graph of a corpus.

    Example: wgcn graph build posts.csv --text-column body --output posts-graph

    Text that does not fit into memory: wgcn graph build shards/*.jsonl.gz --memory 4GB --output posts-graph
    """
    from wgcn import EdgeRules, VocabularyRules
    from wgcn.scale.build import Resources, graph_from_files

    # Settings are checked before the files are opened, and the files before any work is done.
    words = options.read_stop_words(stop_words)
    rules = VocabularyRules(min_count=min_count, min_df=min_df, max_df=max_df, max_size=max_words, stop_words=words)
    how: options.Given = {"tokenizer": tokenizer, "window": window, "weight": weight, "normalized": normalize}
    how |= {"reading": reading, "rules": rules, "edges": EdgeRules(threshold, min_pairs, top_k, diagonal)}
    limits = Resources.of(**resources)
    options.check_output(output, "graph", overwrite=overwrite, inputs=[*files, stop_words])
    work = limits.work_folder(output) if limits else None
    with options.interrupts_told(lambda: options.advice_to_go_on(work)), stages() as bars:
        graph = graph_from_files(files, output, limits, progress=counter(bars), **how)
    _print_info(graph.info())
    say(f"The graph is in {output}. Look at it: wgcn graph neighbours {output} WORD")


@app.command()
def neighbours(
    folder: Folder,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="One or more words of the graph.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many neighbours.")] = 10,
    min_count: MinNeighbour = None,
) -> None:
    """List the strongest neighbours of words: word, neighbour, weight and frequency, separated by tabs.

    Example: wgcn graph neighbours posts-graph wine -k 20
    """
    from wgcn.graph import WordGraph

    graph = WordGraph.load(folder)
    found = {word: graph.neighbours(word, k, min_count=min_count) for word in words}
    for word, near in found.items():
        for neighbour in near:
            typer.echo(f"{word}\t{neighbour.word}\t{neighbour.weight:.4f}\t{neighbour.count}")
        if not near:
            say(f"{word} has no neighbour that is frequent enough: --min-count 0 shows rare ones too")


@app.command()
def info(folder: Folder) -> None:
    """Show the size and the settings of a graph.

    Example: wgcn graph info posts-graph
    """
    from wgcn.graph import WordGraph

    _print_info(WordGraph.load(folder).info())


@app.command()
def plot(
    folder: Folder,
    word: Word,
    output: Annotated[Path | None, to_file(metavar="FILE", help="A .png, .svg or .pdf. Default: WORD.png")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Neighbours of the word.")] = 12,
    further: Annotated[int, typer.Option(min=0, help="Neighbours of each neighbour.")] = 3,
    min_count: MinNeighbour = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Draw a word, its neighbours and some of theirs.

    Example: wgcn graph plot posts-graph wine --output wine.svg
    """
    from wgcn.graph import WordGraph
    from wgcn.plots import plot_neighbourhood

    output = output or Path("".join(c if c.isalnum() or c in "_-'" else "_" for c in word) + ".png")
    options.check_output(output, "picture", overwrite=overwrite)
    graph = WordGraph.load(folder)
    plot_neighbourhood(graph, word, output, k=k, further=further, min_count=min_count)
    say(f"The picture is in {output}.")


def _print_info(info: "GraphInfo") -> None:
    """Print the size and the settings of a graph."""
    per_word = f"{info.mean_neighbours:,.1f} on average, {info.median_neighbours:,.0f} median"
    sizes = {
        "words": f"{info.nodes:,}",
        "edges": f"{info.edges:,}",
        "density": f"{info.density:.4%}",
        "isolated words": f"{info.isolated:,}",
        "neighbours per word": f"{per_word}, {info.max_neighbours:,} most",
    }
    show(sizes | {name: str(value) for name, value in info.settings.items() if value is not None})
