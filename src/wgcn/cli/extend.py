"""wgcn extend: add words that training did not see, from unlabelled texts."""

from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import say, show, stages
from wgcn.cli.options import Header, ModelFolder, TextColumn, TextFiles, read_files
from wgcn.progress import stage

__all__ = ["extend"]


def extend(
    folder: ModelFolder,
    texts: TextFiles,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write the new model to.")],
    min_count: Annotated[int, typer.Option(min=1, help="Add words that occur at least this often in the texts.")] = 2,
    text_column: TextColumn = None,
    header: Header = True,
) -> None:
    """Add words to a model that it does not know, without training.

    Example: wgcn extend my-model more.csv --text-column body --output larger-model
    """
    from wgcn.inference.folder import check_target
    from wgcn.inference.model import TextModel

    check_target(output, "model")
    model = TextModel.load(folder)
    more = read_files(texts, text_column, header)
    with stages(), stage("Adding words"):
        larger = model.extend(more, min_count)
    larger.save(output)
    added = larger.extensions[len(model.extensions) :]
    n_texts = f" from {added[0]['texts']:,} texts" if added else ": the texts have none that can be added"
    show({"words added": f"{len(larger.vocabulary) - len(model.vocabulary):,}{n_texts}"})
    say(f"The model is in {output}. Use it: wgcn predict {output} FILE")
