"""Training without labels, from words that stand for the classes, beside other uses of them and beside labels."""

from __future__ import annotations

import tomllib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from wgcn import WGCNTextClassifier
from wgcn.base.errors import WGCNWarning
from wgcn.semi.seed_words import SeedTrust
from wgcn.text.tokenize import words
from wgcn_paper.datasets import Dataset
from wgcn_paper.datasets.derived import SOURCES
from wgcn_paper.measures.measure import Measure, Split, share, split_of, svc_predict, tf_idf
from wgcn_paper.methods.baseline import make_baseline
from wgcn_paper.protocol import Protocol

SeedWords = Mapping[str, Sequence[str]]


class Seeds(Measure):
    """Test accuracy of one way to use seed words, or of a method with some labels per class.

    - ``wgcn``: `WGCNTextClassifier().fit(texts, None, seeds=...)` with the seed words of a class;
    - ``names``: the same with the words of the class names alone (`class_names`);
    - ``wrong``: the same, but in every class one seed is replaced by a seed of another class;
    - ``counting``: the class whose seeds a text has most often (`count_seeds`);
    - ``improvised``: an ordinary fit to the texts, without labels, and to made-up texts with labels: one of each seed,
      and one of all seeds of a class;
    - ``labels``: no seeds, but wgcn or another method, such as LinearSVC with ``method = "linear-svc"``, with drawn
      labels per class. The accuracy with n of them is the metric "n".

    With ``prior = "uniform"`` the classes are said to be equally frequent, with ``prior = "true"`` as frequent as among
    the labels of the training texts. For ``wgcn`` the metrics say what is known of the seeds without labels.
    """

    name = "seeds"
    version = 3  # 2: before evidence kept its size
    defaults: ClassVar = {**Measure.defaults, "way": "wgcn", "method": "wgcn-linear", "per_class": [], "prior": ""}

    @property
    def cost(self) -> float:
        """One fit, or one per number of labels."""
        fits = max(len(self.settings["per_class"]), 1)
        return fits * {"linear-svc": 0.1, "self-training-svc": 2.0}.get(self.settings["method"], 1.0)

    def measure(self, dataset: Dataset) -> dict[str, Any]:
        """Return the accuracy; with ``labels`` that of the largest number of labels, and all as metrics."""
        if self.settings["way"] == "labels":
            curve = {str(n): self._with_labels(dataset, n) for n in self.settings["per_class"]}
            return {"accuracy": curve[str(self.settings["per_class"][-1])], **curve}
        split, seeds = split_of(dataset), seed_words(dataset.name)
        if self.settings["way"] == "counting":
            return {"accuracy": share(count_seeds(split.train, split.test, seeds) == split.test_labels)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WGCNWarning)  # of seeds: the report has them
            model = self._fit(split, seeds)
        accuracy = share(model.predict(split.test) == split.test_labels)
        return {"accuracy": accuracy, **_known_of(model.model_.report)}

    def _fit(self, split: Split, seeds: SeedWords) -> WGCNTextClassifier:
        way, estimator = self.settings["way"], WGCNTextClassifier(class_prior=self._prior(split))
        if way == "improvised":
            made = [(text, name) for name, own in seeds.items() for text in (*own, " ".join(own))]
            labels = [*[None] * len(split.train), *(label for _, label in made)]
            return estimator.fit([*split.train, *(text for text, _ in made)], labels)
        if way == "names":
            seeds = class_names(seeds, split.train)
        elif way == "wrong":
            seeds = with_wrong_seeds(seeds, self.seed)
        return estimator.fit(split.train, None, seeds=seeds)

    def _prior(self, split: Split) -> Literal["uniform"] | dict[str, float] | None:
        if self.settings["prior"] != "true":
            return "uniform" if self.settings["prior"] == "uniform" else None
        names, counts = np.unique(split.train_labels, return_counts=True)
        return dict(zip(names.tolist(), (counts / counts.sum()).tolist(), strict=True))

    def _with_labels(self, dataset: Dataset, per_class: int) -> float:
        protocol = Protocol("few-label", per_class=per_class)
        task, truth = protocol.task(dataset, self.seed), dataset.labels[dataset.test]
        if self.settings["method"] == "linear-svc":
            train, test = tf_idf(dataset)
            labelled = np.flatnonzero([label is not None for label in task.labels])
            [(guesses, _)] = svc_predict(train[labelled], np.array(task.labels[labelled].tolist()), test)
            return share(guesses == truth)
        method = make_baseline(self.settings["method"], {}, self.seed)
        method.fit(task)
        return share(method.predict(protocol.query(dataset)) == truth)


def _known_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a fit to seed words says of them, without labels; nothing for other fits."""
    if "seed_trust" not in report:
        return {}
    trust = SeedTrust(*(report["seed_trust"][name] for name in SeedTrust._fields))
    return {**trust._asdict(), "warned": float(trust.is_low)}


def seed_words(dataset: str) -> dict[str, list[str]]:
    """Return the seed words of a data set by class; they were written down before the first run."""
    text = resources.files("wgcn_paper").joinpath("datasets", "seed_words.toml").read_text("utf-8")
    found: dict[str, dict[str, list[str]]] = tomllib.loads(text)
    return found[dataset if dataset in found else SOURCES[dataset]]


def class_names(seeds: SeedWords, texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the words of the class names that stand for one class: those that the fewest names have.

    Words that no text has are left out. A name without any other word, such as "acq", is spelled out: by its first
    seed.
    """
    known = {word for text in texts for word in words(text)}
    parts = {
        name: [word for word in words(name.replace(".", " ").replace("-", " ")) if word in known] for name in seeds
    }
    counts = Counter(word for own in parts.values() for word in set(own))
    chosen = {}
    for name, own in parts.items():
        fewest = min((counts[word] for word in own), default=0)
        chosen[name] = [word for word in own if counts[word] == fewest] or [seeds[name][0]]
    return chosen


def with_wrong_seeds(seeds: SeedWords, draw: int) -> dict[str, list[str]]:
    """Return the seeds with one of each class replaced by a seed of another class, both drawn at random."""
    rng = np.random.default_rng(draw)
    changed = {}
    for name, own in seeds.items():
        others = [word for other, theirs in seeds.items() if other != name for word in theirs if word not in own]
        place, wrong = rng.integers(len(own)), others[rng.integers(len(others))]
        changed[name] = [wrong if i == place else word for i, word in enumerate(own)]
    return changed


def count_seeds(train: Sequence[str], test: Sequence[str], seeds: SeedWords) -> npt.NDArray[Any]:
    """Return for each test text the class whose seeds it has most; of equals, the one that `train` has most."""
    names = np.array(list(seeds))
    overall = _counts(train, seeds).sum(axis=0)
    counts = _counts(test, seeds)
    # The common classes first: argmax takes the first of equals.
    order = np.argsort(-overall, kind="stable")
    chosen: npt.NDArray[Any] = names[order][counts[:, order].argmax(axis=1)]
    return chosen


def _counts(texts: Sequence[str], seeds: SeedWords) -> npt.NDArray[np.int64]:
    """Return how often each text has seeds of each class, of shape (texts, classes)."""
    places: dict[str, list[int]] = {}
    for place, own in enumerate(seeds.values()):
        for word in own:
            places.setdefault(word, []).append(place)
    counts = np.zeros((len(texts), len(seeds)), np.int64)
    for row, text in zip(counts, texts, strict=True):
        for word in words(text):
            for place in places.get(word, ()):
                row[place] += 1
    return counts
