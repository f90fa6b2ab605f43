"""Put benchmark sets into the cache: from where they were published, or from a copy on this machine.

A set is built in a temporary folder beside its final place, compared with the published content, and renamed into
place: complete or not at all. If there is a damaged one, only its files are replaced.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from wgcn.base.errors import InputError
from wgcn_paper.datasets import planetoid, sources, text_gcn
from wgcn_paper.datasets.download import Report
from wgcn_paper.datasets.layout import (
    FILES,
    STOP_WORDS_FILE,
    check_content,
    check_words,
    prepared_folder,
    read_set,
    read_stop_words,
    set_path,
    write_citation_set,
    write_stop_words,
    write_text_set,
)
from wgcn_paper.datasets.registry import DOCS, STOP_WORDS, CitationSet, TextSet, known_set
from wgcn_paper.datasets.sources import Repository, Source, open_source, read_member

_STOP_WORDS_ARCHIVE = "packages/corpora/stopwords.zip"
_STOP_WORDS_MEMBER = "stopwords/english"
_STOP_WORDS_COPIES = (
    STOP_WORDS_FILE,
    _STOP_WORDS_MEMBER,
    f"corpora/{_STOP_WORDS_MEMBER}",
    f"packages/corpora/{_STOP_WORDS_MEMBER}",
)
# NLTK added these in February 2025, after the published results.
# fmt: off
_LATER_STOP_WORDS = {
    "he'd", "he'll", "he's", "i'd", "i'll", "i'm", "i've", "it'd", "it'll", "she'd", "she'll", "they'd", "they'll",
    "they're", "they've", "we'd", "we'll", "we're", "we've",
}
# fmt: on


def prepare(names: Iterable[str], source: str | Path | None = None, progress: Report | None = None) -> dict[str, bool]:
    """Put sets, or the list ``stopwords``, into ``data`` in the cache folder; return for each whether it is new.

    A set that already has the published content is left alone. Downloads come from GitHub, or from the address in the
    environment variable ``WGCN_MIRROR`` instead of https://raw.githubusercontent.com. With `source` the files are taken
    from there: a folder in the layout of :mod:`wgcn_paper.datasets.layout`, a checkout of the repository that a set
    comes from, or a .zip or .tar.gz archive of either.
    """
    wanted = list(dict.fromkeys(names))
    if DOCS in wanted:
        raise InputError(f"'{DOCS}' is made from the packages that are installed; there is nothing to prepare.")
    known = [None if name == STOP_WORDS else known_set(name) for name in wanted]
    folder = prepared_folder()
    if folder is None:
        raise InputError("There is no home folder to put data sets in. Set WGCN_CACHE to a folder.")
    copy = None if source is None else open_source(Path(source))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return {
            name: _prepare_stop_words(folder, copy, progress)
            if one is None
            else _prepare_set(one, folder, copy, progress)
            for name, one in zip(wanted, known, strict=True)
        }
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}.") from error


# Sets


def _prepare_set(known: TextSet | CitationSet, folder: Path, copy: Source | None, progress: Report | None) -> bool:
    if _is_whole(known, folder):
        return False
    path = set_path(folder, known).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{known.name}.", dir=path.parent) as temporary:
        source: Source = _repository(known, Path(temporary, "download"), progress) if copy is None else copy
        new = set_path(Path(temporary), known)
        new.mkdir(parents=True)
        _fill(known, new, source)
        check_content(read_set(known.name, Path(temporary)), f"{source}")
        if path.is_dir():  # damaged; files that are not of the set stay
            for file in new.iterdir():
                file.replace(path / file.name)
        else:
            new.rename(path)
    return True


def _is_whole(known: TextSet | CitationSet, folder: Path) -> bool:
    try:
        check_content(read_set(known.name, folder), "")
    except InputError:
        return False
    return True


def _fill(known: TextSet | CitationSet, path: Path, source: Source) -> None:
    """Write the files of a set into a folder."""
    ours = {f"{known.kind}/{known.name}/{file}": file for file in FILES[known.kind]}
    found = None if isinstance(source, Repository) else source.read(tuple(ours))
    if found is not None:
        for name, file in ours.items():
            (path / file).write_bytes(found[name])
        return
    originals = _originals(known)
    found = source.read(tuple(originals))
    if found is None:
        raise InputError(
            f"{source} does not have '{known.name}': neither {', '.join(ours)} nor {', '.join(originals)}."
        )
    for name, digest in originals.items():
        if digest is not None and hashlib.sha256(found[name]).hexdigest() != digest:
            raise InputError(f"{source}: {name} is not the original file; its SHA-256 is another.")
    if isinstance(known, TextSet):
        listing, corpus = (found[name] for name in originals)
        write_text_set(path, text_gcn.convert(known.name, listing, corpus, f"{source}"))
    else:
        members = {end: found[name] for end, name in zip(known.sources, originals, strict=True)}
        write_citation_set(path, planetoid.convert(known.name, members, validation=known.validation))


def _originals(known: TextSet | CitationSet) -> dict[str, str | None]:
    """Return the files that a set comes from, with their SHA-256 if it is known."""
    if isinstance(known, TextSet):
        return {text_gcn.listing_name(known.source): None, text_gcn.corpus_name(known.source): None}
    return {f"data/{planetoid.file_name(known.name, end)}": digest for end, digest in known.sources.items()}


# Stop words


def _prepare_stop_words(folder: Path, copy: Source | None, progress: Report | None) -> bool:
    path = folder / STOP_WORDS_FILE
    with suppress(InputError):
        read_stop_words(path)
        return False
    with tempfile.TemporaryDirectory(prefix=".stopwords.", dir=folder) as temporary:
        source: Source = _repository(None, Path(temporary, "download"), progress) if copy is None else copy
        words = _find_stop_words(source, Path(temporary))
        check_words(words, f"{source}")
        write_stop_words(path, words)
    return True


def _find_stop_words(source: Source, temporary: Path) -> list[str]:
    """Return the stop words of a source, without those that were added to the list later."""
    if isinstance(source, Repository):
        archive = temporary / "stopwords.zip"
        archive.write_bytes(source.read((_STOP_WORDS_ARCHIVE,))[_STOP_WORDS_ARCHIVE])
        data = read_member(archive, _STOP_WORDS_MEMBER)
    else:
        copies = (found[name] for name in _STOP_WORDS_COPIES if (found := source.read((name,))) is not None)
        data = next(copies, b"")
        if not data:
            raise InputError(f"{source} does not have the stop words: none of {', '.join(_STOP_WORDS_COPIES)}.")
    return [word for word in data.decode("utf-8", "replace").split() if word not in _LATER_STOP_WORDS]


# Sources


def _repository(known: TextSet | CitationSet | None, folder: Path, progress: Report | None) -> Repository:
    """Return the repository of a set, or of the stop words; `folder` is for its downloads."""
    if known is None:
        return Repository(sources.NLTK_DATA, folder, {}, progress)
    base = sources.TEXT_GCN if known.kind == "text" else sources.PLANETOID
    digests = {file: digest for file, digest in _originals(known).items() if digest}
    return Repository(base, folder, digests, progress)
