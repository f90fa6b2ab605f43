"""The commands, put together."""

from typing import Annotated

import typer

from wgcn import __version__
from wgcn.cli import demo, graph
from wgcn.cli.embed import embed
from wgcn.cli.evaluate import evaluate, info
from wgcn.cli.extend import extend
from wgcn.cli.fit import fit
from wgcn.cli.predict import predict

__all__ = ["app"]

app = typer.Typer(
    name="wgcn",
    help="Classify documents through a graph of words.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (fit, predict, evaluate, extend, info, embed, demo.demo):
    app.command()(command)
app.add_typer(graph.app, name="graph")


def _print_version(given: bool) -> None:
    if given:
        typer.echo(f"wgcn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass
