"""wgcn embed: vectors of texts, from texts alone."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wgcn.cli.console import say, working
from wgcn.cli.options import Header, StopWords, TextColumn, read_stop_words
from wgcn.errors import InputError

__all__ = ["embed"]


def embed(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES...", help="Files with text: .txt, .csv, .tsv, .jsonl or .parquet, also .gz."),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE.npy", help="Array to write, whole or not at all: a row a text."),
    ],
    model: Annotated[
        Path | None, typer.Option("--model", "-m", metavar="DIR", help="Use an embedder that --save kept, fit none.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the fitted embedder in this folder, for new texts.")
    ] = None,
    text_column: TextColumn = None,
    header: Header = True,
    components: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Columns, an even number. Default: 200.")
    ] = None,
    tokenizer: Annotated[
        Literal["words", "text_gcn"] | None,
        typer.Option(help="'words' for any language; 'text_gcn' as in the literature. Default: words."),
    ] = None,
    stop_words: StopWords = None,
    ngrams: Annotated[int | None, typer.Option(min=1, metavar="N", help="Longest word n-gram. Default: 1.")] = None,
    min_count: Annotated[
        int | None,
        typer.Option(
            min=1, help="Keep words that occur at least this often. Default: 1, or 2 if they are more than 100,000."
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=2, metavar="TOKENS", help="Window of the word graph. Default: 20.")
    ] = None,
    graph_weight: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="WEIGHT", help="Weight of a word's neighbours beside the word. Default: 2.0."),
    ] = None,
) -> None:
    """Turn texts into vectors, learnt from these texts without labels.

    A vector has the length 1; that of a text with no known word is 0. Read the array with numpy.load. Example: wgcn
    embed posts.csv --text-column body --output posts.npy --save my-embedder
    """
    import numpy as np

    from wgcn.files import write_file
    from wgcn.inference.folder import check_target
    from wgcn.text.read import read_texts

    if output.suffix != ".npy":
        raise InputError(f"--output must end in .npy, got {output}: numpy's is the format that is written.")
    given: dict[str, Any] = {
        "n_components": components,
        "tokenizer": tokenizer,
        "stop_words": stop_words,
        "ngram_range": None if ngrams is None else (1, ngrams),
        "min_count": min_count,
        "window": window,
        "graph_weight": graph_weight,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    if model is not None and (settings or save is not None):
        raise InputError(f"The embedder in {model} is fitted already: leave out --save and the options of fitting.")
    check_target(output)
    if save is not None:
        check_target(save, "embedder")
    if stop_words is not None:
        settings["stop_words"] = read_stop_words(stop_words)
    parts = [read_texts(path, text_column=text_column, header=header) for path in files]
    texts = (text for part in parts for text in part)
    if model is not None:
        from wgcn.inference.embedding import EmbeddingModel

        fitted = EmbeddingModel.load(model)
        with working("Embedding"):
            vectors = fitted.transform(texts)
    else:
        from wgcn.estimators.embedder import WGCNEmbedder

        embedder = WGCNEmbedder(**settings)
        with working("Fitting"):
            vectors = embedder.fit_transform(texts)
        fitted = embedder.model_
        if save is not None:
            embedder.save(save)
    write_file(output, lambda file: np.save(file, vectors, allow_pickle=False))
    typer.echo(f"texts     {len(vectors):,}")
    typer.echo(f"columns   {vectors.shape[1]:,}")
    typer.echo(f"words     {len(fitted.vocabulary):,}")
    n_empty = int(np.sum(~vectors.any(axis=1)))
    say(f"The vectors are in {output}." + (f" {n_empty:,} texts have no known word." if n_empty else ""))
    if save is not None:
        say(f"The embedder is in {save}. Use it: wgcn embed FILE --model {save} --output FILE.npy")
