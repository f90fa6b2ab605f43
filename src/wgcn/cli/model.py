"""wgcn predict, evaluate, extend, export and info: what is done with a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wgcn.base.errors import InputError
from wgcn.base.progress import stage
from wgcn.cli.console import say, show, stages, warn
from wgcn.cli.options import (
    LabelColumn,
    LabelSeparator,
    Missing,
    ModelFolder,
    Overwrite,
    TextFiles,
    read_files,
    reads_files,
    to_file,
)
from wgcn.cli.predict import predict_texts


@reads_files
def predict(
    reading: dict[str, Any],
    folder: ModelFolder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE...|-]", help="Texts to classify. Standard input: one per line, or --format."),
    ] = None,
    output: Annotated[
        Path | None, to_file(metavar="FILE", help=".csv, .tsv, .jsonl or .parquet; .txt: labels alone.")
    ] = None,
    output_format: Annotated[
        str | None, typer.Option(metavar="NAME", help="csv, tsv, jsonl, parquet or txt, whatever the name says.")
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Also print the label's probability, and the share of unknown words.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, metavar="K", help="Also give the next labels, up to K in all.")] = 1,
    proba: Annotated[bool, typer.Option("--proba", help="Also give every probability, as probability_CLASS.")] = False,
    abstain: Annotated[
        float | None,
        typer.Option(metavar="P", help="Give no label where it is less likely than this, or the text is out of scope."),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Also give a set of labels: the right one is in it for this share of texts."
        ),
    ] = None,
    scope: Annotated[
        bool, typer.Option("--scope", help="Also give how strange a text is: 0.99 is stranger than 99 % of training.")
    ] = False,
    label_separator: Annotated[
        str | None, typer.Option(metavar="CHAR", help="Between several labels of a text. Default: ;")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Classify texts, however many: they are read and answered in batches.

    Prints one label per text; several labels are separated by a semicolon. With more columns than that, they are
    separated by tabs and have a header. A table keeps the columns of the file and adds label, confidence and
    unknown_words. Example: wgcn predict my-model new.csv --abstain 0.8 --coverage 0.9 --output labels.csv

    Of several files, each becomes a file of the folder that --output names.
    """
    added: dict[str, Any] = {"confidence": confidence, "top": top, "proba": proba}
    added |= {"abstain": abstain, "coverage": coverage, "scope": scope, "overwrite": overwrite}
    added["label_separator"] = label_separator
    if texts and len(texts) > 1:
        from wgcn.scale.prediction import predict_files

        if output is None:
            raise InputError("The predictions of several files go to a folder: name it with --output DIR.")
        predict_files(folder, texts, output, output_format=output_format, reading=reading, **added)
        say(f"The predictions of {len(texts):,} files are in {output}.")
        return
    predict_texts(folder, texts[0] if texts else "-", output=output, output_format=output_format, **added, **reading)


@reads_files
def evaluate(
    reading: dict[str, Any],
    folder: ModelFolder,
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Labelled texts not in training; - is standard input.")],
    label_column: LabelColumn = "label",
    label_separator: LabelSeparator = None,
    missing: Missing = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the confusion matrix: .png, .svg or .pdf.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The training texts, to warn of test texts among them.")
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out texts whose label the model does not know.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Measure a model on labelled texts: accuracy with a 95 % interval, macro F1, and a table of the classes.

    Example: wgcn evaluate my-model test.csv --text-column body --picture confusion.png
    """
    from wgcn.active.notices import shared_texts
    from wgcn.io.read import read_labelled
    from wgcn.model.text_model import TextModel
    from wgcn.plots import check_picture, plot_confusion
    from wgcn.trust.accuracy import measure

    if picture is not None:
        check_picture(picture, overwrite=overwrite, inputs=[test, *([] if train is None else [train])])
    model = TextModel.load(folder)
    if picture is not None and model.scorer.multilabel:
        raise InputError("A confusion matrix is for models that give one label per text. Leave out --picture.")
    if label_separator is not None and not model.scorer.multilabel:
        raise InputError("The model gives one label per text: leave out --label-separator.")
    labels_as: dict[str, Any] = {"label_column": label_column, "separator": label_separator, "missing": missing}
    rows = read_labelled(test, **labels_as, **reading)
    found = measure(model, rows, skip_unknown)
    if found.n_left_out:
        say(f"Left out {found.n_left_out:,} texts whose label is not in the model.")
    if train is not None and (notice := shared_texts(read_files([train], reading), found.texts)):
        warn(notice)
    show(found.figures)
    typer.echo(f"\n{found.table}")
    if picture is not None:
        plot_confusion(found.truth, found.guess, found.names, picture)
        say(f"The confusion matrix is in {picture}.")


@reads_files
def extend(
    reading: dict[str, Any],
    folder: ModelFolder,
    texts: TextFiles,
    *,
    output: Annotated[Path, to_file(metavar="DIR", help="Folder to write the new model to.")],
    min_count: Annotated[int, typer.Option(min=1, help="Add words that occur at least this often in the texts.")] = 2,
    overwrite: Overwrite = False,
) -> None:
    """Add words to a model that it does not know, without training.

    Example: wgcn extend my-model more.csv --text-column body --output larger-model
    """
    from wgcn.model.card import words_added
    from wgcn.model.text_model import TextModel
    from wgcn.store.folder import check_target

    check_target(output, "model", overwrite=overwrite, inputs=[folder, *texts])
    model = TextModel.load(folder)
    more = read_files(texts, reading)
    with stages(), stage("Adding words"):
        larger = model.extend(more, min_count)
    larger.save(output)
    show({"words added": words_added(model, larger)})
    say(f"The model is in {output}. Use it: wgcn predict {output} FILE")


def export(
    folder: ModelFolder,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one page with the model in it.")] = None,
    js: Annotated[Path | None, typer.Option(metavar="DIR", help="Write a package of JavaScript, for npm.")] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the page.")] = "Classify texts",
    overwrite: Overwrite = False,
) -> None:
    """Write a model that runs in the browser, with the same labels as here and no server.

    Example: wgcn export my-model --html classify.html
    """
    from wgcn.browser.export import export_model

    for line in export_model(folder, html, js, title, overwrite=overwrite):
        say(line)


def info(folder: ModelFolder) -> None:
    """Show what a model is: its card.

    Example: wgcn info my-model
    """
    from wgcn.model.card import model_card
    from wgcn.model.text_model import TextModel

    typer.echo(model_card(TextModel.load(folder)), nl=False)
