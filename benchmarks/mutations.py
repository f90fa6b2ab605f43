"""Damage to saved files, as accidents and attackers do it: for `python -m benchmarks.fuzz`.

A specimen is what was saved: the content of each file by its name. A mutation changes one or two files of it. Half of
them and more are signed afterwards, that is the digests are made right again, so that only the checks of the contents
are left to notice them.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from wgcn.store.folder import CONFIG, VOCABULARY

__all__ = ["Files", "Mutant", "Specimen", "mutate", "sign"]

Files = dict[str, bytes]
SIGNED = 0.65  # share of mutants whose digests are made right
ODD_FILES = ("pipe", "folder", "link to itself", "link to /dev/zero", "none")  # in place of a file
_RAW = '"<raw>"'  # stands for JSON that no value gives

_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.5, 1e-320, 1e38, 1e300, -1e300, "", "a",
    "words", "l2", "\x1b[31mred", "\ud800", "a\x00b", "\u202egnp", "x" * 5000, "x" * 200_000, [], {}, [[]], [0], [1, 1],
    [1, 2, 3], [1, 200], ["a", "a"], [None], {"a": 1}, {"how": "graph", "words": 1, "texts": 1}, [1.5, "a"],
    list(range(3000)),
]  # fmt: skip
_RAW_VALUES = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "9" * 5000,
    "[" * 3000 + "]" * 3000,
    "[" * 40 + "]" * 40,
    '"\\ud800"',
)
_LINES = ["", " ", "a b c d", "\x1b[2J", "x" * 3000, "\ud83d\ude00", "\r", "\x85", "\u2028", "<"]
_NUMBERS = (np.nan, np.inf, -np.inf, 0, -1, 1, 2, 1e-30, 1e10, 1e30, 3e38, -3e38, 65504, 2**31 - 1, -(2**31), 2**62)
_TYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "uint32", "uint64", "bool")


class Specimen(NamedTuple):
    """What is damaged, and how it is used: a name that `benchmarks.fuzz` knows."""

    use: str
    files: Files


class Mutant(NamedTuple):
    """The files that were changed; those that are to be something else than a plain file, and what."""

    files: Files
    odd: dict[str, str]
    what: str
    is_signed: bool


def mutate(specimen: Specimen, others: list[Specimen], random: Random, signed: float = SIGNED) -> Mutant:
    """Return a damaged copy of a specimen, with right digests in a share of cases."""
    files, odd, done = dict(specimen.files), dict[str, str](), list[str]()
    for _ in range(random.choice((1, 1, 1, 2))):
        name = random.choice([name for name in files if name != "README.md"])
        kinds: list[Callable[..., bytes]] = [_bytes]
        if name.endswith(".json"):
            kinds = [_bytes, _json, _json, _json, _json]
        elif name.endswith(".safetensors"):
            kinds = [_bytes, _tensors, _tensors, _tensors, _tensors]
        elif name == VOCABULARY:
            kinds = [_bytes, _lines, _lines]
        elif name == "checkpoint":
            kinds = [_bytes, _checkpoint_state, _checkpoint_tensors, _checkpoint_tensors]
        elif name == "project.sqlite":
            kinds = [_bytes, _pages, _pages, _rows, _rows, _rows, _schema, _schema]
        kind = random.choice(kinds)
        chance = random.random()
        if chance < 0.005 and specimen.use != "checkpoint":
            odd[name] = random.choice(ODD_FILES)
            done.append(f"{name} is a {odd[name]}")
        elif chance < 0.03 and (donors := [other for other in others if name in other.files]):
            files[name] = random.choice(donors).files[name]
            done.append(f"{name} of another")
        else:
            files[name] = kind(files[name], random)
            done.append(f"{name}{kind.__name__}")
    is_signed = random.random() < signed
    if is_signed:
        sign(specimen.use, files)
    return Mutant(
        {name: files[name] for name in files if files[name] != specimen.files[name]}, odd, " ".join(done), is_signed
    )


def _bytes(content: bytes, random: Random) -> bytes:
    """Flip bits, cut, repeat or move parts."""
    data = bytearray(content)
    size, first = len(data), random.randrange(len(data) + 1)
    last = min(size, first + random.choice((1, 2, 8, 64, size)))
    what = random.randrange(6)
    if what == 0:
        for _ in range(random.choice((1, 1, 2, 16))):
            place = random.randrange(max(size, 1))
            data[place : place + 1] = bytes(byte ^ (1 << random.randrange(8)) for byte in data[place : place + 1])
    elif what == 1:
        del data[first:]
    elif what == 2:
        del data[first:last]
    elif what == 3:
        data[first:last] = random.randbytes(last - first)
    elif what == 4:
        place = random.randrange(size + 1)
        data[place:place] = data[first:last]
    else:
        data[first:last] = bytes(last - first)
    return bytes(data)


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a JSON document, but for those of long lists, of which a few will do."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:20]) if isinstance(value, list) else ()
    if len(at) >= 50:  # another mutation nested it
        return [at]
    return [at, *(place for key, child in inside for place in _places(child, (*at, key)))]


def _json(content: bytes, random: Random) -> bytes:
    """Change, remove, add or repeat a value."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return _bytes(content, random)
    raw = ""
    places = _places(document)[1:]
    if not places:
        return _bytes(content, random)
    *path, key = random.choice(places)
    parent = document
    for step in path:
        parent = parent[step]
    what = random.randrange(10)
    if what == 0:
        del parent[key]
    elif what == 1 and isinstance(parent, dict):
        parent[random.choice(("new", "", "\x1b[1m", "extended", "tuned", "x" * 2000))] = random.choice(_VALUES)
    elif what == 2 and isinstance(parent, list):
        parent += [random.choice([*parent, *_VALUES])] * random.choice((1, 1, 3, 1000))
    elif what == 3:
        raw = random.choice(_RAW_VALUES)
        parent[key] = "<raw>"
    elif what == 4 and isinstance(parent[key], int | float):
        parent[key] = random.choice(
            (-parent[key], parent[key] * 1000, parent[key] + 1, float(parent[key]), str(parent[key]))
        )
    else:
        parent[key] = random.choice(_VALUES)
    text = json.dumps(document)
    if what == 5 and isinstance(document, dict) and document:  # a key twice
        twice = random.choice(list(document))
        text = f"{text[:-1]}, {json.dumps(twice)}: {json.dumps(random.choice(_VALUES))}}}"
    return text.replace(_RAW, raw or _RAW).encode()


def _lines(content: bytes, random: Random) -> bytes:
    """Change the words of a vocabulary."""
    lines = content.decode(errors="replace").split("\n")
    place = random.randrange(len(lines))
    what = random.randrange(5)
    if what == 0:
        lines[place] = random.choice(lines)
    elif what == 1:
        del lines[place]
    elif what == 2:
        random.shuffle(lines)
    elif what == 3:
        lines.insert(place, random.choice(_LINES))
    else:
        lines[place] = random.choice(_LINES)
    return "\n".join(lines).encode(errors="surrogatepass")


def _changed(tensors: dict[str, npt.NDArray[Any]], random: Random) -> dict[str, npt.NDArray[Any]]:
    """Return tensors of which one has other values, another type or shape, or is gone."""
    name = random.choice(sorted(tensors))
    array, what = tensors[name].copy(), random.randrange(12)
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        if what <= 3 and flat.size:
            places = slice(None) if what == 0 else random.randrange(flat.size)
            flat[places] = np.array(random.choice(_NUMBERS)).astype(array.dtype)
        elif what == 4:
            array = array.astype(random.choice(_TYPES))
        elif what == 5:
            array = array[: random.randrange(len(array) + 1)] if array.ndim else array[None]
        elif what == 6:
            array = random.choice((array[None], array[..., None], array.reshape(-1), array.T, array[:0], array[()]))
        elif what == 7 and array.ndim:
            array = np.concatenate([array, array[: random.choice((1, len(array)))]])
        elif what == 8:
            flat[:] = np.random.default_rng(random.randrange(2**32)).permutation(flat)
        elif what == 9:
            array = tensors[random.choice(sorted(tensors))]
        elif what == 10 and array.dtype.kind in "iuf":
            array = (array * np.array(random.choice((-1, 2, 1000, 0)), array.dtype)).astype(array.dtype)
        else:
            return {key: value for key, value in tensors.items() if key != name}
    return {**tensors, name: np.ascontiguousarray(array)}


def _tensors(content: bytes, random: Random) -> bytes:
    try:
        return save(_changed(load(content), random))
    except Exception:  # of a file that is damaged already
        return _bytes(content, random)


def _open(content: bytes) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """Return the notes and the tensors of a safetensors file."""
    (size,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + size])["__metadata__"], load(content)


def _checkpoint_tensors(content: bytes, random: Random) -> bytes:
    try:
        notes, tensors = _open(content)
        return save(_changed(tensors, random), notes)
    except Exception:  # of a file that is damaged already
        return _bytes(content, random)


def _checkpoint_state(content: bytes, random: Random) -> bytes:
    try:
        notes, tensors = _open(content)
        state = _json(notes["state"].encode(), random).decode(errors="replace")
        return save(tensors, {**notes, "state": state})
    except Exception:  # of a file that is damaged already
        return _bytes(content, random)


# What SQLite would run for ever, or for long, if it ran what a file says.
_ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
_HUGE = "printf('%.*c', 900000000, 'x')"
_PROJECT = {
    "facts": ("name", "value"),
    "texts": ("id", "text"),
    "others": ("id", "cells"),
    "log": ("seq", "time", "who", "kind", "text", "label", "value"),
    "estimates": ("seq", "n_labels", "n_right", "n_texts"),
    "sqlite_sequence": ("name", "seq"),
}
_CELLS = (
    *("NULL", "x'00ff'", "x''", "zeroblob(100)", "''", "'x'", "0", "-1", "1", "2", "3", "7", "9223372036854775807"),
    *("-9223372036854775808", "2147483648", "0.5", "9e999", "-1e300", "1e-320", "'1'", "'[]'", "'[\"a\"]'", "'{}'"),
    *("'null'", "'[[[['", "'add'", "'label'", "'undo'", "'merge'", "'rename'", "'seeds'", "'keep'", "'unlabel'"),
    *("CAST(x'41ff42' AS TEXT)", "CAST(x'610062' AS TEXT)", "CAST(x'eda080' AS TEXT)", "printf('%.*c', 100000, '9')"),
    *("printf('%.*c', 50000, '[')", "'NaN'", "'1e999'", "'file'", "'version'", "'columns'", "'3'", "'2'", "char(8238)"),
)
_SCHEMAS = (
    "DROP TABLE {t}",
    "DROP TABLE {t}; CREATE VIEW {t} AS {endless} SELECT {numbers} FROM c",
    "DROP TABLE {t}; CREATE VIEW {t} AS SELECT {huges}",
    "DROP TABLE {t}; CREATE TABLE {t} ({c})",
    "DROP TABLE {t}; CREATE TABLE {t} ({c}, PRIMARY KEY ({c})) WITHOUT ROWID",
    "DROP TABLE {t}; CREATE TABLE {t} ({f}, {c} AS ({huge}))",
    "DROP TABLE {t}; CREATE VIRTUAL TABLE {t} USING fts5({c})",
    "CREATE VIRTUAL TABLE more USING rtree(a, b, c)",
    "ALTER TABLE {t} RENAME TO more",
    "ALTER TABLE {t} ADD COLUMN more DEFAULT 'x'",
    "ALTER TABLE {t} ADD COLUMN more AS ({huge})",
    "ALTER TABLE {t} RENAME COLUMN {f} TO more",
    "CREATE TRIGGER more AFTER INSERT ON {t} BEGIN INSERT INTO estimates {endless} SELECT x, 1, 1, 1 FROM c; END",
    "CREATE TRIGGER more BEFORE INSERT ON {t} BEGIN INSERT INTO {t} ({f}) VALUES (1); END",
    "DROP TRIGGER no_UPDATE",
    "DROP TRIGGER no_DELETE; CREATE TRIGGER no_DELETE AFTER INSERT ON log BEGIN DELETE FROM log; END",
    "CREATE INDEX more ON {t} ({f})",
    "CREATE INDEX more ON {t} (length({f} || '{long}'))",
    "CREATE VIEW more AS {endless} SELECT x FROM c",
    "CREATE TABLE more (a, CHECK (length({huge}) > 0))",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = {n} WHERE name = '{t}'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'TEXT', '{w}') WHERE name = '{t}'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = '{w}' WHERE name = '{t}'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET tbl_name = '{w}' WHERE name = '{t}'",
    "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = '{t}'",
    "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = '{t}'",
    "PRAGMA application_id = {n}",
    "PRAGMA user_version = {n}",
    "PRAGMA page_size = 1024; VACUUM",
    "PRAGMA encoding = 'UTF-16'; VACUUM",
)


def _with_sql(content: bytes, script: Callable[[sqlite3.Connection], object]) -> bytes:
    """Return a file of SQLite after some statements, as far as they can be run."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1 << 26)  # what is damaged already may claim to have gigabytes
        try:
            database.deserialize(content)
            script(database)
        except Exception:  # of a file that is damaged already
            pass
        if database.in_transaction:
            database.execute("COMMIT")
        return database.serialize()


def _schema(content: bytes, random: Random) -> bytes:
    """Change tables, triggers and the like."""
    table = random.choice(list(_PROJECT)[:5])
    columns = _PROJECT[table]
    names = {
        **{"t": table, "c": ", ".join(columns), "f": random.choice(columns), "endless": _ENDLESS, "huge": _HUGE},
        "numbers": ", ".join(f"x AS {name}" for name in columns),
        "huges": ", ".join(f"{_HUGE} AS {name}" for name in columns),
        **{"n": random.choice((0, 1, 2, 3, 4, 5, 6, 99, 2**31 - 1)), "long": "x" * random.choice((1, 1, 1, 900_000))},
        "w": random.choice(("view", "table", "trigger", "index", "INT", "BLOB", "texts", "log", "", "\x01")),
    }
    statements = random.choice(_SCHEMAS).format(**names)
    return _with_sql(content, lambda database: database.executescript(statements))


def _rows(content: bytes, random: Random) -> bytes:
    """Change, add or remove rows: any value in any column, whatever the table says of it."""
    table = random.choice(list(_PROJECT))
    columns = _PROJECT[table]
    cell, one = random.choice(_CELLS), random.choice(columns)
    if random.random() < 0.005:
        cell = f"CAST(zeroblob({random.choice((10**6, 2 * 10**7))}) AS TEXT)"
    elif random.random() < 0.1 and table == "facts":
        table, one, cell = "facts", "value", "value"
    where = random.choice(("", "WHERE rowid = 1", "WHERE rowid = 3", "WHERE rowid % 2", "WHERE rowid = 8"))
    values = ", ".join(random.choice(_CELLS) for _ in columns)
    decision = random.choice(("add", "label", "undo", "merge", "rename", "seeds", "keep", "skip", "unlabel"))
    given = ", ".join(random.choice(("NULL", "0", "1", "2", "3", "9", "200", "4294967296")) for _ in range(2))
    value = random.choice(("''", "'1'", "'2'", "'9'", "'[\"wine\"]'", "'a'", "'b'", "'new'", "'x=y'"))
    statement = random.choice(
        (
            f"UPDATE {table} SET {one} = {cell} {where}",
            f"UPDATE {table} SET {one} = {cell} {where}",
            f"UPDATE {table} SET {one} = {random.choice(columns)} {where}",
            f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({values})",
            f"DELETE FROM {table} {where}",
            f"INSERT INTO log (time, who, kind, text, label, value) VALUES (1.5, 'me', '{decision}', {given}, {value})",
            f"INSERT INTO log (time, who, kind, text, label, value) VALUES (1.5, 'me', '{decision}', {given}, {value})",
        )
    )

    def change(database: sqlite3.Connection) -> None:
        if cell == "value":
            name, before = random.choice(database.execute("SELECT name, value FROM facts").fetchall())
            after = _json(json.dumps({"it": json.loads(before)}).encode(), random).decode(errors="replace")
            after = after.removeprefix('{"it": ').removesuffix("}")
            database.execute("UPDATE facts SET value = ? WHERE name = ?", (after, name))
            return
        database.execute("DROP TRIGGER no_UPDATE")
        database.execute("DROP TRIGGER no_DELETE")
        before = database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'")
        database.execute("PRAGMA writable_schema = RESET")
        try:
            database.execute(statement)
        finally:
            database.execute("PRAGMA writable_schema = ON")
            database.executemany("UPDATE sqlite_schema SET sql = ?2 WHERE name = ?1", before)
            database.execute("PRAGMA writable_schema = RESET")
            for verb in ("UPDATE", "DELETE"):
                database.execute(_ONLY_ADDED.format(verb=verb))

    return _with_sql(content, change)


_ONLY_ADDED = "CREATE TRIGGER no_{verb} BEFORE {verb} ON log BEGIN SELECT RAISE(ABORT, 'the log is only added to'); END"


def _pages(content: bytes, random: Random) -> bytes:
    """Change numbers in the heads of pages, or put a page in the place of another: trees that lead in circles."""
    data = bytearray(content)
    size = int.from_bytes(data[16:18], "big") or 1
    size = 65536 if size == 1 else size
    n = max(len(data) // size, 1)
    for _ in range(random.choice((1, 1, 2, 4))):
        page, other = random.randrange(n) * size, random.randrange(n) * size
        what = random.randrange(5)
        if what == 0:
            data[page : page + size] = data[other : other + size]
        elif what == 1:
            place = page + random.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 100, 101, 103, 105, 108))
            data[place : place + 1] = bytes([random.choice((0, 1, 2, 5, 10, 13, 127, 255, random.randrange(256)))])
        elif what == 2:  # the number of a page
            place = page + random.choice((8, size - 4, 100 + 8, random.randrange(size)))
            data[place : place + 4] = random.choice((0, 1, 2, n, n + 1, random.randrange(n + 1), 2**31)).to_bytes(
                4, "big"
            )
        elif what == 3:  # the head of the file
            place = random.choice((16, 18, 19, 20, 21, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 92, 96))
            data[place : place + 4] = random.choice(
                (0, 1, 2, 3, 4, 255, 2**24, 2**31, random.randrange(2**32))
            ).to_bytes(4, "big")
        else:
            place = page + random.randrange(size)
            data[place : place + 2] = random.randbytes(2)
    return bytes(data)


def sign(use: str, files: Files) -> None:
    """Make the digests right, where the files are sound enough to have some."""
    try:
        if use == "checkpoint":
            from wgcn.network.checkpoint import digest

            notes, tensors = _open(files["checkpoint"])
            files["checkpoint"] = save(tensors, {**notes, "digest": digest(notes["state"], tensors)})
        elif use == "results":
            from wgcn_paper.experiments.cells import Cell

            (name,) = files
            document = json.loads(files[name])
            for run in document["runs"]:
                given = {key: run[key] for key in Cell.__dataclass_fields__}
                run["key"] = Cell(**{**given, "settings": document["settings"][run["settings"]]}).key
            files[name] = json.dumps(document).encode()
        else:
            document = json.loads(files[CONFIG])
            for name in document["files"]:
                if name in files:
                    document["files"][name] = hashlib.sha256(files[name]).hexdigest()
            document.pop("digest", None)
            text = json.dumps(document, sort_keys=True, separators=(",", ":"))
            document["digest"] = hashlib.sha256(text.encode()).hexdigest()
            files[CONFIG] = json.dumps(document, ensure_ascii=False).encode()
    except Exception:  # there is no end of ways to damage a file
        return
