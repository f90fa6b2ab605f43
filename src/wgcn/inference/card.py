"""The README.md of saved folders: what a model was made of, and how it is used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wgcn.inference.embedding import EmbeddingModel
    from wgcn.inference.model import TextModel

__all__ = ["embedder_card", "model_card"]


def model_card(model: TextModel) -> str:
    """Return the README.md of a model folder."""
    report = model.report
    accuracy = report.get("held_out_accuracy")
    n_ngrams, n_background = int(model.vocabulary.are_ngrams.sum()), report.get("n_background", 0)
    average = model.settings.get("model") == "average"
    lines = [
        "# A wgcn text classifier",
        "",
        "Classifies texts through a graph of words. Use it with `wgcn predict DIR FILE`, or in Python:",
        "",
        "    from wgcn import TextModel",
        '    TextModel.load("DIR").predict(["a text"])',
        "",
        "| | |",
        "|---|---|",
        f"| documents in training | {report.get('n_documents', 0):,} |",
        f"| of these with labels | {report.get('n_labelled', 0):,} |",
        *([f"| more texts, for vocabulary and word graph alone | {n_background:,} |"] if n_background else []),
        f"| classes | {len(model.classes)}{' (a document may have several)' if model.scorer.multilabel else ''} |",
        f"| words | {len(model.vocabulary) - n_ngrams:,} |",
        *([f"| n-grams | {n_ngrams:,} |"] if n_ngrams else []),
        *(
            f"| words among them that were added by {added['how']}, without training | {added['words']:,} from "
            f"{added['texts']:,} texts |"
            for added in model.extensions
        ),
        f"| edges of the word graph | {report.get('n_edges', 0):,} |",
        *(["| model | the mean of the scores of the paper's network and of the linear model |"] if average else []),
        f"| accuracy on held-out training documents{', of the linear model alone' if average else ''} | "
        + (f"{accuracy:.2%} of {report['n_held_out']:,} |" if accuracy is not None else "not measured |"),
        *_tuned(report.get("tuned")),
        *_learnt_alpha(report.get("learnt_alpha")),
        f"| time to fit | {report.get('seconds', 0):.1f} s |",
        f"| made | {report.get('date', 'unknown')}, wgcn {report.get('version', 'unknown')} |",
        "",
        "Held-out documents were left out of a first fit and joined the final one; with few labels, the teacher, which",
        "knows the texts without a label, was asked about each of them in turn. A word that is not among these is",
        "ignored; a text with no known word gets the shares of the classes that follow.",
        "",
        "## Classes",
        "",
        *(f"- {json.dumps(name, ensure_ascii=False)}: {share:.2%}" for name, share in _shares(model)),
        "",
        "## Settings",
        "",
        *(f"- `{name}`: `{json.dumps(value)}`" for name, value in sorted(model.settings.items())),
    ]
    return "\n".join(lines) + "\n"


def _tuned(tuned: dict[str, Any] | None) -> list[str]:
    """Return the line that says how settings were chosen, if they were."""
    if tuned is None or tuned["accuracy"] is None:
        return []
    chosen = ", ".join(f"{name} {value:g}" for name, value in sorted(tuned["settings"].items()))
    return [
        f"| settings chosen | {chosen}: {tuned['accuracy']:.2%} in cross-validation, the values given at first "
        f"{tuned['default_accuracy']:.2%}, of {tuned['n_trials']} trials |"
    ]


def _learnt_alpha(learnt: list[float] | None) -> list[str]:
    """Return the line that says how much the graph weighs, if that was learnt."""
    if not learnt:
        return []
    names = ("smallest", "median", "largest")
    each = ", ".join(f"{name} {value:.3g}" for name, value in zip(names, learnt, strict=True)) if learnt[1:] else ""
    return [f"| weight of the graph (alpha), learnt | {f'for each word: {each}' if each else f'{learnt[0]:.3g}'} |"]


def _shares(model: TextModel) -> list[tuple[Any, float]]:
    return list(zip(model.classes.tolist(), model.scorer.prior.tolist(), strict=True))


def embedder_card(model: EmbeddingModel) -> str:
    """Return the README.md of an embedder's folder."""
    report = model.report
    lines = [
        "# A wgcn text embedder",
        "",
        "Turns texts into vectors, learnt from texts without labels and a graph of their words. Use it with",
        "`wgcn embed FILE --model DIR --output vectors.npy`, or in Python:",
        "",
        "    from wgcn import EmbeddingModel",
        '    EmbeddingModel.load("DIR").transform(["a text"])',
        "",
        "| | |",
        "|---|---|",
        f"| texts it was fitted to | {report.get('n_documents', 0):,} |",
        f"| words and n-grams | {len(model.vocabulary):,} |",
        f"| columns | {model.word_embeddings.shape[1]:,} |",
        f"| edges of the word graph | {report.get('n_edges', 0):,} |",
        f"| time to fit | {report.get('seconds', 0):.1f} s |",
        f"| made | {report.get('date', 'unknown')}, wgcn {report.get('version', 'unknown')} |",
        "",
        "A vector has the length 1; that of a text with no known word is 0.",
        "",
        "## Settings",
        "",
        *(f"- `{name}`: `{json.dumps(value)}`" for name, value in sorted(model.settings.items())),
    ]
    return "\n".join(lines) + "\n"
