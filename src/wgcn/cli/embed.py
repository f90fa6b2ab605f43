"""wgcn embed: vectors of texts, from texts alone."""

from pathlib import Path
from typing import Annotated

import typer

from wgcn.base.errors import InputError
from wgcn.base.progress import stage
from wgcn.cli import options
from wgcn.cli.console import say, show, stages

_FITTING = ("save", "components", "tokenizer", "stop_words", "ngrams", "min_count", "window", "graph_weight")


@options.grouped
def embed(
    context: typer.Context,
    files: options.TextFiles,
    output: Annotated[Path, options.to_file(metavar="FILE.npy", help="Array to write, with one row per text.")],
    model: Annotated[
        Path | None, typer.Option("--model", "-m", metavar="DIR", help="Use an embedder that --save wrote.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder to save the fitted embedder to.")] = None,
    components: Annotated[int, typer.Option(min=2, metavar="N", help="Columns, an even number.")] = 200,
    tokenizer: options.TokenizerName = "words",
    stop_words: options.StopWords = None,
    ngrams: Annotated[int, typer.Option(min=1, metavar="N", help="Longest n-gram, in words.")] = 1,
    min_count: options.MinCount = None,
    window: options.Window = 20,
    graph_weight: Annotated[
        float, typer.Option(min=0.0, metavar="X", help="Weight of a word's neighbours beside the word.")
    ] = 2.0,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Given,
) -> None:
    """Turn texts into vectors, learnt from these texts without labels.

    Vectors have length 1; that of a text without a known word is 0. Read the array with numpy.load.

    Example: wgcn embed posts.csv --text-column body --output posts.npy --save my-embedder
    """
    import numpy as np

    from wgcn.base.files import write_file
    from wgcn.model.embedding import EmbeddingModel

    if output.suffix != ".npy":
        raise InputError(f"--output must end in .npy, got {output}: numpy's is the format that is written.")
    given = [name for name in _FITTING if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    if model is not None and given:
        raise InputError(f"The embedder in {model} is fitted already: leave out --save and the options of fitting.")
    options.check_output(output, overwrite=overwrite, inputs=[*files, stop_words])
    options.check_output(save, "embedder", overwrite=overwrite, inputs=[*files, stop_words])
    texts = options.read_files(files, reading)
    if model is not None:
        fitted = EmbeddingModel.load(model)
        with stages(), stage("Embedding"):
            vectors = fitted.transform(texts)
    else:
        from wgcn.estimators.embedder import WGCNEmbedder

        embedder = WGCNEmbedder(
            components,
            tokenizer=tokenizer,
            stop_words=options.read_stop_words(stop_words) or None,
            ngram_range=(1, ngrams),
            min_count=min_count,
            window=window,
            graph_weight=graph_weight,
        )
        with stages():
            vectors = embedder.fit_transform(texts)
        fitted = embedder.model_
        if save is not None:
            embedder.save(save)
    write_file(output, lambda file: np.save(file, vectors, allow_pickle=False))
    sizes = {"texts": len(vectors), "columns": vectors.shape[1], "words": len(fitted.vocabulary)}
    show({name: f"{size:,}" for name, size in sizes.items()})
    n_empty = int(np.sum(~vectors.any(axis=1)))
    say(f"The vectors are in {output}." + (f" {n_empty:,} texts have no known word." if n_empty else ""))
    if save is not None:
        say(f"The embedder is in {save}. Use it: wgcn embed FILE --model {save} --output FILE.npy")
