"""wgcn curve: how good a model is with more and more labels."""

from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import say, stages
from wgcn.cli.fit import read_labelled
from wgcn.cli.options import Header, LabelColumn, LabelSeparator, TextColumn


def curve(
    file: Annotated[Path, typer.Argument(metavar="TEXTS", help="Texts with labels; those without help too.")],
    text_column: TextColumn = None,
    label_column: LabelColumn = "label",
    label_separator: LabelSeparator = None,
    header: Header = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Draw the curve: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Measure by cross-validation how accuracy grows with the number of labels.

    Example: wgcn curve texts.csv --text-column body --output curve.png
    """
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.labelling.curve import curve_lines
    from wgcn.labelling.pictures import check_picture, plot_curve

    if output is not None:
        check_picture(output)
    rows = list(read_labelled(file, text_column, label_column, header, label_separator))
    labels = [label for _, label in rows]
    with stages():
        points = WGCNTextClassifier().learning_curve([text for text, _ in rows], labels)
    n_labelled = sum(label is not None for label in labels)
    typer.echo("\n".join(curve_lines(points, n_labelled)))
    if output is not None:
        plot_curve(points, n_labelled, output)
        say(f"The curve is in {output}.")
