"""The command line: one command per file. `main` is what the `wgcn` script runs."""

import sys
import warnings
from importlib import import_module
from typing import Any

from wgcn.errors import MissingDependencyError, WGCNError, WGCNWarning

__all__ = ["main", "run"]


def main() -> None:
    """Run the command line `wgcn`."""
    run("wgcn.cli.app")


def run(module: str) -> None:
    """Run the app of a module; an error that the user can correct is one message and exit status 2, Ctrl-C is 130."""
    try:
        _run(module)
    except KeyboardInterrupt:  # outside of what typer looks after
        sys.exit(130)


def _run(module: str) -> None:
    try:
        from wgcn.cli.console import fail, warn

        app = import_module(module).app
    except ModuleNotFoundError as error:
        if not MissingDependencyError.is_known(error):
            raise
        missing = MissingDependencyError(error.name or "", "The command line", _extra(sys.argv[1:]))
        print(f"Error: {missing.advice('cli')}", file=sys.stderr)
        sys.exit(2)

    def show(message: Any, *_: Any, **__: Any) -> None:
        warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", WGCNWarning)  # one for each file, not only the first
        warnings.showwarning = show
        try:
            app()
        except MissingDependencyError as error:
            fail(error.advice("cli"))
        except WGCNError as error:
            fail(str(error))
        except ModuleNotFoundError as error:
            if not MissingDependencyError.is_known(error):
                raise
            fail(MissingDependencyError(error.name or "", "This command").advice("cli"))


def _extra(arguments: list[str]) -> str:
    """Return what a command needs beside the command line itself, so that all is installed at once."""
    if not arguments or arguments[0] in ("predict", "info", "--help", "-h", "--version"):
        return "cli"
    try:
        import scipy  # noqa: F401
    except ImportError:
        return "graph"
    return "cli"
