"""wgcn suggest: what to label next."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wgcn.cli.console import say, stages
from wgcn.cli.fit import read_labelled
from wgcn.cli.options import Header, LabelSeparator, TextColumn, read_files
from wgcn.errors import InputError

Labels = Annotated[
    str | None, typer.Option("--label-column", metavar="NAME", help="Column with the labels so far. Default: label.")
]


def suggest(
    file: Annotated[Path, typer.Argument(metavar="TEXTS", help="Texts, of which some may have a label.")],
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many texts to suggest.")] = 10,
    text_column: TextColumn = None,
    label_column: Labels = None,
    label_separator: LabelSeparator = None,
    header: Header = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a .csv file with a column to fill in.")
    ] = None,
) -> None:
    """Say which texts to label next. A text with an empty label, or all without such a column, have none yet.

    Rows count from 1, below a header. Example: wgcn suggest texts.csv -n 20 --output to-label.csv
    """
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.files import open_whole
    from wgcn.inference.folder import check_target
    from wgcn.labelling.suggest import WHY_FIRST, WHY_NEXT, Suggestion, as_csv, as_lines

    if output is not None:
        check_target(output)
    texts, labels = _read(file, text_column, label_column, header, label_separator)
    known = {name for label in labels if label is not None for name in (label if label_separator else [label])}
    estimator, rows = WGCNTextClassifier(), [i for i, label in enumerate(labels) if label is None]
    if len(rows) == 0:
        raise InputError(f"Every text of {file} has a label: there is none to suggest.")
    with stages():
        if len(known) < 2:  # nothing to fit yet
            chosen = [rows[i] for i in estimator.suggest(n, [texts[i] for i in rows])]
            found = [Suggestion(i + 1, texts[i]) for i in chosen]
        else:
            chosen = estimator.fit(texts, labels).suggest(n).tolist()
            likely = estimator.predict_proba([texts[i] for i in chosen])
            names = [str(name) for name in estimator.classes_]
            found = [
                Suggestion(i + 1, texts[i], names[p.argmax()], p.max()) for i, p in zip(chosen, likely, strict=True)
            ]
    say(f"{len(texts) - len(rows):,} of {len(texts):,} texts have a label. {WHY_NEXT if len(known) > 1 else WHY_FIRST}")
    if output is None:
        typer.echo("\n".join(as_lines(found)))
        return
    with open_whole(output) as table:
        table.write(as_csv(found))
    say(f"{len(found):,} texts to label are in {output}.")


def _read(
    file: Path, text_column: str | None, label_column: str | None, header: bool, separator: str | None
) -> tuple[list[str], list[Any]]:
    """Return texts and labels; a column that is not named may be missing."""
    try:
        pairs = list(read_labelled(file, text_column, label_column or "label", header, separator))
    except InputError as error:
        if label_column is not None or "no column 'label'" not in str(error):
            raise
        pairs = [(text, None) for text in read_files([file], text_column, header)]
    return [text for text, _ in pairs], [label for _, label in pairs]
