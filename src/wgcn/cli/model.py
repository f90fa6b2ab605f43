"""wgcn predict, evaluate, extend and info: what is done with a model."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from wgcn.cli.console import say, show, stages, warn
from wgcn.cli.fit import read_labelled
from wgcn.cli.options import Header, LabelColumn, LabelSeparator, ModelFolder, TextColumn, TextFiles, read_files
from wgcn.cli.predict import predict_texts
from wgcn.errors import InputError
from wgcn.progress import stage


def predict(
    folder: ModelFolder,
    texts: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Texts to classify; - or nothing: standard input, one per line.")
    ] = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Also print the probability of every class.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file; .csv: with a header and commas."),
    ] = None,
    text_column: TextColumn = None,
    header: Header = True,
) -> None:
    """Classify texts, however many: they are read and answered in batches.

    Prints one label per text; several labels are separated by a comma. With --proba, columns are separated by tabs and
    have a header. Example: wgcn predict my-model new.csv --proba --output labels.csv
    """
    predict_texts(folder, texts, proba=proba, output=output, text_column=text_column, header=header)


def evaluate(
    folder: ModelFolder,
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Labelled texts that were not in training.")],
    text_column: TextColumn = None,
    label_column: LabelColumn = "label",
    label_separator: LabelSeparator = None,
    header: Header = True,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the confusion matrix: .png, .svg or .pdf.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The training texts, to warn of test texts among them.")
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out texts whose label the model does not know.")
    ] = False,
) -> None:
    """Measure a model on labelled texts: accuracy, macro F1, and a table of the classes.

    Example: wgcn evaluate my-model test.csv --text-column body --picture confusion.png
    """
    import numpy as np
    from sklearn.metrics import accuracy_score, classification_report, f1_score

    from wgcn.graph.pictures import check_picture, plot_confusion
    from wgcn.inference.model import TextModel
    from wgcn.labelling.notices import shared_texts

    if picture is not None:
        check_picture(picture)
    model = TextModel.load(folder)
    if picture is not None and model.scorer.multilabel:
        raise InputError("A confusion matrix is for models that give one label per text. Leave out --picture.")
    names = [str(name) for name in model.classes.tolist()]
    found = read_labelled(test, text_column, label_column, header, label_separator)
    if model.scorer.multilabel != (label_separator is not None):
        expected = "several labels per text: give" if model.scorer.multilabel else "one label per text: leave out"
        raise InputError(f"The model gives {expected} --label-separator.")
    rows = [(text, label if isinstance(label, list) else [label]) for text, label in found if label is not None]
    rows = _known_only(rows, names, skip_unknown)
    if train is not None and (
        notice := shared_texts(read_files([train], text_column, header), (row[0] for row in rows))
    ):
        warn(notice)
    guess = model.scorer.decide(model.scores(text for text, _ in rows))
    truth = np.array([[name in labels for name in names] for _, labels in rows], np.int64)  # (texts, classes)
    truth = truth if model.scorer.multilabel else truth.argmax(axis=1)
    every = range(len(names))
    macro = f1_score(truth, guess, average="macro", zero_division=0, labels=every)
    show({"texts": f"{len(rows):,}", "accuracy": f"{accuracy_score(truth, guess):.2%}", "macro F1": f"{macro:.2%}\n"})
    typer.echo(classification_report(truth, guess, labels=every, target_names=names, digits=3, zero_division=0))
    if picture is not None:
        plot_confusion(truth, guess, names, picture)
        say(f"The confusion matrix is in {picture}.")


def _known_only(rows: list[tuple[str, list[str]]], names: list[str], skip_unknown: bool) -> list[tuple[str, list[str]]]:
    unknown = Counter(label for _, labels in rows for label in labels if label not in names)
    if unknown and not skip_unknown:
        listed = ", ".join(f"{label!r} ({count:,})" for label, count in unknown.most_common(5))
        raise InputError(
            f"{len(unknown)} labels were not in training: {listed}. Fit a model with texts of these classes, or leave "
            "such texts out with --skip-unknown."
        )
    kept = [row for row in rows if not unknown.keys() & row[1]]
    if len(kept) < len(rows):
        say(f"Left out {len(rows) - len(kept):,} texts whose label is not in the model.")
    if not kept:
        raise InputError("No text with a known label is left to measure.")
    return kept


def extend(
    folder: ModelFolder,
    texts: TextFiles,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write the new model to.")],
    min_count: Annotated[int, typer.Option(min=1, help="Add words that occur at least this often in the texts.")] = 2,
    text_column: TextColumn = None,
    header: Header = True,
) -> None:
    """Add words to a model that it does not know, without training.

    Example: wgcn extend my-model more.csv --text-column body --output larger-model
    """
    from wgcn.inference.folder import check_target
    from wgcn.inference.model import TextModel

    check_target(output, "model")
    model = TextModel.load(folder)
    more = read_files(texts, text_column, header)
    with stages(), stage("Adding words"):
        larger = model.extend(more, min_count)
    larger.save(output)
    added = larger.extensions[len(model.extensions) :]
    n_texts = f" from {added[0]['texts']:,} texts" if added else ": the texts have none that can be added"
    show({"words added": f"{len(larger.vocabulary) - len(model.vocabulary):,}{n_texts}"})
    say(f"The model is in {output}. Use it: wgcn predict {output} FILE")


def info(folder: ModelFolder) -> None:
    """Show what a model is: its card.

    Example: wgcn info my-model
    """
    from wgcn.inference.card import model_card
    from wgcn.inference.model import TextModel

    typer.echo(model_card(TextModel.load(folder)), nl=False)
