"""The model of a labelling project, fitted again and again to the same texts.

What needs no label is done once: the texts are prepared, and a teacher finds similar documents, the slow part of a fit.
A refit begins where the last one ended (as `WGCNTextClassifier.update` does) and does without the choice of settings.
It comes in two steps: a quick one, less exact and not calibrated anew, for what the next label needs (guesses and
suggestions), and a thorough one for the rest, when nothing newer waits. `export` fits from the beginning, as `wgcn fit`
does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn import InputError, Session, TextModel, WGCNTextClassifier
from wgcn.explain.render import pieces_of
from wgcn.label.decisions import State
from wgcn.labels.reading import read_labels
from wgcn.scoring.scorer import Scorer
from wgcn.semi.seed_words import GivenSeeds, near_words, read_seeds

_SUGGESTED = 30
_WORDS = 12  # per class
_DOUBTS = 50
_TERMS = 8  # of an explanation, for and against
_NEIGHBOURS = 14
_SHOWN = 20_000  # characters of a text that are shown


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was fitted: together, because another thread answers from it."""

    session: Session
    model: TextModel
    numbers: dict[str, int]  # of the classes, by their names


class Engine:
    """Texts, prepared, and the model of the last fit. Answers come from this model while another fit is under way."""

    def __init__(self, texts: Sequence[str], tokenizer: str = "words") -> None:
        self.texts, self.tokenizer = texts, tokenizer
        self.session = Session.of(self._estimator(), texts)
        self.prepared = self.session.prepared
        self.fitted: Fitted | None = None
        self._sharpness: float | None = None  # of the last thorough fit
        # While there is no label, each suggestion stands for many texts.
        self.suggested = self._suggest(np.zeros(len(texts), bool))

    def _estimator(self, tune: bool = False) -> WGCNTextClassifier:
        return WGCNTextClassifier(tokenizer=self.tokenizer, tune=tune)

    def fit(self, state: State, *, quick: bool = False) -> dict[str, Any]:
        """Fit to the labels and seeds of a state; return what the page shows of it, of a quick fit only a part.

        With labels and seeds of fewer than two classes there is no model, but there are suggestions.
        """
        started, cpu = time.perf_counter(), time.process_time()
        seeds = read_seeds(state.seeds) if state.seeds else None
        live, labels = state.live, state.labels
        done = np.zeros(len(self.texts), bool)
        done[[*labels, *state.skipped]] = True
        common = {"seq": state.seq, "n_labels": len(labels)}
        if len({*labels.values(), *(number for number, each in live.items() if each.seeds)}) < 2:
            self.fitted = None
            return {**common, "classes": [], "suggested": self._suggest(done)}
        names = {text: live[labels[text]].name for text in sorted(labels)}
        numbers = {each.name: number for number, each in live.items()}
        fitted = self.fitted = self._fit(names, numbers, seeds, quick)
        scorer = fitted.model.scorer
        likely = scorer.probabilities(scorer.scores_of(self.prepared.document_terms))
        classes = np.array([numbers[name] for name in fitted.model.classes.tolist()], np.int32)
        found = {
            **common,
            "classes": classes.tolist(),
            "guess": classes[likely.argmax(axis=1)],
            "confidence": likely.max(axis=1).astype(np.float32),
            "suggested": self._suggest(done, scorer),
        }
        if not quick:
            found |= self._measured(fitted, len(labels))
        found[f"{'quick' if quick else 'thorough'}_seconds"] = round(time.perf_counter() - started, 3)
        found[f"{'quick' if quick else 'thorough'}_cpu"] = round(time.process_time() - cpu, 3)
        return found

    def _measured(self, fitted: Fitted, n_labels: int) -> dict[str, Any]:
        """Return how good a fit is, which labels look wrong, and the words of the classes."""
        model, numbers = fitted.model, fitted.numbers
        report, doubts = model.report, fitted.session.review() if n_labels else []
        self._sharpness = model.scorer.sharpness
        return {
            "accuracy": report["held_out_accuracy"],
            "n_held_out": report["n_held_out"],
            "doubts": [(each.index, numbers[each.suggestion], round(each.score, 4)) for each in doubts[:_DOUBTS]],
            "disagree": [each.index for each in doubts if each.label != each.suggestion],
            "words": {
                numbers[name]: [word for word, _ in model.top_words(name, _WORDS)] for name in model.classes.tolist()
            },
            "problems": report.get("seed_problems", []),
            "seed_note": report.get("seed_note", ""),
        }

    def _fit(self, names: dict[int, str], numbers: dict[str, int], seeds: GivenSeeds | None, quick: bool) -> Fitted:
        """Fit to the labels of some texts, in the order of the texts; some of the classes may have no label yet."""
        labelled = np.zeros(len(self.texts), bool)
        labelled[list(names)] = True
        labels = read_labels(list(names.values()), list(numbers))._replace(labelled=labelled)
        before = None if self.fitted is None or seeds is not None else self.fitted.session
        session = self.session.train(labels, seeds=seeds, before=before, keeps_teacher=True, quick=quick)
        model = session.model(self._estimator().get_params(deep=False))
        if quick and self._sharpness is not None:
            model = replace(model, scorer=replace(model.scorer, sharpness=self._sharpness))
        return Fitted(session, model, numbers)

    def _suggest(self, done: npt.NDArray[np.bool_], scorer: Scorer | None = None) -> list[int]:
        return [] if done.all() else self.session.suggest(_SUGGESTED, done=done, scorer=scorer).tolist()

    def explain(self, text: int, label: int | None = None) -> dict[str, Any]:
        """Return a text in pieces, with what each adds to the score of a class, by default the guessed one."""
        whole = self.texts[text]
        if self.fitted is None:
            return {"pieces": [(whole[:_SHOWN], 0)], "label": None}
        model, numbers = self.fitted.model, self.fitted.numbers
        names = {number: name for name, number in numbers.items()}
        asked = names[label] if label in names and names[label] in model.classes.tolist() else None
        why = model.explain([whole], asked, alone=True)[0]
        name = why.classes.tolist()[0]
        shown, left = list[tuple[str, int]](), _SHOWN
        for piece, _, level in pieces_of(why, 0):
            if left <= 0:
                break
            shown.append((piece[:left], level))
            left -= len(piece)
        chances = model.predict_proba([whole])[0]
        likely = sorted(zip(chances.tolist(), model.classes.tolist(), strict=True), reverse=True)[:5]
        return {
            "pieces": shown,
            "label": numbers[name],
            "for": [(term, round(part, 3)) for term, part in why.top(n=_TERMS)],
            "against": [(term, round(part, 3)) for term, part in why.top(n=_TERMS, against=True)],
            "likely": [(numbers[each], round(chance, 4)) for chance, each in likely],
            "unknown": why.unknown[:20],
        }

    def neighbourhood(self, word: str) -> dict[str, Any]:
        """Return the neighbours of a word in the word graph and the edges among them, each with its class."""
        graph, vocabulary = self.prepared.word_graph, self.prepared.vocabulary
        word = " ".join(word.lower().split())
        if graph is None or word not in vocabulary:
            return {"word": word, "nodes": [], "edges": [], "near": near_words(word, vocabulary) if word else []}
        found = graph.neighbours(word, _NEIGHBOURS)
        names = [word, *(each.word for each in found)]
        places = [vocabulary.index[name] for name in names]
        counts = vocabulary.document_counts[places].tolist()
        among = graph.adjacency[places][:, places].tocoo()
        pairs = zip(among.coords[0].tolist(), among.coords[1].tolist(), among.data.tolist(), strict=True)
        edges = [(i, j, round(weight, 4)) for i, j, weight in pairs if i < j]
        classes: list[int | None] = [None] * len(names)
        if (last := self.fitted) is not None:
            rows = last.model.scorer.word_embeddings[places]
            classes = [last.numbers[last.model.classes[best]] for best in rows.argmax(axis=1)]
        nodes = [
            {"word": name, "texts": count, "label": label, "weight": round(weight, 3)}
            for name, count, label, weight in zip(names, counts, classes, [0, *(e.weight for e in found)], strict=True)
        ]
        return {"word": word, "nodes": nodes, "edges": edges, "near": []}

    def check_seeds(self, name: str, words: Sequence[str]) -> None:
        """Raise an InputError if the texts do not have a seed word."""
        if words:
            self.prepared.seed_rows(read_seeds({name: list(words)}), np.array([name]))

    def export(self, state: State, folder: Path) -> dict[str, Any]:
        """Fit from the beginning, as `wgcn fit` does with the exported labels, and save the model."""
        live, y = state.live, list[str | None]([None] * len(self.texts))
        for text, number in state.labels.items():
            y[text] = live[number].name
        if len({*filter(None, y), *state.seeds}) < 2:
            raise InputError("A model needs labels or seed words of at least two classes. Label more texts first.")
        model = self._estimator(tune=True).fit(self.texts, y, seeds=state.seeds or None).model_
        return {"digest": model.save(folder), "accuracy": model.report["held_out_accuracy"]}
