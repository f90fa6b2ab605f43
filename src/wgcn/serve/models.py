"""The models that a server has: several folders by name, each loaded again when it changes."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any

from wgcn.base.errors import InputError, StoreError, WGCNError
from wgcn.base.files import read_whole
from wgcn.model.card import model_rows
from wgcn.model.text_model import TextModel
from wgcn.serve.web import RefusedError, log, to_json
from wgcn.store.folder import CONFIG

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ATTEMPTS = 5  # to load a folder that is saved at the same time


@dataclass(frozen=True, eq=False)
class Served:
    """A version of a model. A request keeps the version that it began with."""

    name: str
    model: TextModel
    digest: str
    classes: list[str]
    card: dict[str, Any]

    @cached_property
    def version(self) -> bytes:
        """How an answer begins."""
        return to_json({"model": self.name, "digest": self.digest})[:-1].encode("ascii") + b","

    @cached_property
    def card_json(self) -> bytes:
        """The card as JSON, which may be long."""
        return to_json(self.card).encode("ascii")

    @cached_property
    def keys(self) -> list[str]:
        """The names of the classes as keys of JSON."""
        return [f"{quoted(name)}:" for name in self.classes]

    @cached_property
    def longest(self) -> list[int]:
        """How many bytes no key, one key, two keys and so on have at most."""
        return [0, *accumulate(sorted(map(len, self.keys), reverse=True))]


@dataclass
class _Place:
    """A folder, the version that is served, and why a later one is not."""

    path: Path
    served: Served
    stamp: object
    error: str | None = None
    n_loads: int = 1
    n_failures: int = 0


@dataclass
class Models:
    """Models by name. `reload` may run in another thread than the requests."""

    places: dict[str, _Place] = field(default_factory=dict)

    @classmethod
    def load(cls, folders: dict[str, Path]) -> Models:
        """Load all folders; one that cannot be loaded is a StoreError."""
        models = cls()
        for name, path in folders.items():
            stamp = _stamp(path)
            models.places[name] = _Place(path, _load(name, path), stamp)
        return models

    def get(self, name: str | None) -> Served:
        """Return the model of a name; None is the only one that there is."""
        if name is None and len(self.places) == 1:
            return next(iter(self.places.values())).served
        names = ", ".join(sorted(self.places))
        if name is None:
            raise RefusedError(404, f"There are several models: {names}. Name one: /v1/models/NAME/...")
        if name not in self.places:
            raise RefusedError(404, f"There is no model {name!r:.100}. There are: {names}.")
        return self.places[name].served

    def reload(self, *, force: bool = False) -> None:
        """Load the folders that have changed. A damaged one keeps the version before, and the error is kept."""
        for name, place in self.places.items():
            stamp = _stamp(place.path)
            if stamp == place.stamp and not force:
                continue
            place.stamp = stamp
            begin = time.perf_counter()
            try:
                served = _load(name, place.path)
            except Exception as error:  # whatever it is, the others are looked at too
                reason = str(error) if isinstance(error, WGCNError) else repr(error)
                place.error, place.n_failures = reason, place.n_failures + 1
                log("model not loaded", logging.ERROR, model=name, kept=place.served.digest, reason=reason)
                continue
            place.error, place.n_loads = None, place.n_loads + 1
            if served.digest != place.served.digest:
                place.served = served
            log("model loaded", model=name, digest=served.digest, seconds=round(time.perf_counter() - begin, 3))

    def warm(self) -> None:
        """Make the tables that a first text needs; compiled code has others."""
        for place in self.places.values():
            place.served.model.predict(["a"])

    def health(self) -> dict[str, dict[str, Any]]:
        """Return for each model what is served, and the error of a later version that could not be loaded."""
        found = {}
        for name, place in self.places.items():
            found[name] = {"digest": place.served.digest, "loaded": place.served.card["loaded"]}
            if place.error is not None:
                found[name]["error"] = place.error
        return found


def named_folders(given: Iterable[str]) -> dict[str, Path]:
    """Return the folders of arguments NAME=DIR, or DIR, whose name is that of the folder.

    Examples
    --------
    >>> [(name, str(path)) for name, path in named_folders(["models/topics", "mood=models/v2"]).items()]
    [('topics', 'models/topics'), ('mood', 'models/v2')]
    """
    folders: dict[str, Path] = {}
    for argument in given:
        name, sign, folder = argument.partition("=")
        if not sign or not _NAME.fullmatch(name):
            name, folder = Path(argument).absolute().name, argument  # of a link its own, which leads elsewhere later
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r:.100} cannot be the name of a model in an address. Give one: NAME={folder}")
        if name in folders:
            raise InputError(f"Two models are named {name!r}. Give names to them: NAME={folder}")
        folders[name] = Path(folder)
    return folders


def _load(name: str, path: Path) -> Served:
    """Return the model of a folder, ready to answer."""
    for _ in range(_ATTEMPTS):
        digest, model = _digest(path), TextModel.load(path)
        if digest == _digest(path):
            break
    else:
        raise StoreError(f"{path} is saved again and again while it is read. Try again later.")
    model.predict(["a"])  # see `warm`
    served = Served(name, model, digest, [str(label) for label in model.classes.tolist()], _card(name, model, digest))
    _ = served.longest, served.card_json  # made here, and not when a request waits for them
    return served


def _card(name: str, model: TextModel, digest: str) -> dict[str, Any]:
    """Return what a model is, as JSON."""
    rows = {
        "name": name,
        "digest": digest,
        "loaded": datetime.now(UTC).isoformat(timespec="seconds"),
        "classes": model.classes.tolist(),
        "multilabel": model.scorer.multilabel,
        "summary": model_rows(model),
        "settings": model.settings,
        "report": model.report,
    }
    card: dict[str, Any] = json.loads(json.dumps(rows), parse_constant=lambda _: None)  # JSON knows no NaN
    return card


def _digest(path: Path) -> str:
    """Return the digest that a folder names, of the pending version if there is one (`wgcn.store.folder`)."""
    for file in (path / ".wgcn-pending" / CONFIG, path / CONFIG):
        try:
            return str(json.loads(read_whole(file))["digest"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return ""  # loading it says what is wrong


def _stamp(path: Path) -> object:
    """Return what changes whenever a file of a folder does."""
    found: list[tuple[str | int, ...]] = []
    for folder in (path, path / ".wgcn-pending"):
        try:
            with os.scandir(folder) as entries:
                stats = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
        except OSError as error:
            found.append((str(error.errno),))
            continue
        for name, stat in sorted(stats):  # st_ctime: a file that cannot be read may get other permissions
            found.append((name, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino))
    return found
