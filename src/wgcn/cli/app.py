"""The commands, put together."""

import sys
from importlib import import_module
from typing import Annotated

import typer

from wgcn import __version__

_OF_A_MODEL = ("predict", "evaluate", "extend", "export", "info")
# Where they have another name.
_MODULES = dict.fromkeys(_OF_A_MODEL, "model") | {"words": "explain", "curve": "suggest"}
_LOOP = ("label", "seeds", "suggest", "review", "curve")
_COMMANDS = ("fit", *_OF_A_MODEL, "explain", "words", "serve", *_LOOP, "embed", "graph")  # in the order of the help


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
    for name in [name for name in _COMMANDS if name in sys.argv[1:2]] or _COMMANDS:
        module = import_module(f"wgcn.cli.{_MODULES.get(name, name)}")
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
