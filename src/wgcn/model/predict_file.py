"""The texts of a file classified batch by batch into a table: what `wgcn predict` does with a model."""

from __future__ import annotations

import sys
from collections.abc import Set
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from wgcn.base.arrays import row_batches
from wgcn.base.errors import InputError
from wgcn.base.files import open_whole
from wgcn.io.tables import (
    LABEL_SEPARATOR,
    Column,
    TableWriter,
    Tally,
    check_separator,
    known_words,
    prediction_columns,
    read_batches,
    split_labels,
    table_kind,
    unknown_words,
)
from wgcn.model.text_model import TextModel
from wgcn.scoring.terms import Terms
from wgcn.trust.abstention import answer_columns


def predict_file(
    model: TextModel,
    texts: str,
    output: Path | None = None,
    *,
    output_format: str | None = None,
    confidence: bool = False,
    top: int = 1,
    proba: bool = False,
    abstain: float | None = None,
    coverage: float | None = None,
    scope: bool = False,
    label_separator: str | None = None,
    **reading: Any,
) -> str:
    """Write a row for each text of a file or of standard input; return a line about what was seen.

    Parameters
    ----------
    model : TextModel
    texts : path of a file, or "-" for standard input
    output : where the table is written; None is standard output
    output_format : how it is written, one of `wgcn.io.tables.KINDS`; by default as the ending of `output` says
    confidence : whether the columns confidence and unknown_words are added even to plain lines, "txt"
    top, proba : as in `prediction_columns`
    abstain, coverage, scope : as in `answer_columns`
    label_separator : what is written between several labels, a semicolon by default; jsonl and parquet have lists
    reading : as in `read_batches`
    """
    kind = table_kind(output, output_format)
    separator = _separator(model, label_separator, kind, has_sets=coverage is not None)
    known = known_words(model.vocabulary) | {*model.stop_words} if confidence or kind != "txt" else frozenset()
    if top > 1 and model.scorer.multilabel:
        raise InputError("--top is for models that give one label per text; this one may give several. Use --proba.")
    wanted: dict[str, Any] = {"top": top, "proba": proba, "nested": kind == "jsonl"}
    wanted["trust"] = {"abstain": abstain, "coverage": coverage, "scope": scope}
    _columns(model, [], model.terms([]), known, **wanted)  # what cannot be answered is said before a text is read
    names, schema, batches = read_batches(texts, keep=kind != "txt", **reading)
    tally = Tally()
    with (
        nullcontext(sys.stdout.buffer) if output is None else open_whole(output) as file,
        TableWriter(file, kind, names, schema, separator) as table,
    ):
        for batch, kept in batches:
            for rows in row_batches(len(batch), len(model.classes)):
                terms = model.terms(batch[rows])
                table.write(kept[rows], _columns(model, batch[rows], terms, known, **wanted))
                tally.add(terms.n_words, terms.n_new, terms.n_spelt, np.diff(terms.offsets))
    return tally.summary()


def _separator(model: TextModel, given: str | None, kind: str, *, has_sets: bool) -> str:
    """Return what is written between labels, or say why they could not be told apart again."""
    if not model.scorer.multilabel and not has_sets:
        if given is not None:
            raise InputError("The model gives one label per text: leave out --label-separator.")
        return LABEL_SEPARATOR
    separator = LABEL_SEPARATOR if given is None else given
    check_separator(separator)
    if kind in ("jsonl", "parquet"):
        return separator
    unfit = next((name for name in map(str, model.classes.tolist()) if split_labels(name, separator) != [name]), None)
    if unfit is not None or (kind != "csv" and separator in "\t\r\n"):
        what = f"The separator of labels, {separator!r}, would not be read back"
        why = "" if unfit is None else f", because of the label {unfit!r:.60}"
        raise InputError(f"{what}{why}. Give another one with --label-separator, or write .jsonl or .parquet.")
    return separator


def _columns(
    model: TextModel, texts: list[str], terms: Terms, known: Set[str], trust: dict[str, Any], **wanted: Any
) -> list[Column]:
    """Return the columns that are added."""
    scores, classes = model.scorer.scores(*terms.scored), [str(name) for name in model.classes.tolist()]
    likely = model.scorer.probabilities(scores) if known or wanted["proba"] or wanted["top"] > 1 else None
    unknown = unknown_words(texts, model.tokenizer, known) if known else None
    columns = prediction_columns(classes, model.scorer.decide(scores), likely, unknown, **wanted)
    answers = answer_columns(model, scores, terms, **trust)
    return [*((name, answers.pop(name, values)) for name, values in columns), *answers.items()]
