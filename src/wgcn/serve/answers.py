"""Answers of a model as JSON: predictions and explanations, and what a request may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError
from wgcn.explain.explanation import Explanation
from wgcn.io.tables import DIGITS, prediction_columns
from wgcn.serve.models import Served
from wgcn.serve.web import to_json
from wgcn.trust.abstention import answer_columns

_MAX_SHOWN = 1000  # words of an explanation
_ROW, _RANKED, _NUMBER, _TERM = 200, 32, 8, 1000  # bytes: of a row, a likely label, a probability, a term and its parts
_DECIMALS = [repr(number / 10**DIGITS) for number in range(10**DIGITS + 1)]  # of probabilities, which are rounded
# Costs in about nanoseconds, of a text and of a character with each class, of a character, of a byte of an answer; and
# how many times as much an explanation costs.
_TEXT_COST, _SCORE_COST, _CHARACTER_COST, _BYTE_COST, _EXPLAIN_TIMES = 64, 4, 32, 8, 16
INLINE_COST = 1 << 21  # of what is answered without another thread: about two milliseconds
_PART_COST = 1 << 24  # of texts that are answered in one go
_MAX_SCORED = 1 << 27  # characters of a text times classes: each unknown word has a row of its own while it is scored


class Limits(NamedTuple):
    """How much a server takes at a time."""

    body: int = 8_000_000  # bytes of a request
    texts: int = 1_000  # texts of a request
    characters: int = 1_000_000  # characters of a text
    requests: int = 128  # requests that are worked on or wait; more are sent away
    explained: int = 100  # texts of a request to explain, which takes longer
    explained_characters: int = 100_000
    answer: int = 32_000_000  # bytes of an answer

    @property
    def answers_waiting(self) -> int:
        """Bytes of all answers together that are made or sent."""
        return 4 * self.answer

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


class Size(NamedTuple):
    """Bytes that each text adds to an answer: at least about, and at most if names of terms are not long."""

    least: int
    most: int

    def check(self, texts: list[str], limits: Limits, n_classes: int) -> None:
        """Raise an InputError for an answer that would be too long or cost too much, before anything is worked on."""
        most, longest = _MAX_SCORED // n_classes, max(map(len, texts), default=0)
        if longest > most:
            what = f"A text of {longest:,} characters is too long for a model of {n_classes:,} classes"
            raise InputError(f"{what}: {most:,} is the limit. Split it.")
        if len(texts) * self.least > limits.answer:
            fitting = limits.answer // self.least
            advice = f"Send at most {fitting:,} texts at a time to this model, or ask" if fitting else "Ask"
            raise InputError(
                f"With {n_classes:,} classes, each text adds {self.least:,} bytes to the answer, which may have "
                f"{limits.answer:,}. {advice} for 'top', the likeliest labels alone."
            )


def answer_size(served: Served, options: PredictOptions | ExplainOptions) -> Size:
    """Return how many bytes each text adds to an answer."""
    n, longest = len(served.classes), served.longest
    if isinstance(options, ExplainOptions):
        return Size(_ROW, _ROW + longest[1] + 2 * options.n * _TERM)
    several, top = served.model.scorer.multilabel, min(options.top, n)
    least = _ROW + (longest[n] + n * _NUMBER) * options.probabilities + (longest[top] + top * _RANKED) * (top > 1)
    most = least + (longest[n] + n * _NUMBER if several else longest[1])
    return Size(least, most + longest[n] * (options.coverage is not None))


def costs(served: Served, texts: list[str], size: Size, *, explained: bool = False) -> list[int]:
    """Return what it costs to answer each text: to score it, and to write what it adds to the answer."""
    n, times = len(served.classes), _EXPLAIN_TIMES if explained else 1
    text, character = times * _TEXT_COST * n + _BYTE_COST * size.most, times * (_SCORE_COST * n + _CHARACTER_COST)
    return [text + character * len(each) for each in texts]


def parts_of(texts: list[str], costs: list[int]) -> Iterator[list[str]]:
    """Cut texts into lists that are answered in one go, so that no thread and no array takes much at a time."""
    part, held = list[str](), 0
    for text, cost in zip(texts, costs, strict=True):
        if part and held + cost > _PART_COST:
            yield part
            part, held = [], 0
        part.append(text)
        held += cost
    if part:
        yield part


def predict(served: Served, texts: list[str], options: PredictOptions) -> list[str]:
    """Return for each text, as JSON, its label, its confidence, and what the options ask for."""
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
    asked: dict[str, Any] = {"abstain": options.abstain, "coverage": options.coverage, "scope": options.scope}
    columns |= answer_columns(model, scores, terms, **asked)
    rows = [to_json(dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]
    if options.probabilities:
        numbers = np.rint(likely * 10**DIGITS).astype(np.int32)
        rows = [f'{row[:-1]},"probabilities":{_object(served, own)}}}' for row, own in zip(rows, numbers, strict=True)]
    return rows


def _object(served: Served, numbers: npt.NDArray[np.int32]) -> str:
    """Return the probabilities of a text as JSON. They are rounded, so there are few, and none is made a number."""
    pairs = zip(served.keys, numbers.tolist(), strict=True)
    return "{" + ",".join([key + _DECIMALS[number] for key, number in pairs]) + "}"


def explain(served: Served, texts: list[str], options: ExplainOptions) -> list[str]:
    """Return for each text, as JSON, the terms that speak for a class and against it, with what they add to its score.

    Of each text one class alone is explained, so that models with many classes take no more than others.
    """
    return [to_json(_explained(each, options)) for each in served.model.explain(texts, options.label, alone=True)]


def _explained(why: Explanation, options: ExplainOptions) -> dict[str, Any]:
    place = 0
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
