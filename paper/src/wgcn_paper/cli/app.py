"""The commands of `wgcn-paper`, put together."""

import typer

from wgcn_paper.cli import data
from wgcn_paper.cli.check import check
from wgcn_paper.cli.demo import demo
from wgcn_paper.cli.reproduce import reproduce

app = typer.Typer(
    name="wgcn-paper",
    help='The data sets, tables and figures of the paper "Word Grounded Graph Convolutional Network".',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(reproduce)
app.command()(check)
app.add_typer(data.app, name="data")
