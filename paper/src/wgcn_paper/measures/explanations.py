"""Whether explanations are exact, and whether the words that they name decide."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from wgcn_paper.datasets import Dataset
from wgcn_paper.measures.measure import Measure, full_fit, share, split_of

_DELETED = 3  # words


class Explanations(Measure):
    """Explain random test texts: compare sums with scores, and delete the most decisive or random words.

    - ``exact``: share of texts where contributions, added in their order, plus bias are the model's score in every bit;
    - ``decisive``: share of texts where deleting the three most decisive words (with every occurrence, and the n-grams
      they are in) lowers the score of the predicted class more than deleting three random other words of the text does;
      only texts with at least six different known words are counted, and their number is ``deleted``;
    - ``drop`` and ``drop_random``: by how much, on average;
    - ``examples``: what was decisive in the first texts, of the first draw alone.
    """

    name = "explanations"
    defaults: ClassVar = {**Measure.defaults, "texts": 1000, "examples": 2}

    def measure(self, dataset: Dataset) -> dict[str, Any]:
        """Return the shares on a draw of the test texts."""
        model, split = full_fit(dataset), split_of(dataset)
        rng = np.random.default_rng(self.seed)
        chosen = rng.permutation(len(split.test))[: self.settings["texts"]]
        texts = [split.test[i] for i in chosen]
        explained, scores = model.explain(texts), model.model_.scores(texts)
        exact, whole, without, classes = [], list[str](), list[str](), list[int]()
        for explanation, score in zip(explained, scores, strict=True):
            exact.append(np.array_equal(_sum(explanation), score))
            ranked = [word for word, _ in explanation.words()]
            if len(ranked) < 2 * _DELETED:
                continue
            top = set(ranked[:_DELETED])
            others = set(rng.choice(ranked[_DELETED:], _DELETED, replace=False).tolist())
            whole.append(" ".join(explanation.tokens))
            without += [" ".join(t for t in explanation.tokens if t not in gone) for gone in (top, others)]
            classes.append(explanation.decided)
        rows = np.arange(len(classes))
        before = model.model_.scores(whole)[rows, classes]
        after = model.model_.scores(without).reshape(len(rows), 2, -1)[rows, :, classes]  # (texts, 2)
        drops = before[:, None] - after
        return {
            "accuracy": share([e.label == split.test_labels[i] for e, i in zip(explained, chosen, strict=True)]),
            "exact": share(exact),
            "decisive": share(drops[:, 0] > drops[:, 1]),
            "deleted": len(rows),
            "drop": float(drops[:, 0].mean()),
            "drop_random": float(drops[:, 1].mean()),
            "examples": [_example(e) for e in explained[: self.settings["examples"]]] if self.seed == 0 else [],
        }


def _sum(explanation: Any) -> Any:
    """Return contributions plus bias: products in double precision, added in their order, rounded once."""
    if not explanation.terms:
        return explanation.bias
    total = np.zeros(len(explanation.classes))
    for row in explanation.contributions:
        total += row
    return total.astype(explanation.bias.dtype) + explanation.bias


def _example(explanation: Any) -> dict[str, Any]:
    """Return what decided, without the text: results are committed, and the texts are not ours."""
    return {
        "label": str(explanation.label),
        "score": round(float(explanation.scores[explanation.decided]), 3),
        "bias": round(float(explanation.bias[explanation.decided]), 3),
        "terms": [[term, round(value, 3)] for term, value in explanation.top(n=5)],
    }
