"""TextModel: a fitted model that takes texts, with numpy alone, and the folder that it is saved in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import Floats, labels_array, row_batches
from wgcn.base.errors import InputError, StoreError, needs
from wgcn.explain.explanation import Explainer, Explanation, Split, find_class, rank_words
from wgcn.model.card import model_card
from wgcn.scoring.scorer import Scorer
from wgcn.scoring.spelling import Spelling
from wgcn.scoring.terms import TERM_SCHEMA, Terms, TextTerms, load_terms
from wgcn.store import folder as store
from wgcn.store.contents import check_classes
from wgcn.text.tokenize import checked_texts, resolve_tokenizer
from wgcn.trust.abstention import Trust, checked_trust
from wgcn.trust.scope import familiarity_of

MODEL_SCHEMA = {**TERM_SCHEMA, "classes": list, "sharpness": float, "multilabel": bool}
_SESSION_NOTE = """
## Session

`session.json` and `session.safetensors` hold the words of the training texts in their order, and their labels, so that
`WGCNTextClassifier.load` can go on with them. Save the model without a session before you give it away.
"""


@dataclass(frozen=True, eq=False)
class TextModel(TextTerms):
    """A trained text classifier: the content of a saved model folder.

    Parameters
    ----------
    tokenizer, ngram_range, vocabulary, weighting, scorer
        How texts become weighted terms, and these become scores.
    classes : array of shape (classes,)
        The labels, strings or integers.
    settings, report : dict
        How the model was fitted, and the results: for the model card.
    stop_words : tuple of str
        Words that are dropped before n-grams are formed, sorted. They count as unknown words.
    spelling : Spelling or None
        What was learnt of subwords, for words that training did not see.
    split : Split or None
        What `explain` needs to tell a word from its neighbours in the graph.
    trust : Trust, optional
        What held-out texts say, for `out_of_scope`, `predict_set` and `predict` with `abstain`.
    """

    scorer: Scorer
    classes: npt.NDArray[Any]
    split: Split | None = field(default=None, kw_only=True)
    trust: Trust | None = field(default=None, kw_only=True)

    def transform(self, texts: Iterable[str], n_jobs: int | None = 1) -> Floats:
        """Return document embeddings, of shape (documents, hidden); see `scores`."""
        return self._rows(lambda terms: self.scorer.embed(*terms.scored), texts, n_jobs)

    def scores(self, texts: Iterable[str], n_jobs: int | None = 1) -> Floats:
        """Return scores of shape (documents, classes); texts are read in batches.

        `n_jobs` threads are useful where numba is installed; -1 or None is one per core.
        """
        return self._rows(lambda terms: self.scorer.scores(*terms.scored), texts, n_jobs)

    def predict_proba(self, texts: Iterable[str], n_jobs: int | None = 1) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (documents, classes)."""
        return self.scorer.probabilities(self.scores(texts, n_jobs))

    def predict(
        self, texts: Iterable[str], n_jobs: int | None = 1, *, abstain: float | None = None
    ) -> npt.NDArray[Any]:
        """Return one label per document; for a multi-label model a 0/1 matrix of shape (documents, classes).

        With `abstain`, above 0 and below 1, the label is None where its probability is below this, or where the text is
        stranger than 99 % of held-out training texts (`out_of_scope`).
        """
        if abstain is None:
            decided = self._rows(lambda terms: self.scorer.decisions(*terms.scored), texts, n_jobs)
            return self.scorer.named(decided, self.classes)
        trust = checked_trust(self.trust, self.scorer.multilabel)
        return np.concatenate([trust.labels(*each, self.classes, abstain) for each in self._judged(texts, n_jobs)])

    def explain(self, texts: Iterable[str], label: object = None, *, alone: bool = False) -> list[Explanation]:
        """Return the contribution of every term to the score of every class, per text: see `Explanation`.

        Contributions and bias sum to the scores, in a linear model to the last bit. With `alone`, an explanation has
        one class: `label`, or by default the one with the highest score. With many classes that takes far less memory.
        """
        terms, scorer = self.terms(texts := list(checked_texts(texts))), self.scorer
        explainer = Explainer(
            tokenizer=resolve_tokenizer(self.tokenizer),
            ngram_range=self.ngram_range,
            stop_words=self.stop_words,
            words=self.vocabulary.words,
            idf=self.weighting.idf,
            n_learnt=len(self.vocabulary) - sum(entry["words"] for entry in self.extensions),
            table=scorer.word_embeddings,
            class_weights=scorer.class_weights,
            bias=scorer.bias,
            classes=self.classes,
            split=self.split,
            new_words=terms.new_words,
            new_rows=terms.new_rows,
            spelling=None if self.spelling is None else self.spelling.sums_of,
        )
        scores = scorer.scores(*terms.scored)
        answers = scores, scorer.probabilities(scores), scorer.decide(scores)
        places = None
        if alone:
            places = scores.argmax(axis=1) if label is None else np.full(len(texts), find_class(self.classes, label))
        return explainer.explain(texts, *terms[:3], *answers, places=places)

    def top_words(self, label: object, n: int = 20) -> list[tuple[str, float]]:
        """Return the n strongest words and n-grams of a class, with the values that rank them.

        See `wgcn.explain.explanation.rank_words`. Words of fewer than three training texts are left out.
        """
        scorer = self.scorer
        weights, place = (scorer.word_embeddings, scorer.class_weights), find_class(self.classes, label)
        return rank_words(self.vocabulary, self.weighting.idf, *weights, place, n, multilabel=scorer.multilabel)

    def out_of_scope(self, texts: Iterable[str], n_jobs: int | None = 1) -> Floats:
        """Return how strange each text is: the share of held-out training texts that look less strange.

        A text is strange if its words are unknown or rare, its n-grams unknown, or no class likely.
        """
        trust = checked_trust(self.trust)
        return np.concatenate([trust.out_of_scope(*each) for each in self._judged(texts, n_jobs)])

    def predict_set(
        self, texts: Iterable[str], coverage: float = 0.9, n_jobs: int | None = 1, *, as_mask: bool = False
    ) -> list[list[Any]] | npt.NDArray[np.bool_]:
        """Return the credible labels of each text, the most likely first (conformal prediction).

        If the texts are like those in training, the right label is among them for the share `coverage`. A list is empty
        where no label is credible. With `as_mask`, a matrix of shape (texts, classes), True for a label in the set.
        """
        trust = checked_trust(self.trust, self.scorer.multilabel)
        likely = (self.predict_proba(batch, n_jobs) for batch in self._batches(texts))
        if as_mask:
            return np.concatenate([trust.sets(each, coverage) for each in likely])
        return [labels for each in likely for labels in trust.label_sets(each, coverage, self.classes)]

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Cut texts into lists whose scores are a bounded number."""
        given = list(checked_texts(texts))
        return (given[rows] for rows in row_batches(len(given), len(self.classes)))

    def _judged(self, texts: Iterable[str], n_jobs: int | None) -> Iterator[tuple[Floats, Floats]]:
        """Yield for some texts at a time probabilities, (texts, classes), and familiarity, (texts, 4)."""
        n = len(self.classes)

        def rows(terms: Terms) -> Floats:
            return np.hstack([self.scorer.scores(*terms.scored), familiarity_of(self, terms)])

        for batch in self._batches(texts):
            found = self._rows(rows, batch, n_jobs)
            yield self.scorer.probabilities(found[:, :n]), found[:, n:]

    def extend(self, texts: Iterable[str], min_count: int = 2) -> TextModel:
        """Return the model with rows for words that it does not know, without training and without labels.

        The row of a new word is made from the known words that it shares texts with, so the texts should be many and
        similar to those to be classified. Words that occur in them fewer than `min_count` times are left out. Nothing
        changes for a text without new words.

        Examples
        --------
        >>> from wgcn import WGCNTextClassifier
        >>> model = WGCNTextClassifier().fit(["red wine", "fast car"], ["drink", "drive"]).model_
        >>> model = model.extend(["merlot is red wine", "a glass of merlot", "turbo for a fast car", "turbo car"])
        >>> model.predict(["merlot", "turbo"]).tolist()
        ['drink', 'drive']
        """
        with needs("Adding words to a model"):
            from wgcn.model.extend import extend
        return extend(self, texts, min_count)

    @property
    def extensions(self) -> list[dict[str, Any]]:
        """One entry per call of `extend`: the method, the number of words added, and the number of texts."""
        return list(self.report.get("extended", ()))

    def save(self, path: str | Path, *, session: store.SessionFiles | None = None) -> str:
        """Write the model to a folder, completely or not at all; return its digest.

        A model that is there is replaced, other files stay; a folder that holds something else is an error.
        `session` is what `WGCNTextClassifier.save` adds if asked; without it, that of an earlier save is removed.
        """
        if self.classes.dtype.kind not in "Uiu" and not all(isinstance(name, str) for name in self.classes):
            raise InputError(f"Labels must be strings or integers to be saved, got {self.classes.dtype}. Convert them.")
        tensors = {
            "word_embeddings": self.scorer.word_embeddings,
            "bias": self.scorer.bias,
            "prior": self.scorer.prior,
            "idf": self.weighting.idf,
        }
        if self.scorer.class_weights is not None:
            tensors["class_weights"] = self.scorer.class_weights
        if self.split is not None:
            tensors |= {f"split.{part}": tensor for part, tensor in vars(self.split).items()}
        for part in (self.spelling, self.trust):
            tensors |= {} if part is None else part.tensors()
        config = {
            **self._term_config(),
            "classes": self.classes.tolist(),
            "sharpness": self.scorer.sharpness,
            "multilabel": self.scorer.multilabel,
        }
        given = path, "model", config, tensors, self.vocabulary, model_card(self) + (_SESSION_NOTE if session else "")
        return store.save_folder(*given, check=self.from_folder, session=session)

    @classmethod
    def load(cls, path: str | Path) -> TextModel:
        """Read a model that `save` wrote. Nothing in it is executed."""
        return cls.from_folder(store.load_folder(path, "model", MODEL_SCHEMA))

    @classmethod
    def from_folder(cls, folder: store.Folder) -> TextModel:
        """Return the model that a folder holds, checked."""
        config, terms = folder.config, load_terms(folder)
        classes, sharpness, n_classes = config["classes"], config["sharpness"], len(config["classes"])
        with folder.checked():
            if not 1e-6 <= sharpness <= 1e6:
                raise InputError(f"No model has a sharpness of {sharpness}.")
            check_classes(classes)
        table = folder.tensor("word_embeddings", len(folder.vocabulary), None)
        hidden = table.shape[1]
        head = folder.tensor("class_weights", hidden, n_classes) if "class_weights" in folder.tensors else None
        if head is None and hidden != n_classes:
            raise StoreError(f"{folder.path}: a linear model of {n_classes} classes has a table {hidden} wide.")
        bias, prior = folder.tensor("bias", n_classes), folder.tensor("prior", n_classes, within=(0, 1))
        scorer = Scorer(table, head, bias, prior, sharpness, config["multilabel"])
        size = len(folder.vocabulary), n_classes
        split = Split.load(folder.tensor, *size) if "split.words" in folder.tensors else None
        trust = Trust.from_tensors(folder.tensors, folder.path)
        terms["spelling"] = Spelling.load(folder, hidden)
        return cls(**terms, scorer=scorer, classes=labels_array(classes), split=split, trust=trust)
