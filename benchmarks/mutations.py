"""Damage to saved files, as accidents and attackers do it: for `python -m benchmarks.fuzz`.

A specimen is what was saved: the content of each file by its name. A mutation changes one or two files of it. Half of
them and more are signed afterwards, that is the digests are made right again, so that only the checks of the contents
are left to notice them.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from wgcn.inference.folder import CONFIG, VOCABULARY

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
