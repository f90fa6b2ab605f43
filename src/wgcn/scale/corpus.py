"""A corpus on disk: its files, the tokens and labels of their texts, and its vocabulary.

The files are shards, read row by row. Pass 1 makes pieces of them: a piece is a number of documents of one shard, few
enough for memory, and the unit that is repeated after an interruption. Its files in the work folder:

- `NAME.ids`: int32, the words of all its documents, as places among its own words
- `NAME.offsets`: int64, where each document begins, and the end
- `NAME.words`: its distinct words by code point, one per line of UTF-8
- `NAME.counts`: int64, how often each of them occurs, and then in how many documents
- `NAME.digests`: int64, the digest of the text of each document
- `NAME.labels`: a JSON list with the label of each document, if the shard has a column of labels
- `places.NAME`: int32, the place of each of its words among those of all pieces

The vocabulary has the words, in the order and with the counts, that `Corpus.from_tokens` would give the same text in
memory: with the same rules, and with the same n-grams. The distinct words of all pieces are in memory, at about 200
bytes each, but not their n-grams: those are counted on disk, as sorted runs of keys that are merged by ranges, and only
those that occur often enough are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, count, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError, WGCNWarning
from wgcn.base.progress import stage
from wgcn.io.read import read_labelled, read_texts
from wgcn.io.source import explained
from wgcn.labels.reading import Labels, read_labels
from wgcn.scale.store import Json, Outputs, WorkFolder, key_of
from wgcn.scale.workers import Site
from wgcn.text.corpus import Tokens, filtered, ngram_keys
from wgcn.text.kernels import count_words
from wgcn.text.tokenize import Ids, Offsets, text_digest
from wgcn.text.vocabulary import Vocabulary, VocabularyRules, choose_words

Label = str | list[str] | None

_SAMPLES, _SAMPLE_BYTES = 16, 1 << 16  # of a file, spread over it: enough to know it again
_SAMPLED_KEYS = 256  # of each run of n-grams, to cut all of them into ranges


@dataclass(frozen=True)
class Shard:
    """A file of texts, each with a label or none.

    `reading` are the parameters of `read_texts`, and `labelling`, if there are labels, the others of `read_labelled`.
    """

    path: Path
    reading: Mapping[str, Any] = field(default_factory=dict)
    labelling: Mapping[str, Any] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[str, Label]]:
        """Open the file, and yield its texts with their labels."""
        if not self.labelling:
            return ((text, None) for text in read_texts(self.path, **self.reading))
        return read_labelled(self.path, **self.labelling, **self.reading)

    def identity(self) -> Json:
        """Return what the file is known by: name, size, time of change, and a digest of 16 parts of 64 KiB.

        A file that was changed without any of these changing is taken for the same.
        """
        with explained(self.path), self.path.open("rb") as file:
            there = self.path.stat()
            digest = hashlib.sha256()
            step = max(there.st_size - _SAMPLE_BYTES, 0) / (_SAMPLES - 1)
            for place in sorted({round(step * i) for i in range(_SAMPLES)}):
                file.seek(place)
                digest.update(file.read(_SAMPLE_BYTES))
        path, changed = str(self.path.absolute()), there.st_mtime_ns
        return {"path": path, "size": there.st_size, "mtime_ns": changed, "sample": digest.hexdigest()}


def find_shards(paths: Iterable[str | Path], reading: Mapping[str, Any] | None = None, **labelling: Any) -> list[Shard]:
    """Return the shards of a corpus; each is opened, so that what is wrong with its head or columns is said at once."""
    shards = [Shard(Path(path), dict(reading or {}), labelling) for path in paths]
    if not shards:
        raise InputError("There are no files to read. Name at least one.")
    places = set[str]()
    for shard in shards:
        if (place := os.path.realpath(shard.path)) in places:
            raise InputError(f"{shard.path} is given twice, so its texts would count twice. Name it once.")
        places.add(place)
    for shard in shards:
        if str(shard.path) == "-" or shard.path.is_fifo() or shard.path.is_char_device():
            name = "Standard input" if str(shard.path) == "-" else shard.path
            raise InputError(f"{name} cannot be read out of core, since it is read twice. Write it to a file.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WGCNWarning)  # they come when the file is read
            rows = shard.rows()
            if labelling:
                next(rows, None)  # a labelled file is opened when the first row is asked for
            getattr(rows, "close", lambda: None)()
    return shards


def check_unchanged(shards: Sequence[Shard], identities: Sequence[Json]) -> None:
    """Raise an InputError if a file, which was read since, has not the size and the time of change that it had."""
    for shard, before in zip(shards, identities, strict=True):
        with explained(shard.path):
            there = shard.path.stat()
        if (there.st_size, there.st_mtime_ns) != (before["size"], before["mtime_ns"]):
            raise InputError(
                f"{shard.path} changed while it was read. When nothing writes to it any more, begin anew, with "
                "--restart, or remove the work folder first."
            )


@dataclass(frozen=True)
class Piece:
    """Documents of one shard as tokens on disk."""

    name: str  # of its files
    shard: int  # the number of the shard
    n_documents: int
    n_tokens: int
    is_last: bool  # of its shard

    @property
    def span(self) -> Span:
        """All its documents."""
        return Span(self, 0, self.n_documents)

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
        return work.read(f"places.{self.name}", np.int32)

    def digests(self, work: WorkFolder) -> Offsets:
        """Return the digest of the text of each document."""
        return work.read(f"{self.name}.digests", np.int64)

    def labels(self, work: WorkFolder) -> list[Label]:
        """Return the label of each document, None where there is none."""
        found: list[Label] = json.loads(work.read(f"{self.name}.labels", np.uint8).tobytes())
        return found


@dataclass(frozen=True)
class Span:
    """Documents first, ..., last - 1 of a piece."""

    piece: Piece
    first: int
    last: int


def tokenised(shards: Sequence[Shard], site: Site, tokenizer: str = "words") -> list[Piece]:
    """Tokenise shards, and return their pieces. Nothing else reads them, so here they must not have changed.

    Shards are tokenised in parallel; where there are fewer of them than workers, with several threads each.
    """
    n_jobs = max(site.workers.n_workers // len(shards), 1)
    with stage("Tokenising") as step:
        given = site.work, tokenizer, site.limits.characters, n_jobs
        pieces = [piece for own in site.watched(tokenise_shard, list(enumerate(shards)), *given) for piece in own]
        check_unchanged(shards, site.inputs)
        n_documents, n_tokens = (sum(getattr(each, what) for each in pieces) for what in ("n_documents", "n_tokens"))
        step.detail = f"{len(shards):,} shards, {n_documents:,} documents, {n_tokens:,} tokens"
    return pieces


def tokenise_shard(
    numbered: tuple[int, Shard], work: WorkFolder, tokenizer: str, characters: int, n_jobs: int = 1
) -> list[Piece]:
    """Tokenise the pieces of a shard that are not yet done, of about so many characters each."""
    number, shard = numbered
    pieces: list[Piece] = []
    rows: Iterator[tuple[str, Label]] | None = None
    for place in count():
        name = f"tokens-{key_of(tokenizer, characters)}-{number}-{place}"
        if rows is None and (done := work.result(name)) is not None:
            pieces.append(Piece(**done))
        else:
            if rows is None:
                rows = islice(shard.rows(), sum(piece.n_documents for piece in pieces), None)
            outputs, labels, digests = Outputs(work, name), list[Label](), array("q")
            tokens = Tokens.from_texts(_cut(rows, characters, labels, digests), tokenizer, n_jobs)
            outputs.save("digests", np.array(digests))
            if shard.labelling:
                outputs.save("labels", json.dumps(labels).encode())
            following = next(rows, None)
            pieces.append(_save(tokens, outputs, number, is_last=following is None))
            rows = rows if following is None else chain([following], rows)
        if pieces[-1].is_last:
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


def _save(tokens: Tokens, outputs: Outputs, shard: int, *, is_last: bool) -> Piece:
    outputs.save("ids", tokens.ids)
    outputs.save("offsets", tokens.offsets)
    outputs.save("words", "".join(f"{word}\n" for word in tokens.words).encode())
    outputs.save("counts", *count_words(*tokens[:2], len(tokens.words)))
    piece = Piece(outputs.task, shard, len(tokens.offsets) - 1, len(tokens.ids), is_last)
    outputs.finish(**asdict(piece))
    return piece


def read_piece_labels(pieces: Sequence[Piece], work: WorkFolder, n_shards: int) -> Labels:
    """Return what `read_labels` makes of the labels of all documents, of which those of the first shards have any.

    Only the different labels are in memory as text.
    If some documents have several labels, those that have one count as if they had a list of it.
    """
    numbers: dict[str | tuple[str, ...] | None, int] = {None: 0}
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


@dataclass(frozen=True, eq=False)
class Coding:
    """From tokens of pieces to ids of a vocabulary. It is sent to workers, so it has no words."""

    ngram_range: tuple[int, int]
    n_words: int  # of all pieces
    is_kept: npt.NDArray[np.bool_] | None  # (words,): those that n-grams are made of; None for all
    tables: tuple[npt.NDArray[np.int64], ...]  # for n-grams of 2, 3, ... words, the keys of those that count, sorted
    new_ids: Ids  # (names + 1,): the id of each word and n-gram, -1 for none; the last place is for the name -1

    def encode(self, work: WorkFolder, spans: Sequence[Span]) -> tuple[Ids, Offsets]:
        """Return the documents of spans, one after another, as `ids` and `offsets` of a `Corpus`."""
        encoded = [self._encode_span(work, span) for span in spans]
        lengths = [np.diff(offsets) for _, offsets in encoded]
        return np.concatenate([ids for ids, _ in encoded]), np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))

    def _encode_span(self, work: WorkFolder, span: Span) -> tuple[Ids, Offsets]:
        piece, places = span.piece, span.piece.places(work)
        offsets = piece.offsets(work)[span.first : span.last + 1]
        ids = piece.ids(work, int(offsets[0]), int(offsets[-1] - offsets[0]))
        offsets = offsets - offsets[0]
        if self.ngram_range == (1, 1):
            ids = self.new_ids[places][ids]
        else:
            ids, offsets = self._numbers(places[ids], offsets)
            ids = self.new_ids[ids]
        return filtered(ids, offsets, ids >= 0)

    def digest(self) -> str:
        """Return what tells this coding from others."""
        kept = np.empty(0, bool) if self.is_kept is None else self.is_kept
        return key_of(*(hashlib.sha256(part.tobytes()).hexdigest() for part in (self.new_ids, kept, *self.tables)))

    def part(self, keep: npt.NDArray[np.bool_]) -> Coding:
        """Return the coding of a vocabulary that has only some of the entries, in the same order."""
        new_ids = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        return replace(self, new_ids=np.append(new_ids, np.int32(-1))[self.new_ids])

    def levels(self, ids: Ids, offsets: Offsets) -> list[Ids]:
        """Return the numbers of the n-grams that begin at each token, -1 for none: for 1, 2, ... words."""
        levels = [ids]
        for n, table in enumerate(self.tables, 2):
            keys = ngram_keys(levels[-1], ids, offsets, n, self.n_words)
            found = np.searchsorted(table, keys).astype(np.int32)
            found[np.take(np.append(table, -2), found) != keys] = -1
            levels.append(found)
        return levels

    def without_stop_words(self, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets]:
        """Drop the words that n-grams are not made of."""
        return (ids, offsets) if self.is_kept is None else filtered(ids, offsets, self.is_kept[ids])

    def _numbers(self, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets]:
        """Return the numbers of n-grams among all names, in the order of a corpus, -1 for none."""
        ids, offsets = self.without_stop_words(ids, offsets)
        shortest, longest = self.ngram_range
        numbers, begin = np.empty((len(ids), longest - shortest + 1), np.int32), 0
        sizes = [self.n_words, *map(len, self.tables)]
        for place, level in enumerate(self.levels(ids, offsets)[shortest - 1 :]):
            numbers[:, place] = np.where(level < 0, -1, level + begin)
            begin += sizes[shortest - 1 + place]
        return numbers.ravel(), offsets * numbers.shape[1]


def choose_vocabulary(
    pieces: Sequence[Piece],
    site: Site,
    *,
    ngram_range: tuple[int, int] = (1, 1),
    rules: VocabularyRules | None = None,
) -> tuple[Vocabulary, Coding]:
    """Return the vocabulary of all pieces, and the coding that leads to it."""
    rules, (shortest, longest) = rules or VocabularyRules(), ngram_range
    words, counts, document_counts = _merge_words(pieces, site.work)
    stop_words, is_kept = frozenset(rules.stop_words), None
    if longest > 1 and stop_words:
        is_kept = np.array([word not in stop_words for word in words], bool)
        counts, document_counts = counts * is_kept, document_counts * is_kept
    coding = Coding(ngram_range, len(words), is_kept, (), np.empty(0, np.int32))
    names, level = (words if shortest == 1 else []), words
    n_rare = 0
    for n in range(2, longest + 1):
        table, n_distinct = _ngram_table(pieces, site, coding, rules, n)
        coding = replace(coding, tables=(*coding.tables, table))
        beginnings, lasts = divmod(table, len(words))
        pairs = zip(beginnings.tolist(), lasts.tolist(), strict=True)
        level = [f"{level[i]} {words[j]}" for i, j in pairs]
        if n >= shortest:
            names, n_rare = names + level, n_rare + n_distinct - len(table)
    if longest > 1:
        numbers = np.append(np.arange(len(names), dtype=np.int32), np.int32(-1))
        n_first = len(words) if shortest == 1 else 0  # these are counted
        numbers = np.where(numbers < n_first, -1, numbers - n_first).astype(np.int32)
        given = site.work, replace(coding, new_ids=numbers), len(names) - n_first
        of_ngrams = site.workers.total(_count_entries, pieces, *given)
        counts, document_counts = (
            np.concatenate([own[:n_first], more])
            for own, more in zip((counts, document_counts), of_ngrams, strict=True)
        )
    n_documents = sum(piece.n_documents for piece in pieces)
    chosen = choose_words(names, counts, document_counts, n_documents, rules, n_rare)
    vocabulary = Vocabulary([names[i] for i in chosen.tolist()], counts[chosen], document_counts[chosen])
    new_ids = np.full(len(names) + 1, -1, np.int32)
    new_ids[chosen] = np.arange(len(chosen))
    return vocabulary, replace(coding, new_ids=new_ids)


def _merge_words(pieces: Sequence[Piece], work: WorkFolder) -> tuple[list[str], Offsets, Offsets]:
    """Return the distinct words by code point with their counts, and write the places of the words of each piece."""
    index: dict[str, int] = {}  # by first occurrence
    all_numbers, counts = [], np.zeros((2, 1 << 10), np.int64)
    for piece in pieces:
        numbers = np.array([index.setdefault(word, len(index)) for word in piece.words(work)], np.int32)
        if len(index) > counts.shape[1]:
            counts = np.concatenate([counts, np.zeros((2, len(index)), np.int64)], axis=1)
        counts[:, numbers] += piece.counts(work)
        all_numbers.append(numbers)
    in_order = list(index)
    order = np.array(sorted(range(len(in_order)), key=in_order.__getitem__), np.int64)
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order))
    for piece, numbers in zip(pieces, all_numbers, strict=True):
        Outputs(work, "places").save(piece.name, places[numbers])
    return [in_order[i] for i in order.tolist()], *counts[:, order]


def _count_entries(piece: Piece, work: WorkFolder, coding: Coding, n: int) -> tuple[Offsets, Offsets]:
    counts, document_counts = count_words(*coding.encode(work, [piece.span]), n)
    return counts, document_counts


@dataclass(frozen=True)
class NgramRun:
    """Sorted keys of n-grams with their counts on disk: `NAME.keys`, int64, and `NAME.counts`, int32 or int64."""

    name: str
    size: int  # keys
    n_distinct: int  # keys before those that are too rare were left out


def _ngram_table(
    pieces: Sequence[Piece], site: Site, coding: Coding, rules: VocabularyRules, n: int
) -> tuple[npt.NDArray[np.int64], int]:
    """Return the sorted keys of the n-grams of n words that occur often enough, and the number of distinct ones."""
    work, stopped = site.work, sorted(rules.stop_words)
    key = key_of(n, stopped, rules.min_ngram_count if n > 2 else 0, rules.max_ngrams if n > 2 else 0)
    runs = list(site.workers.map(_ngram_run, pieces, work, coding, n, key))
    size = sum(run.size for run in runs) * 12
    samples = [work.mapped(f"{run.name}.keys", np.int64)[:: run.size // _SAMPLED_KEYS + 1] for run in runs]
    sampled = np.sort(np.concatenate(samples))
    n_ranges = min(size // site.limits.merged + 1, len(sampled) + 1)
    bounds = [0, *sampled[np.linspace(0, len(sampled), n_ranges, endpoint=False).astype(int)[1:]].tolist(), 2**62]
    key = key_of(key, [run.name for run in runs], n_ranges, rules.min_ngram_count)
    ranges = list(enumerate(pairwise(bounds)))
    merged = list(site.workers.map(_merge_ngrams, ranges, work, runs, rules.min_ngram_count, key))
    keys, counts = (
        np.concatenate([work.read(f"{run.name}.{what}", np.int64) for run in merged]) for what in ("keys", "counts")
    )
    if rules.max_ngrams is not None and len(keys) > rules.max_ngrams:
        keys = keys[counts > np.sort(counts)[-rules.max_ngrams - 1]]
    return keys, sum(run.n_distinct for run in merged)


def _ngram_run(piece: Piece, work: WorkFolder, coding: Coding, n: int, key: str) -> NgramRun:
    """Count the n-grams of n words of a piece, as a sorted run of keys."""

    def count(outputs: Outputs) -> NgramRun:
        ids, offsets = coding.without_stop_words(piece.places(work)[piece.ids(work)], piece.offsets(work))
        keys = ngram_keys(coding.levels(ids, offsets)[-1], ids, offsets, n, coding.n_words)
        keys, counts = np.unique(keys[keys >= 0], return_counts=True)
        outputs.save("keys", keys)
        outputs.save("counts", counts.astype(np.int32))
        return NgramRun(outputs.task, len(keys), len(keys))

    return work.once(f"ngrams-{key}-{piece.name}", NgramRun, count)


def _merge_ngrams(
    numbered: tuple[int, tuple[int, int]], work: WorkFolder, runs: Sequence[NgramRun], min_count: int, key: str
) -> NgramRun:
    """Add up the counts of runs in one range of keys, and keep those that are large enough."""
    number, bounds = numbered

    def merge(outputs: Outputs) -> NgramRun:
        found = []
        for run in runs:
            first, last = np.searchsorted(work.mapped(f"{run.name}.keys", np.int64), bounds).tolist()
            read = partial(work.read, first=first, count=last - first)
            found.append((read(f"{run.name}.keys", np.int64), read(f"{run.name}.counts", np.int32)))
        keys, counts = (np.concatenate(each) for each in zip(*found, strict=True))
        distinct, places = np.unique(keys, return_inverse=True)
        totals = np.bincount(places, counts, len(distinct)).astype(np.int64)
        often = totals >= min_count
        outputs.save("keys", distinct[often])
        outputs.save("counts", totals[often])
        return NgramRun(outputs.task, int(often.sum()), len(distinct))

    return work.once(f"ngrams-{key}-{number}", NgramRun, merge)
