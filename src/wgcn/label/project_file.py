"""The SQLite file of a labelling project: its tables, and the checks of a file that may come from somebody else.

SQLite runs what a file says: views, triggers, generated columns and expressions of indexes may work for ever, and a
damaged tree of pages may lead in circles. So a file is looked at in this order, each step safe because of those before:
its first bytes, without SQLite; its schema, which must be that of a project to the letter; its pages, each of which is
used once (``PRAGMA quick_check``); the type of every value. Nothing is written to a file before all of this is done.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import product
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from wgcn.base.errors import StoreError
from wgcn.base.files import writing
from wgcn.label.decisions import Decision, Entry
from wgcn.text.tokenize import TOKENIZERS

_VERSION = 2  # of what can be read; a project has the first version that knows all that is in it
KIND = 0x7767636E  # "wgcn", the application id in the head of the file
SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE others (id INTEGER PRIMARY KEY, cells TEXT NOT NULL);
CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, who TEXT NOT NULL, kind TEXT NOT NULL,
    text INTEGER, label INTEGER, value TEXT NOT NULL
);
CREATE TABLE estimates (seq INTEGER PRIMARY KEY, n_labels INTEGER, n_right REAL, n_texts INTEGER);
CREATE TRIGGER no_UPDATE BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the log is only added to'); END;
CREATE TRIGGER no_DELETE BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log is only added to'); END;
"""
_LATER = frozenset({"others"})  # tables that the first projects did not have
_MAGIC, _ID_AT = b"SQLite format 3\0", 68
_WAIT = 30.0  # seconds for another writer to finish
_STEPS, _STEPS_PER_BYTE = 1_000_000, 32  # instructions of SQLite for one use of a file, at most
_STEP = 1000  # of them between two looks at how many are left
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: (1 << 28) + (1 << 20),  # bytes of a row: 64 Mi characters, and what is beside them
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 10_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 20,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}
_TABLES = "SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT 50"
_COUNTS = "SELECT count(*), min(id), max(id), total(typeof({column}) != 'text') FROM {table}"
_ENTRY = {(int, float, str, str, *number, str) for number in product((int, NoneType), repeat=2)}  # of rows of the log
_ESTIMATE = (int, int, float, int)


class Estimate(NamedTuple):
    """How good a fit was on held-out texts."""

    seq: int  # of the last entry that the fit saw
    n_labels: int
    n_right: float
    n_texts: int


@contextmanager
def sound(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file leads to into a StoreError: there is no end of ways to damage one."""
    try:
        yield
    except (StoreError, MemoryError):
        raise
    except Exception as error:
        why = "".join(each if each.isprintable() else "\ufffd" for each in f"{error!s:.200}".rstrip("."))
        why = "it takes more work than its size explains" if why == "interrupted" else why
        advice = "It is no project, or damaged: give another file, or a copy of it."
        raise StoreError(f"{path} cannot be read as a project: {why}. {advice}") from error


def lock_of(path: Path) -> Path:
    """Return the file whose lock a process has while it makes or serves a project."""
    return path.with_name(f"{path.name}.lock")


@contextmanager
def alone(path: Path, wait: float = 0.0, unless: Callable[[], bool] | None = None) -> Iterator[bool]:
    """Have a project for one process at a time; yields False if another one has it, after some seconds of waiting.

    Waiting also ends when `unless` returns true. The system takes the lock back when a process ends, however it ends.
    """
    lock = FileLock(lock_of(path), mode=0o600)
    with writing(lock_of(path)), suppress(Timeout):
        lock.acquire(wait, cancel_check=unless)
    try:
        yield lock.is_locked
    finally:
        if lock.is_locked:
            with suppress(OSError):
                lock_of(path).unlink()  # while it is held: whoever waits for it notices, and makes another one
            lock.release()


def connect(path: Path, *, bounded: bool = True) -> sqlite3.Connection:
    """Open a file that is there; `bounded` is for reading, with as many instructions as its size explains."""
    with sound(path):
        uri = f"{path.absolute().as_uri()}?mode=rw"
        database = sqlite3.connect(uri, timeout=_WAIT, isolation_level=None, check_same_thread=False, uri=True)
        for limit, most in _LIMITS.items():
            database.setlimit(limit, most)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        if bounded:
            sizes = [each.stat().st_size for each in (path, path.with_name(f"{path.name}-wal")) if each.exists()]
            left = iter(range((_STEPS + _STEPS_PER_BYTE * sum(sizes)) // _STEP))
            database.set_progress_handler(lambda: next(left, None) is None, _STEP)
        return database


def checked_facts(path: Path, database: sqlite3.Connection) -> dict[str, Any]:
    """Check all of a file but the entries of its log, and return the facts of the project."""
    _check_schema(database)
    _require(database.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)], "its pages are damaged")
    facts = _facts(path, database.execute("SELECT name, value FROM facts LIMIT 50").fetchall())
    for table, column in (("texts", "text"), ("others", "cells")):
        if table == "others" and "columns" not in facts:
            continue
        count, low, high, n_wrong = database.execute(_COUNTS.format(table=table, column=column)).fetchone()
        n, is_whole = facts["n_texts"], table == "texts" or len(facts["columns"]["names"]) > 2
        right = (n, 0, n - 1, 0) if is_whole else (0, None, None, 0)
        what = f"its table {table!r} must have {right[0]:,} rows of text, numbered from 0"
        _require((count, low, high, n_wrong or 0) == right, what)
    (last,) = database.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()
    numbers = database.execute("SELECT name, seq FROM sqlite_sequence LIMIT 5").fetchall()
    _require(numbers == [("log", last)] or not (numbers or last), "the next number of its log is wrong")
    return facts


def check_head(path: Path) -> None:
    """Raise a StoreError for a file that is no project; nothing but its first bytes is read."""
    with sound(path), path.open("rb") as file:
        head = file.read(_ID_AT + 4)
    if not head.startswith(_MAGIC) or head[_ID_AT:] != KIND.to_bytes(4, "big"):
        raise StoreError(f"{path} is not a project of 'wgcn label'. Give another file.")


@lru_cache(maxsize=1)
def _known_schema() -> frozenset[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(SCHEMA)
        return frozenset(database.execute(_TABLES))


def _check_schema(database: sqlite3.Connection) -> None:
    """Raise a ValueError unless tables, indexes and triggers are those of a project, to the letter."""
    rows = database.execute(_TABLES).fetchall()
    strange = [row for row in rows if row not in _known_schema()]
    missing = {name for _, name, _, _ in _known_schema().difference(rows)} - _LATER
    for kind, name, _, _ in strange:
        what = f"it has the {kind} {name!r:.60}, which is not in projects of this version"
        raise ValueError(f"{what} (a newer wgcn may know it)")
    _require(not missing and len(rows) == len(set(rows)), f"it lacks {', '.join(sorted(missing))}")


def _facts(path: Path, rows: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Return the facts of a project, of the right types."""
    _require(all(type(name) is type(value) is str for name, value in rows), "its facts are no text")
    facts: dict[str, Any] = {name: json.loads(value) for name, value in rows}
    if lacking := {"version", "n_texts", "source"} - facts.keys():
        raise ValueError(f"it does not say its {', '.join(sorted(lacking))}")
    version, n_texts, source = (facts[name] for name in ("version", "n_texts", "source"))
    _require(type(version) is int and version > 0, "its version is no number")
    if version > _VERSION:
        raise StoreError(f"{path} was made by a newer version of wgcn. Give another file.")
    _require(type(n_texts) is int and n_texts > 0, "its number of texts is wrong")
    _require(type(source) is dict and all(type(value) is str for value in source.values()), "its source is wrong")
    _require(source.get("tokenizer", "words") in TOKENIZERS, "its tokenizer is unknown")
    if "columns" in facts:
        names, text, label = (facts["columns"][name] for name in ("names", "text", "label"))
        _require(_are_texts(names), "its columns have no names")
        places = {place for place in (text, label) if type(place) is int and 0 <= place < len(names)}
        _require(len(places) == 2, "its columns are wrong")
    return facts


def entries_of(rows: Iterable[tuple[Any, ...]], first: int) -> list[Entry]:
    """Return rows of the log, which are numbered without a gap from `first`; each class was added by an earlier one."""
    entries = list[Entry]()
    for place, row in enumerate(rows, first):
        seq, when, who, kind, text, label, value = row
        right = tuple(map(type, row)) in _ENTRY and seq == place and math.isfinite(when)
        if not (right and (label is None or 0 < label <= seq)):
            raise ValueError(f"entry {place:,} of its log is wrong")
        entries.append(Entry(seq, when, who, Decision(kind, text, label, value)))
    return entries


def estimates_of(rows: Iterable[tuple[Any, ...]]) -> list[Estimate]:
    """Return rows of the table of estimates."""
    estimates = list[Estimate]()
    for row in rows:
        _require(tuple(map(type, row)) == _ESTIMATE, "an estimate is no number")
        estimates.append(each := Estimate(*row))
        _require(each.n_labels >= 0 and each.n_texts > 0 and math.isfinite(each.n_right), "an estimate is wrong")
    return estimates


def text_of(value: Any) -> str:
    """Return a text, which must be one."""
    _require(type(value) is str, "a text is missing")
    return str(value)


def cells_of(value: Any, n: int) -> list[str]:
    """Return what a row has in the `n` columns beside text and label."""
    cells = json.loads(value) if n else []
    _require(_are_texts(cells) and len(cells) == n, "a row is wrong")
    return list(cells)


def _are_texts(values: Any) -> bool:
    """Return whether values of JSON are a list of texts that can be written: JSON may have halves of characters."""
    if type(values) is not list or not all(type(value) is str for value in values):
        return False
    return not any("\ud800" <= character <= "\udfff" for value in values if not value.isascii() for character in value)


def _require(right: bool, what: str) -> None:
    if not right:
        raise ValueError(what)
