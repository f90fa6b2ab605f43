"""Who is answered, what is refused, and what an error tells."""

import asyncio
import gzip
import json
import logging
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from wgcn.base.errors import InputError
from wgcn.serve.server import JsonLines
from wgcn.serve.web import (
    PIECE_BYTES,
    Guard,
    allowed_hosts,
    encoded_response,
    json_response,
    read_json,
)

TOKEN = "a-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def echo(request: Request) -> Response:
    return json_response(await read_json(request, limit=100, seconds=0.2))


async def wrong(request: Request) -> Response:
    raise InputError("The text is no text. Give one.")


async def broken(request: Request) -> Response:
    raise RuntimeError("a secret of the house")


ROUTES = [Route("/echo", echo, methods=["GET", "POST"]), Route("/wrong", wrong), Route("/broken", broken)]


def client(**given: Any) -> TestClient:
    guard = Guard(ROUTES, hosts=allowed_hosts("127.0.0.1"), **given)
    return TestClient(guard, base_url="http://127.0.0.1:8000", raise_server_exceptions=False, follow_redirects=False)


def message(response: Any) -> str:
    found = response.json()["error"]
    assert found["status"] == response.status_code
    return str(found["message"])


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "LocalHost", "[::1]:8000", "[::1]"])
def test_the_names_of_this_machine_are_answered(host: str) -> None:
    assert client().post("/echo", json={}, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::2]", "a]"])
def test_another_name_is_refused(host: str) -> None:
    for path in ("/echo", "/nothing"):
        response = client().get(path, headers={"Host": host})
        assert response.status_code == 403
        assert "--allow-host" in message(response)


def test_further_names_are_allowed() -> None:
    assert allowed_hosts("0.0.0.0", ["Box.Example"]) >= {"box.example", "localhost", "0.0.0.0"}
    assert allowed_hosts("10.0.0.1") == {"10.0.0.1"}
    guard = Guard(ROUTES, hosts={"*"})
    assert TestClient(guard, base_url="http://any.example").post("/echo", json={}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8000"])
def test_a_page_of_another_site_changes_nothing(origin: str) -> None:
    response = client().post("/echo", json={}, headers={"Origin": origin})
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


def test_a_page_of_this_server_is_answered() -> None:
    assert client().post("/echo", json={}, headers={"Origin": "http://127.0.0.1:8000"}).status_code == 200


@pytest.mark.parametrize("given", [{}, {"Authorization": "Bearer other"}, {"Authorization": f"Basic {TOKEN}"}])
def test_without_the_token_nothing_is_answered(given: dict[str, str]) -> None:
    for path in ("/echo", "/nothing", f"/echo?token={TOKEN}"):
        response = client(token=TOKEN, open_paths={"/wrong"}).get(path, headers=given)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in response.text
    assert client(token=TOKEN, open_paths={"/wrong"}).get("/wrong", headers=given).status_code == 400


def test_a_token_is_sent_once() -> None:
    headers = [("Authorization", "Bearer wrong"), ("Authorization", "Bearer secret")]
    assert client(token="secret").get("/nothing", headers=headers).status_code == 401
    assert client(token="secret").get("/nothing", headers=headers[::-1]).status_code == 401


def test_a_token_may_have_any_bytes() -> None:
    token = b"\xff\xfe".decode(errors="surrogateescape")  # as the environment has it
    assert Guard(ROUTES, hosts=(), token=token)._token == b"\xff\xfe"


def test_a_request_with_two_lengths_is_refused() -> None:
    headers = {"Content-Length": "2", "Transfer-Encoding": "chunked"}
    response = client().post("/echo", content=b"{}", headers=headers)
    assert (response.status_code, response.headers["connection"]) == (400, "close")
    assert "Content-Length and Transfer-Encoding" in message(response)


@pytest.mark.parametrize("name", ["https://a.example", "a.example:8000", "a.example/", "", "::1", "a b"])
def test_a_name_to_allow_is_no_address(name: str) -> None:
    with pytest.raises(InputError, match="--allow-host takes a name alone"):
        allowed_hosts("127.0.0.1", [name])


def test_the_token_opens() -> None:
    assert client(token=TOKEN).post("/echo", json={"a": 1}, headers=BEARER).json() == {"a": 1}


def test_a_page_changes_the_token_of_its_address_into_a_cookie() -> None:
    page = client(token=TOKEN, cookie="wgcn-8000")
    assert page.get("/wrong").status_code == page.get("/wrong?token=other").status_code == 401
    response = page.get(f"/wrong?a=1&token={TOKEN}&b=%26")
    assert (response.status_code, response.headers["refresh"]) == (200, "0; url=/wrong?a=1&b=%26")
    assert response.headers["set-cookie"] == f"wgcn-8000={TOKEN}; HttpOnly; Path=/; SameSite=strict"
    assert page.get("/wrong").status_code == 400  # which is past the token
    assert client(token=TOKEN, cookie="wgcn-8000").get("/wrong", headers={"Cookie": "wgcn-8000=x"}).status_code == 401


def test_the_address_without_the_token_is_on_this_server() -> None:
    page = client(token=TOKEN, cookie="c")
    response = page.get(f"http://127.0.0.1:8000//evil.example/%E2%82%AC%0D?token={TOKEN}")
    assert response.headers["refresh"] == "0; url=/evil.example/%E2%82%AC%0D"


def test_answers_have_headers_for_browsers() -> None:
    for path in ("/wrong", "/nothing", "/broken"):
        headers = client(policy="default-src 'self'").get(path).headers
        assert headers["content-security-policy"] == "default-src 'self'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_errors_are_json_with_the_message_of_the_library() -> None:
    assert message(client().get("/wrong")) == "The text is no text. Give one."
    assert "nothing at '/nothing'" in message(client().get("/nothing"))
    response = client().post("/wrong")
    assert response.status_code == 405
    assert "does not answer to 'POST'" in message(response)
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD"}


def test_what_nobody_expected_stays_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "wgcn.serve"):
        response = client().get("/broken?token=x")
    assert response.status_code == 500
    number = response.json()["error"]["id"]
    assert number in message(response)
    assert "secret" not in response.text
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    error, request = [line for line in lines if line["event"] in ("error", "request")]
    assert error["id"] == number
    assert "a secret of the house" in error["traceback"]
    assert (request["path"], request["status"], request["method"]) == ("/broken", 500, "GET")
    assert "token" not in json.dumps(request)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b'"a"', b"\xff\xfe", b'{"a": NaN}', b'{"a": 1', b"[" * 99, b'{"a":' * 19, b"1" * 99],
)
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    response = client().post("/echo", content=body)
    assert response.status_code == 400
    assert message(response).startswith("The body ")


def test_a_mark_of_the_byte_order_is_no_part_of_the_body() -> None:
    assert client().post("/echo", content=b'\xef\xbb\xbf{"a": 1}').json() == {"a": 1}


def test_a_deep_body_is_refused() -> None:
    async def deep(request: Request) -> Response:
        return json_response(await read_json(request, limit=10**6))

    guard = Guard([Route("/", deep, methods=["POST"])], hosts={"*"})
    response = TestClient(guard).post("/", content=b'{"a":' + b"[" * 100_000)
    assert response.status_code == 400
    assert "nested too deeply" in message(response)


def test_half_a_character_comes_back() -> None:
    assert client().post("/echo", content=rb'{"a": "\ud800 \u0000"}').content == rb'{"a":"\ud800 \u0000"}'


def test_a_body_that_is_too_large_is_refused_whether_announced_or_not() -> None:
    body = json.dumps({"a": "x" * 200}).encode()
    for content in (body, iter([body[:99], body[99:]])):
        response = client().post("/echo", content=content)
        assert response.status_code == 413
        assert "100 bytes" in message(response)
        assert "connection" not in response.headers  # the server drops the rest, so that the answer arrives


def test_a_request_that_is_cut_off_by_a_stop_is_answered() -> None:
    async def stop() -> list[Any]:
        begun, sent = asyncio.Event(), list[Any]()

        async def wait(request: Request) -> Response:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"", "root_path": ""}
        guard = Guard([Route("/", wait)], hosts={"*"})
        task = asyncio.create_task(guard(scope, None, send))  # type: ignore[arg-type]
        await begun.wait()
        task.cancel()
        await task
        return sent

    head, body = asyncio.run(stop())
    assert (head["status"], dict(head["headers"])[b"connection"]) == (503, b"close")
    assert "The server stops" in json.loads(body["body"])["error"]["message"]


def test_websockets_are_refused() -> None:
    with pytest.raises(WebSocketDisconnect), client().websocket_connect("/echo"):
        pass


def test_a_compressed_body_is_said_to_be_so() -> None:
    for headers, status in (({"Content-Encoding": "gzip"}, 415), ({}, 400)):
        answer = client().post("/echo", content=gzip.compress(b"{}"), headers=headers)
        assert answer.status_code == answer.json()["error"]["status"] == status


def test_a_long_answer_is_sent_in_pieces_and_told_when_it_is_sent() -> None:
    parts, sent, done = [b"[" + b"1," * PIECE_BYTES, b"1]"], list[Any](), list[int]()

    async def send(message: Any) -> None:
        assert not done  # until the last byte
        sent.append(message)

    async def respond() -> None:
        await encoded_response(parts, lambda: done.append(len(sent)))({}, None, send)  # type: ignore[typeddict-item, arg-type]

    asyncio.run(respond())
    begin, *bodies = sent
    assert dict(begin["headers"])[b"content-length"] == b"%d" % sum(map(len, parts))
    assert b"".join(body["body"] for body in bodies) == b"".join(parts)
    assert max(len(body["body"]) for body in bodies) <= PIECE_BYTES
    assert [body.get("more_body", False) for body in bodies] == [True] * (len(bodies) - 1) + [False]
    assert done == [len(sent)]


def test_a_client_that_does_not_read_gives_its_place_back() -> None:
    done, sent = list[bool](), list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) == 3:
            await asyncio.Event().wait()

    async def respond() -> None:
        response = encoded_response([b"1" * PIECE_BYTES * 5], lambda: done.append(True), seconds=0.05)
        await response({"path": "/"}, None, send)  # type: ignore[arg-type]

    asyncio.run(respond())
    assert (done, len(sent)) == ([True], 3)


def test_a_client_that_is_gone_gives_its_place_back() -> None:
    done = list[bool]()

    async def send(message: Any) -> None:
        raise ClientDisconnect

    async def respond() -> None:
        await encoded_response([b"1" * PIECE_BYTES * 2], lambda: done.append(True))({}, None, send)  # type: ignore[typeddict-item, arg-type]

    with pytest.raises(ClientDisconnect):
        asyncio.run(respond())
    assert done == [True]
