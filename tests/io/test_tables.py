"""Tables that are written: every value stays in its row and column."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn.base.errors import InputError, MissingDependencyError, WGCNWarning
from wgcn.io.tables import Column, Table, TableWriter, read_batches, table_kind

HOSTILE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.sampled_from(
    ["a\tb", "a\nb", "a\r\nb", "\r", '"', '"",', "a,b", "", "=1+1", "\u2028", "\ufeff"]
)
ROWS = st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=5)


def rows_of(table: Table) -> list[tuple[str, Any]]:
    """Return the text of each row, and the values of its columns."""
    return [row for texts, kept in table.batches for row in zip(texts, kept, strict=True)]


def written(kind: str, kept: list[str], parts: list[tuple[list[Any], list[Column]]], schema: Any = None) -> bytes:
    sink = io.BytesIO()
    with TableWriter(sink, kind, kept, schema) as table:
        for rows, added in parts:
            table.write(rows, added)
    return sink.getvalue()


@given(ROWS)
def test_hostile_values_stay_in_their_rows_and_columns(rows: list[tuple[str, str]]) -> None:
    added: list[Column] = [("label", [a for a, _ in rows]), ("confidence", [0.5] * len(rows))]
    parts: list[tuple[list[Any], list[Column]]] = [([[b, a] for a, b in rows], added)] * 2
    expected = [[b, a, a, "0.5000"] for a, b in rows] * 2
    header = ["x", "y", "label", "confidence"]
    out = written("csv", ["x", "y"], parts).decode()
    assert list(csv.reader(io.StringIO(out, newline=""), strict=True)) == [header, *expected]
    lines = written("tsv", ["x", "y"], parts).decode().split("\n")
    blank = str.maketrans("\t\n\r", "   ")
    assert [line.split("\t") for line in lines] == [
        header, *([value.translate(blank) for value in row] for row in expected), [""]
    ]  # fmt: skip
    lines = written("jsonl", ["x", "y"], parts).decode().split("\n")[:-1]
    assert [list(json.loads(line).values()) for line in lines] == [[*row[:3], 0.5] for row in expected]
    assert list(json.loads(lines[0])) == header


@given(ROWS)
def test_parquet_keeps_what_it_is_given(rows: list[tuple[str, str]]) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    added: list[Column] = [("label", [a for a, _ in rows]), ("confidence", [0.5] * len(rows))]
    data = written("parquet", ["x", "y"], [(list(map(list, rows)), added)] * 2)
    expected = [{"x": a, "y": b, "label": a, "confidence": 0.5} for a, b in rows] * 2
    assert pq.read_table(pa.BufferReader(data)).to_pylist() == expected


def test_values_keep_their_types_where_the_format_has_types() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    schema = pa.schema([("n", pa.int32()), ("list", pa.list_(pa.string())), ("bytes", pa.binary())])
    rows, added = [[1, ["a"], b"x"], [None, None, None]], [("label", ["é", None]), ("score", [0.25, None])]
    table = pq.read_table(pa.BufferReader(written("parquet", schema.names, [(rows, added)], schema)))
    assert table.schema.types[:3] == schema.types
    assert table.to_pylist()[0] == {"n": 1, "list": ["a"], "bytes": b"x", "label": "é", "score": 0.25}
    out = written("jsonl", schema.names, [(rows, added)]).decode().splitlines()
    assert json.loads(out[0]) == {"n": 1, "list": ["a"], "bytes": "x", "label": "é", "score": 0.25}
    assert set(json.loads(out[1]).values()) == {None}
    assert written("jsonl", ["n"], [([[float("nan")]], [("score", [0.5])])]).decode() == '{"n": null, "score": 0.5}\n'
    out = written(
        "csv", ["n", "list", "bytes"], [([[True, {"a": "é"}, float("nan")]], [("label", [["a", "b"]])])]
    ).decode()
    assert out.splitlines()[1] == 'true,"{""a"": ""é""}",,a;b'
    with pytest.raises(InputError, match="cannot be kept in parquet"):
        written("parquet", schema.names, [([["no number", None, None]], [("label", ["a"])])], schema)


def test_lists_that_are_empty_at_first_have_their_type() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parts: list[Any] = [
        ([[]], [("label", [[]]), ("confidence", [[]])]),
        ([[]], [("label", [["a"]]), ("confidence", [[0.5]])]),
    ]
    rows = pq.read_table(pa.BufferReader(written("parquet", [], parts))).to_pylist()
    assert rows == [{"label": [], "confidence": []}, {"label": ["a"], "confidence": [0.5]}]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_a_name_that_is_taken_gets_a_suffix(kind: str) -> None:
    kept = ["label", "label_predicted", "id", "id"]
    parts: list[Any] = [([list("abcd")], [("label", ["x"]), ("id", ["y"]), ("new", ["z"])])]
    with pytest.warns(WGCNWarning, match="named 'label_predicted_2', 'id_predicted'"):
        data = written(kind, kept, parts)
    names = ["label_predicted_2", "id_predicted", "new"]
    if kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        found = pq.read_table(pa.BufferReader(data)).column_names
    else:
        first = data.decode().splitlines()[0]
        found = list(json.loads(first)) if kind == "jsonl" else first.split("," if kind == "csv" else "\t")
    own = kept if kind in ("csv", "tsv") else ["label", "label_predicted", "id", "id_2"]
    assert found == [*own, *names]


def test_txt_is_labels_alone_or_a_table() -> None:
    assert written("txt", [], [([[], []], [("label", ["a\nb", "c"])])]) == b"a b\nc\n"
    assert written("txt", [], [([[]], [("label", ["a"]), ("confidence", [1.0])])]) == b"label\tconfidence\na\t1.0000\n"


def test_half_a_character_does_not_end_the_work() -> None:
    for kind in ("csv", "tsv", "jsonl"):
        assert b"?" in written(kind, ["x"], [([["\ud800"]], [("label", ["a"])])])


@pytest.mark.parametrize(
    ("name", "given", "kind"),
    [("a.csv", None, "csv"), ("A.TSV", None, "tsv"), ("a.ndjson", None, "jsonl"), ("a.parquet", None, "parquet"),
     ("a.txt", None, "txt"), ("a.labels", None, "txt"), ("a.csv", "jsonl", "jsonl"), ("a.xlsx", "csv", "csv")],
)  # fmt: skip
def test_the_ending_or_the_option_says_what_is_written(name: str, given: str | None, kind: str) -> None:
    assert table_kind(Path(name), given) == kind
    assert table_kind(None) == "txt"


@pytest.mark.parametrize(("name", "given"), [("a.xlsx", None), ("a.csv.gz", None), ("a.json", None), ("a.csv", "xlsx")])
def test_what_cannot_be_written_is_refused(name: str, given: str | None) -> None:
    with pytest.raises(InputError, match="txt, csv, tsv, jsonl, parquet"):
        table_kind(Path(name), given)


def test_parquet_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"\.\[parquet\]"):
        written("parquet", [], [([[]], [("label", ["a"])])])


def test_a_table_has_all_columns_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,text,id\n1,x,2\n3,y\n")
    table = read_batches(str(path), keep=True)
    assert (table.names, rows_of(table)) == (["id", "text", "id"], [("x", ("1", "x", "2")), ("y", ("3", "y", ""))])
    path.write_text("id,text\n1\n")
    with pytest.raises(InputError, match="'text' is missing"):
        rows_of(read_batches(str(path), keep=True))


def test_a_table_of_objects(tmp_path: Path) -> None:
    path, long = tmp_path / "a.jsonl", "9" * 5000
    data = '{"id": 1, "in": {"body": "x"}, "tags": [-1.5]}\n{"id": 2, "late": true}\n' + '{"id": 3}\n' * 1000
    path.write_text(data + f'{{"id": {long}, "new": 1, "in": {{"body": "{"y" * 5000}"}}}}\n')
    table = read_batches(str(path), keep=True, text_column="in.body")
    assert table.names == ["id", "in", "tags", "late"]
    with pytest.warns(WGCNWarning) as caught:
        rows = rows_of(table)
    assert rows[:2] == [("x", (1, {"body": "x"}, [-1.5], None)), ("", (2, None, None, True))]
    assert (len(rows[-1][0]), rows[-1][1][0]) == (5000, long)
    assert [str(each.message).split(" of ")[0] for each in caught] == ["1 row", "1001 rows"]
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"text": "x" * 5000, "n": 5, "x": 1e-7}]))
    assert rows_of(read_batches(str(path), keep=True)) == [("x" * 5000, ("x" * 5000, 5, 1e-7))]


def test_batches_are_cut_by_all_columns_and_there_is_always_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,more\n" + f"x,{'y' * 2**19}\n" * 5)
    names, schema, batches = read_batches(str(path), keep=True)
    assert (names, schema, [len(texts) for texts, _ in batches]) == (["text", "more"], None, [2, 2, 1])
    assert list(read_batches(str(path), keep=False)[2]) == [(["x"] * 5, [[]] * 5)]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert list(read_batches("-", keep=True)[2]) == [([], [])]


def test_sets_that_are_all_empty_at_first_are_lists_of_labels_in_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with (tmp_path / "t.parquet").open("wb") as file, TableWriter(file, "parquet") as table:
        table.write([[]], [("label", [None]), ("set", [[]])])
        table.write([[]], [("label", ["a"]), ("set", [["a", "b"]])])
    assert parquet.read_table(tmp_path / "t.parquet").to_pylist() == [
        {"label": None, "set": []},
        {"label": "a", "set": ["a", "b"]},
    ]
