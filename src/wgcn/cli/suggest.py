"""wgcn suggest and wgcn curve: what to label next, and whether more labels would help."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wgcn.cli.console import say, stages
from wgcn.cli.options import LabelColumn, LabelSeparator, Missing, Overwrite, read_labelled_texts, reads_files, to_file

Texts = Annotated[Path, typer.Argument(metavar="TEXTS", help="Texts, some of them labelled; - is standard input.")]


@reads_files
def suggest(
    reading: dict[str, Any],
    texts: Texts,
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many texts to suggest.")] = 10,
    label_column: Annotated[
        str, typer.Option(metavar="NAME", help="Column with the labels so far; 'label' may be missing.")
    ] = "label",
    label_separator: LabelSeparator = None,
    missing: Missing = None,
    output: Annotated[Path | None, to_file(metavar="FILE", help="Write a .csv file with a column to fill in.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Suggest which texts to label next. No label is needed yet. Rows count from 1, below a header.

    Example: wgcn suggest texts.csv -n 20 --output to-label.csv
    """
    from wgcn.active.suggest import as_csv, as_lines, suggestions
    from wgcn.base.files import write_file
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.store.folder import check_target

    if output is not None:
        check_target(output, overwrite=overwrite, inputs=[texts])
    given, labels = read_labelled_texts(texts, label_column, label_separator, reading, missing=missing, optional=True)
    with stages():
        found, why = suggestions(WGCNTextClassifier(), given, labels, n)
    say(why)
    if output is None:
        typer.echo("\n".join(as_lines(found)))
    else:
        write_file(output, lambda file: file.write(as_csv(found)))
        say(f"{len(found):,} texts to label are in {output}.")


@reads_files
def curve(
    reading: dict[str, Any],
    texts: Texts,
    label_column: LabelColumn = "label",
    label_separator: LabelSeparator = None,
    missing: Missing = None,
    output: Annotated[Path | None, to_file(metavar="FILE", help="Draw the curve: .png, .svg or .pdf.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Measure by cross-validation how accuracy grows with the number of labels.

    Example: wgcn curve texts.csv --text-column body --output curve.png
    """
    from wgcn.active.curve import curve_lines
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.plots import check_picture, plot_curve

    if output is not None:
        check_picture(output, overwrite=overwrite, inputs=[texts])
    given, labels = read_labelled_texts(texts, label_column, label_separator, reading, missing=missing)
    with stages():
        points = WGCNTextClassifier().learning_curve(given, labels)
    n_labelled = sum(label is not None for label in labels)
    typer.echo("\n".join(curve_lines(points, n_labelled)))
    if output is not None:
        plot_curve(points, n_labelled, output)
        say(f"The curve is in {output}.")
