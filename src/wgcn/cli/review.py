"""wgcn review: labels that look wrong."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wgcn.cli.console import say, stages
from wgcn.cli.options import LabelColumn, LabelSeparator, Missing, Overwrite, read_labelled_texts, reads_files, to_file


@reads_files
def review(
    reading: dict[str, Any],
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="File with labelled texts; - is standard input.")],
    n: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Labels to show; 0 for all.")] = 20,
    output: Annotated[Path | None, to_file(metavar="FILE.csv", help="Write them to a file, with whole texts.")] = None,
    label_column: LabelColumn = "label",
    label_separator: LabelSeparator = None,
    missing: Missing = None,
    overwrite: Overwrite = False,
) -> None:
    """Show the labels that look wrong, most doubtful first.

    A model is fitted, and each label is judged without itself. Rows count from 1, below the header.

    Example: wgcn review train.csv --text-column body -n 50 --output doubts.csv
    """
    from wgcn.active.review import report, write_report
    from wgcn.base.files import write_file
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.io.tables import LABEL_SEPARATOR
    from wgcn.store.folder import check_target

    if output is not None:
        check_target(output, overwrite=overwrite, inputs=[train])
    texts, labels = read_labelled_texts(train, label_column, label_separator, reading, missing=missing)
    separator = LABEL_SEPARATOR if label_separator is None else label_separator
    with stages():
        found = WGCNTextClassifier().fit(texts, labels).review(n or None)
    if output is None:
        typer.echo("\n".join(report(found, texts, separator=separator)))
    else:
        write_file(output, lambda file: write_report(file, found, texts, separator))
        say(f"The {len(found):,} most doubtful labels are in {output}.")
