"""What the service answers, in this process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import InputError, StoreError, WGCNWarning
from wgcn.serve import app as service_app
from wgcn.serve.app import create_app, serve
from wgcn.serve.models import Models, Served, file_stamps, load_served, named_folders
from wgcn.serve.schema import OPEN_PATHS, Limits
from wgcn.serve.web import Guard
from wgcn.serve.work import SHORT_CHARACTERS, Gate

NEW = ["a red wine with figs", "slow car", "", "zzz", "white bread and gears " * 50]
LIMITS = Limits(texts=200, characters=1_200_000)


def app_of(*folders: Path, **given: Any) -> Guard:
    models = Models(named_folders(map(str, folders)))
    return create_app(models, hosts={"testserver"}, limits=LIMITS, n_threads=1, **given)


@pytest.fixture(scope="module")
def client(fitted: Path) -> Iterator[TestClient]:
    with TestClient(app_of(fitted), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def both(fitted: Path, other: Path) -> Iterator[TestClient]:
    with TestClient(app_of(fitted, other), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def model(fitted: Path) -> TextModel:
    return TextModel.load(fitted)


def refused(response: httpx.Response, status: int = 400) -> str:
    assert response.status_code == status, response.text
    return str(response.json()["error"]["message"])


def test_answers_are_those_of_the_library(client: TestClient, model: TextModel) -> None:
    labels, likely = model.predict(NEW).tolist(), np.round(model.predict_proba(NEW), 4)
    batch = client.post("/v1/predict", json={"texts": NEW, "probabilities": True, "top": 2}).json()
    assert batch["model"] == "topics"
    assert [row["label"] for row in batch["predictions"]] == labels
    assert [[row["probabilities"][name] for name in model.classes] for row in batch["predictions"]] == likely.tolist()
    assert [row["confidence"] for row in batch["predictions"]] == likely.max(axis=1).tolist()
    assert [[each["label"] for each in row["top"]] for row in batch["predictions"]] == [
        [label, *({"drink", "drive"} - {label})] for label in labels
    ]
    for text, row in zip(NEW, batch["predictions"], strict=True):
        given = {"text": text, "probabilities": True, "top": 2}
        single = client.post("/v1/models/topics/predict", json=given).json()
        assert single == {"model": "topics", "digest": batch["digest"], **row}
    assert client.post("/v1/predict", json={"texts": []}).json()["predictions"] == []


def test_a_text_is_answered_alike_alone_and_among_others(fitted: Path, model: TextModel) -> None:
    texts = [f"{text} {number}" for number in range(20) for text in NEW] + ["wine " * SHORT_CHARACTERS]

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app_of(fitted))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            given = [{"text": text, "probabilities": True, "top": 1 + i % 2} for i, text in enumerate(texts)]
            parts = [given[place : place + 50] for place in range(0, len(given), 50)]
            return [
                response
                for part in parts
                for response in await asyncio.gather(*(client.post("/v1/predict", json=each) for each in part))
            ]

    answers = [response.json() for response in asyncio.run(ask())]
    likely = np.round(model.predict_proba(texts), 4)
    assert [[answer["probabilities"][name] for name in model.classes] for answer in answers] == likely.tolist()
    assert ["top" in answer for answer in answers] == [bool(i % 2) for i in range(len(texts))]


def test_texts_that_the_model_does_not_know_get_no_label(client: TestClient, model: TextModel) -> None:
    given = {"texts": NEW, "abstain": 0.9, "coverage": 0.8, "scope": True}
    rows = client.post("/v1/predict", json=given).json()["predictions"]
    assert [row["label"] for row in rows] == model.predict(NEW, abstain=0.9).tolist()
    assert None in [row["label"] for row in rows]
    assert [row["set"] for row in rows] == model.predict_set(NEW, 0.8)
    assert [row["out_of_scope"] for row in rows] == model.out_of_scope(NEW).tolist()


def test_explanations_are_those_of_the_library(client: TestClient, model: TextModel) -> None:
    text = "red wine with zzz brakes"
    why = model.explain([text])[0]
    found = client.post("/v1/explain", json={"text": text, "n": 3}).json()
    assert (found["label"], found["explained"], found["unknown"]) == (why.label, why.label, why.unknown[:3])
    assert [(term["term"], term["contribution"]) for term in found["for"]] == why.top(n=3)
    assert [(term["term"], term["contribution"]) for term in found["against"]] == why.top(n=3, against=True)
    other = client.post("/v1/models/topics/explain", json={"texts": [text], "label": "drive"}).json()["explanations"]
    assert [each["explained"] for each in other] == ["drive"]
    assert "There is no class 'fly'" in refused(client.post("/v1/explain", json={"text": text, "label": "fly"}))


def test_models_have_names(both: TestClient, other: Path) -> None:
    cards = both.get("/v1/models").json()["models"]
    assert [card["name"] for card in cards] == ["topics", "moods"]
    assert cards[0] == both.get("/v1/models/topics").json()
    assert (cards[0]["classes"], cards[0]["multilabel"]) == (["drink", "drive"], False)
    assert cards[0]["report"]["n_labelled"] == 200
    assert "several models: moods, topics" in refused(both.post("/v1/predict", json={"text": "a"}), 404)
    for call in (both.get("/v1/models/x"), both.post("/v1/models/x/predict", json={"text": "a"})):
        assert refused(call, 404) == "There is no model 'x'. There are: moods, topics."
    assert both.post("/v1/models/topics/predict", json={"text": "wine"}).json()["label"] == "drink"


def test_a_text_may_have_several_labels(both: TestClient, other: Path) -> None:
    found = both.post("/v1/models/moods/predict", json={"text": "red wine with figs"}).json()
    assert found["label"] == ["drink", "red"]
    assert len(found["confidence"]) == 2
    assert "one label per text" in refused(both.post("/v1/models/moods/predict", json={"text": "a", "top": 2}))
    assert "one label per text" in refused(both.post("/v1/models/moods/predict", json={"text": "a", "abstain": 0.5}))
    assert both.post("/v1/models/moods/explain", json={"text": "red wine with figs"}).json()["label"] == found["label"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "either 'text'"),
        ({"text": "a", "texts": []}, "either 'text'"),
        ({"text": None}, "must be a string"),
        ({"text": ["a"]}, "must be a string"),
        ({"texts": "a"}, "must be a string"),
        ({"texts": ["a", 1]}, "must be a string"),
        ({"texts": ["a"] * 201}, "201 texts are too many: 200"),
        ({"text": "a" * 1_200_001}, "1,200,001 characters is too long"),
        ({"text": "a", "topp": 1}, "no option 'topp'. There are: text, texts, top,"),
        ({"text": "a", "top": 0}, "'top' should be greater than or equal to 1, got 0"),
        ({"text": "a", "top": True}, "'top' should be a valid integer, got True"),
        ({"text": "a", "probabilities": 1}, "'probabilities' should be a valid boolean, got 1"),
        ({"text": "a", "abstain": "0.5"}, "'abstain' should be a valid number, got '0.5'"),
        ({"text": "a", "abstain": 1.5}, "'abstain' should be less than 1"),
        ({"text": "a", "coverage": 0}, "'coverage' should be greater than 0"),
    ],
)
def test_a_request_that_makes_no_sense_is_told_why(client: TestClient, given: dict[str, Any], message: str) -> None:
    assert message in refused(client.post("/v1/predict", json=given))


def test_explanations_have_limits_of_their_own(client: TestClient) -> None:
    assert "100 is the limit" in refused(client.post("/v1/explain", json={"texts": ["a"] * 101}))
    assert "100,000 is the limit" in refused(client.post("/v1/explain", json={"text": "a" * 100_001}))


@pytest.mark.parametrize(
    "text",
    ["\ud800 wine \udfff", "wine\0car", "🍷" * 1_000_000, "<script>alert(1)</script>", "\u202ewine", "a\u0301" * 1000],
    ids=["surrogates", "nul", "emoji", "markup", "direction", "marks"],
)
def test_hostile_texts_are_texts(client: TestClient, text: str) -> None:
    for path in ("/v1/predict", "/v1/explain"):
        body = json.dumps({"text": text if path == "/v1/predict" else text[:99_999]}, ensure_ascii="\ud800" in text)
        response = client.post(path, content=body.encode())
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        assert response.json()["label"] in ("drink", "drive")
        assert response.content.isascii()


def test_hostile_json_is_refused(client: TestClient) -> None:
    for body in (b"[" * 100_000, b'{"text": ' * 50_000, b'{"text": 1' + b"0" * 5000 + b"}", b'{"text": "\xff"}', b"\0"):
        assert "not valid JSON" in refused(client.post("/v1/predict", content=body))
    assert "bytes, which is the limit" in refused(client.post("/v1/predict", content=b" " * 8_000_001), 413)


def test_metrics_count_what_happened(fitted: Path) -> None:
    with TestClient(app_of(fitted), raise_server_exceptions=False) as client:
        client.post("/v1/predict", json={"texts": NEW})
        client.post("/v1/predict", json={"text": 1})
        client.get("/nothing")
        response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert response.text.endswith("\n")
    lines = response.text.splitlines()
    name, value = "[a-z_]+", r"-?[0-9.]+(e[-+]?[0-9]+)?"
    label = rf'{name}="([^"\\\n]|\\[\\"n])*"'
    for line in lines:  # the grammar of the format
        kinds = rf"# HELP {name} .+|# TYPE {name} (counter|gauge|histogram)|{name}({{{label}(,{label})*}})? {value}"
        assert re.fullmatch(kinds, line), line
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert samples['wgcn_requests_total{endpoint="predict",status="200"}'] == "1.0"
    assert samples['wgcn_requests_total{endpoint="predict",status="400"}'] == "1.0"
    assert samples['wgcn_requests_total{endpoint="none",status="404"}'] == "1.0"
    assert samples['wgcn_texts_total{model="topics"}'] == str(float(len(NEW)))
    assert samples['wgcn_model_loads_total{model="topics",outcome="loaded"}'] == "1.0"
    assert samples['wgcn_request_seconds_count{endpoint="predict"}'] == "2.0"
    assert samples['wgcn_request_seconds_bucket{endpoint="predict",le="+Inf"}'] == "2.0"
    assert (samples["wgcn_requests_in_flight"], samples["wgcn_errors_total"]) == ("0.0", "0.0")
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", name) for name in samples} == names


def follow(schema: dict[str, Any], description: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def fits(value: Any, schema: dict[str, Any], description: dict[str, Any]) -> bool:
    """Whether a value is what a schema says, as far as the schemas of the service go."""
    schema = follow(schema, description)
    if "anyOf" in schema:
        return any(fits(value, each, description) for each in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    types = {"string": str, "number": int | float, "integer": int, "boolean": bool, "null": type(None)}
    if "type" not in schema:
        return True
    if schema["type"] == "array":
        return isinstance(value, list) and all(fits(each, schema["items"], description) for each in value)
    if schema["type"] != "object":
        return isinstance(value, types[schema["type"]])
    known, more = schema.get("properties", {}), schema.get("additionalProperties")
    return (
        isinstance(value, dict)
        and set(schema.get("required", ())) <= value.keys()
        and all(fits(value[name], known[name], description) for name in known.keys() & value.keys())
        and (not isinstance(more, dict) or all(fits(each, more, description) for each in value.values()))
    )


def test_the_description_is_true(fitted: Path, client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    routes = {(route.path, method) for route in _routes(fitted) for method in route.methods - {"HEAD"}}
    described = [
        (path, method) for path, item in description["paths"].items() for method in item.keys() & {"get", "post"}
    ]
    assert {(path, method.upper()) for path, method in described} == routes
    for path, method in described:
        operation = description["paths"][path][method]
        address, body = path.replace("{name}", "topics"), operation.get("requestBody")
        content = body and body["content"]["application/json"]
        bodies = [None] if content is None else [content["example"], {"texts": NEW, **_options(content["schema"])}]
        for each in bodies:
            response = client.request(method, address, json=each)
            assert response.status_code == 200, (path, response.text)
            kind, expected = next(iter(operation["responses"]["200"]["content"].items()))
            assert response.headers["content-type"].startswith(kind)
            value = response.json() if kind == "application/json" else response.text
            assert fits(value, expected["schema"], description), (path, value)
        for status, given in (("400", {}), ("404", None), ("413", {"text": "a" * 8_000_001})):
            applies = "{name}" in path if status == "404" else method == "post"
            if status in operation["responses"] and applies:
                answer = client.request(method, path.replace("{name}", "x") if given is None else address, json=given)
                schema = operation["responses"][status]["content"]["application/json"]["schema"]
                assert (str(answer.status_code), fits(answer.json(), schema, description)) == (status, True)
    assert "security" not in description
    with TestClient(app_of(fitted, token="t")) as closed:
        description = closed.get("/openapi.json", headers={"Authorization": "Bearer t"}).json()
        assert description["security"] == [{"token": []}]
        for path, method in described:
            responses = description["paths"][path][method]["responses"]
            assert ("security" in description["paths"][path][method]) == (path in OPEN_PATHS)
            for headers in ({"Host": "evil.example"}, {}):
                answer = closed.request(method, path, headers=headers)
                assert answer.status_code == 200 or str(answer.status_code) in responses


def test_the_page_of_the_description_fetches_nothing(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline';")
    for path in client.get("/openapi.json").json()["paths"]:
        assert f"<code>{path}</code>" in page.text
    assert "Also give the likeliest labels" in page.text
    assert not re.search(r"<script|<link|<img|src=|href=|url\(|@import", page.text)


def test_options_may_be_null_and_whole_numbers_have_a_point_as_the_description_says(client: TestClient) -> None:
    description = client.get("/openapi.json").json()["paths"]
    for path, option in (("/v1/predict", "top"), ("/v1/explain", "n")):
        schema = description[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        options = _options(schema)
        assert all({"type": "null"} in schema["properties"][name]["anyOf"] for name in options)
        plain = client.post(path, json={"text": "red wine"}).json()
        assert client.post(path, json={"text": "red wine", **dict.fromkeys(options)}).json() == plain
        with_point = client.post(path, json={"text": "red wine", option: 2.0})
        assert with_point.json() == client.post(path, json={"text": "red wine", option: 2}).json()
        assert "valid integer" in refused(client.post(path, json={"text": "red wine", option: 2.5}))


def _routes(folder: Path) -> list[Any]:
    return list(app_of(folder).router.routes)


def _options(schema: dict[str, Any]) -> dict[str, Any]:
    """A value for every option."""
    values = {"top": 2, "probabilities": True, "abstain": 0.9, "coverage": 0.8, "scope": True, "label": "drive", "n": 2}
    return {name: values[name] for name in schema["properties"] if name not in ("text", "texts")}


def test_health_needs_no_token_and_all_else_does(fitted: Path) -> None:
    with TestClient(app_of(fitted, token="secret")) as client:
        assert client.get("/health").json()["ready"] is True
        for path in ("/v1/models", "/metrics", "/openapi.json", "/v1/models/topics"):
            assert client.get(path).status_code == 401
        for path in ("/v1/predict", "/v1/models/topics/explain"):
            assert client.post(path, json={"text": "wine"}).status_code == 401
            answer = client.post(path, json={"text": "wine"}, headers={"Authorization": "Bearer secret"})
            assert answer.status_code == 200


def test_the_gate_lets_in_so_many_requests_and_bytes() -> None:
    gate = Gate(Limits(body=100, requests=3))
    slots = [gate.enter(10), gate.enter(None), gate.enter(1000)]
    assert ([slot.size for slot in slots], gate.n_requests, gate.n_bytes) == ([10, 100, 100], 3, 210)
    with pytest.raises(HTTPException, match="3 requests already") as caught:
        gate.enter(1)
    assert (caught.value.status_code, caught.value.headers) == (503, {"Retry-After": "1"})
    for slot in slots * 2:
        slot.leave()
    assert (gate.n_requests, gate.n_bytes) == (0, 0)
    gate = Gate(Limits(body=100, requests=99))
    for _ in range(8):
        gate.enter(None)
    with pytest.raises(HTTPException):
        gate.enter(2)
    gate.enter(1)  # a small one does not wait for large ones


def test_a_request_that_fails_leaves_the_gate(client: TestClient) -> None:
    for body in (b"{", b"{}", b" " * 8_000_001):
        client.post("/v1/predict", content=body)
    assert "wgcn_requests_in_flight 0" in client.get("/metrics").text
    assert "wgcn_bytes_in_flight 0" in client.get("/metrics").text


def test_a_changed_folder_is_loaded_and_a_damaged_one_is_not(fitted: Path, other: Path, tmp_path: Path) -> None:
    path = tmp_path / "topics"
    shutil.copytree(fitted, path)
    models = Models(named_folders([str(path)]))
    first = models.get("topics")
    models.reload()
    assert models.get("topics") is first
    config = (path / "config.json").read_bytes()
    (path / "config.json").write_bytes(config[:-20])
    models.reload()
    health = models.health()["topics"]
    assert health["digest"] == first.digest
    assert "not valid JSON" in health["error"]
    assert models.get("topics") is first
    client = TestClient(create_app(models, hosts={"testserver"}))
    assert client.get("/health").json()["status"] == "degraded"
    assert client.post("/v1/predict", json={"text": "wine"}).json()["label"] == "drink"
    (path / "config.json").write_bytes(config)
    models.reload()
    assert client.get("/health").json()["status"] == "ok"
    TextModel.load(other).save(path)
    models.reload()
    assert models.get("topics").digest != first.digest
    assert client.post("/v1/predict", json={"text": "red wine with figs"}).json()["label"] == ["drink", "red"]
    assert (models.places["topics"].n_loads, models.places["topics"].n_failures) == (3, 1)
    shutil.rmtree(path)
    models.reload()
    assert "There is no model folder" in models.health()["topics"]["error"]
    assert models.get(None).digest != first.digest


def test_names_of_models_are_parts_of_addresses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Two models are named 'a'"):
        named_folders(["x/a", "y/a"])
    with pytest.raises(InputError, match="'my model' cannot be the name"):
        named_folders(["x/my model"])
    assert named_folders(["a/b=c"]) if (tmp_path / "b=c").exists() else True
    (tmp_path / "v1").mkdir()
    (tmp_path / "topics").symlink_to("v1")
    assert named_folders([str(tmp_path / "topics")]).keys() == {"topics"}  # the link may lead to v2 tomorrow
    with pytest.raises(StoreError, match="There is no model folder"):
        Models(named_folders([str(tmp_path / "nothing")]))


def test_a_server_for_others_without_a_token_is_warned_of(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[Guard, str, int]] = []
    monkeypatch.setattr(service_app, "run", lambda *given, ready: served.append(given))
    monkeypatch.setattr(service_app, "find_spec", lambda name: None)
    monkeypatch.delenv("WGCN_TOKEN", raising=False)
    with pytest.warns(WGCNWarning, match=r"Anyone who reaches 0\.0\.0\.0"):
        serve([str(fitted)], "0.0.0.0")
    monkeypatch.setenv("WGCN_TOKEN", "secret")
    serve([str(fitted)], "0.0.0.0", allow_hosts=["box.example"], requests=7)
    guard = served[1][0]
    assert "box.example" in guard.hosts
    assert TestClient(guard, base_url="http://box.example").get("/metrics").status_code == 401


def test_labels_may_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    WGCNTextClassifier(n_jobs=1).fit(["red wine", "fast car"] * 2, [7, 8] * 2).save(path)
    client = TestClient(app_of(path))
    assert client.get("/v1/models").json()["models"][0]["classes"] == [7, 8]
    assert client.post("/v1/predict", json={"text": "wine"}).json()["label"] == "7"
    assert client.post("/v1/explain", json={"text": "wine", "label": 8}).json()["explained"] == "8"
    assert "was fitted by wgcn 0.2 or earlier" in refused(
        client.post("/v1/predict", json={"text": "a", "abstain": 0.5})
    )


def test_an_error_that_nobody_expected_does_not_end_the_looks_at_others(fitted: Path, other: Path) -> None:
    seen = list[str]()

    def breaking(name: str, path: Path) -> Served:
        seen.append(name)
        if seen.count("a") == 2 and name == "a":
            raise MemoryError("no room")
        return load_served(name, path)

    models = Models({"a": fitted, "b": other}, breaking)
    models.reload(force=True)
    assert models.health()["a"]["error"] == "MemoryError('no room')"
    assert (models.places["a"].n_failures, models.places["b"].n_loads) == (1, 2)


def test_a_pipe_in_a_folder_does_not_end_the_looks_at_others(fitted: Path, tmp_path: Path) -> None:
    shutil.copytree(fitted, tmp_path / "a")
    models = Models({"a": tmp_path / "a"})
    (tmp_path / "a" / "config.json").unlink()
    os.mkfifo(tmp_path / "a" / "config.json")
    (tmp_path / "a" / "README.md").touch()
    look = threading.Thread(target=models.reload, kwargs={"force": True}, daemon=True)
    look.start()
    look.join(30)
    assert not look.is_alive()
    assert "error" in models.health()["a"]


@pytest.mark.parametrize("token", ["", " \n"])
def test_a_token_that_is_empty_does_not_open_the_server(
    fitted: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setattr("wgcn.serve.app.run", lambda *_, **__: None)
    with pytest.raises(InputError, match="The token is empty"):
        serve([str(fitted)], token=token)
    monkeypatch.setenv("WGCN_TOKEN", token)
    with pytest.raises(InputError, match="The token is empty"):
        serve([str(fitted)])


def test_other_permissions_of_a_file_are_a_change(fitted: Path, tmp_path: Path) -> None:
    shutil.copytree(fitted, tmp_path / "a")
    before = file_stamps(tmp_path / "a")
    for _ in range(1000):  # clocks of file systems tick slowly
        (tmp_path / "a" / "config.json").chmod(0o600)
        if file_stamps(tmp_path / "a") != before:
            return
        time.sleep(0.01)
    raise AssertionError("The stamp is still the same.")


def test_the_token_of_a_file_may_end_with_a_line(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[Any]()
    monkeypatch.setattr("wgcn.serve.app.run", lambda app, *_, **__: found.append(app))
    monkeypatch.setenv("WGCN_TOKEN", "a-token\n")
    serve([str(fitted)])
    client = TestClient(found[0], base_url="http://127.0.0.1:8000")
    assert client.get("/v1/models").status_code == 401
    assert client.get("/v1/models", headers={"Authorization": "Bearer a-token"}).status_code == 200
