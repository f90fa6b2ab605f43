"""wgcn label: label texts on a page in the browser."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wgcn.base.errors import needs
from wgcn.cli import options
from wgcn.cli.console import say


@options.reads_files
def label(
    reading: dict[str, Any],
    texts: Annotated[Path | None, typer.Argument(metavar="[TEXTS]", help="File with texts, labelled or not.")] = None,
    project: Annotated[
        Path | None, typer.Option(metavar="NAME", help="File that keeps all work. Default: named after the texts.")
    ] = None,
    label_column: options.LabelColumn = "label",
    missing: options.Missing = None,
    tokenizer: options.TokenizerName = "words",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port of the page; 0 is a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open the browser.")] = True,
) -> None:
    """Label texts on a page in the browser, with a model that learns while you label.

    Example: wgcn label texts.csv --project my-project. Later, to go on: wgcn label --project my-project
    """
    with needs("The labelling page", "serve"):
        from wgcn.label.start import ready_project, serve_page

    labels_as: dict[str, Any] = {"label_column": label_column, "missing": missing}
    made = ready_project(texts, project, **labels_as, tokenizer=tokenizer, reading=reading, say=say)
    serve_page(made, port=port, browser=browser, say=say)
