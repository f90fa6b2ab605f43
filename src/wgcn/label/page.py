"""The labelling page: an app around a project (`wgcn.label.project`) and its model (`wgcn.label.refit`).

A decision is answered only when it is in the project. The page asks again and again what has changed since the entry
and the fit that it has seen; several pages of one project see each other's work so. Texts go to the page as strings of
JSON, never as markup.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from wgcn.base.errors import InputError, StoreError
from wgcn.base.files import open_whole
from wgcn.label.decisions import Decision
from wgcn.label.project import Project
from wgcn.label.project_file import Estimate
from wgcn.label.refit import ModelProcess, array_of
from wgcn.serve.web import json_response, read_json
from wgcn.trust.accuracy import accuracy_interval

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_BODY = 1 << 16  # bytes of a decision
_SHOWN = 20_000  # characters of a text
_BEGINNING = 240  # characters of a text in a list
_MOST_ROWS = 100
_LEASE = 60.0  # seconds for which a text that is shown to one person is not suggested to another
_LEAST_FREE = 200  # texts among which one is found that nobody else was shown
_LONGEST_QUERY = 200
_DELIMITERS = ";\t|"  # that `wgcn fit` could find in the first line instead of commas
_PLAIN_COLUMNS = {"names": ["row", "text", "label"], "text": 1, "label": 2}  # of projects that keep no others
_TOLD = ("seq", "n_labels", "quick_seconds", "quick_cpu", "thorough_seconds", "thorough_cpu", "problems", "seed_note")
_STATIC = {
    "/": ("label.html", "text/html"),
    "/label.css": ("label.css", "text/css"),
    "/label.js": ("label.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


class LabelPage:
    """What the page asks for. `routes` is where."""

    def __init__(self, project: Project, *, with_model: bool = True) -> None:
        self.project, self._with_model = project, with_model
        self.model = ModelProcess(project.path, self._on_event)
        self.fit: dict[str, Any] = {}  # of the last fit: see `Engine.fit`
        self.n_fits, self.status, self.trouble = 0, "preparing", ""
        self._guess: npt.NDArray[np.int32] | None = None
        self._confidence: npt.NDArray[np.float32] | None = None
        self._given: tuple[int, npt.NDArray[np.int32]] = (-1, np.empty(0, np.int32))
        self._shown: dict[int, tuple[str, float]] = {}  # by text, to whom and when
        self._estimates = project.estimates()
        self.routes = [Route(path, self._static) for path in _STATIC] + [
            Route("/api/state", self._state),
            Route("/api/next", self._next),
            Route("/api/texts", self._texts),
            Route("/api/text/{text}", self._text),
            Route("/api/why/{text}", self._why),
            Route("/api/word", self._word),
            Route("/api/decide", self._decide, methods=["POST"]),
            Route("/api/export", self._export, methods=["POST"]),
            Route("/api/labels.csv", self._labels),
        ]

    @asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        """Have the process of the model while the page is served."""
        if self._with_model:
            await self.model.start()
        yield
        await self.model.stop()

    def _on_event(self, event: dict[str, Any]) -> None:
        """Take over what the model's process tells."""
        kind = event.pop("event")
        if kind == "prepared":
            self.status, self.fit = "ready", {"suggested": event["suggested"], **self.fit}
        elif kind == "fitting":
            self.status = "fitting"
        elif kind == "current":
            self.status = "ready"
        elif kind in ("fitted", "measured"):
            self.status, self.trouble = "ready", ""
            self._guess, self._confidence = (
                array_of(event.pop(name)) if name in event else None for name in ("guess", "confidence")
            )
            # A quick fit leaves words, doubts and the like as they were.
            self.fit, self.n_fits = {**(self.fit if event["classes"] else {}), **event}, self.n_fits + 1
            if kind == "measured" and event.get("accuracy") is not None:
                self._keep_estimate(event)
        else:
            self.status, self.trouble = "failed", event["message"]

    def _keep_estimate(self, fit: dict[str, Any]) -> None:
        n_texts = fit["n_held_out"]
        estimate = Estimate(fit["seq"], fit["n_labels"], fit["accuracy"] * n_texts, n_texts)
        self._estimates = [*(each for each in self._estimates if each.seq < fit["seq"]), estimate]
        with suppress(StoreError):  # a disk may be full: the next decision says so
            self.project.keep_estimate(estimate)

    # What is asked

    async def _static(self, request: Request) -> Response:
        name, kind = _STATIC[request.url.path]
        return Response((files("wgcn.label") / "static" / name).read_bytes(), media_type=kind)

    async def _state(self, request: Request) -> Response:
        """Answer with the state, or with what little is needed if nothing has changed."""
        state, seen = self.project.refresh(), request.query_params
        busy = {"seq": state.seq, "fits": self.n_fits, "status": self.status, "trouble": self.trouble}
        if seen.get("seq") == str(state.seq) and seen.get("fits") == str(self.n_fits):
            return json_response(busy)
        return json_response(busy | self.summary())

    def summary(self) -> dict[str, Any]:
        """Return what the page shows beside texts."""
        state, fit = self.project.state, self.fit
        counts, words = state.counts, {int(number): each for number, each in fit.get("words", {}).items()}
        known = self._guess is not None
        guessed = np.bincount(self._guess, minlength=1) if self._guess is not None else np.zeros(1, np.int64)
        live = state.live
        classes = [
            {
                "id": number,
                "name": each.name,
                "seeds": list(each.seeds),
                "labels": counts[number],
                "share": float(guessed[number]) / state.n_texts if known and number < len(guessed) else None,
                "words": words.get(number, []),
            }
            for number, each in live.items()
        ]
        doubts = [
            {"text": text, "label": label, "suggestion": state.current(suggestion), "score": score}
            for text, suggestion, score in fit.get("doubts", [])
            if (label := state.label_of(text)) is not None and suggestion in state.classes and not state.is_kept(text)
        ]
        return {
            "project": self.project.name,
            "texts": state.n_texts,
            "labelled": len(state.given),
            "skipped": len(state.skipped),
            "classes": classes,
            "doubts": [doubt for doubt in doubts if doubt["label"] != doubt["suggestion"]],
            "estimates": self._shown_estimates(len(state.given)),
            "fitted": {name: fit[name] for name in _TOLD if name in fit},
            "command": self.command(),
        }

    def _shown_estimates(self, n_labels: int) -> list[dict[str, Any]]:
        """Return the latest estimate for each number of labels up to that of now."""
        latest = {each.n_labels: each for each in self._estimates if each.n_labels <= n_labels}
        shown = []
        for n, (_, _, n_right, n_texts) in sorted(latest.items()):
            low, high = accuracy_interval(min(max(n_right, 0.0), n_texts), n_texts)
            shown.append({"labels": n, "accuracy": n_right / n_texts, "low": low, "high": high, "texts": n_texts})
        return shown

    async def _next(self, request: Request) -> Response:
        """Answer with the text to label next; one that was just shown to somebody else comes later."""
        who, now = _who(request.query_params.get("who", "")), time.monotonic()
        state, avoided = self.project.state, _numbers(request.query_params.get("not", ""))
        others = {text for text, (whom, when) in self._shown.items() if whom != who and now - when < _LEASE}
        candidates = [*self.fit.get("suggested", []), *self._uncertain()]
        free = [text for text in candidates if text not in state.given and text not in state.skipped]
        free = [text for text in free if text not in avoided] or free
        found = next((text for text in free if text not in others), free[0] if free else None)
        if found is None:
            return json_response({"text": None})
        self._shown = {text: seen for text, seen in self._shown.items() if now - seen[1] < _LEASE} | {found: (who, now)}
        return json_response(await run_in_threadpool(self._of_text, found))

    def _uncertain(self) -> Iterator[int]:
        """Yield unlabelled texts for when there are no suggestions: the uncertain first, or from all over the file."""
        labels = self._labels_now()
        if self._confidence is None:
            rows = np.random.default_rng(0).permutation(len(labels))
            rows = rows[labels[rows] < 0]
        else:
            rows = np.flatnonzero(labels < 0)
            rows = rows[np.argsort(self._confidence[rows], kind="stable")]
        yield from rows[: _LEAST_FREE + len(self.project.state.skipped)].tolist()

    async def _text(self, request: Request) -> Response:
        return json_response(await run_in_threadpool(self._of_text, self._place(request)))

    def _of_text(self, text: int) -> dict[str, Any]:
        whole = self.project.texts([text])[0]
        return self._row(text) | {"whole": whole[:_SHOWN], "left": max(len(whole) - _SHOWN, 0)}

    def _row(self, text: int) -> dict[str, Any]:
        """Return what is known of a text."""
        state = self.project.state
        row: dict[str, Any] = {"text": text, "label": state.label_of(text), "skipped": text in state.skipped}
        if self._guess is not None and self._confidence is not None:
            guess = int(self._guess[text])
            if guess in state.classes:  # it may be undone since the fit
                row |= {"guess": state.current(guess), "confidence": float(self._confidence[text])}
        return row

    async def _why(self, request: Request) -> Response:
        label = _whole(request.query_params.get("label"), -1)
        return json_response(await self.model.ask("explain", text=self._place(request), label=label))

    async def _word(self, request: Request) -> Response:
        word = request.query_params.get("word", "")[:_LONGEST_QUERY]
        return json_response(await self.model.ask("neighbourhood", word=word))

    async def _texts(self, request: Request) -> Response:
        return json_response(await run_in_threadpool(self._listed, dict(request.query_params)))

    def _listed(self, given: dict[str, str]) -> dict[str, Any]:
        """Return some rows of the list that filters describe."""
        labels, n = self._labels_now(), self.project.n_texts
        kept = _mask(_numbers(given["ids"]) & set(range(n)), n) if "ids" in given else np.ones(n, bool)
        show, label = given.get("show", "all"), _whole(given.get("label"), -1)
        if show in ("labelled", "unlabelled"):
            kept &= (labels >= 0) == (show == "labelled")
        elif show in ("skipped", "disagree"):
            chosen = self.project.state.skipped if show == "skipped" else self.fit.get("disagree", ())
            kept &= _mask(chosen, n)
        if label >= 0:  # given, or guessed where no label is
            now = labels if self._guess is None else np.where(labels >= 0, labels, self._guess)
            kept &= now == label
        if self._confidence is not None:
            low, high = _share(given.get("from"), 0.0), _share(given.get("to"), 1.0)
            if low > 0 or high < 1:
                kept &= (self._confidence >= low) & (self._confidence <= high)
        if query := given.get("query", "").strip()[:_LONGEST_QUERY]:
            kept &= _mask(self.project.search(query), n)
        rows = np.flatnonzero(kept)
        if self._confidence is not None and given.get("sort") in ("certain", "uncertain"):
            sign = -1 if given["sort"] == "certain" else 1
            rows = rows[np.argsort(sign * self._confidence[rows], kind="stable")]
        begin, limit = _whole(given.get("begin"), 0), min(_whole(given.get("limit"), 50), _MOST_ROWS)
        chosen = rows[begin : begin + limit].tolist()
        texts = self.project.texts(chosen)
        shown = [self._row(place) | {"begins": text[:_BEGINNING]} for place, text in zip(chosen, texts, strict=True)]
        return {"total": len(rows), "rows": shown}

    def _labels_now(self) -> npt.NDArray[np.int32]:
        """Return the number of the class of each text, -1 without a label."""
        state = self.project.state
        if self._given[0] != state.seq:
            now, labels = np.full(state.n_texts, -1, np.int32), state.labels
            now[list(labels)] = list(labels.values())
            self._given = state.seq, now
        return self._given[1]

    # What is done

    async def _decide(self, request: Request) -> Response:
        given = await read_json(request, _BODY)
        decision = _decision(given)
        if decision.kind == "seeds" and self.status != "preparing":
            checked = self.project.state.checked(decision)
            name = self.project.state.classes[checked.label or 0].name
            await self.model.ask("check_seeds", name=name, words=json.loads(checked.value))
        entry = await run_in_threadpool(self.project.decide, _who(given.get("who")), decision)
        self.model.refit()
        if self.status == "ready":
            self.status = "fitting"
        answer = {"seq": entry.seq, "decided": entry.decision._asdict(), **self.summary()}
        if entry.decision.kind == "undo":
            undone = next(each for each in self.project.entries() if each.seq == int(entry.decision.value))
            answer["undone"] = undone.decision._asdict()
        return json_response(answer)

    async def _export(self, request: Request) -> Response:
        """Write labels and model beside the project; the answer says where, and with what command they are made."""
        await read_json(request, _BODY)
        table, folder = self.targets()
        await run_in_threadpool(write_labels, self.project, table)
        made = await self.model.ask("export", folder=str(folder))
        return json_response({"csv": _near(table), "model": _near(folder), "command": self.command(), **made})

    def targets(self) -> tuple[Path, Path]:
        """Return where labels and model are written: beside the project."""
        place, name = self.project.path.absolute(), self.project.name
        return place.with_name(f"{name}-labelled.csv"), place.with_name(f"{name}-model")

    def command(self) -> str:
        """Return the command that makes the exported model of the exported labels, in its place."""
        return fit_command(self.project, *(target.name for target in self.targets())) + " --overwrite"

    async def _labels(self, request: Request) -> Response:
        name = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.project.name)
        disposition = {"Content-Disposition": f'attachment; filename="{name}-labelled.csv"'}
        lines = _csv_lines(self.project)
        first = await run_in_threadpool(next, lines)  # a file that cannot be read is an error instead of an answer
        parts = iterate_in_threadpool(chain([first], lines))
        return StreamingResponse(parts, headers=disposition, media_type="text/csv; charset=utf-8")

    def _place(self, request: Request) -> int:
        given, n = request.path_params["text"], self.project.n_texts
        if (text := _whole(given, n)) >= n:
            raise HTTPException(404, f"There is no text {given!r:.40}. There are {n:,}.")
        return text


def fit_command(project: Project, table: str, model: str) -> str:
    """Return the `wgcn fit` command that makes the same model as an export."""
    tokenizer = project.facts["source"].get("tokenizer", "words")
    parts = ["wgcn", "fit", table, "--model", model, *(["--tokenizer", tokenizer] if tokenizer != "words" else [])]
    if columns := project.facts.get("columns"):
        names = columns["names"]
        for kind in ("text", "label"):
            place = columns[kind]
            if (name := names[place] if names.count(names[place]) == 1 else str(place)) != kind:
                parts.append(f"--{kind}-column={name}")
        if any(character in name for name in names for character in _DELIMITERS):
            parts += ["--delimiter", ","]
    for name, words in project.state.seeds.items():
        parts += ["--seed", f"{name}={','.join(words)}"]
    return shlex.join(parts)


def write_labels(project: Project, path: Path) -> None:
    """Write all texts with their labels as a csv file, whole or not at all."""
    with open_whole(path) as file:
        for lines in _csv_lines(project):
            file.write(lines)


def _csv_lines(project: Project) -> Iterator[bytes]:
    """Yield the rows of all texts, each with its label or nothing, and with the columns that its file had."""
    state, columns = project.state, project.facts.get("columns", _PLAIN_COLUMNS)
    labels, live = state.labels, state.live
    buffer = io.StringIO(newline="")
    table = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(columns["names"])
    for place, (text, cells) in enumerate(project.all_rows()):
        row = cells if "columns" in project.facts else [str(place + 1)]
        own = [(columns["text"], text), (columns["label"], live[labels[place]].name if place in labels else "")]
        for at, cell in sorted(own):
            row.insert(at, cell)
        table.writerow(row)
        if buffer.tell() > 1 << 16:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def _decision(given: dict[str, Any]) -> Decision:
    """Return a decision as it was sent, of the right types; `State.checked` does the rest."""
    kind, text, label, value = (given.get(name) for name in ("kind", "text", "label", "value"))
    sound = all(each is None or type(each) is int for each in (text, label)) and type(value) in (str, int, type(None))
    if not sound or not isinstance(kind, str):
        raise HTTPException(400, "A decision has a kind, and where needed a text, a label (numbers) and a value.")
    return Decision(kind, text, label, "" if value is None else str(value))


def _who(given: Any) -> str:
    """Return a name for somebody; the page makes up one for each tab."""
    if not isinstance(given, str) or not 1 <= len(given) <= 40 or not given.isprintable() or given == "file":
        raise HTTPException(400, "A request says who decides: 1 to 40 characters.")
    return given


def _near(path: Path) -> str:
    """Return a path as seen from where the page was started, if it is there."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _mask(places: Any, n: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(n, bool)
    mask[list(places)] = True
    return mask


def _numbers(given: str) -> set[int]:
    return {int(part) for part in given.split(",") if part.isdecimal() and len(part) < 10}


def _share(given: str | None, other: float) -> float:
    try:
        return min(max(float(given or other), 0.0), 1.0)
    except ValueError:
        raise InputError(f"A confidence is a number between 0 and 1, got {given!r:.40}.") from None


def _whole(given: str | None, other: int) -> int:
    return int(given) if given is not None and given.isdecimal() and len(given) < 10 else other
