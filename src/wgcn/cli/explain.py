"""wgcn explain and words: why a model gives its labels."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import say, show
from wgcn.cli.options import ModelFolder, Overwrite


def explain(
    folder: ModelFolder,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Texts to explain, in quotes.")],
    label: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Class to explain. Default: the one with the highest score.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page instead.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Show which words of a text speak for a class and against it, and what their neighbours in the graph contribute.

    Example: wgcn explain my-model "The match ended in a draw." --html why.html
    """
    from wgcn.base.files import write_file
    from wgcn.explain.render import as_html, as_text
    from wgcn.model.text_model import TextModel
    from wgcn.store.folder import check_target

    if html is not None:
        check_target(html, overwrite=overwrite)
    explanations = TextModel.load(folder).explain(texts)
    if html is not None:
        write_file(html, lambda file: file.write(as_html(explanations, label).encode()))
        say(f"The explanations are in {html}.")
        return
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    typer.echo("\n\n".join(as_text(each, label, colour=colour) for each in explanations).encode(), nl=False)


def words(
    folder: ModelFolder,
    label: Annotated[str | None, typer.Option(metavar="CLASS", help="Only the words of this class.")] = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Words per class.")] = 20,
) -> None:
    """Show the strongest words of each class.

    Example: wgcn words my-model --top 10
    """
    from wgcn.explain.render import harmless
    from wgcn.model.text_model import TextModel

    model = TextModel.load(folder)
    rows = {str(name): model.top_words(name, top) for name in (model.classes.tolist() if label is None else [label])}
    show({harmless(name): harmless(", ".join(word for word, _ in found)) for name, found in rows.items()})
