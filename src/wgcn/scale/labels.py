"""The labels of all pieces, as numbers: what `wgcn.labels.reading.read_labels` makes of them in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wgcn.labels.reading import Labels, read_labels
from wgcn.scale.store import WorkFolder
from wgcn.scale.tokens import Piece


def read_piece_labels(pieces: Sequence[Piece], work: WorkFolder, n_shards: int) -> Labels:
    """Return the labels of all documents, of which those of the first shards have any.

    Only the different labels are in memory as text.
    If some documents have several labels, those that have one count as if they had a list of it.
    """
    numbers: dict[Any, int] = {None: 0}
    codes = [np.empty(0, np.int32)]
    for piece in pieces:
        if piece.shard >= n_shards:
            codes.append(np.zeros(piece.n_documents, np.int32))
            continue
        given = (tuple(label) if isinstance(label, list) else label for label in piece.labels(work))
        codes.append(np.fromiter((numbers.setdefault(label, len(numbers)) for label in given), np.int32))
    number = np.concatenate(codes)
    several = any(isinstance(label, tuple) for label in numbers)
    distinct = [[label] if several and isinstance(label, str) else label for label in numbers]
    found = read_labels([list(label) if isinstance(label, tuple) else label for label in distinct])
    places = np.cumsum(found.labelled) - 1  # of the targets of the different labels
    labelled = found.labelled[number]
    return Labels(found.classes, labelled, found.targets[places[number[labelled]]], found.multilabel)
