"""Answers that are large because a model has many classes: cut, written in threads, counted, and refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.exceptions import HTTPException

from wgcn import TextModel
from wgcn.scoring.scorer import Scorer
from wgcn.serve import answers
from wgcn.serve.answers import Expected, batches_of, predict, row_size
from wgcn.serve.app import create_app
from wgcn.serve.models import Models, Served
from wgcn.serve.schema import ExplainOptions, Limits, PredictOptions
from wgcn.serve.web import PIECE_BYTES, Guard
from wgcn.serve.work import Gate, Work

N_CLASSES = 3000
LETTERS = {"texts": ["a"] * 100, "probabilities": True}


def many(path: Path, tokenizer: Any = "words") -> TextModel:
    """Return a model with many classes, and perhaps a tokeniser that a test watches."""
    model, random = TextModel.load(path), np.random.default_rng(0)
    table = random.normal(size=(len(model.vocabulary), N_CLASSES)).astype(np.float32)
    bias, prior = np.zeros(N_CLASSES, np.float32), np.full(N_CLASSES, 1 / N_CLASSES, np.float32)
    classes = np.array([f"class {i}" for i in range(N_CLASSES)])
    parts: dict[str, Any] = {"split": None, "spelling": None, "trust": None, "tokenizer": tokenizer}
    return replace(model, scorer=Scorer(table, None, bias, prior), classes=classes, **parts)


def served(path: Path, tokenizer: Any = "words") -> Served:
    return Served("many", many(path, tokenizer), "digest")


def app_of(path: Path, tokenizer: Any = "words", **limits: int) -> Guard:
    models = Models({"many": path})
    models.places["many"].served = served(path, tokenizer)
    return create_app(models, hosts={"testserver"}, limits=Limits(**limits), n_threads=1)


def ask(app: Guard, function: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
    async def asked() -> Any:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver", timeout=60) as client:
            return await function(client)

    return asyncio.run(asked())


class Watched:
    """A tokeniser that waits in the threads of the work, and notes where it was called."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.threads: list[str] = []

    def __call__(self, text: str) -> list[str]:
        name = threading.current_thread().name
        self.threads.append(name)
        if name.startswith("wgcn-work"):
            self.entered.set()
            assert self.go_on.wait(60)
        return text.split()


def test_health_is_answered_before_a_large_answer_is_finished(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, encoders = Watched(), list[str]()
    to_json = answers.to_json

    def noted(content: Any) -> str:
        encoders.append(threading.current_thread().name)
        return to_json(content)

    monkeypatch.setattr(answers, "to_json", noted)

    async def both(client: httpx.AsyncClient) -> None:
        large = asyncio.create_task(client.post("/v1/predict", json=LETTERS))
        assert await asyncio.to_thread(watched.entered.wait, 60)
        assert (await client.get("/health")).status_code == 200
        short = await client.post("/v1/models", json={})
        assert short.status_code == 405
        assert not large.done()
        watched.go_on.set()
        assert (await large).status_code == 200

    ask(app_of(fitted, watched), both)
    for names in (watched.threads, encoders):
        assert len(names) == 100
        assert all(name.startswith("wgcn-work") for name in names)


def test_large_answers_are_those_of_the_library(fitted: Path) -> None:
    texts, model = ["red wine", "fast car", "", "zzz"] * 20, many(fitted)

    async def answered(client: httpx.AsyncClient) -> Any:
        return (await client.post("/v1/predict", json={"texts": texts, "probabilities": True, "top": 2})).json()

    rows, likely = ask(app_of(fitted), answered)["predictions"], np.round(model.predict_proba(texts), 4)
    assert [row["label"] for row in rows] == model.predict(texts).tolist()
    assert [list(row["probabilities"]) for row in rows] == [model.classes.tolist()] * len(texts)
    assert [list(row["probabilities"].values()) for row in rows] == likely.tolist()


@pytest.mark.parametrize("options", [PredictOptions(probabilities=True), PredictOptions(), ExplainOptions()])
def test_texts_are_cut_into_parts_of_bounded_size(fitted: Path, options: Any) -> None:
    model, texts = served(fitted), ["a"] * 500 + ["b" * 5000] * 10 + ["c" * 44_000] + ["d"] * 500
    costs = Expected.of(model, texts, options, Limits(answer=1 << 40)).costs
    parts = list(batches_of(texts, costs))
    assert [text for part in parts for text in part] == texts
    for part in parts:
        characters = sum(map(len, part))
        assert len(part) == 1 or (len(part) * N_CLASSES <= 1 << 19 and characters * N_CLASSES <= 1 << 25)
    assert list(batches_of([], [])) == []


@pytest.mark.parametrize("options", [PredictOptions(probabilities=True), PredictOptions(top=1000), PredictOptions()])
def test_the_size_of_an_answer_is_known_before(fitted: Path, options: PredictOptions) -> None:
    model = served(fitted)
    (row,), (least, most) = predict(model, ["red wine"], options), row_size(model, options)
    assert len(row) <= least + 200  # the name of the likeliest class
    assert least <= 1.3 * len(row) + 200
    assert least <= most


def test_an_answer_that_would_be_too_long_says_how_many_texts_it_may_have(fitted: Path) -> None:
    app = app_of(fitted, answer=1_000_000)

    async def asked(client: httpx.AsyncClient) -> None:
        refused = await client.post("/v1/predict", json=LETTERS)
        assert refused.status_code == 400
        message = refused.json()["error"]["message"]
        assert "With 3,000 classes" in message
        assert "or ask for 'top'" in message
        most = int(message.partition("Send at most ")[2].split(" ")[0])
        assert 1 < most < 100
        for n, status in ((most, 200), (most + 1, 400)):
            assert (await client.post("/v1/predict", json={**LETTERS, "texts": ["a"] * n})).status_code == status
        assert (await client.post("/v1/predict", json={"texts": ["a"] * 100, "top": 10})).status_code == 200
        assert "wgcn_requests_in_flight 0" in (await client.get("/metrics")).text

    ask(app, asked)


def test_a_text_may_be_as_long_as_the_classes_allow(fitted: Path) -> None:
    async def asked(client: httpx.AsyncClient) -> None:
        for path in ("predict", "explain"):
            refused = await client.post(f"/v1/{path}", json={"text": "a" * 44_740})
            assert refused.status_code == 400
            message = refused.json()["error"]["message"]
            assert message == (
                "A text of 44,740 characters is too long for a model of 3,000 classes: 44,739 is the limit. Split it."
            )
            assert (await client.post(f"/v1/{path}", json={"text": "a" * 44_739})).status_code == 200

    ask(app_of(fitted), asked)


def test_an_answer_that_turns_out_too_long_is_refused(fitted: Path) -> None:
    async def asked(client: httpx.AsyncClient) -> None:
        given = {"texts": ["red wine with figs and bread"] * 10, "n": 1000}
        refused = await client.post("/v1/explain", json=given)
        assert refused.status_code == 400
        assert "The answer has more than 3,000 bytes" in refused.json()["error"]["message"]
        assert (await client.post("/v1/explain", json={**given, "texts": ["red wine"]})).status_code == 200
        assert "wgcn_answer_bytes_in_flight 0" in (await client.get("/metrics")).text

    ask(app_of(fitted, answer=3_000), asked)


def test_a_slot_is_held_until_the_last_byte_is_sent(fitted: Path) -> None:
    app, seen = app_of(fitted), list[tuple[int, int]]()
    body = b'{"texts": ["a", "b", "c", "d", "e"], "probabilities": true}'

    async def in_flight() -> tuple[int, int]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            lines = (await client.get("/metrics")).text.splitlines()
        found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return int(float(found["wgcn_requests_in_flight"])), int(float(found["wgcn_answer_bytes_in_flight"]))

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    sizes = list[int]()

    async def send(message: Any) -> None:
        seen.append(await in_flight())
        sizes.append(len(message.get("body", b"")))

    async def asked() -> tuple[int, int]:
        headers = [(b"host", b"testserver"), (b"content-length", b"%d" % len(body))]
        scope = {"type": "http", "method": "POST", "path": "/v1/predict", "query_string": b"", "headers": headers}
        await app({**scope, "root_path": ""}, receive, send)
        return await in_flight()

    assert asyncio.run(asked()) == (0, 0)
    assert sum(sizes) > 3 * PIECE_BYTES
    assert max(sizes) <= PIECE_BYTES
    rows = len(b'{"model":"many","digest":"digest","predictions":[]}')
    assert set(seen) == {(1, sum(sizes) - rows)}


def test_large_answers_beyond_the_memory_for_them_are_sent_away() -> None:
    gate = Gate(Limits(answer=1000))
    slots = [gate.enter(1) for _ in range(6)]
    for slot in slots[:4]:
        slot.expect(5000)  # no answer has more than the limit
    assert gate.n_answer_bytes == 4000
    with pytest.raises(HTTPException, match="too many large answers already") as caught:
        slots[4].expect(11)
    assert (caught.value.status_code, caught.value.headers) == (503, {"Retry-After": "1"})
    slots[4].expect(10)  # a small one does not wait for large ones
    slots[0].resize(300)  # it has turned out shorter
    slots[5].expect(600)
    for slot in slots * 2:
        slot.leave()
    assert (gate.n_requests, gate.n_bytes, gate.n_answer_bytes) == (0, 0, 0)


def test_a_stop_waits_for_no_part_in_the_queue(fitted: Path) -> None:
    watched = Watched()
    model, work, gate = served(fitted, watched), Work(1), Gate(Limits())

    async def stopped() -> None:
        texts, options = [["a"] * 200, ["b"] * 200], PredictOptions(probabilities=True)
        tasks = [asyncio.create_task(work.answer(model, each, options, gate.enter(1))) for each in texts]
        assert await asyncio.to_thread(watched.entered.wait, 60)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        watched.go_on.set()
        await asyncio.to_thread(work.close)

    asyncio.run(stopped())
    assert 0 < len(watched.threads) < 200  # one part of one request


def test_the_card_of_a_model_with_many_classes_is_sent_in_pieces(fitted: Path) -> None:
    async def asked(client: httpx.AsyncClient) -> Any:
        return (await client.get("/v1/models")).json(), (await client.get("/v1/models/many")).json()

    app = app_of(fitted)
    listed, card = ask(app, asked)
    assert listed == {"models": [card]}
