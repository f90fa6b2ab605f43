"""What the labelling page answers, and to whom: the app itself, without a model."""

import csv
import io
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from wgcn.base.errors import StoreError
from wgcn.io.read import read_labelled
from wgcn.label.decisions import Decision
from wgcn.label.page import LabelPage, fit_command, write_labels
from wgcn.label.project import Project, create_project
from wgcn.label.refit import array_as_json
from wgcn.label.start import guarded, ready_project

TOKEN = "a-token"
HOSTILE = [
    "<script>document.title = 'taken'</script>",
    '"quoted", with a comma\r\nand two lines',
    "=HYPERLINK(1)",
    "\ufeffmark",
    "",
    "plain",
    "\x1b[31m red",
    "\u202ereversed",
]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[LabelPage]:
    create_project(tmp_path / "p.sqlite", ((text, None) for text in HOSTILE))
    with Project(tmp_path / "p.sqlite") as project:
        yield LabelPage(project, with_model=False)


@pytest.fixture
def client(page: LabelPage) -> Iterator[TestClient]:
    app = guarded(page, TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False) as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield client


def decide(client: TestClient, kind: str, **given: Any) -> Any:
    return client.post("/api/decide", json={"who": "me", "kind": kind, **given})


def fitted(page: LabelPage, **more: Any) -> None:
    """Let the page believe that a model was fitted: class 1 for even texts, ever less certain."""
    n = page.project.n_texts
    guess, confidence = np.arange(n, dtype=np.int32) % 2 + 1, np.linspace(1, 0.2, n, dtype=np.float32)
    event = {"event": "measured", "seq": page.project.state.seq, "n_labels": 2, "classes": [1, 2], "suggested": [5, 3]}
    page._on_event({**event, "guess": array_as_json(guess), "confidence": array_as_json(confidence), **more})


def test_a_label_is_in_the_project_when_it_is_answered(page: LabelPage, client: TestClient) -> None:
    number = decide(client, "add", value="wine").json()["decided"]["label"]
    answer = decide(client, "label", text=2, label=number)
    assert answer.status_code == 200
    with Project(page.project.path) as other:
        assert other.state.labels == {2: number}
    assert answer.json()["labelled"] == 1
    undone = decide(client, "undo").json()
    assert (undone["labelled"], undone["undone"]["text"]) == (0, 2)


def test_a_page_is_told_only_what_is_new(client: TestClient) -> None:
    first = client.get("/api/state").json()
    again = client.get("/api/state", params={"seq": first["seq"], "fits": first["fits"]}).json()
    assert "classes" in first
    assert "classes" not in again
    decide(client, "add", value="a")
    assert "classes" in client.get("/api/state", params={"seq": first["seq"], "fits": first["fits"]}).json()


def test_suggestions_come_first_and_to_one_person_each(page: LabelPage, client: TestClient) -> None:
    fitted(page)
    decide(client, "add", value="a")
    first = client.get("/api/next?who=me").json()
    assert first["text"] == 5
    assert "guess" not in first  # of a class that is not there any more
    assert client.get("/api/next?who=you").json()["text"] == 3
    assert client.get("/api/next?who=me").json()["text"] == 5
    decide(client, "label", text=5, label=1)
    decide(client, "skip", text=3)
    assert client.get("/api/next?who=me").json()["text"] == 7  # the least certain
    for text in range(len(HOSTILE)):
        decide(client, "label", text=text, label=1)
    assert client.get("/api/next?who=me").json() == {"text": None}


def test_the_list_is_filtered_sorted_and_in_pages(page: LabelPage, client: TestClient) -> None:
    for name in "ab":
        decide(client, "add", value=name)
    decide(client, "label", text=0, label=2)
    decide(client, "skip", text=7)
    fitted(page, disagree=[0])

    def listed(**given: Any) -> list[int]:
        return [row["text"] for row in client.get("/api/texts", params=given).json()["rows"]]

    assert listed(limit=3) == [0, 1, 2]
    assert listed(limit=3, begin=3) == [3, 4, 5]
    assert listed(query="SCRIPT") == [0]
    assert listed(show="labelled") == listed(show="disagree") == [0]
    assert listed(show="skipped") == [7]
    assert listed(label=2, show="unlabelled") == [1, 3, 5, 7]
    assert listed(label=2) == [0, 1, 3, 5, 7]
    assert listed(sort="uncertain", limit=2) == [7, 6]
    assert listed(**{"from": "0.9"}) == [0]
    assert listed(ids="4,1,99") == [1, 4]
    assert client.get("/api/texts", params={"from": "x"}).status_code == 400


def test_the_estimates_are_kept_with_their_intervals(page: LabelPage, client: TestClient) -> None:
    decide(client, "add", value="a")
    for text in range(2):
        decide(client, "label", text=text, label=1)
    fitted(page, accuracy=0.5, n_held_out=8)
    fitted(page, accuracy=0.75, n_held_out=8, doubts=[(0, 1, 0.9)])
    found = client.get("/api/state").json()["estimates"][-1]
    assert (found["labels"], found["accuracy"]) == (2, 0.75)
    assert 0.3 < found["low"] < 0.75 < found["high"] < 1
    assert len(page.project.estimates()) == 1


def test_a_label_that_is_kept_does_not_look_wrong_any_more(page: LabelPage, client: TestClient) -> None:
    for name in "ab":
        decide(client, "add", value=name)
    for text in range(2):
        decide(client, "label", text=text, label=1)
    fitted(page, doubts=[(0, 2, 0.9), (1, 2, 0.8)])

    def doubted() -> list[int]:
        return [doubt["text"] for doubt in client.get("/api/state").json()["doubts"]]

    assert doubted() == [0, 1]
    assert [each["text"] for each in decide(client, "keep", text=0, label=1).json()["doubts"]] == [1]
    with Project(page.project.path) as project:  # after a reload, and for others
        assert [each["text"] for each in LabelPage(project, with_model=False).summary()["doubts"]] == []
        assert project.state.is_kept(0)
    assert decide(client, "undo").json()["undone"]["kind"] == "keep"
    assert doubted() == [0, 1]
    assert decide(client, "keep", text=0, label=2).status_code == 400


def test_an_estimate_that_cannot_be_kept_stops_nothing(page: LabelPage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(page.project, "keep_estimate", full)
    fitted(page, accuracy=0.5, n_held_out=8)
    assert page.status == "ready"


def test_two_projects_with_a_dot_in_their_names_are_exported_apart(page: LabelPage) -> None:
    path = page.project.path.with_name("reviews.en")
    create_project(path, [("a", None)])
    with Project(path) as project:
        assert [target.name for target in LabelPage(project, with_model=False).targets()] == [
            "reviews.en-labelled.csv",
            "reviews.en-model",
        ]


@pytest.mark.parametrize("path", ["/api/text/{}", "/api/why/{}", "/api/texts?label={}", "/api/why/0?label={}"])
def test_numbers_of_any_length_are_understood_or_refused(client: TestClient, path: str) -> None:
    for number in ("9" * 5_000, "-1", "x"):
        assert client.get(path.format(number)).status_code < 500


def test_what_went_wrong_is_told(page: LabelPage, client: TestClient) -> None:
    page._on_event({"event": "failed", "message": "The seed 'x' is in no text."})
    found = client.get("/api/state").json()
    assert (found["status"], found["trouble"]) == ("failed", "The seed 'x' is in no text.")


def test_texts_come_back_from_the_exported_file_as_they_were(page: LabelPage, client: TestClient) -> None:
    decide(client, "add", value="a, b")
    decide(client, "label", text=1, label=1)
    write_labels(page.project, page.project.path.with_name("out.csv"))
    rows = list(read_labelled(page.project.path.with_name("out.csv")))
    assert [text for text, _ in rows] == HOSTILE
    assert [label for _, label in rows] == [None, "a, b", *[None] * 6]
    answer = client.get("/api/labels.csv")
    assert "attachment" in answer.headers["content-disposition"]
    assert next(csv.reader(io.StringIO(answer.text))) == ["row", "text", "label"]


@pytest.mark.parametrize(
    ("header", "given", "options"),
    [
        ("id,text,note", {}, ""),
        ("label,id,text", {}, ""),
        ("id,body,kind", {"text": "body", "label": "kind"}, " --text-column=body --label-column=kind"),
        ("a,a,label", {"text": "1"}, " --text-column=1"),
        ("a;b;c,text,-x", {"text": "-x"}, " --text-column=-x --delimiter ,"),
        ("a|b,text", {"text": "a|b"}, " '--text-column=a|b' --delimiter ,"),
    ],
)
def test_the_exported_file_has_the_columns_of_the_texts(
    tmp_path: Path, header: str, given: dict[str, str], options: str
) -> None:
    names = header.split(",")
    cells = ['=cmd|"/c calc"!A0', "two\r\nlines; x; y", "\u05d0, \U0001f469"]
    rows = [[f"{each} {n}" for each in cells[: len(names)]] for n in range(5)]
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    label = given.get("label", "label")
    reading = {"text_column": given.get("text"), "delimiter": ","}
    path = ready_project(tmp_path / "in.csv", tmp_path / "p", label_column=label, reading=reading)
    with Project(path) as project:
        number = project.decide("me", Decision("add", value="new")).decision.label
        project.decide("me", Decision("label", 1, number))
        write_labels(project, tmp_path / "out.csv")
        assert fit_command(project, "out.csv", "m") == f"wgcn fit out.csv --model m{options}"
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.reader(file))
    at = names.index(label) if label in names else len(names)
    assert found[0] == [*names, *["label"] * (at == len(names))]
    assert [row[:at] + row[at + 1 :] for row in found[1:]] == [row[:at] + row[at + 1 :] for row in rows]
    assert found[2][at] == "new"
    again = read_labelled(
        *(tmp_path / "out.csv",),
        text_column=given.get("text"),
        label_column=label,
        delimiter="," if "delimiter" in options else None,
    )
    text = given.get("text", "text")
    place = names.index(text) if text in names else int(text)
    assert [each for each, _ in again] == [row[place] for row in rows]


def test_columns_of_other_formats_are_exported_as_text(tmp_path: Path) -> None:
    lines = [
        {"doc": {"body": "red wine"}, "n": 1.5, "tags": ["a", "\u00e9"], "none": None, "yes": True},
        {"doc": {"body": "car and \0"}, "extra\0": "\ud800"},
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    path = ready_project(tmp_path / "in.jsonl", tmp_path / "p", reading={"text_column": "doc.body"})
    with Project(path) as project:
        write_labels(project, tmp_path / "out.csv")
        assert "--text-column=doc.body" in fit_command(project, "out.csv", "m")
        texts = list(project.all_texts())
    rows = list(csv.reader(io.StringIO((tmp_path / "out.csv").read_text(encoding="utf-8"))))
    assert rows[0] == ["doc", "n", "tags", "none", "yes", "extra\ufffd", "doc.body", "label"]
    assert rows[1] == ['{"body": "red wine"}', "1.5", '["a", "\u00e9"]', "", "true", "", "red wine", ""]
    assert [text for text, _ in read_labelled(tmp_path / "out.csv", text_column="doc.body")] == texts


def test_columns_that_are_too_large_are_left_out(tmp_path: Path) -> None:
    path, columns = tmp_path / "p.sqlite", {"names": ["text", "note", "label"], "text": 0, "label": 2}
    assert not create_project(path, [("wine", "a", ["x" * 200])] * 10, {}, columns, most_cells=1_000)
    with Project(path) as project:
        write_labels(project, tmp_path / "out.csv")
        assert len(project.state.labels) == 10
    assert (tmp_path / "out.csv").read_text().startswith('"row","text","label"\n"1","wine","a"\n')
    assert not list(tmp_path.glob("*.partial*"))


def test_projects_that_were_made_without_columns_are_exported_as_before(tmp_path: Path) -> None:
    path = tmp_path / "p.sqlite"
    create_project(path, [("wine", "a"), ("car", None)])
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE others")
    database.close()
    with Project(path) as project:
        write_labels(project, tmp_path / "out.csv")
        assert fit_command(project, "out.csv", "m") == "wgcn fit out.csv --model m"
    assert (tmp_path / "out.csv").read_text() == '"row","text","label"\n"1","wine","a"\n"2","car",""\n'


def test_the_command_names_seeds_and_tokenizer(tmp_path: Path) -> None:
    create_project(tmp_path / "p.sqlite", [("a b", None)], {"tokenizer": "characters"})
    with Project(tmp_path / "p.sqlite") as project:
        project.decide("me", Decision("add", value="it's"))
        project.decide("me", Decision("seeds", label=1, value='["a", "b c"]'))
        assert fit_command(project, "x.csv", "m") == (
            "wgcn fit x.csv --model m --tokenizer characters --seed 'it'\"'\"'s=a,b c'"
        )


# Attacks


def test_texts_are_sent_as_data_and_the_page_runs_no_script_of_others(client: TestClient) -> None:
    answer = client.get("/api/text/0")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["whole"] == HOSTILE[0]
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    for path in ("/", "/label.js", "/label.css"):
        content = client.get(path)
        assert content.headers["x-content-type-options"] == "nosniff"
        for outside in ("http:", "https:", "//cdn", "innerHTML", "eval(", " style=", "onclick="):
            assert outside not in content.text.replace("http://www.w3.org/2000/svg", "")


def test_nobody_without_the_token_gets_an_answer(client: TestClient) -> None:
    del client.headers["Authorization"]
    paths = ["/", "/label.js", "/api/state", "/api/text/0", "/api/labels.csv", "/api/next?who=me", "/?token=wrong"]
    assert {client.get(path).status_code for path in paths} == {401}
    assert decide(client, "add", value="x").status_code == 401
    entered = client.get(f"/?token={TOKEN}")
    assert (entered.status_code, entered.headers["refresh"]) == (200, "0; url=/")
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=strict" in entered.headers["set-cookie"]
    assert client.get("/").status_code == 200  # the cookie is enough now


def test_other_sites_and_other_names_are_refused(page: LabelPage, client: TestClient) -> None:
    assert client.get("/api/state", headers={"Host": "evil.example"}).status_code == 403
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        body = {"who": "me", "kind": "add", "value": "x"}
        answer = client.post("/api/decide", json=body, headers={"Origin": origin})
        assert answer.status_code == 403
    assert not page.project.state.classes


def test_bodies_are_small_and_sound(page: LabelPage, client: TestClient) -> None:
    assert decide(client, "add", value="x" * 100_000).status_code == 413
    for body in (b"", b"[]", b"{", b'{"who": "me", "kind": 1}', b'{"who": "me", "kind": "label", "text": "0"}'):
        assert client.post("/api/decide", content=body).status_code == 400
    for given in ({"who": ""}, {"who": "x" * 41}, {"who": "file"}, {"who": 3}):
        assert decide(client, "add", value="x", **given).status_code == 400
    assert decide(client, "label", text=10**9, label=1).status_code == 400
    assert client.get("/api/text/99").status_code == 404
    assert client.get("/api/texts", params={"begin": "9" * 30, "limit": "9" * 8}).status_code == 200
    assert not page.project.state.classes


def test_a_model_that_is_not_there_is_said_to_be_so(client: TestClient) -> None:
    started = time.monotonic()
    answer = client.get("/api/why/0")
    assert answer.status_code == 400
    assert "stopped" in answer.json()["error"]["message"]
    assert time.monotonic() - started < 30
