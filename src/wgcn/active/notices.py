"""What a user should know about texts and labels before trusting a fit: sentences, for warnings.

`wgcn.text.corpus.Observed` looks at texts while a fit reads them: the digest of each and whether it is empty, and a
sample of a few hundred. `notices` says what is odd about them and their labels, one sentence per subject, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.io.read import FIRST_ROWS, MISSING_SIGNS, distinct_columns
from wgcn.labels.reading import Labels
from wgcn.labels.splits import Rows
from wgcn.labels.targets import Targets
from wgcn.text.corpus import SAMPLE, Observed
from wgcn.text.tokenize import unspaced

_MANY_EMPTY, _LEAST_EMPTY = 0.1, 5  # share and number of empty texts that are worth a warning
_MANY_LABELLED = 0.01  # share of labelled texts that are empty, or have copies with another label
_USUAL_CLASS = 10  # texts that the median class has before a class of one is odd
_MANY_UNSPACED = 0.2  # share of letters of scripts that do not separate words
_LONG_RUN = 8  # mean characters between blanks where there are such letters: words, if separated, are shorter
_LONG_TOKEN = 40  # mean characters between blanks in any script
_LEAST_LABELLED = 20  # labelled texts by which such shares and swapped columns are recognised
_NAMED = 3  # examples in a sentence
_LETTER = re.compile(r"[^\W\d_]")


def told_apart(texts: Iterable[str], labels: Labels) -> Iterator[str]:
    """Yield texts; an InputError if texts and labels are the same or look swapped, as in `distinct_columns`."""
    given = {}
    if labels.classes.dtype.kind in "UO" and not labels.multilabel:
        rows = np.flatnonzero(labels.labelled)[:FIRST_ROWS].tolist()
        given = dict(zip(rows, labels.classes[labels.targets.codes[:FIRST_ROWS]].tolist(), strict=True))
    return (text for text, _ in distinct_columns((text, given.get(row)) for row, text in enumerate(texts)))


def notices(
    texts: Observed,
    classes: npt.NDArray[Any],
    labelled: npt.NDArray[np.bool_],
    targets: Targets,
    multilabel: bool,
    own_tokenizer: bool = False,
) -> list[str]:
    """Return what is odd about texts that have been read, and about their labels.

    classes : (classes,); labelled : (texts,); targets : (labelled texts, classes).
    With a tokeniser of the user's own, or one that needs no blanks, nothing is said about word boundaries.
    """
    codes = None if multilabel or not len(targets) else targets.codes  # with seeds, there may be no label
    is_empty = np.zeros(texts.n, bool)
    is_empty[texts.empty] = True
    empty, digests = is_empty[labelled], np.asarray(texts.digests)[labelled]
    found = [
        None if own_tokenizer else _no_word_boundaries(texts.sample),
        _empty_texts(len(texts.empty), texts.n, int(empty.sum()), len(empty)),
        _missing_signs(classes, targets.sums()),
        _alike_labels(classes),
        _single_texts(classes, targets.sums()),
        None if codes is None else _swapped_columns(texts, classes, codes),
        None if codes is None else _conflicts(digests[~empty], codes[~empty]),
    ]
    return [notice for notice in found if notice is not None]


def shared_texts(train: Iterable[str], test: Iterable[str]) -> str | None:
    """Say how many texts of a test set are in a training set too, up to blanks at the ends and case."""
    known = {hash(text.strip().casefold()) for text in train}
    are_known = [hash(text.strip().casefold()) in known for text in test if text.strip()]
    if not any(are_known):
        return None
    return (
        f"{sum(are_known):,} of {len(are_known):,} test texts are among the training texts too: the figures are better "
        "than they would be for new texts. Leave these texts out of one of the two."
    )


def _no_word_boundaries(sample: list[str]) -> str | None:
    joined = " ".join(sample)
    pieces = joined.split()
    if not joined.isascii():
        run, unit = unspaced()
        share = len(unit.findall(joined)) / max(len(_LETTER.findall(joined)), 1)
        lengths = [len(piece) for piece in pieces if run.search(piece)] if share >= _MANY_UNSPACED else []
        if lengths and sum(lengths) > _LONG_RUN * len(lengths):
            return (
                f"{share:.0%} of the letters are of scripts without blanks between words (such as Chinese or Thai): "
                'whole phrases count as one word. Give tokenizer="characters" (on the command line, --tokenizer '
                "characters), a tokenizer that finds the words, or texts with blanks between them."
            )
    length = sum(map(len, pieces)) / max(len(pieces), 1)
    if length <= _LONG_TOKEN:
        return None
    return (
        f"There are {length:.0f} characters between blanks on average: whole phrases count as one word. Give a "
        "tokenizer that finds the words, or put blanks between."
    )


def _empty_texts(n_empty: int, n_texts: int, n_labelled_empty: int, n_labelled: int) -> str | None:
    advice = "are empty: nothing can be learnt from them. Is it the right column? Leave such rows out, or name another."
    if n_empty >= max(_LEAST_EMPTY, _MANY_EMPTY * n_texts):
        return f"{n_empty:,} of {n_texts:,} texts ({n_empty / n_texts:.0%}) {advice}"
    if n_labelled_empty >= max(_MANY_LABELLED * n_labelled, 2) and n_labelled >= _LEAST_LABELLED:
        return f"{n_labelled_empty:,} of {n_labelled:,} labelled texts ({n_labelled_empty / n_labelled:.0%}) {advice}"
    return None


def _missing_signs(classes: npt.NDArray[Any], sizes: npt.NDArray[np.float64]) -> str | None:
    if classes.dtype.kind not in "UO":
        return None
    found = {name: int(n) for name, n in zip(classes.tolist(), sizes, strict=True) if name in MISSING_SIGNS and n}
    if not found:
        return None
    shown = ", ".join(f"{name!r} ({n:,})" for name, n in found.items())
    return (
        f"{sum(found.values()):,} labels often stand for a missing one: {shown}. They count as classes. If there is no "
        "label, give None instead: astype(str), for one, makes text of what is missing."
    )


def _alike_labels(classes: npt.NDArray[Any]) -> str | None:
    if classes.dtype.kind not in "UO":
        return None
    alike: dict[str, list[str]] = {}
    for name in map(str, classes.tolist()):
        alike.setdefault(" ".join(name.split()).casefold(), []).append(name)
    groups = [names for names in alike.values() if len(names) > 1]
    if not groups:
        return None
    examples = "; ".join(" and ".join(map(repr, names)) for names in groups[:_NAMED])
    return (
        f"Some labels differ only by case or blanks and count as different classes: {examples}. Write each in one way."
    )


def _single_texts(classes: npt.NDArray[Any], sizes: npt.NDArray[np.float64]) -> str | None:
    """Only where other classes have many: in the beginning of labelling, one text per class is as it should be."""
    single = classes[sizes == 1].tolist()
    if not single or np.median(sizes) < _USUAL_CLASS:
        return None
    names = ", ".join(map(repr, single[:_NAMED])) + ", …" * (len(single) > _NAMED)
    what = f"The class {names} has" if len(single) == 1 else f"{len(single):,} classes ({names}) have"
    return (
        f"{what} one labelled text: too few to learn it, and no accuracy can be measured for it. Correct the label if "
        "it is a slip, or label more texts."
    )


def _swapped_columns(texts: Observed, classes: npt.NDArray[Any], codes: Rows) -> str | None:
    """Labels are long and nearly all different, while texts are short and repeat."""
    if len(codes) < _LEAST_LABELLED or len(classes) < 0.5 * len(codes):
        return None
    label_length = float(np.mean([len(str(name)) for name in classes[:SAMPLE].tolist()]))
    text_length = float(np.mean([len(text) for text in texts.sample]))
    n_different = len(np.unique(np.asarray(texts.digests)))
    if n_different > 0.5 * texts.n or label_length <= text_length:
        return None
    return (
        f"The columns of texts and labels look swapped: there are {len(classes):,} different labels, of "
        f"{label_length:.0f} characters on average, and {n_different:,} different texts, of {text_length:.0f}."
    )


def _conflicts(hashes: Rows, codes: Rows) -> str | None:
    _, places, times = np.unique(hashes, return_inverse=True, return_counts=True)
    n_classes = int(codes.max(initial=0)) + 1
    pairs = np.unique(places[times[places] > 1] * n_classes + codes[times[places] > 1])
    n_labels = np.bincount(pairs // n_classes, minlength=len(times))  # different labels of a text that has copies
    n_texts = int(times[n_labels > 1].sum())
    if n_texts < max(_MANY_LABELLED * len(codes), 2) or len(codes) < _LEAST_LABELLED:
        return None
    return (
        f"{n_texts:,} labelled texts ({n_texts / len(codes):.0%}) have a copy with another label: one of the two is "
        "wrong, or a text can have several labels. Correct them, or give a list of labels per text."
    )
