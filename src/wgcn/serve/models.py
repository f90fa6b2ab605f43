"""The models that a server has: several folders by name, each loaded again when it changes."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path

from starlette.exceptions import HTTPException

from wgcn import TextModel
from wgcn.base.errors import InputError, StoreError, WGCNError
from wgcn.model.card import model_rows
from wgcn.serve.schema import Card, ModelHealth
from wgcn.serve.server import log
from wgcn.serve.web import to_json
from wgcn.store.folder import CONFIG, read_file

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ATTEMPTS = 5  # to load a folder that is saved at the same time


class Served:
    """A version of a model, and what all answers take from it. A request keeps the version that it began with."""

    def __init__(self, name: str, model: TextModel, digest: str) -> None:
        self.name, self.model, self.digest = name, model, digest
        self.loaded = datetime.now(UTC).isoformat(timespec="seconds")
        self.classes = [str(label) for label in model.classes.tolist()]
        self.keys = [f"{quoted(name)}:" for name in self.classes]  # as keys of JSON
        # How many bytes no key, one key, two keys and so on have at most.
        self.longest = [0, *accumulate(sorted(map(len, self.keys), reverse=True))]
        self.version = to_json({"model": name, "digest": digest})[:-1].encode("ascii") + b","  # how an answer begins
        self.card_json = to_json(self._card()).encode("ascii")

    def _card(self) -> Card:
        model = self.model
        rows = {
            **{"name": self.name, "digest": self.digest, "loaded": self.loaded},
            **{"classes": model.classes.tolist(), "multilabel": model.scorer.multilabel},
            **{"summary": model_rows(model), "settings": model.settings, "report": model.report},
        }
        card: Card = json.loads(json.dumps(rows), parse_constant=lambda _: None)  # JSON knows no NaN
        return card


def load_served(name: str, path: Path) -> Served:
    """Return the model of a folder, ready to answer."""
    for _ in range(_ATTEMPTS):
        digest, model = _digest(path), TextModel.load(path)
        if digest == _digest(path):
            model.predict(["a"])  # makes the tables that a first text needs
            return Served(name, model, digest)
    raise StoreError(f"{path} is saved again and again while it is read. Try again later.")


def _digest(path: Path) -> str:
    """Return the digest that a folder names; if there is none, loading it says what is wrong."""
    with suppress(StoreError, ValueError, KeyError, TypeError, RecursionError):
        return str(json.loads(read_file(path, CONFIG))["digest"])
    return ""


def file_stamps(path: Path) -> object:
    """Return what changes whenever a file of a folder does."""
    found = list[tuple[str | int, ...]]()
    for folder in (path, path / ".wgcn-pending"):
        with suppress(OSError):
            for file in sorted(folder.iterdir()):
                stat = file.stat()  # st_ctime: a file that cannot be read may get other permissions
                found.append((file.name, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino))
    return found


@dataclass
class _Place:
    """A folder, the version that is served, and why a later one is not."""

    path: Path
    stamp: object
    served: Served
    error: str | None = None
    n_loads: int = 1
    n_failures: int = 0


class Models:
    """Models of folders by name; one that cannot be loaded is a StoreError.

    `reload` may run in another thread than the requests.
    """

    def __init__(self, folders: dict[str, Path], load: Callable[[str, Path], Served] = load_served) -> None:
        self._load = load
        self.places = {name: _Place(path, file_stamps(path), load(name, path)) for name, path in folders.items()}

    def get(self, name: str | None) -> Served:
        """Return the model of a name; None is the only one that there is."""
        if name is None and len(self.places) == 1:
            return next(iter(self.places.values())).served
        names = ", ".join(sorted(self.places))
        if name is None:
            raise HTTPException(404, f"There are several models: {names}. Name one: /v1/models/NAME/...")
        if name not in self.places:
            raise HTTPException(404, f"There is no model {name!r:.100}. There are: {names}.")
        return self.places[name].served

    def reload(self, *, force: bool = False) -> None:
        """Load the folders that have changed. A damaged one keeps the version before, and the error is kept."""
        for name, place in self.places.items():
            stamp = file_stamps(place.path)
            if stamp == place.stamp and not force:
                continue
            place.stamp = stamp
            begin = time.perf_counter()
            try:
                served = self._load(name, place.path)
            except Exception as error:  # whatever it is, the others are looked at too
                reason = str(error) if isinstance(error, WGCNError) else repr(error)
                place.error, place.n_failures = reason, place.n_failures + 1
                log("model not loaded", logging.ERROR, model=name, kept=place.served.digest, reason=reason)
                continue
            place.error, place.n_loads = None, place.n_loads + 1
            if served.digest != place.served.digest:
                place.served = served
            log("model loaded", model=name, digest=served.digest, seconds=round(time.perf_counter() - begin, 3))

    def health(self) -> dict[str, ModelHealth]:
        """Return for each model what is served, and the error of a later version that could not be loaded."""
        found = dict[str, ModelHealth]()
        for name, place in self.places.items():
            found[name] = {"digest": place.served.digest, "loaded": place.served.loaded}
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
