"""Starting the labelling page: make or open the project, have it alone, serve it, open the browser."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wgcn.errors import InputError
from wgcn.files import writing
from wgcn.labelling.labelled import read_labelled, read_labelled_table
from wgcn.service import server
from wgcn.service.label import POLICY, LabelPage
from wgcn.service.project import Project, TooLargeError, create_project, file_digest, project_path
from wgcn.service.web import Guard, allowed_hosts

__all__ = ["guarded", "have_alone", "ready_project", "serve_page"]

HOST = "127.0.0.1"  # only this machine: the page has no accounts
_CONNECTIONS = 64
_GRACE = 5  # seconds for requests that were accepted


def ready_project(
    texts: Path | None,
    name: Path | None,
    *,
    label_column: str = "label",
    missing: str | Iterable[str] | None = None,
    tokenizer: str = "words",
    reading: dict[str, Any] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Return the file of a project, which is made if it is not there; texts other than those it has are refused."""
    if name is None and texts is None:
        raise InputError("Give a file with texts, a project, or both: wgcn label TEXTS --project NAME")
    path = project_path(texts.with_suffix("").name if name is None and texts is not None else name or "")
    digest = None if texts is None else file_digest(texts)
    if path.exists():
        if digest is not None:
            with Project(path) as project:
                known = project.facts["source"].get("digest")
            if known != digest:
                raise InputError(
                    f"The project {path} has other texts than {texts}. Give another --project, or leave the file out "
                    "to go on with the project."
                )
        return path
    if texts is None:
        raise InputError(f"There is no project {path}. Give a file with texts to make it: wgcn label TEXTS --project …")
    say(f"Reading {texts} into {path}, once.")
    source, reading = {"name": texts.name, "digest": digest, "tokenizer": tokenizer}, reading or {}
    labels_as: dict[str, Any] = {"label_column": label_column, "missing": missing}
    table = read_labelled_table(texts, **labels_as, **reading)
    try:
        create_project(path, table.rows, source, {"names": table.names, "text": table.text, "label": table.label})
    except TooLargeError as error:
        say(f"{error} They are left out: the export will have the columns row, text and label alone.")
        create_project(path, read_labelled(texts, **labels_as, optional=True, **reading), source)
    return path


@contextmanager
def have_alone(path: Path) -> Iterator[Callable[[str], None]]:
    """Have a project for one server at a time; the function that is given writes down where it can be found.

    The system takes the lock back when the process ends, however it ends.
    """
    place = path.with_name(f"{path.name}.lock")
    with writing(place):
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        if not _lock(descriptor):
            where = f" at {found}" if (found := file.read(200).strip()) else ""
            raise InputError(
                f"The project {path} is open already{where}. Use that page (several people can), or stop it first."
            )

        def tell(address: str) -> None:
            file.seek(0)
            file.truncate()
            file.write(address)
            file.flush()

        try:
            yield tell
        finally:
            place.unlink(missing_ok=True)


def _lock(descriptor: int) -> bool:
    """Return whether a file could be locked; where the system has no such locks, always."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_trouble(record: logging.LogRecord) -> bool:
    """Leave a line per request out of the log, which is a terminal that somebody labels beside."""
    return record.levelno >= logging.WARNING


def guarded(page: LabelPage, token: str) -> Guard:
    """Return the app of a page behind its checks."""
    # Browsers do not tell the ports of a machine apart: each page has a cookie of its own.
    cookie = f"wgcn-{secrets.token_hex(4)}"
    return Guard(page.app, hosts=allowed_hosts(HOST), token=token, policy=POLICY, cookie=cookie)


def serve_page(path: Path, *, port: int = 0, browser: bool = True, say: Callable[[str], None]) -> None:
    """Serve a project until Ctrl-C."""
    token = secrets.token_urlsafe(24)
    with have_alone(path) as tell, Project(path) as project:

        def ready(address: str) -> None:
            tell(address)
            url = f"{address}/?token={token}"
            n_texts = f"{project.n_texts:,} text{'s' * (project.n_texts != 1)}"
            counts = f"{n_texts}, {len(project.state.given):,} of them labelled"
            say(f"{counts}. The page is at\n\n    {url}\n")
            say(f"All work is kept in {path}. Stop with Ctrl-C.")
            if browser:  # in a thread: one that runs in the terminal returns only when it is closed
                threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()

        logger = logging.getLogger("wgcn.service")
        logger.addFilter(_is_trouble)
        try:
            app = guarded(LabelPage(project), token)
            server.run(app, HOST, port, ready=ready, grace_seconds=_GRACE, max_connections=_CONNECTIONS)
        finally:
            logger.removeFilter(_is_trouble)
    say(f"Stopped. Go on with: wgcn label --project {path}")
