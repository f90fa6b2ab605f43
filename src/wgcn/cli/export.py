"""wgcn export: a model for the browser."""

from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import say
from wgcn.cli.options import ModelFolder


def export(
    folder: ModelFolder,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one page with the model in it.")] = None,
    js: Annotated[Path | None, typer.Option(metavar="DIR", help="Write a package of JavaScript, for npm.")] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the page.")] = "Classify texts",
) -> None:
    """Write a model that runs in the browser, with the same labels as here and no server.

    Example: wgcn export my-model --html classify.html
    """
    from wgcn.service.export import export_model

    for line in export_model(folder, html, js, title):
        say(line)
