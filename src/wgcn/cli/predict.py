"""What wgcn predict does. Without options it runs without typer, which takes as long to load as all the rest."""

import sys
from pathlib import Path
from typing import Any

from wgcn.cli.console import say


def app() -> None:
    """Run `wgcn predict DIR [FILE|-]`."""
    predict_texts(*sys.argv[2:])
    sys.exit()


def predict_texts(
    folder: str | Path, texts: str = "-", *, output: Path | None = None, overwrite: bool = False, **options: Any
) -> None:
    """Write a row for each text of a file or of standard input; the options are those of the command."""
    from wgcn.model.predict_file import predict_file
    from wgcn.model.text_model import TextModel
    from wgcn.store.folder import check_target

    if output is not None:
        check_target(output, overwrite=overwrite, inputs=[texts])
    say(predict_file(TextModel.load(folder), texts, output, **options))
