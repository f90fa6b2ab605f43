"""wgcn suggest and wgcn curve: what to label next, and whether more labels would help."""

from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import say, stages
from wgcn.cli.fit import read_labelled
from wgcn.cli.options import Header, LabelColumn, LabelSeparator, TextColumn, read_files
from wgcn.errors import InputError

Texts = Annotated[Path, typer.Argument(metavar="TEXTS", help="Texts, of which some have a label.")]


def suggest(
    texts: Texts,
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many texts to suggest.")] = 10,
    text_column: TextColumn = None,
    label_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column with the labels so far. Default: label, if there is one.")
    ] = None,
    label_separator: LabelSeparator = None,
    header: Header = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a .csv file with a column to fill in.")
    ] = None,
) -> None:
    """Say which texts to label next; there may be no label yet. Rows count from 1, below a header.

    Example: wgcn suggest texts.csv -n 20 --output to-label.csv
    """
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.files import open_whole
    from wgcn.inference.folder import check_target
    from wgcn.labelling.suggest import as_csv, as_lines, suggestions

    if output is not None:
        check_target(output)
    try:
        rows = list(read_labelled(texts, text_column, label_column or "label", header, label_separator))
    except InputError as error:
        if label_column is not None or "no column 'label'" not in str(error):
            raise
        rows = [(text, None) for text in read_files([texts], text_column, header)]
    with stages():
        found, why = suggestions(WGCNTextClassifier(), *map(list, zip(*rows, strict=True)), n)
    say(why)
    if output is None:
        typer.echo("\n".join(as_lines(found)))
        return
    with open_whole(output) as table:
        table.write(as_csv(found))
    say(f"{len(found):,} texts to label are in {output}.")


def curve(
    texts: Texts,
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
    rows = list(read_labelled(texts, text_column, label_column, header, label_separator))
    with stages():
        points = WGCNTextClassifier().learning_curve([text for text, _ in rows], [label for _, label in rows])
    n_labelled = sum(label is not None for _, label in rows)
    typer.echo("\n".join(curve_lines(points, n_labelled)))
    if output is not None:
        plot_curve(points, n_labelled, output)
        say(f"The curve is in {output}.")
