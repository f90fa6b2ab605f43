"""Starting the labelling page: make or open the project, have it alone, serve it, open the browser."""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
import webbrowser
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wgcn.base.errors import InputError
from wgcn.io.read import LabelledTable, read_labelled_table
from wgcn.io.source import explained
from wgcn.label.page import POLICY, LabelPage
from wgcn.label.project import MadeMeanwhileError, Project, create_project, project_path
from wgcn.label.project_file import alone, lock_of
from wgcn.serve import server
from wgcn.serve.web import Guard, allowed_hosts

HOST = "127.0.0.1"  # only this machine: the page has no accounts
_CONNECTIONS = 64
_TELLING = 5.0  # seconds for another process to say where its page is
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
    path = project_path(_own_name(texts) if name is None and texts is not None else name or "")
    if texts is None:
        if not path.exists():
            raise InputError(f"There is no project {path}. Give texts to make it: wgcn label TEXTS --project …")
        return path
    digest, is_file = hashlib.sha256(), _is_file(texts)
    if is_file:
        with explained(texts), texts.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    if not is_file or not path.exists():  # what is no file can be read once: it is digested while rows are read
        seen = None if is_file else digest.update
        table = read_labelled_table(texts, label_column=label_column, missing=missing, seen=seen, **(reading or {}))
        if not path.exists() and _make(
            path, table, {"name": texts.name, "tokenizer": tokenizer}, digest.hexdigest, say
        ):
            return path
        deque(table.rows, maxlen=0)
    with Project(path) as project:
        if project.facts["source"].get("digest") != digest.hexdigest():
            raise InputError(
                f"The project {path} has other texts than {texts}. Give another --project, or leave the file out "
                "to go on with the project."
            )
    return path


def _is_file(texts: Path) -> bool:
    """Return whether texts are in a plain file, which can be read again, not in a pipe, a device or standard input."""
    return str(texts) != "-" and texts.is_file()


def _own_name(texts: Path | None) -> Path:
    """Return the name of the texts for their project."""
    assert texts is not None
    if str(texts) == "-" or (texts.exists() and not texts.is_file() and not texts.is_dir()):
        raise InputError(f"{texts} is no file whose name the project could have. Name the project: --project NAME")
    return Path(texts.with_suffix("").name)


def _make(
    path: Path, table: LabelledTable, source: dict[str, Any], digest: Callable[[], str], say: Callable[[str], None]
) -> bool:
    """Make a project of a table; return False if another process has made it meanwhile."""

    def rows() -> Iterator[tuple[str, str | list[str] | None, list[str]]]:
        yield from table.rows
        source["digest"] = digest()

    say(f"Reading {source['name']} into {path}, once.")
    columns = {"names": table.names, "text": table.text, "label": table.label}
    try:
        if not create_project(path, rows(), source, columns):
            say("The other columns are too large, and left out: an export has the columns row, text and label alone.")
    except MadeMeanwhileError:
        return False
    return True


@contextmanager
def have_alone(path: Path) -> Iterator[Callable[[str], None]]:
    """Have a project for one server at a time; the function that is given writes down where it can be found."""
    place = lock_of(path)

    def tell(address: str) -> None:
        with suppress(OSError):  # of a full disk: nothing but the message to others needs it
            place.write_text(address, encoding="ascii")

    with alone(path) as is_ours:
        if not is_ours:
            where = f" at {found}" if (found := _address(place)) else ""
            raise InputError(
                f"The project {path} is open already{where}. Use that page (several people can), or stop it first."
            )
        tell("")  # one that was killed has left its address
        yield tell


def _address(place: Path) -> str:
    """Return what another process has told, which may be about to."""
    until = time.monotonic() + _TELLING
    while time.monotonic() < until:
        with suppress(OSError, ValueError), place.open(encoding="ascii") as file:
            if (found := file.read(200).strip()).startswith("http"):
                return found
        time.sleep(0.1)
    return ""


def _is_trouble(record: logging.LogRecord) -> bool:
    """Leave a line per request out of the log, which is a terminal that somebody labels beside."""
    return record.levelno >= logging.WARNING


def guarded(page: LabelPage, token: str) -> Guard:
    """Return the app of a page behind its checks."""
    # Browsers do not tell the ports of a machine apart: each page has a cookie of its own.
    cookie = f"wgcn-{secrets.token_hex(4)}"
    checks: dict[str, Any] = {"hosts": allowed_hosts(HOST), "token": token, "cookie": cookie}
    return Guard(page.routes, **checks, policy=POLICY, lifespan=page.lifespan)


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

        logger = logging.getLogger("wgcn.serve")
        logger.addFilter(_is_trouble)
        try:
            app = guarded(LabelPage(project), token)
            server.run(app, HOST, port, ready=ready, grace_seconds=_GRACE, max_connections=_CONNECTIONS)
        finally:
            logger.removeFilter(_is_trouble)
    say(f"Stopped. Go on with: wgcn label --project {path}")
