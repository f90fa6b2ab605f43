"""The page as a program: it starts once, stops cleanly, and loses nothing however it ends."""

import csv
import io
import json
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from wgcn import TextModel
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.label.project import Project, create_project, project_path
from wgcn.label.start import ready_project, serve_page

TEXTS = [
    *("red wine and cheese", "white wine with fish", "a glass of wine", "wine from the hills", "cheese and bread"),
    *("a fast red car", "the car has a new engine", "engine oil for the car", "drive a car to town", "slow car"),
]
Start = Callable[..., Any]


def wait_for(page: Any, ready: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        state: dict[str, Any] = page.client.get("/api/state").json()
        if ready(state):
            return state
        time.sleep(0.1)
    raise AssertionError(state)


def test_from_texts_to_a_model_that_the_command_gives_again(open_page: Start, tmp_path: Path) -> None:
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        rows = ([n, "=1+1; 2; 3", text] for n, text in enumerate(TEXTS))
        csv.writer(file).writerows([["id", "note; a; b", "body"], *rows])
    page = open_page(None, "in.csv", "--text-column", "body", "--delimiter", ",")
    for name, seeds in (("drink", '["wine"]'), ("drive", '["car"]')):
        number = page.decide("add", value=name).json()["decided"]["label"]
        assert page.decide("seeds", label=number, value=seeds).status_code == 200
    state = wait_for(page, lambda state: state["fits"] > 0 and state["status"] == "ready")
    assert {each["name"] for each in state["classes"]} == {"drink", "drive"}
    for text, label in ((0, 1), (1, 1), (5, 2), (6, 2)):
        assert page.decide("label", text=text, label=label).status_code == 200
    state = wait_for(page, lambda state: state.get("fitted", {}).get("n_labels") == 4)
    assert page.client.get("/api/why/0").json()["label"] == 1
    assert page.client.get("/api/word?word=car").json()["nodes"][0]["word"] == "car"
    wrong = page.decide("seeds", label=1, value='["beer"]')
    assert (wrong.status_code, "in no text" in wrong.text) == (400, True)
    done = page.client.post("/api/export", json={}).json()
    assert page.stop() == 0
    assert "Go on with" in page.said

    command = shlex.split(done["command"].replace("work-model", "again"))
    assert command[:2] == ["wgcn", "fit"]
    subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, check=True, capture_output=True)
    exported, again = (TextModel.load(tmp_path / name) for name in ("work-model", "again"))
    assert exported.predict_proba(TEXTS).tolist() == again.predict_proba(TEXTS).tolist()
    assert exported.vocabulary.words == again.vocabulary.words
    lines = (tmp_path / "work-labelled.csv").read_text().splitlines()
    assert lines[:2] == ['"id","note; a; b","body","label"', '"0","=1+1; 2; 3","red wine and cheese","drink"']


def test_killed_at_any_moment_no_answered_label_is_lost(open_page: Start, tmp_path: Path) -> None:
    """Two people label as fast as they can, and the process is killed five times."""
    moments, answered = random.Random(0), dict[int, tuple[str, int, int]]()
    page = open_page(TEXTS * 40)
    page.decide("add", value="a")
    page.decide("add", value="b")

    def label(who: str) -> None:
        choose = random.Random(f"{who} {len(answered)}")
        with httpx.Client(base_url=page.address, headers=page.client.headers, trust_env=False) as client:
            while True:
                text, number = choose.randrange(400), choose.choice([1, 2])
                given = {"who": who, "kind": "label", "text": text, "label": number}
                try:
                    answer = client.post("/api/decide", json=given)
                except httpx.HTTPError:
                    return  # it was killed: this label may be written or not
                assert answer.status_code == 200
                answered[answer.json()["seq"]] = (who, text, number)

    for _ in range(5):
        people = [threading.Thread(target=label, args=(who,)) for who in ("ann", "bob")]
        for person in people:
            person.start()
        time.sleep(moments.uniform(0.05, 0.6))
        assert page.stop(signal.SIGKILL) == -signal.SIGKILL
        for person in people:
            person.join(60)
        with Project(tmp_path / "work.sqlite") as project:
            entries = {each.seq: (each.who, each.decision.text, each.decision.label) for each in project.entries()}
        assert list(entries) == list(range(1, len(entries) + 1))
        assert {seq: entries.get(seq) for seq in answered} == answered
        page = open_page(None)
    assert {who for who, _, _ in answered.values()} == {"ann", "bob"}


def test_a_second_start_says_where_the_first_is(open_page: Start) -> None:
    first = open_page(TEXTS)
    second = open_page(None)
    assert second.process.wait(60) == 2
    assert f"is open already at {first.address}" in second.said


def test_of_several_starts_at_once_one_has_the_page_and_the_others_name_it(open_page: Start, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text,label\n" + "".join(f"{text},\n" for text in TEXTS))
    with ThreadPoolExecutor(3) as pool:
        pages = list(pool.map(lambda _: open_page(None, str(tmp_path / "in.csv")), range(3)))
    (first,) = (page for page in pages if page.url)
    assert first.client.get("/api/state").json()["texts"] == len(TEXTS)
    for page in pages:
        if page is not first:
            assert page.process.returncode == 2
            assert f"is open already at {first.address}" in page.said


def test_texts_without_words_are_said_to_be_so(open_page: Start) -> None:
    page = open_page(["", "...", "!"])
    wait_for(page, lambda state: state["status"] == "failed")
    for answer in (page.client.get("/api/why/0"), page.client.post("/api/export", json={})):
        assert "There is no word" in answer.json()["error"]["message"]


def test_a_browser_in_the_terminal_does_not_hold_up_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, answered = threading.Event(), list[str]()

    def run(*_: object, ready: Callable[[str], None], **__: object) -> None:
        ready("http://127.0.0.1:1")
        answered.append("" if closed.is_set() else "while the browser is open")

    def open_browser(_: str) -> None:
        closed.wait(5)
        closed.set()

    monkeypatch.setattr("webbrowser.open", open_browser)
    monkeypatch.setattr("wgcn.serve.server.run", run)
    create_project(tmp_path / "p.sqlite", [("a text", None)])
    serve_page(tmp_path / "p.sqlite", say=lambda _: None)
    closed.set()
    assert answered == ["while the browser is open"]


def test_slow_clients_do_not_hold_up_others(open_page: Start) -> None:
    page = open_page(TEXTS)
    host, port = page.address.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(20)]
    for each in slow:
        each.sendall(b"POST /api/decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n")
    assert page.decide("add", value="a").status_code == 200
    for each in slow:
        each.close()


def test_other_texts_do_not_get_into_a_project(tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("text,label\nred wine,drink\nfast car,\n")
    other.write_text("text\nsomething else\n")
    path = ready_project(one, tmp_path / "p")
    assert path == tmp_path / "p.sqlite"
    assert ready_project(one, tmp_path / "p") == ready_project(None, tmp_path / "p") == path
    with Project(path) as project:
        assert len(project.state.labels) == 1
    with pytest.raises(InputError, match="has other texts"):
        ready_project(other, tmp_path / "p")
    with pytest.raises(InputError, match="There is no project"):
        ready_project(None, tmp_path / "q")
    with pytest.raises(InputError, match="Give a file"):
        ready_project(None, None)
    with pytest.raises(InputError, match="There is no file"):
        ready_project(tmp_path / "nothing.csv", None)


def test_labels_that_stand_for_none_do_not_get_into_a_project(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\nred wine,drink\nfast car,N/A\nslow car,drive\nold car,\n")
    with pytest.warns(WGCNWarning, match="1 row of .*--missing N/A"):
        made = ready_project(path, tmp_path / "one")
    with Project(made) as project:
        assert {each.name for each in project.state.classes.values()} == {"N/A", "drink", "drive"}
    with Project(ready_project(path, tmp_path / "two", missing="N/A")) as project:
        assert {each.name for each in project.state.classes.values()} == {"drink", "drive"}
        assert set(project.state.given) == {0, 2}
    path.write_text("text,label\n" + "".join(f"{'ab'[i % 2]},a longer text of number {i}\n" for i in range(30)))
    with pytest.raises(InputError, match="look swapped"):
        ready_project(path, tmp_path / "three")
    assert not project_path(tmp_path / "three").exists()


def test_what_is_assumed_of_a_file_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text;note\nwine;a\ncar;b\n")
    with pytest.warns(WGCNWarning, match="semicolons") as said:
        ready_project(tmp_path / "in.csv", tmp_path / "p")
    assert len(said) == 1


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("label\na\nb\n", {}, "no column 'text'"),
        ("text,label,label\nwine,a,b\n", {}, "2 columns 'label'"),
        ("a,label\nwine,x\n", {"text_column": "label"}, "texts and labels at once"),
        ("text,a\nwine,x\n", {"text_column": "b"}, "no column 'b'"),
        ("text\n", {}, "no rows"),
        ("", {}, "empty"),
    ],
)
def test_files_in_which_texts_or_labels_are_not_clear_are_refused(
    tmp_path: Path, content: str, options: dict[str, Any], words: str
) -> None:
    (tmp_path / "in.csv").write_text(content)
    with pytest.raises(InputError, match=words):
        ready_project(tmp_path / "in.csv", tmp_path / "p", reading=options)
    assert [each.name for each in tmp_path.iterdir()] == ["in.csv"]


def test_texts_come_out_of_pipes_devices_and_standard_input_as_for_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be read once is read once, and known again by the same digest as a file."""
    content = "body\n" + "".join(f"{text}\n" for text in TEXTS)
    (tmp_path / "in.csv").write_text(content)
    path = ready_project(tmp_path / "in.csv", tmp_path / "p")
    with Project(path) as project:
        facts = project.facts
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("p", "q"):  # one that is there, and a new one
        with piped(tmp_path / "pipe.csv", content):
            again = ready_project(tmp_path / "pipe.csv", tmp_path / name)
        with Project(again) as project:
            assert list(project.all_texts()) == TEXTS
            assert project.facts["source"]["digest"] == facts["source"]["digest"]
            assert project.facts["columns"] == facts["columns"]
    with piped(tmp_path / "pipe.csv", "body\nother\n"), pytest.raises(InputError, match="has other texts"):
        ready_project(tmp_path / "pipe.csv", tmp_path / "p")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert ready_project(Path("-"), tmp_path / "p", reading={"format": "csv"}) == path
    with piped(tmp_path / "pipe.csv", content), pytest.raises(InputError, match="--project NAME"):
        ready_project(tmp_path / "pipe.csv", None)


@contextmanager
def piped(path: Path, content: str) -> Iterator[None]:
    writer = threading.Thread(target=path.write_text, args=[content])
    writer.start()
    yield
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a writer that nobody has read goes on
    writer.join(60)
    os.close(reader)


def test_a_device_without_end_or_a_folder_is_refused_at_once(tmp_path: Path) -> None:
    create_project(tmp_path / "there.sqlite", [("a", None)], {"digest": "0"})
    for name in ("there", "new"):
        for reading, words in (({}, "no ending"), ({"format": "csv"}, "binary file")):
            with pytest.raises(InputError, match=words):
                ready_project(Path("/dev/zero"), tmp_path / name, reading=reading)
        with pytest.raises(InputError, match="is a folder"):
            ready_project(tmp_path, tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == ["there.sqlite"]


def test_a_project_that_is_damaged_under_the_page_is_one_message(open_page: Start, tmp_path: Path) -> None:
    page = open_page(TEXTS)
    wait_for(page, lambda state: state["status"] == "ready")
    place = tmp_path / "work.sqlite"
    with place.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (place.stat().st_size - 4096))
    for path in ("/api/text/3", "/api/texts?query=wine", "/api/labels.csv"):
        answer = page.client.get(path)
        assert answer.status_code == 500
        assert "cannot be read as a project" in answer.json()["error"]["message"]
    assert "cannot be written" in page.decide("add", value="a").json()["error"]["message"]
    page.stop()
    assert "cannot be read as a project" in page.said
    assert "Traceback" not in page.said


def test_the_model_of_a_damaged_project_says_so(tmp_path: Path) -> None:
    """The process of the model, which opens the project for itself."""
    (tmp_path / "p.sqlite").write_bytes(b"x" * 5000)
    run = [sys.executable, "-m", "wgcn.label.refit", "p.sqlite"]
    process = subprocess.Popen(run, cwd=tmp_path, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    assert said["event"] == "failed"
    assert "is not a project" in said["message"]
    assert "Traceback" not in process.communicate(timeout=60)[0]
    assert process.returncode == 0
