"""Answers of a model as JSON: predictions and explanations, how large they get, and what they cost.

The probabilities of a text are written here and not by json: they are rounded, so there are few, and none is made a
number: 3,000 classes take 0.8 ms and not 2.9 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from wgcn.base.errors import InputError
from wgcn.explain.explanation import Explanation
from wgcn.io.tables import DIGITS, prediction_columns
from wgcn.serve.models import Served
from wgcn.serve.schema import Explained, ExplainOptions, Limits, Options, PredictOptions, Term
from wgcn.serve.web import to_json
from wgcn.trust.abstention import answer_columns

_ROW, _RANKED, _NUMBER, _TERM = 200, 32, 8, 1000  # bytes: of a row, a likely label, a probability, a term and its parts
_DECIMALS = [repr(number / 10**DIGITS) for number in range(10**DIGITS + 1)]  # of probabilities, which are rounded
# Costs in about nanoseconds, of a text and of a character with each class, of a character, of a byte of an answer; and
# how many times as much an explanation costs.
_TEXT_COST, _SCORE_COST, _CHARACTER_COST, _BYTE_COST, _EXPLAIN_TIMES = 64, 4, 32, 8, 16
_BATCH_COST = 1 << 24  # of texts that are answered in one go
_MAX_SCORED = 1 << 27  # characters of a text times classes: each unknown word has a row of its own while it is scored

Answering = Callable[[Served, list[str], Any], list[str]]


class Expected(NamedTuple):
    """What the answer to a request takes, which is known before anything is worked on."""

    size: int  # bytes at most, if names of terms are not long
    costs: list[int]  # of each text: to score it, and to write what it adds to the answer

    @classmethod
    def of(cls, served: Served, texts: list[str], options: Options, limits: Limits) -> Expected:
        """Return it, or raise an InputError for an answer that would be too long or cost too much."""
        n, explained = len(served.classes), isinstance(options, ExplainOptions)
        longest, most = max(map(len, texts), default=0), _MAX_SCORED // n
        if longest > most:
            what = f"A text of {longest:,} characters is too long for a model of {n:,} classes"
            raise InputError(f"{what}: {most:,} is the limit. Split it.")
        least, most = row_size(served, options)
        if len(texts) * least > limits.answer:
            fitting = limits.answer // least
            advice = f"Send at most {fitting:,} texts at a time to this model, or ask" if fitting else "Ask"
            raise InputError(
                f"With {n:,} classes, each text adds {least:,} bytes to the answer, which may have "
                f"{limits.answer:,}. {advice} for 'top', the likeliest labels alone."
            )
        times = _EXPLAIN_TIMES if explained else 1
        text, character = times * _TEXT_COST * n + _BYTE_COST * most, times * (_SCORE_COST * n + _CHARACTER_COST)
        return cls(len(texts) * most, [text + character * len(each) for each in texts])


def row_size(served: Served, options: Options) -> tuple[int, int]:
    """Return how many bytes each text adds to an answer: at least about, and at most."""
    n, longest = len(served.classes), served.longest
    if isinstance(options, ExplainOptions):
        return _ROW, _ROW + longest[1] + 2 * options.n * _TERM
    assert isinstance(options, PredictOptions)
    several, top = served.model.scorer.multilabel, min(options.top, n)
    least = _ROW + (longest[n] + n * _NUMBER) * options.probabilities + (longest[top] + top * _RANKED) * (top > 1)
    most = least + (longest[n] + n * _NUMBER if several else longest[1])
    return least, most + longest[n] * (options.coverage is not None)


def batches_of(texts: list[str], costs: list[int]) -> Iterator[list[str]]:
    """Cut texts into lists that are answered in one go, so that no thread and no array takes much at a time."""
    batch, held = list[str](), 0
    for text, cost in zip(texts, costs, strict=True):
        if batch and held + cost > _BATCH_COST:
            yield batch
            batch, held = [], 0
        batch.append(text)
        held += cost
    if batch:
        yield batch


def predict(served: Served, texts: list[str], options: PredictOptions) -> list[str]:
    """Return for each text, as JSON, its label, its confidence, and what the options ask for."""
    model, scorer = served.model, served.model.scorer
    if options.top > 1 and scorer.multilabel:
        raise InputError(
            "'top' is for models that give one label per text; this one may give several: 'probabilities'."
        )
    terms = model.terms(texts)
    scores = scorer.scores(*terms.scored)
    likely = scorer.probabilities(scores)
    columns = dict(prediction_columns(served.classes, scorer.decide(scores), likely, top=options.top, nested=True))
    columns |= answer_columns(
        model, scores, terms, abstain=options.abstain, coverage=options.coverage, scope=options.scope
    )
    rows = [to_json(dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]
    if options.probabilities:
        for place, numbers in enumerate(np.rint(likely * 10**DIGITS).astype(np.int32)):
            pairs = zip(served.keys, numbers.tolist(), strict=True)
            inside = ",".join([key + _DECIMALS[number] for key, number in pairs])
            rows[place] = f'{rows[place][:-1]},"probabilities":{{{inside}}}}}'
    return rows


def explain(served: Served, texts: list[str], options: ExplainOptions) -> list[str]:
    """Return for each text, as JSON, the terms that speak for a class and against it, with what they add to its score.

    Of each text one class alone is explained, so that models with many classes take no more than others.
    """
    return [to_json(_explained(each, options.n)) for each in served.model.explain(texts, options.label, alone=True)]


def _explained(why: Explanation, n: int) -> Explained:
    return {
        "label": [str(name) for name in why.label] if isinstance(why.label, list) else str(why.label),
        "explained": str(why.classes[0]),
        "probability": round(float(why.probabilities[0]), DIGITS),
        "score": float(why.scores[0]),
        "bias": float(why.bias[0]),
        "for": _terms(why, n, against=False),
        "against": _terms(why, n, against=True),
        "unknown": why.unknown[:n],
        "n_unknown": len(why.unknown),
    }


def _terms(why: Explanation, n: int, *, against: bool) -> list[Term]:
    """Return the terms with the largest contributions, and the neighbours in the word graph that a part comes from."""
    near = dict(zip(why.terms, why.neighbours or [], strict=False))
    found = list[Term]()
    for term, contribution in why.top(why.classes[0], n, against=against):
        found.append({"term": term, "contribution": contribution})
        if neighbours := near.get(term):
            found[-1]["neighbours"] = [{"word": word, "contribution": float(parts[0])} for word, parts in neighbours]
    return found
