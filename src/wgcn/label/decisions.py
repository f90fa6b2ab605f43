"""Decisions of people who label, and the state that they add up to.

A project keeps a log of decisions to which entries are only added. The state is what the log adds up to: `fold` applies
its entries in their order, without those that an entry "undo" names. A decision that does not fit the state is an
InputError and never gets into the log.

A class is known by its number, so that two people can rename it or label with it at once. After a merge, labels of the
merged class are those of the other; undoing the merge gives them back.

"keep" says that a label which looks wrong is right. It holds for this label: with another one, or none, it is void.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wgcn.base.errors import InputError
from wgcn.io.read import label_text

KINDS = ("label", "unlabel", "skip", "keep", "add", "rename", "merge", "seeds", "undo")
_OF_TEXTS = ("label", "unlabel", "skip", "keep")
_LONGEST_NAME = 100
MOST_CLASSES, _MOST_SEEDS = 200, 100
_MOST_MERGED = 2_000  # classes, those that were merged into others with them


class Decision(NamedTuple):
    """What somebody decided."""

    kind: str  # one of KINDS
    text: int | None = None  # of "label", "unlabel", "skip" and "keep", counted from 0
    label: int | None = None  # the number of a class: of all kinds but "unlabel", "skip" and "undo"
    value: str = ""  # a name; the number of the class to merge into; words as a JSON list; the entry to undo


class Entry(NamedTuple):
    """A decision in the log."""

    seq: int  # from 1
    time: float
    who: str
    decision: Decision


@dataclass(frozen=True)
class LabelClass:
    """A class: its name, its seed words, and the class that it was merged into."""

    name: str
    seeds: tuple[str, ...] = ()
    into: int | None = None


@dataclass
class State:
    """What a log adds up to, for `n_texts` texts."""

    n_texts: int
    seq: int = 0  # of the last entry
    classes: dict[int, LabelClass] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)  # by text, the number of the class that it was given
    skipped: set[int] = field(default_factory=set)
    kept: dict[int, int] = field(default_factory=dict)  # by text, the number of the class that it was to keep

    def current(self, label: int) -> int:
        """Return the number of a class, or of that which it was merged into."""
        while (into := self.classes[label].into) is not None:
            label = into
        return label

    @property
    def live(self) -> dict[int, LabelClass]:
        """The classes that were not merged into others, in the order in which they were added."""
        return {label: each for label, each in self.classes.items() if each.into is None}

    @property
    def labels(self) -> dict[int, int]:
        """The number of the class of each labelled text."""
        now = {label: self.current(label) for label in self.classes}
        return {text: now[label] for text, label in self.given.items()}

    def label_of(self, text: int) -> int | None:
        """Return the number of the class of a text, None if it has no label."""
        return self.current(self.given[text]) if text in self.given else None

    def is_kept(self, text: int) -> bool:
        """Return whether somebody said that the label which a text has is right."""
        return text in self.kept and self.current(self.kept[text]) == self.label_of(text)

    @property
    def counts(self) -> Counter[int]:
        """The number of labels of each class."""
        return Counter(self.labels.values())

    @property
    def seeds(self) -> dict[str, list[str]]:
        """The seed words of the classes that have any, by the names of the classes."""
        return {each.name: list(each.seeds) for each in self.live.values() if each.seeds}

    def checked(self, decision: Decision) -> Decision:
        """Return a decision as it is to be applied, or raise an InputError if it does not fit this state."""
        kind, text, label, value = decision
        if kind not in KINDS or kind == "undo":
            raise InputError(f"There is no decision {kind!r:.40}. The kinds are {', '.join(KINDS)}.")
        if kind in _OF_TEXTS and (text is None or not 0 <= text < self.n_texts):
            raise InputError(f"There is no text {text!r:.40}. Texts are counted from 0 to {self.n_texts - 1:,}.")
        if kind == "add":
            if len(self.live) >= MOST_CLASSES:
                raise InputError(f"There are {MOST_CLASSES} classes already. Merge some.")
            if len(self.classes) >= _MOST_MERGED:
                raise InputError(f"{_MOST_MERGED:,} classes were added, and most merged again. Begin another project.")
            label = max(self.classes, default=0) + 1 if label is None else label
        elif kind not in ("unlabel", "skip") and label not in self.classes:
            raise InputError(f"There is no class number {label!r:.40}. Load the page again.")
        if kind in ("rename", "merge", "seeds") and label not in self.live:
            raise InputError("This class was merged into another one.")
        if kind in ("add", "rename"):
            value = class_name(value)
            if any(each.name == value for number, each in self.live.items() if number != label):
                raise InputError(f"There is a class {value!r} already. To join two classes, merge them.")
        if kind == "merge" and value not in {str(number) for number in self.live if number != label}:
            raise InputError("A class is merged into another one that is there. Load the page again.")
        if kind in ("rename", "merge") and label is not None:
            _check_seeded(value if kind == "rename" else self.live[int(value)].name, self.live[label].seeds)
        if kind == "seeds":
            assert label is not None
            value = json.dumps(_seed_words(value, self.classes[label].name), ensure_ascii=False)
        of_text, of_class = kind in _OF_TEXTS, kind not in ("unlabel", "skip")
        with_value = kind in ("add", "rename", "merge", "seeds")
        return Decision(kind, text if of_text else None, label if of_class else None, value if with_value else "")

    def apply(self, entry: Entry) -> None:
        """Apply an entry, one that is not "undo"; an InputError leaves the state as it was."""
        kind, text, label, value = self.checked(entry.decision)
        self.seq = entry.seq
        if text is not None:
            self._apply_to_text(kind, text, label)
            return
        assert label is not None
        if kind == "add":
            self.classes[label] = LabelClass(value)
        elif kind == "rename":
            self.classes[label] = replace(self.classes[label], name=value)
        elif kind == "merge":
            into, own = int(value), self.classes[label]
            joined = tuple(dict.fromkeys([*self.classes[into].seeds, *own.seeds]))
            self.classes[into] = replace(self.classes[into], seeds=joined)
            self.classes[label] = replace(own, into=into)
        else:
            self.classes[label] = replace(self.classes[label], seeds=tuple(json.loads(value)))

    def _apply_to_text(self, kind: str, text: int, label: int | None) -> None:
        if kind == "keep" and label is not None:
            self.kept[text] = label
        elif kind == "skip":
            self.skipped.add(text)
        else:
            self.skipped.discard(text)
            if label is None:
                self.given.pop(text, None)
            else:
                self.given[text] = label
        if not self.is_kept(text):  # for good: the same label given later is another decision
            self.kept.pop(text, None)


def fold(entries: Iterable[Entry], n_texts: int, without: int | None = None) -> State:
    """Return the state that a log adds up to, also without one more entry, whose undoing is to be checked."""
    entries = list(entries)
    undone = {int(entry.decision.value) for entry in entries if entry.decision.kind == "undo"} | {without}
    state = State(n_texts)
    for entry in entries:
        if entry.decision.kind != "undo" and entry.seq not in undone:
            state.apply(entry)
    state.seq = entries[-1].seq if entries else 0
    return state


def class_name(given: str) -> str:
    """Return a name for a class as a file of labels gives it back, or raise an InputError."""
    name = label_text(" ".join(given.split()))
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InputError(f"A class has a name of 1 to {_LONGEST_NAME} characters that can be seen, got {given!r:.60}.")
    return name


def _seed_words(value: str, name: str) -> list[str]:
    try:
        words = json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        words = None
    are_words = isinstance(words, list) and all(isinstance(word, str) and word.strip(" -") for word in words)
    if not are_words or any("\ud800" <= character <= "\udfff" for character in "".join(words)):  # which no file holds
        raise InputError("Seed words are a list of words.")
    if len(words) > _MOST_SEEDS or any(len(word) > _LONGEST_NAME or "," in word for word in words):
        raise InputError(f"A class has at most {_MOST_SEEDS} seed words of {_LONGEST_NAME} characters without commas.")
    if words and all(word.strip().startswith("-") for word in words):
        raise InputError(f"The class {name!r} has only words that must not count. Give at least one that counts.")
    _check_seeded(name, words)
    return list(dict.fromkeys(" ".join(word.split()) for word in words))


def _check_seeded(name: str, seeds: Sequence[str]) -> None:
    """Raise an InputError if `wgcn fit --seed CLASS=WORDS` could not name a class with its seed words."""
    if seeds and "=" in name:
        raise InputError(f"A class with seed words cannot have a '=' in its name, got {name!r}. Choose another name.")
