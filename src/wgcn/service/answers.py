"""Answers of a model as JSON: predictions and explanations, and what a request may ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wgcn.errors import InputError
from wgcn.labelling.explain import Explanation
from wgcn.labelling.predictions import DIGITS, prediction_columns
from wgcn.labelling.trust import answer_columns
from wgcn.service.models import Served

__all__ = ["ExplainOptions", "Limits", "PredictOptions", "explain", "predict", "read_texts"]

_MAX_SHOWN = 1000  # words of an explanation


class Limits(NamedTuple):
    """How much a server takes at a time."""

    body: int = 8_000_000  # bytes of a request
    texts: int = 1_000  # texts of a request
    characters: int = 1_000_000  # characters of a text
    requests: int = 128  # requests that are worked on or wait; more are sent away
    explained: int = 100  # texts of a request to explain, which takes longer
    explained_characters: int = 100_000

    @property
    def bytes_waiting(self) -> int:
        """Bytes of all requests together that are worked on or wait."""
        return 8 * self.body


class PredictOptions(NamedTuple):
    """What is asked for beside the label; the same for all texts of a request."""

    top: int = 1
    probabilities: bool = False
    abstain: float | None = None
    coverage: float | None = None
    scope: bool = False


class ExplainOptions(NamedTuple):
    """Which class is explained, by default the one with the highest score, and by how many words."""

    label: str | None = None
    n: int = 10


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_SHOWN


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "top": (_is_count, f"a whole number from 1 to {_MAX_SHOWN}"),
    "n": (_is_count, f"a whole number from 1 to {_MAX_SHOWN}"),
    "probabilities": (lambda value: isinstance(value, bool), "true or false"),
    "scope": (lambda value: isinstance(value, bool), "true or false"),
    "abstain": (_is_number, "a number above 0 and below 1"),
    "coverage": (_is_number, "a number above 0 and below 1"),
    "label": (lambda value: isinstance(value, str | int) and not isinstance(value, bool), "the name of a class"),
}


def read_texts(content: dict[str, Any], options: Any, limits: Limits) -> tuple[list[str], bool, Any]:
    """Return the texts of a request, whether it is a single one, and the options, of the type of `options`.

    What is wrong with them is an InputError.
    """
    if ("text" in content) == ("texts" in content):
        raise InputError("Give either 'text', one text, or 'texts', a list of them.")
    single = "text" in content
    texts = [content["text"]] if single else content["texts"]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError("'text' must be a string, and 'texts' a list of strings.")
    explains = isinstance(options, ExplainOptions)
    most, longest = limits.texts, limits.characters
    if explains:
        most, longest = min(most, limits.explained), min(longest, limits.explained_characters)
    if len(texts) > most:
        raise InputError(f"{len(texts):,} texts are too many: {most:,} is the limit. Send several requests.")
    if texts and (length := max(map(len, texts))) > longest:
        raise InputError(f"A text of {length:,} characters is too long: {longest:,} is the limit. Split it.")
    if len(content) == 1:
        return texts, single, options
    given = {name: value for name, value in content.items() if name not in ("text", "texts") and value is not None}
    for name, value in given.items():
        if name not in options._fields:
            raise InputError(f"There is no option {name!r:.80}. There are: text, texts, {', '.join(options._fields)}.")
        check, expected = _CHECKS[name]
        if check is _is_count and isinstance(value, float) and value.is_integer():
            given[name] = value = int(value)  # 3.0 is a whole number in JSON
        if not check(value):
            raise InputError(f"{name!r} must be {expected}, got {value!r:.80}.")
    return texts, single, options._replace(**given)


def predict(served: Served, texts: list[str], options: PredictOptions) -> list[dict[str, Any]]:
    """Return for each text its label, its confidence, and what the options ask for."""
    model, classes = served.model, served.classes
    scorer = model.scorer
    if options.top > 1 and scorer.multilabel:
        raise InputError(
            "'top' is for models that give one label per text; this one may give several: 'probabilities'."
        )
    terms = model.terms(texts)
    scores = scorer.scores(*terms.scored)
    likely = scorer.probabilities(scores)
    columns = dict(prediction_columns(classes, scorer.decide(scores), likely, top=options.top, nested=True))
    if options.probabilities:
        rows = np.round(likely, DIGITS).tolist()
        columns["probabilities"] = [dict(zip(classes, row, strict=True)) for row in rows]
    asked: dict[str, Any] = {"abstain": options.abstain, "coverage": options.coverage, "scope": options.scope}
    columns |= answer_columns(model, scores, terms, **asked)
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def explain(served: Served, texts: list[str], options: ExplainOptions) -> list[dict[str, Any]]:
    """Return for each text the terms that speak for a class and against it, with what they add to its score."""
    return [_explained(each, options) for each in served.model.explain(texts)]


def _explained(why: Explanation, options: ExplainOptions) -> dict[str, Any]:
    place = why.place(options.label)
    label = [str(name) for name in why.label] if isinstance(why.label, list) else str(why.label)
    return {
        "label": label,
        "explained": str(why.classes[place]),
        "probability": round(float(why.probabilities[place]), DIGITS),
        "score": float(why.scores[place]),
        "bias": float(why.bias[place]),
        "for": _terms(why, place, options.n, against=False),
        "against": _terms(why, place, options.n, against=True),
        "unknown": why.unknown[: options.n],
        "n_unknown": len(why.unknown),
    }


def _terms(why: Explanation, place: int, n: int, *, against: bool) -> list[dict[str, Any]]:
    """Return the terms with the largest contributions, and the neighbours in the word graph that a part comes from."""
    column = why.contributions[:, place]
    order = np.argsort(column if against else -column, kind="stable")[:n].tolist()
    found: list[dict[str, Any]] = []
    for i in (i for i in order if (column[i] < 0 if against else column[i] > 0)):
        term: dict[str, Any] = {"term": why.terms[i], "contribution": float(column[i])}
        if why.neighbours is not None and why.neighbours[i]:
            near = why.neighbours[i]
            term["neighbours"] = [{"word": word, "contribution": float(parts[place])} for word, parts in near]
        found.append(term)
    return found
