"""What wgcn predict does. Without options it runs without typer, which takes as long to load as all the rest."""

from __future__ import annotations

import sys
from collections.abc import Set
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wgcn.cli.console import say
from wgcn.errors import InputError

if TYPE_CHECKING:
    from wgcn.inference.model import TextModel
    from wgcn.inference.terms import Terms
    from wgcn.labelling.predictions import Column


def app() -> None:
    """Run `wgcn predict DIR [FILE|-]`."""
    predict_texts(*sys.argv[2:])
    sys.exit()


def predict_texts(folder: str | Path, texts: str = "-", *, output: Path | None = None, **options: Any) -> None:
    """Write a row for each text of a file or of standard input; the options are those of the command."""
    import numpy as np

    from wgcn.files import open_whole
    from wgcn.inference.folder import check_target
    from wgcn.inference.model import TextModel
    from wgcn.labelling.predictions import Tally, known_words
    from wgcn.labelling.tables import TableWriter, read_batches, table_kind

    kind = table_kind(output, options.pop("output_format", None))
    if output is not None:
        check_target(output)
    model = TextModel.load(folder)
    wanted = {"nested": kind == "jsonl"} | {name: options.pop(name, 0) for name in ("top", "proba")}
    known = known_words(model.vocabulary) if options.pop("confidence", False) or kind != "txt" else frozenset()
    wanted["trust"] = {name: options.pop(name, None) for name in ("abstain", "coverage", "scope")}
    if wanted["top"] > 1 and model.scorer.multilabel:
        raise InputError("--top is for models that give one label per text; this one may give several. Use --proba.")
    _columns(model, [], model.terms([]), known, **wanted)  # what cannot be answered is said before a text is read
    names, schema, batches = read_batches(texts, keep=kind != "txt", **options)
    tally = Tally()
    with (
        nullcontext(sys.stdout.buffer) if output is None else open_whole(output) as file,
        TableWriter(file, kind, names, schema) as table,
    ):
        for batch, kept in batches:
            terms = model.terms(batch)
            table.write(kept, _columns(model, batch, terms, known, **wanted))
            tally.add(terms.n_tokens, terms.n_unknown, np.diff(terms.offsets))
    say(tally.summary("words" if model.ngram_range == (1, 1) else "words and n-grams"))


def _columns(
    model: TextModel, texts: list[str], terms: Terms, known: Set[str], trust: dict[str, Any], **wanted: Any
) -> list[Column]:
    """Return the columns that are added."""
    from wgcn.labelling.predictions import prediction_columns, unknown_words
    from wgcn.labelling.trust import answer_columns

    scores, classes = model.scorer.scores(*terms[:3]), [str(name) for name in model.classes.tolist()]
    likely = model.scorer.probabilities(scores) if known or wanted["proba"] or wanted["top"] > 1 else None
    unknown = unknown_words(texts, model.tokenizer, known) if known else None
    columns = prediction_columns(classes, model.scorer.decide(scores), likely, unknown, **wanted)
    answers = answer_columns(model, scores, terms, **trust)
    return [*((name, answers.pop(name, values)) for name, values in columns), *answers.items()]
