"""Pass 1: shards become pieces of tokens on disk, each with the words and labels that it has.

A piece is a number of documents of one shard, few enough for memory. It is the unit that is repeated after an
interruption. Its files in the work folder:

- `NAME.ids`: int32, the words of all its documents, as places among its own words
- `NAME.offsets`: int64, where each document begins, and the end
- `NAME.words`: its distinct words by code point, one per line of UTF-8
- `NAME.counts`: int64, how often each of them occurs, and then in how many documents
- `NAME.digests`: int64, the digest of the text of each document
- `NAME.labels`: a JSON list with the label of each document, if the shard has a column of labels
- `NAME.places`: int32, the place of each of its words among those of all pieces (`wgcn.scale.vocabulary`)
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count, islice

import numpy as np

from wgcn.scale.shards import Label, Shard
from wgcn.scale.store import Outputs, WorkFolder, key_of
from wgcn.scale.workers import Workers
from wgcn.text.corpus import Tokens
from wgcn.text.kernels import count_words
from wgcn.text.tokenize import Ids, Offsets, text_digest


@dataclass(frozen=True)
class Piece:
    """Documents of one shard as tokens on disk."""

    name: str  # of its files
    shard: int  # the number of the shard
    first_row: int  # of the shard
    n_documents: int
    n_tokens: int
    n_words: int
    is_last: bool  # of its shard

    def ids(self, work: WorkFolder, first: int = 0, count: int = -1) -> Ids:
        """Return some of its tokens."""
        return work.read(f"{self.name}.ids", np.int32, first, count)

    def offsets(self, work: WorkFolder) -> Offsets:
        """Return where each document begins, and the end."""
        return work.read(f"{self.name}.offsets", np.int64)

    def words(self, work: WorkFolder) -> list[str]:
        """Return its distinct words."""
        return work.read(f"{self.name}.words", np.uint8).tobytes().decode().split("\n")[:-1]

    def counts(self, work: WorkFolder) -> Offsets:
        """Return how often each word occurs and in how many documents, of shape (2, words)."""
        return work.read(f"{self.name}.counts", np.int64).reshape(2, -1)

    def places(self, work: WorkFolder) -> Ids:
        """Return the places of its words among those of all pieces."""
        return work.read(f"{self.name}.places", np.int32)

    def digests(self, work: WorkFolder) -> Offsets:
        """Return the digest of the text of each document."""
        return work.read(f"{self.name}.digests", np.int64)

    def labels(self, work: WorkFolder) -> list[Label]:
        """Return the label of each document, None where there is none."""
        found: list[Label] = json.loads(work.read(f"{self.name}.labels", np.uint8).tobytes())
        return found


def tokenise(
    shards: Sequence[Shard], work: WorkFolder, workers: Workers, tokenizer: str = "words", characters: int = 1 << 26
) -> Iterator[list[Piece]]:
    """Tokenise shards, into pieces of about so many characters; yield the pieces of one shard after another.

    Shards are tokenised in parallel; where there are fewer of them than workers, with several threads each.
    """
    n_jobs = max(workers.n_workers // len(shards), 1)
    return workers.map(_tokenise_shard, enumerate(shards), work, tokenizer, characters, n_jobs)


def _tokenise_shard(
    numbered: tuple[int, Shard], work: WorkFolder, tokenizer: str, characters: int, n_jobs: int
) -> list[Piece]:
    """Tokenise the pieces of a shard that are not yet done."""
    number, shard = numbered
    pieces: list[Piece] = []
    rows: Iterator[tuple[str, Label]] | None = None
    for part in count():
        name = f"tokens-{key_of(tokenizer, characters)}-{number}-{part}"
        first = sum(piece.n_documents for piece in pieces)
        found = work.result(name) if rows is None else None
        if found is None:
            if rows is None:
                rows = islice(shard.rows(), first, None)
            outputs, labels, digests = Outputs(work, name), list[Label](), array("q")
            tokens = Tokens.from_texts(_cut(rows, characters, labels, digests), tokenizer, n_jobs)
            outputs.save(f"{name}.digests", np.array(digests))
            if shard.label_column is not None:
                outputs.save(f"{name}.labels", json.dumps(labels).encode())
            following = next(rows, None)
            piece = _save(tokens, outputs, number, first, is_last=following is None)
            if following is not None:
                rows = chain([following], rows)
        else:
            piece = Piece(**found)
        pieces.append(piece)
        if piece.is_last:
            break
    return pieces


def _cut(rows: Iterator[tuple[str, Label]], characters: int, labels: list[Label], digests: array[int]) -> Iterator[str]:
    """Yield the texts of the first rows, of about so many characters in all; keep their labels and digests."""
    size = 0
    for text, label in rows:
        labels.append(label)
        digests.append(text_digest(text))
        yield text
        size += len(text) + 1
        if size >= characters:
            return


def _save(tokens: Tokens, outputs: Outputs, shard: int, first_row: int, *, is_last: bool) -> Piece:
    name, n_documents = outputs.task, len(tokens.offsets) - 1
    outputs.save(f"{name}.ids", tokens.ids)
    outputs.save(f"{name}.offsets", tokens.offsets)
    outputs.save(f"{name}.words", "".join(f"{word}\n" for word in tokens.words).encode())
    outputs.save(f"{name}.counts", *count_words(*tokens[:2], len(tokens.words)))
    piece = Piece(name, shard, first_row, n_documents, len(tokens.ids), len(tokens.words), is_last)
    outputs.finish(**asdict(piece))
    return piece
