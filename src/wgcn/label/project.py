"""The project of a labelling page: texts and the log of decisions in one SQLite file.

Texts are written once, when the project is made, and the file takes its place only when it is complete. The log is only
added to. It is written ahead (WAL) and synchronised with the disk at each commit, so `decide` returns only when the
decision stays even if the process or the machine stops at once. Each decision is checked and numbered in the same
transaction, which SQLite gives to one writer at a time: of several processes, none overwrites what another wrote.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from wgcn.base.errors import InputError, StoreError
from wgcn.base.files import made_folder, open_whole, sync_folder, writing
from wgcn.label.decisions import MOST_CLASSES, Decision, Entry, State, class_name, fold
from wgcn.label.project_file import (
    KIND,
    SCHEMA,
    Estimate,
    alone,
    cells_of,
    check_head,
    checked_facts,
    connect,
    entries_of,
    estimates_of,
    sound,
    text_of,
)

ENDINGS = (".sqlite", ".sqlite3", ".db")
_FIRST_VERSION, _NEWER_KINDS = 1, {"keep": 2}  # a project has the first version that knows all that is in it
_INSERT = "INSERT INTO log (time, who, kind, text, label, value) VALUES (?, ?, ?, ?, ?, ?)"
_ENTRIES = "SELECT seq, time, who, kind, text, label, value FROM log WHERE seq > ? ORDER BY seq"
_RAISE_VERSION = "UPDATE facts SET value = ?1 WHERE name = 'version' AND CAST(value AS INTEGER) < ?1"
_LAST_NUMBER = "SELECT coalesce(max(label), 0) FROM log WHERE kind = 'add'"
MAKING_SECONDS = 20.0  # for another process to make the same project
_SEARCHES = 32  # whose results are kept
MOST_CELLS = 1 << 28  # characters of the other columns in all
_FROM_FILE = "file"  # who decided on labels that came with the texts


Row = tuple[str, str | list[str] | None] | tuple[str, str | list[str] | None, list[str]]


class MadeMeanwhileError(InputError):
    """Another process has made the project, or something else is there by now."""


def project_path(name: str | Path) -> Path:
    """Return the file of a project: a name gets the ending .sqlite, unless it has one like it or is a file already."""
    path = Path(name)
    if path.name in ("", ".."):
        raise InputError(f"{str(name)!r} cannot be the name of a project. Give one, such as --project my-project")
    return path if path.suffix in ENDINGS or path.is_file() else path.with_name(f"{path.name}.sqlite")


def create_project(
    path: Path,
    rows: Iterable[Row],
    source: dict[str, Any] | None = None,
    columns: dict[str, Any] | None = None,
    *,
    wait: float = MAKING_SECONDS,
    most_cells: int = MOST_CELLS,
) -> bool:
    """Make a project of texts, each with its label or None; `source`, read after the rows, says where they are from.

    Rows may have the values of other columns too. Then `columns` has the `names` of all columns, and the places of the
    columns `text` and `label` among them. Returns whether what is in other columns is kept, or too large for that.

    One process makes it at a time. Another one waits for it, and then gets a `MadeMeanwhileError`.
    """
    with writing(path), made_folder(path.parent), alone(path, wait, path.exists) as is_ours:
        if path.exists():
            raise MadeMeanwhileError(f"There is a file {path} already. Go on with it, or choose another --project.")
        if not is_ours:
            raise InputError(f"Another process is making {path}. Wait until it is done, then start again.")
        for left in (path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-journal")):
            if left.exists():  # SQLite would take what is in it for a part of the new project
                advice = "Move it to where that project is, or remove it."
                raise InputError(f"{left} is left of another project of this name. {advice}")
        with open_whole(path) as file, _whole(path), closing(connect(Path(file.name), bounded=False)) as database:
            kept = _write_project(database, rows, source, columns, most_cells)
        sync_folder(path.parent)
    return kept


def _write_project(
    database: sqlite3.Connection,
    rows: Iterable[Row],
    source: dict[str, Any] | None,
    columns: dict[str, Any] | None,
    most_cells: int,
) -> bool:
    """Write a project into an empty file, and return whether what is in other columns is kept."""
    # Nothing is lost if this stops: the file does not yet have its name. It is synchronised before it gets it.
    for line in ("journal_mode = OFF", "synchronous = OFF", f"application_id = {KIND}"):
        database.execute(f"PRAGMA {line}")
    database.executescript(SCHEMA)
    database.execute("BEGIN")
    labels, kept = _write_texts(database, rows, most_cells)
    _write_labels(database, labels)
    (n_texts,) = database.execute("SELECT count(*) FROM texts").fetchone()
    if not n_texts:
        raise InputError("There is no text to label. Give a file with at least one.")
    facts = {"version": _FIRST_VERSION, "n_texts": n_texts, "made": time.time(), "source": source or {}}
    if columns is not None and kept:
        facts["columns"] = columns | {"names": [_writable(name) for name in columns["names"]]}
    pairs = ((name, json.dumps(value)) for name, value in facts.items())
    database.executemany("INSERT INTO facts VALUES (?, ?)", pairs)
    database.execute("COMMIT")
    return kept


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Turn what SQLite says while a project is made, above all of a full disk, into an InputError."""
    try:
        yield
    except sqlite3.Error as error:
        advice = "Is the disk full? Make room, or choose another place (--project)."
        raise InputError(f"{path} cannot be written: {error}. {advice}") from error


def _write_texts(database: sqlite3.Connection, rows: Iterable[Row], most_cells: int) -> tuple[dict[int, str], bool]:
    """Write the texts and what is beside them; return the labels that some have, and whether the rest is kept."""
    labels, writer, n_cells = dict[int, str](), database.cursor(), 0

    def numbered() -> Iterator[tuple[int, str]]:
        nonlocal n_cells
        for place, row in enumerate(rows):
            text, label = row[:2]
            if len(row) == 3 and row[2] and n_cells <= most_cells:
                cells = _writable(json.dumps(row[2], ensure_ascii=False))
                n_cells += len(cells)
                writer.execute("INSERT INTO others VALUES (?, ?)", (place, cells))
                if n_cells > most_cells:
                    writer.execute("DELETE FROM others")
            if isinstance(label, list):
                raise InputError(
                    f"Row {place + 1:,} has a list of labels. The page is for one label per text: leave the column "
                    "out, or use another one (--label-column)."
                )
            if label is not None:
                labels[place] = class_name(label)
            yield place, _writable(text)

    database.executemany("INSERT INTO texts VALUES (?, ?)", numbered())
    return labels, n_cells <= most_cells


def _writable(text: str) -> str:
    """Return a text as it can be written: half a surrogate pair cannot, and a csv file with NUL is not read again."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _write_labels(database: sqlite3.Connection, labels: dict[int, str]) -> None:
    """Write labels that came with the texts as decisions."""
    now, number_of = time.time(), {name: number for number, name in enumerate(sorted(set(labels.values())), 1)}
    if len(number_of) > MOST_CLASSES:
        raise InputError(
            f"The texts have {len(number_of):,} different labels. The page is for at most {MOST_CLASSES} classes: name "
            "another column (--label-column), or leave the column of labels out of the file."
        )
    if labels:
        add = ((now, _FROM_FILE, "add", None, number, name) for name, number in number_of.items())
        database.executemany(_INSERT, add)
        given = ((now, _FROM_FILE, "label", text, number_of[name], "") for text, name in labels.items())
        database.executemany(_INSERT, given)


class Project(AbstractContextManager["Project"]):
    """A project that is open. Its methods can be called from several threads.

    The state is that after the last `decide` or `refresh`: another process may have decided since.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            what = f"{self.path} is not a plain file." if self.path.exists() else f"There is no project {self.path}."
            raise InputError(f"{what} Give texts to make one: wgcn label TEXTS --project …")
        check_head(self.path)
        self._lock, self._with_words = threading.RLock(), lru_cache(_SEARCHES)(self._search)
        self._database, self._file = connect(self.path), _identity(self.path)
        try:
            with sound(self.path):
                self._database.execute("BEGIN")  # all of it is read at one moment
                self.facts = checked_facts(self.path, self._database)
                self.n_texts: int = self.facts["n_texts"]
                self._state = fold(self.entries(), self.n_texts)
                self._database.execute("COMMIT")
                self._database.set_progress_handler(None, 0)
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = FULL")
                self.refresh()  # whoever reads takes part in the WAL, and tidies it up when it is the last to close
        except BaseException:
            self._database.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @property
    def name(self) -> str:
        """The name of the file without its ending."""
        return self.path.stem if self.path.suffix in ENDINGS else self.path.name

    @property
    def state(self) -> State:
        """What the log adds up to. It is replaced at each change, never changed: it can be read from any thread."""
        return self._state

    def entries(self, since: int = 0) -> list[Entry]:
        """Return the log after an entry."""
        with self._lock, sound(self.path):
            return entries_of(self._database.execute(_ENTRIES, (since,)), since + 1)

    def refresh(self) -> State:
        """Read what other processes have decided."""
        with self._lock:
            self._take(self.entries(self._state.seq))
            return self._state

    def decide(self, who: str, decision: Decision) -> Entry:
        """Write a decision to the log, and return it when it is safe on the disk.

        "undo" without a value undoes the last decision of the same person that is not undone.
        """
        with self._lock, self._writing():
            self._take(self.entries(self._state.seq))
            if decision.kind == "undo":
                decision = Decision("undo", value=str(self._to_undo(who, decision.value)))
                state = fold(self.entries(), self.n_texts, without=int(decision.value))
            else:
                if decision.kind == "add":  # numbers of classes whose adding was undone are not given again
                    (last,) = self._database.execute(_LAST_NUMBER).fetchone()
                    decision = decision._replace(label=last + 1)
                decision, state = self._state.checked(decision), _copied(self._state)
                self._check_kept(decision)
            if decision.kind in _NEWER_KINDS:  # earlier versions say that they are too old, instead of what is unknown
                self._database.execute(_RAISE_VERSION, (_NEWER_KINDS[decision.kind],))
            now = time.time()
            cursor = self._database.execute(_INSERT, (now, who, *decision))
            entry = Entry(int(cursor.lastrowid or 0), now, who, decision)
            self._database.execute("COMMIT")
            if decision.kind != "undo":
                state.apply(entry)
            state.seq = entry.seq
            self._state = state
        return entry

    def _check_kept(self, decision: Decision) -> None:
        """Raise an InputError for a label that is to be kept but was changed since it was shown."""
        kind, text, label, _ = decision
        if kind == "keep" and text is not None and label is not None:
            state = self._state
            if state.label_of(text) != state.current(label):
                raise InputError(f"Text {text + 1:,} does not have this label any more. Look at it again.")

    def _to_undo(self, who: str, given: str) -> int:
        """Return the entry to undo, or raise an InputError if there is none or later ones build on it."""
        entries = self.entries()
        undone = {int(entry.decision.value) for entry in entries if entry.decision.kind == "undo"}
        kept = [entry for entry in entries if entry.seq not in undone and entry.decision.kind != "undo"]
        own = [entry.seq for entry in kept if (str(entry.seq) == given if given else entry.who == who)]
        if not own:
            raise InputError("There is nothing to undo.")
        try:
            fold(entries, self.n_texts, without=own[-1])
        except InputError as error:
            raise InputError(f"This cannot be undone, because later decisions build on it. ({error})") from error
        return own[-1]

    def _take(self, entries: Sequence[Entry]) -> None:
        """Apply entries that other processes wrote."""
        with sound(self.path):
            if any(entry.decision.kind == "undo" for entry in entries):
                self._state = fold(self.entries(), self.n_texts)
            elif entries:
                state = _copied(self._state)
                for entry in entries:
                    state.apply(entry)
                self._state = state

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Have the file for writing; what is not committed inside is rolled back."""
        self._check_there("The decision is not kept. ")
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
        except sqlite3.Error as error:
            advice = "The decision is not kept. If the disk is full, make room and decide again."
            raise StoreError(f"{self.path} cannot be written: {error}. {advice}") from error
        finally:
            if self._database.in_transaction:
                with suppress(sqlite3.Error):  # of a file that was damaged meanwhile: what it said before counts
                    self._database.execute("ROLLBACK")

    def _check_there(self, what: str = "") -> None:
        """Raise a StoreError if the file was removed or replaced: SQLite would write into one without a name."""
        if _identity(self.path) != self._file:
            advice = f"{what}Move it back to where it was, or stop 'wgcn label'."
            raise StoreError(f"{self.path} was moved, removed or replaced while the page is open. {advice}")

    def texts(self, places: Sequence[int]) -> list[str]:
        """Return some texts."""
        with self._reading() as database:
            query = "SELECT text FROM texts WHERE id = ?"
            return [text_of(database.execute(query, (place,)).fetchone()[0]) for place in places]

    def all_texts(self) -> Iterator[str]:
        """Yield all texts."""
        with self._reading() as database:
            found = database.execute("SELECT text FROM texts ORDER BY id")
            yield from (text_of(text) for (text,), _ in zip(found, range(self.n_texts), strict=True))

    def all_rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yield all texts with what their file had in other columns; nothing, if that is not kept."""
        if "columns" not in self.facts:
            yield from ((text, []) for text in self.all_texts())
            return
        with self._reading() as database:
            n = len(self.facts["columns"]["names"])
            query = "SELECT cells FROM texts LEFT JOIN others USING (id) ORDER BY id"
            cells = (cells_of(each, n - 2) for (each,) in database.execute(query))
            yield from zip(self.all_texts(), cells, strict=True)

    def search(self, query: str) -> frozenset[int]:
        """Return the texts that have all words of a query, in whatever case, also as parts of words."""
        return self._with_words(tuple(query.casefold().split()))

    def _search(self, words: tuple[str, ...]) -> frozenset[int]:
        with self._reading() as database:
            rows = ((place, text_of(text).casefold()) for place, text in database.execute("SELECT id, text FROM texts"))
            return frozenset(place for place, text in rows if all(word in text for word in words))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection of its own, so that reading many texts does not hold up a decision."""
        self._check_there()
        with sound(self.path), closing(connect(self.path)) as database:
            yield database

    def estimates(self) -> list[Estimate]:
        """Return how good the fits were, the first one first."""
        with self._reading() as database:
            return estimates_of(database.execute("SELECT * FROM estimates ORDER BY seq"))

    def keep_estimate(self, estimate: Estimate) -> None:
        """Keep how good a fit was."""
        with self._lock, self._writing():
            self._database.execute("INSERT OR REPLACE INTO estimates VALUES (?, ?, ?, ?)", estimate)
            self._database.execute("COMMIT")


def _copied(state: State) -> State:
    return State(state.n_texts, state.seq, dict(state.classes), dict(state.given), set(state.skipped), dict(state.kept))


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one of the same name, None if there is none."""
    try:
        there = path.stat()
    except OSError:
        return None
    return there.st_dev, there.st_ino
