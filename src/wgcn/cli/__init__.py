"""The command line: one command a file. `main` is what the `wgcn` script runs."""

import sys
import warnings
from importlib import import_module
from typing import Any

from wgcn.errors import WGCNError, WGCNWarning

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
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        print("The command line needs typer and rich. Install them with: pip install 'wgcn[cli]'", file=sys.stderr)
        sys.exit(2)

    def show(message: Any, *_: Any, **__: Any) -> None:
        warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", WGCNWarning)  # one for each file, not only the first
        warnings.showwarning = show
        try:
            app()
        except WGCNError as error:
            fail(str(error))
        except ModuleNotFoundError as error:
            fail(
                f"This command needs the package '{error.name}'. Install all that wgcn can use: pip install 'wgcn[all]'"
            )
