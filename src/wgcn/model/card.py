"""The README.md of saved folders: what a model was fitted to, how well it labels, and how it is used.

A model here is a `TextModel` or, for `embedder_card`, an `EmbeddingModel`. A card begins with the metadata that the
Hugging Face hub reads, so that a saved folder is a repository of that hub. What only the user knows, such as license
and language, is taken from `model.report["metadata"]`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wgcn.trust.accuracy import held_out_accuracy

if TYPE_CHECKING:
    from wgcn.model.embedding import EmbeddingModel
    from wgcn.model.text_model import TextModel

_MODEL = """\
{metadata}

# A wgcn text classifier

Classifies texts through a graph of words. Use it with `wgcn predict DIR FILE`, or in Python:

    from wgcn import TextModel
    TextModel.load("DIR").predict(["a text"])

{table}

{measured}{unknown}.
A text without any word that the model can read gets the class shares below.

## Classes

{classes}

## Settings

{settings}
"""

# How the accuracy was measured, by `measured` of the report.
_MEASURED = {
    "held out": """\
The accuracy is measured on labelled documents that were left out of a first fit; the final fit uses all of them.""",
    "folds": """\
The accuracy is from cross-validation: each labelled document is judged by a fit without it, and the final fit uses all
of them.""",
    "teacher": """\
The accuracy is from cross-validation of the teacher, the part of a fit that spreads labels to similar texts. The model
itself, which is fitted to all labelled documents with the help of the teacher, was not measured.""",
    "network": """\
The accuracy is measured on labelled documents that were held out to decide when training ends, so it may be somewhat
too high.""",
    "": "The accuracy is measured on labelled documents that a fit did not see.",
}
_SPELT = "Words that are not in the vocabulary are read by their spelling, if training met parts of it"
_IGNORED = "Words that are not in the vocabulary are ignored"

_EMBEDDER = """\
{metadata}

# A wgcn text embedder

Turns texts into vectors, learnt from unlabelled texts and a graph of their words. Use it with
`wgcn embed FILE --model DIR --output vectors.npy`, or in Python:

    from wgcn import EmbeddingModel
    EmbeddingModel.load("DIR").transform(["a text"])

{table}

Vectors have length 1; that of a text without a known word is 0.

## Settings

{settings}
"""


def model_rows(model: TextModel) -> dict[str, str]:
    """Return what a model was fitted to and what came of it, as names with values."""
    report, network = model.report, model.settings.get("model") == "network"
    n_ngrams, n_background = int(model.vocabulary.are_ngrams.sum()), report.get("n_background", 0)
    several = " (a document may have several)" * model.scorer.multilabel
    added = (f"{more['words']:,} from {more['texts']:,} texts (by {more['how']})" for more in model.extensions)
    chosen, tuned, n_copies = "", report.get("tuned") or {}, report.get("n_copies", 0)
    if tuned.get("accuracy") is not None:  # which is not that of the model, and is not shown beside it
        chosen = ", ".join(f"{name} {value:g}" for name, value in sorted(tuned["settings"].items()))
    rows = {
        "documents in training": f"{report.get('n_documents', 0):,}",
        "of these with labels": f"{report.get('n_labelled', 0):,}",
        "more texts, for vocabulary and word graph alone": f"{n_background:,}" if n_background else "",
        "copies or near-copies among these": f"{n_copies:,}, held out together" if n_copies else "",
        "classes": f"{len(model.classes)}{several}",
        "words": f"{len(model.vocabulary) - n_ngrams:,}",
        "n-grams": f"{n_ngrams:,}" if n_ngrams else "",
        "words added without training": ", ".join(added),
        "accuracy on held-out training documents": held_out_accuracy(report, network),
        "seed words": report.get("seed_note", ""),
        "settings chosen": chosen,
    }
    return {name: value for name, value in rows.items() if value}


def words_added(model: TextModel, larger: TextModel) -> str:
    """Return how many words a model has got by `TextModel.extend`, for people to read."""
    added = larger.extensions[len(model.extensions) :]
    n_texts = f" from {added[0]['texts']:,} texts" if added else ": the texts have none that can be added"
    return f"{len(larger.vocabulary) - len(model.vocabulary):,}{n_texts}"


def model_card(model: TextModel) -> str:
    """Return the README.md of a model folder."""
    shares = zip(model.classes.tolist(), model.scorer.prior.tolist(), strict=True)
    classes = "\n".join(f"- {json.dumps(name, ensure_ascii=False)}: {share:.2%}" for name, share in shares)
    how = "network" if model.settings.get("model") == "network" else model.report.get("measured", "")
    parts = {"classes": classes, "unknown": _IGNORED if model.spelling is None else _SPELT}
    is_measured = model.report.get("held_out_accuracy") is not None
    parts["measured"] = f"{_MEASURED.get(how, _MEASURED[''])}\n\n" * is_measured
    return _card(_MODEL, model, model_rows(model), "text-classification", **parts)


def embedder_card(model: EmbeddingModel) -> str:
    """Return the README.md of an embedder's folder."""
    rows = {
        "texts it was fitted to": f"{model.report.get('n_documents', 0):,}",
        "words and n-grams": f"{len(model.vocabulary):,}",
        "columns": f"{model.word_embeddings.shape[1]:,}",
    }
    return _card(_EMBEDDER, model, rows, "feature-extraction")


def _metadata(model: TextModel | EmbeddingModel, task: str) -> str:
    """Return the block of metadata. Its values are JSON, which YAML can read whatever the texts in them are."""
    known, given = {"library_name": "wgcn", "pipeline_tag": task, "tags": ["wgcn", task]}, model.report.get("metadata")
    known |= given if isinstance(given, dict) else {}
    plain = {str(name) if str(name).isidentifier() else json.dumps(str(name)): value for name, value in known.items()}
    return "\n".join(["---", *(f"{name}: {json.dumps(value)}" for name, value in plain.items()), "---"])


def _card(template: str, model: TextModel | EmbeddingModel, rows: dict[str, str], task: str, **parts: str) -> str:
    """Fill in a template: the metadata, a table of the rows, and the settings."""
    report = model.report
    rows |= {
        "edges of the word graph": f"{report.get('n_edges', 0):,}",
        "time to fit": f"{report.get('seconds', 0):.1f} s",
        "made": f"{report.get('date', 'unknown')}, wgcn {report.get('version', 'unknown')}",
    }
    cells = ((name, value.replace("|", "\\|")) for name, value in rows.items())
    table = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in cells)])
    settings = "\n".join(f"- `{name}`: `{json.dumps(value)}`" for name, value in sorted(model.settings.items()))
    return template.format(metadata=_metadata(model, task), table=table, settings=settings, **parts)
