"""The commands, put together."""

import sys
from importlib import import_module
from typing import Annotated

import typer

from wgcn import __version__

_HOMES = {  # the module of each command, in the order of the help
    "fit": "fit",
    **dict.fromkeys(("predict", "evaluate", "extend", "export", "info", "explain", "words", "serve"), "model"),
    **dict.fromkeys(("label", "seeds", "suggest", "review", "curve"), "labelling"),
    "embed": "embed",
    "graph": "graph",
}


def app() -> None:
    """Run the command line. Only the command that is asked for is loaded, or all of them for the help."""
    commands = typer.Typer(
        help="Classify documents through a graph of words.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    commands.callback()(_options)
    for name in [name for name in _HOMES if name in sys.argv[1:2]] or _HOMES:
        module = import_module(f"wgcn.cli.{_HOMES[name]}")
        if name == "graph":
            commands.add_typer(module.app, name=name)
        else:
            commands.command()(getattr(module, name))
    commands()


def _print_version(given: bool) -> None:
    if given:
        typer.echo(f"wgcn {__version__}")
        raise typer.Exit


_Version = Annotated[bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)]


def _options(version: _Version = False) -> None:
    pass
