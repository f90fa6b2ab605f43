"""The command line: one command per file. `main` is what the `wgcn` script runs."""

import os
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec

from wgcn.base.errors import MissingDependencyError, WGCNError, WGCNWarning, needs
from wgcn.cli.console import warn

__all__ = ["main", "run"]

_WITHOUT_GRAPH = {"predict", "info", "explain", "words", "export", "serve", "--help", "-h", "--version"}


def main() -> None:
    """Run the command line `wgcn`."""
    has_options = any(part.startswith("-") for part in sys.argv[1:] if part != "-")
    simple = sys.argv[1:2] == ["predict"] and len(sys.argv) in (3, 4) and not has_options
    run("wgcn.cli.predict" if simple else "wgcn.cli.app")


def run(module: str) -> None:
    """Run the app of a module; an error that the user can correct is one message and exit status 2, Ctrl-C is 130."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the start
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))
    try:
        # What the command needs beside the command line itself, so that all is installed at once.
        needs_no_graph = {*sys.argv[1:2]} <= _WITHOUT_GRAPH
        with needs("The command line", "cli" if needs_no_graph or find_spec("scipy") is not None else "graph"):
            app = import_module(module).app
        with warnings.catch_warnings(), needs("This command"):
            warnings.simplefilter("always", WGCNWarning)  # one for each file, not only the first
            # Who reads labels out of a file says so with its name.
            warnings.filterwarnings("ignore", "[0-9,]+ labels often stand for", WGCNWarning)
            warnings.showwarning = lambda message, *_, **__: warn(str(message))
            try:
                app()
            finally:
                sys.stdout.flush()
    except WGCNError as error:
        warn(error.advice("cli") if isinstance(error, MissingDependencyError) else str(error), "Error", 31)
        sys.exit(2)
    except KeyboardInterrupt:  # outside of what typer looks after
        sys.exit(130)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more must be flushed
        if isinstance(error, BrokenPipeError):  # who reads the labels has had enough
            sys.exit(1)
        warn(f"{error.filename or 'Standard output'} cannot be used: {error.strerror or error}.", "Error", 31)
        sys.exit(2)
