"""The command line: one command a file. `main` is what the `wgcn` script runs."""

import sys
import warnings
from typing import Any

from wgcn.errors import WGCNError, WGCNWarning

__all__ = ["main"]


def main() -> None:
    """Run the command line; an error that the user can mend is one message and exit status 2, Ctrl-C status 130."""
    try:
        _run()
    except KeyboardInterrupt:  # outside of what typer looks after
        sys.exit(130)


def _run() -> None:
    try:
        from wgcn.cli.app import app
        from wgcn.cli.console import fail, warn
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
