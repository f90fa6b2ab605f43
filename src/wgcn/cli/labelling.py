"""wgcn label, seeds, suggest, review and curve: the labelling loop."""

from pathlib import Path
from typing import Annotated

import typer

from wgcn.base.errors import needs
from wgcn.cli import options
from wgcn.cli.console import say, stages, warn
from wgcn.cli.options import Given, to_file

Texts = Annotated[Path, typer.Argument(metavar="TEXTS", help="Texts, some of them labelled; - is standard input.")]


@options.grouped
def label(
    texts: Annotated[Path | None, typer.Argument(metavar="[TEXTS]", help="File with texts, labelled or not.")] = None,
    project: Annotated[
        Path | None, typer.Option(metavar="NAME", help="File that keeps all work. Default: named after the texts.")
    ] = None,
    label_column: options.LabelColumn = "label",
    missing: options.Missing = None,
    tokenizer: options.TokenizerName = "words",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port of the page; 0 is a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open the browser.")] = True,
    *,
    reading: Given,
) -> None:
    """Label texts on a page in the browser, with a model that learns while you label.

    Example: wgcn label texts.csv --project my-project. Later, to go on: wgcn label --project my-project
    """
    with needs("The labelling page", "serve"):
        from wgcn.label.start import ready_project, serve_page

    how: Given = {"label_column": label_column, "missing": missing, "tokenizer": tokenizer, "reading": reading}
    serve_page(ready_project(texts, project, **how, say=say), port=port, browser=browser, say=say)


@options.grouped
def seeds(
    files: options.TextFiles,
    *,
    seed: options.Seed = None,
    seeds_file: options.SeedsFile = None,
    tokenizer: options.TokenizerName = "words",
    stop_words: options.StopWords = None,
    reading: Given,
) -> None:
    """Show what seed words stand for: texts that contain them, words they draw in, and their agreement.

    Exclude a word with a minus. Example: wgcn seeds texts.csv --seed "sport=game,team,-card" --seed politics
    """
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.semi.seed_words import problems, read_seed_options, shown_shares, shown_words

    given = read_seed_options(seed, seeds_file)
    estimator = WGCNTextClassifier(tokenizer=tokenizer, stop_words=options.read_stop_words(stop_words) or None)
    with stages():
        found = estimator.check_seeds(options.read_files(files, reading), given)
    print(shown_words(found.words))
    print(f"\n{found.trust.told()} {shown_shares(found.shares)}")
    for problem in filter(None, [*problems(found.words), found.trust.doubt()]):
        warn(problem)


@options.grouped
def suggest(
    texts: Texts,
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many texts to suggest.")] = 10,
    *,
    labels: Given,
    output: Annotated[Path | None, to_file(metavar="FILE", help="Write a .csv file with a column to fill in.")] = None,
    overwrite: options.Overwrite = False,
    reading: Given,
) -> None:
    """Suggest which texts to label next. No label is needed yet. Rows count from 1, below a header.

    Example: wgcn suggest texts.csv -n 20 --output to-label.csv
    """
    from wgcn.active.suggest import as_csv, as_lines, suggestions
    from wgcn.base.files import write_file
    from wgcn.estimators.text import WGCNTextClassifier

    options.check_output(output, overwrite=overwrite, inputs=[texts])
    given, known = options.read_labelled_texts(texts, labels, reading, optional=True)
    with stages():
        found, why = suggestions(WGCNTextClassifier(), given, known, n)
    say(why)
    if output is None:
        typer.echo("\n".join(as_lines(found)))
    else:
        write_file(output, lambda file: file.write(as_csv(found)))
        say(f"{len(found):,} texts to label are in {output}.")


@options.grouped
def review(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="File with labelled texts; - is standard input.")],
    n: Annotated[int, typer.Option("-n", min=0, metavar="N", help="Labels to show; 0 for all.")] = 20,
    output: Annotated[Path | None, to_file(metavar="FILE.csv", help="Write them to a file, with whole texts.")] = None,
    *,
    labels: Given,
    overwrite: options.Overwrite = False,
    reading: Given,
) -> None:
    """Show the labels that look wrong, most doubtful first.

    A model is fitted, and each label is judged without itself. Rows count from 1, below the header.

    Example: wgcn review train.csv --text-column body -n 50 --output doubts.csv
    """
    from wgcn.active.review import report, write_report
    from wgcn.base.files import write_file
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.io.tables import LABEL_SEPARATOR

    options.check_output(output, overwrite=overwrite, inputs=[train])
    texts, known = options.read_labelled_texts(train, labels, reading)
    separator = LABEL_SEPARATOR if labels["label_separator"] is None else labels["label_separator"]
    with stages():
        found = WGCNTextClassifier().fit(texts, known).review(n or None)
    if output is None:
        typer.echo("\n".join(report(found, texts, separator=separator)))
    else:
        write_file(output, lambda file: write_report(file, found, texts, separator))
        say(f"The {len(found):,} most doubtful labels are in {output}.")


@options.grouped
def curve(
    texts: Texts,
    *,
    labels: Given,
    output: Annotated[Path | None, to_file(metavar="FILE", help="Draw the curve: .png, .svg or .pdf.")] = None,
    overwrite: options.Overwrite = False,
    reading: Given,
) -> None:
    """Measure by cross-validation how accuracy grows with the number of labels.

    Example: wgcn curve texts.csv --text-column body --output curve.png
    """
    from wgcn.active.curve import curve_lines
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.plots import plot_curve

    options.check_output(output, "picture", overwrite=overwrite, inputs=[texts])
    given, known = options.read_labelled_texts(texts, labels, reading)
    with stages():
        points = WGCNTextClassifier().learning_curve(given, known)
    n_labelled = sum(label is not None for label in known)
    typer.echo("\n".join(curve_lines(points, n_labelled)))
    if output is not None:
        plot_curve(points, n_labelled, output)
        say(f"The curve is in {output}.")
