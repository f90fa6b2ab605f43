"""The command `wgcn-paper`: one command per file."""

from wgcn.cli import run

__all__ = ["main"]


def main() -> None:
    """Run the command line `wgcn-paper`."""
    run("wgcn_paper.cli.app")
