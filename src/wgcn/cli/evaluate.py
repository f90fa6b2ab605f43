"""wgcn evaluate and wgcn info: how good a model is, and what it is."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from wgcn.cli.console import say
from wgcn.cli.fit import read_labelled
from wgcn.cli.options import Header, LabelColumn, LabelSeparator, ModelFolder, TextColumn
from wgcn.errors import InputError

__all__ = ["evaluate", "info"]


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

    if picture is not None:
        check_picture(picture)
    model = TextModel.load(folder)
    if picture is not None and model.scorer.multilabel:
        raise InputError("A confusion matrix is for models that give one label a text. Leave out --picture.")
    names = [str(name) for name in model.classes.tolist()]
    rows = [
        row for row in read_labelled(test, text_column, label_column, header, label_separator) if row[1] is not None
    ]
    if model.scorer.multilabel != (label_separator is not None):
        expected = "several labels a text: give --label-separator" if model.scorer.multilabel else "one label a text"
        raise InputError(f"The model gives {expected}.")
    rows = _known_only(rows, names, skip_unknown)
    texts = [text for text, _ in rows]
    index = {name: i for i, name in enumerate(names)}
    truth: Any
    if model.scorer.multilabel:
        truth = np.zeros((len(rows), len(names)), int)
        for i, (_, labels) in enumerate(rows):
            truth[i, [index[label] for label in labels]] = 1
        guess = model.predict(texts)
    else:
        truth = np.array([index[label] for _, label in rows])
        guess = model.scores(texts).argmax(axis=1)
    typer.echo(f"texts     {len(rows):,}")
    typer.echo(f"accuracy  {accuracy_score(truth, guess):.2%}")
    typer.echo(f"macro F1  {f1_score(truth, guess, average='macro', zero_division=0, labels=range(len(names))):.2%}")
    typer.echo("")
    table = classification_report(truth, guess, labels=range(len(names)), target_names=names, digits=3, zero_division=0)
    typer.echo(table)
    if picture is not None:
        plot_confusion(truth, guess, names, picture)
        say(f"The confusion matrix is in {picture}.")


def _known_only(rows: list[tuple[str, Any]], names: list[str], skip_unknown: bool) -> list[tuple[str, Any]]:
    def labels_of(row: tuple[str, Any]) -> list[str]:
        return row[1] if isinstance(row[1], list) else [row[1]]

    unknown = Counter(label for row in rows for label in labels_of(row) if label not in set(names))
    if unknown and not skip_unknown:
        listed = ", ".join(f"{label!r} ({count:,})" for label, count in unknown.most_common(5))
        raise InputError(
            f"{len(unknown)} labels were not in training: {listed}. Fit a model with texts of these classes, or leave "
            "such texts out with --skip-unknown."
        )
    kept = [row for row in rows if not any(label in unknown for label in labels_of(row))]
    if len(kept) < len(rows):
        say(f"Left out {len(rows) - len(kept):,} texts whose label is not in the model.")
    if not kept:
        raise InputError("No text with a known label is left to measure.")
    return kept


def info(folder: ModelFolder) -> None:
    """Show what a model is: its card.

    Example: wgcn info my-model
    """
    from wgcn.inference.card import model_card
    from wgcn.inference.model import TextModel

    typer.echo(model_card(TextModel.load(folder)), nl=False)
