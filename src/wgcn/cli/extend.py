"""wgcn extend: add words that training did not see, from unlabelled texts."""

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import say, working
from wgcn.cli.options import Header, ModelFolder, TextColumn, TextFiles

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
    from wgcn.text.read import read_texts

    check_target(output, "model")
    model = TextModel.load(folder)
    readers = [read_texts(path, text_column=text_column, header=header) for path in texts]
    with working("Adding words"):
        larger = model.extend(chain.from_iterable(readers), min_count)
    larger.save(output)
    added = larger.extensions[len(model.extensions) :]
    n_texts = f" from {added[0]['texts']:,} texts" if added else ": the texts have none that can be added"
    typer.echo(f"words added  {len(larger.vocabulary) - len(model.vocabulary):,}{n_texts}")
    say(f"The model is in {output}. Use it: wgcn predict {output} FILE")
