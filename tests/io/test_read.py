"""Reading rows out of files: every format gives the same rows, and every bad file one clear error."""

import csv
import gzip
import io
import json
import os
import re
import sys
import threading
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn.base.errors import InputError, MissingDependencyError, WGCNWarning
from wgcn.io.read import read_rows, read_texts
from wgcn.io.tables import read_batches

LINES = [
    "plain words",
    "a \"quoted\", text; with 'both'",
    '"',
    "",
    "naïve Zoë 猫 😀 \ufffd",
    "one\u2028two\u2029three\x0bfour\x0cfive\x85six\x1cseven\x1eeight",
    " spaces kept ",
    "a lone \r stays",
    "last",
]
LABELS = ["a", "b", "", '"', "ü", "x,y", "a", "b", "c"]
# What a format cannot hold is not asked of it: .txt and .tsv have one row a line, and .tsv ends a field at a tab.
RICH_LINES = [*LINES, "tab\tinside", "two\nlines\r\nthree\n", 'a\n"b",\n']
RICH_LABELS = [*LABELS, "\t", "\n", '"\n"']


def csv_text(rows):
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def content(kind, labels, texts, header=True):
    """Return the bytes of a file with the columns label and text."""
    rows = list(zip(labels, texts, strict=True))
    if kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        sink = io.BytesIO()
        pq.write_table(pa.table({"label": pa.array(labels), "text": pa.array(texts)}), sink, row_group_size=4)
        return sink.getvalue()
    text = {
        "txt": lambda: "".join(f"{text}\n" for text in texts),
        "tsv": lambda: "".join(f"{a}\t{b}\n" for a, b in [("label", "text")] * header + rows),
        "csv": lambda: csv_text([("label", "text")] * header + rows),
        "jsonl": lambda: "".join(json.dumps({"label": a, "text": b}, ensure_ascii=False) + "\n" for a, b in rows),
    }["jsonl" if kind == "ndjson" else kind]()
    return text.encode()


@pytest.fixture
def write(tmp_path):
    def write(name, data):
        path = tmp_path / name
        data = data.encode() if isinstance(data, str) else data
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def fails(path, *parts, columns=None, **options):
    """Check that a file is one InputError that names the file and says what the parts say."""
    with pytest.raises(InputError) as caught:
        list(read_texts(path, **options) if columns is None else read_rows(path, columns, **options))
    for part in (Path(path).name, *parts):
        assert str(part) in str(caught.value)


def is_open(path):
    for descriptor in (int(entry.name) for entry in Path("/dev/fd").iterdir()):
        with suppress(OSError):  # the folder itself was open while it was listed
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return True
    return False


# --- the same rows from every format


KINDS = [f"{kind}{zipped}" for kind in ("csv", "tsv", "jsonl", "ndjson") for zipped in ("", ".gz")] + ["parquet"]


@pytest.mark.parametrize("ending", KINDS)
def test_every_format_gives_the_same_rows(write, ending):
    kind = ending.removesuffix(".gz")
    labels, texts = (LABELS, LINES) if kind == "tsv" else (RICH_LABELS, RICH_LINES)
    path = write(f"a.{ending}", content(kind, labels, texts))
    assert list(read_rows(path, ["label", "text"])) == list(zip(labels, texts, strict=True))
    assert list(read_rows(str(path), [1, "label", "1"])) == list(zip(texts, labels, texts, strict=True))
    assert list(read_texts(path)) == texts
    assert list(read_texts(path, text_column="label")) == labels


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "A.TXT", "A.Txt.GZ"])
def test_txt_is_one_document_a_line(tmp_path, name):
    data = content("txt", LINES, LINES)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.lower().endswith("gz") else data)
    assert list(read_texts(tmp_path / name)) == LINES
    assert list(read_rows(tmp_path / name, ["text", 0])) == [(line, line) for line in LINES]


@pytest.mark.parametrize("zipped", ["", ".gz"])
@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_without_a_header_columns_are_positions(write, kind, zipped):
    path = write(f"a.{kind}{zipped}", content(kind, LABELS, LINES, header=False))
    expected = list(zip(LINES, LABELS, strict=True))
    assert list(read_rows(path, [1, 0], header=False)) == expected
    assert list(read_rows(path, ["1", "0"], header=False)) == expected
    fails(path, "no column 'text'", "'0', '1'", columns=["text"], header=False)


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "jsonl"])
def test_byte_order_mark_and_windows_line_ends_are_no_part_of_the_text(write, kind):
    data = content(kind, ["x", "y"], ["one", "two"]).replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert list(read_texts(write(f"a.{kind}", b"\xef\xbb\xbf" + data))) == ["one", "two"]


def test_last_line_needs_no_end(write):
    assert list(read_texts(write("a.txt", "one\ntwo"))) == ["one", "two"]
    assert list(read_texts(write("b.txt", "one\n\n\n"))) == ["one", "", ""]


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


@given(st.lists(st.tuples(st.text(characters), st.text(characters)), min_size=1))
def test_csv_round_trip(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(csv_text([("text", "label"), *rows]).encode())
    assert list(read_rows(path, ["text", "label"])) == rows


@given(st.lists(st.tuples(*[st.none() | st.text(characters)] * 2), min_size=1), st.booleans())
def test_jsonl_round_trip(tmp_path_factory, rows, ascii_only):
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    lines = [json.dumps({"text": text, "label": label}, ensure_ascii=ascii_only) for text, label in rows]
    path.write_bytes("\n".join(lines).encode())
    assert list(read_rows(path, ["text", "label"])) == rows


# --- choosing columns


def test_text_column_is_the_one_named_text_or_else_the_only_one(write):
    assert list(read_texts(write("a.csv", "id,text\n1,x\n"))) == ["x"]
    assert list(read_texts(write("b.csv", "body\nx\n"))) == ["x"]
    assert list(read_texts(write("c.jsonl", '{"body": "x"}\n'))) == ["x"]
    assert list(read_texts(write("d.tsv", "x\ny\n"), header=False)) == ["x", "y"]
    for name, data in [("e.csv", "id,body\n1,x\n"), ("f.jsonl", '{"id": 1, "body": "x"}\n')]:
        fails(write(name, data), "'id', 'body'", "text_column=", "--text-column")


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_unknown_column_lists_the_columns_and_suggests_one(write, kind):
    path = write(f"a.{kind}", content(kind, ["x"], ["one"]))
    fails(path, "no column 'lable'", "'label', 'text'", "Did you mean 'label'?", columns=["text", "lable"])
    fails(path, "no column 'TEXT'", "Did you mean 'text'?", text_column="TEXT")
    for wrong in (2, -1, "2", "-1", "9" * 5000):
        fails(path, "no column", "'label', 'text'", columns=[wrong])


def test_unknown_column_of_a_wide_file_lists_twenty(write):
    path = write("a.csv", ",".join(f"c{i}" for i in range(30)) + "\n" + "," * 29 + "\n")
    fails(path, "'c19' and 10 more", columns=["zzz"])
    fails(write("b.csv", "x" * 10_000 + ",y\n1,2\n"), "xxx…", columns=["zzz"])


def test_a_name_of_digits_is_a_name_before_it_is_a_position(write):
    path = write("a.csv", "1,0\nx,y\n")
    assert list(read_rows(path, ["0", 0])) == [("y", "x")]


def test_a_name_that_occurs_twice_needs_a_position(write):
    path = write("a.csv", "text,text\nx,y\n")
    fails(path, "2 columns 'text'", "position", columns=["text"])
    assert list(read_rows(path, [1])) == [("y",)]


def test_no_columns_is_an_error(write):
    fails(write("a.txt", "x\n"), "No column", columns=[])


# --- odd rows


@pytest.mark.parametrize(("kind", "data"), [("csv", 'a,text\n1,"x\ny"\n\n3\n'), ("tsv", "a\ttext\n1\tx\n2\ty\n\n3\n")])
def test_short_row_names_its_line_and_blank_line_is_no_row(write, kind, data):
    path = write(f"a.{kind}", data)
    fails(path, "line 5", "1 of 2 fields", "'text'")
    assert [row[0] for row in read_rows(path, ["a"])][-1] == "3"


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_blank_line_in_a_single_column_is_an_empty_document(write, kind):
    assert list(read_texts(write(f"a.{kind}", "text\nx\n\ny\n"))) == ["x", "", "y"]


@pytest.mark.parametrize(("kind", "data"), [("csv", "a,text\n1,x, y\n2,z\n"), ("tsv", "a\ttext\n1\tx\ty\n2\tz\n")])
def test_extra_fields_are_reported(write, kind, data):
    path = write(f"a.{kind}", data)
    with pytest.warns(WGCNWarning, match=rf"^1 row of .*a\.{kind} had more fields") as caught:
        assert list(read_texts(path)) == ["x", "z"]
    assert len(caught) == 1


def test_json_values_become_plain_text(write):
    long = "1" * 5000
    values = ["1", "-2.50", "1e3", "true", "false", "null", '"1"', "NaN", '"NaN"', "Infinity", long]
    path = write("a.jsonl", "".join(f'{{"v": {value}}}\n\n' for value in values) + '{"w": 1}\n \t\n')
    expected = ["1", "-2.5", "1000.0", "true", "false", None, "1", None, "NaN", "Infinity", long, None]
    assert [value for (value,) in read_rows(path, ["v"])] == expected


@pytest.mark.parametrize(("value", "kind"), [("[1]", "a list"), ('{"a": 1}', "an object")])
def test_nested_json_value_names_line_and_column(write, value, kind):
    path = write("a.jsonl", f'{{"u": 1}}\n\n{{"u": 1, "v": {value}}}\n')
    fails(path, "line 3", "'v'", kind, columns=["v"])
    assert list(read_rows(path, ["u"])) == [("1",), ("1",)]
    early = write("b.jsonl", f'{{"v": {value}}}\n{{}}\n{{"w": 1}}\n')  # the search for w has gone on to line 3
    fails(early, "line 1:", "'v'", columns=["v", "w"])


def test_json_key_may_first_appear_in_a_later_row(write):
    data = '{"text": "x"}\n' * 999 + '{"text": "y", "label": "a"}\n'
    assert list(read_rows(write("a.jsonl", data), ["label"]))[-2:] == [(None,), ("a",)]
    fails(write("b.jsonl", '{"text": "x"}\n' + data), "no column 'label'", "1000 rows", columns=["label"])


def test_missing_texts_are_empty_and_counted_once(write):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": ["x", None, None]}), sink)
    for name, data in [("a.jsonl", '{"text": "x"}\n{"text": null}\n{}\n'), ("a.parquet", sink.getvalue())]:
        path = write(name, data)
        with pytest.warns(WGCNWarning, match=rf"^2 rows of .*{name} had no text") as caught:
            assert list(read_texts(path)) == ["x", "", ""]
        assert len(caught) == 1
        assert list(read_rows(path, ["text"])) == [("x",), (None,), (None,)]


def test_parquet_values_become_plain_text(write):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "int": pa.array([1, None]),
        "float": pa.array([0.5, float("nan")]),
        "bool": pa.array([True, None]),
        "category": pa.array(["a", None]).dictionary_encode(),
        "bytes": pa.array(["é".encode(), None]),
        "view": pa.array(["v", None], pa.large_string()),
        "list": pa.array([[1], None]),
        "a.b": pa.array(["dotted", None]),
        "a": pa.array(["plain", None]),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    path = write("a.parquet", sink.getvalue())
    names = ["int", "float", "bool", "category", "bytes", "view", "a", "a.b"]
    expected = ("1", "0.5", "true", "a", "é", "v", "plain", "dotted")
    assert list(read_rows(path, names)) == [expected, (None,) * 8]
    fails(path, "row 1", "'list' holds a list", columns=["list"])


# --- delimiters


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_delimiter_of_csv_is_found_and_told(write, delimiter):
    rows = [("label", "text"), ("a", f'one, two{delimiter} "three"'), ("b", "2,5, or more, or\nless"), ("c", "plain")]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    path = write("a.csv", out.getvalue())
    with pytest.warns(WGCNWarning, match=r"a\.csv is read with \w+.*--delimiter") as caught:
        assert list(read_rows(path, ["label", "text"])) == rows[1:]
    assert len(caught) == 1
    assert list(read_rows(path, ["label", "text"], delimiter=delimiter)) == rows[1:]  # told by the user: no note


@pytest.mark.parametrize(
    "data",
    [
        "id,text\n1,a; b; c\n2,d; e\n",
        "id;old,text\n1;x,a; b\n2,c\n",
        "text\none; two\nthree\n",
        "text; or not\none\ntwo\nthree\n",
        'text\n"a;b"\n',
    ],
)
def test_commas_stay_where_nothing_else_fits_better(write, data):
    path = write("a.csv", data)
    assert list(read_texts(path, text_column=-1 % len(data.splitlines()[0].split(",")))) == list(
        read_texts(path, text_column=-1 % len(data.splitlines()[0].split(",")), delimiter=",")
    )


def test_decimal_commas_and_commas_in_a_header_do_not_hide_semicolons(write):
    path = write("a.csv", "text;price, net;label\nx;1,5;a\ny;2,5;b\n")
    with pytest.warns(WGCNWarning, match="semicolons"):
        assert list(read_rows(path, ["label", "price, net"])) == [("a", "1,5"), ("b", "2,5")]


def test_delimiter_is_found_although_the_head_ends_inside_a_row(write):
    path = write("a.csv", "text;label\n" + '"long; text, with ""both"";";a\n' * 5000)
    with pytest.warns(WGCNWarning, match="semicolons"):
        assert set(read_rows(path, ["text", "label"])) == {('long; text, with "both";', "a")}


def test_delimiter_can_be_said(write):
    path = write("a.csv", "text~label\nx~a\n")
    assert list(read_rows(path, ["label"], delimiter="~")) == [("a",)]
    assert list(read_rows(write("b.tsv", "text;label\nx;a\n"), ["label"], delimiter=";")) == [("a",)]
    for tab in ("\t", "\\t", "tab"):
        assert list(read_rows(write("c.csv", "text\tlabel\nx\ta\n"), ["label"], delimiter=tab)) == [("a",)]
    for wrong in ("", ";;", '"', "\n"):
        with pytest.raises(InputError, match="The delimiter is one character"):
            read_rows(path, ["label"], delimiter=wrong)


# --- encodings


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize(
    ("encoding", "note"), [("cp1252", "Windows-1252"), ("latin-1", "Windows-1252"), ("utf-16", "UTF-16")]
)
def test_encoding_is_found_and_told(write, kind, encoding, note):
    texts = ["Straße, Größe; naïve", "déjà vu à Noël", "ASCII"]
    path = write(f"a.{kind}", content(kind, ["ä", "b", "c"], texts).decode().encode(encoding))
    with pytest.warns(WGCNWarning, match=rf"a\.{kind} is .*read as {note}.*--encoding") as caught:
        assert list(read_texts(path)) == texts
    assert len(caught) == 1
    assert list(read_texts(path, encoding=encoding)) == texts  # told by the user: no note


def test_typographic_quotes_of_windows_are_kept(write):
    path = write("a.txt", "“Don’t” – 5 €\n".encode("cp1252"))
    with pytest.warns(WGCNWarning, match="Windows-1252"):
        assert list(read_texts(path)) == ["“Don’t” – 5 €"]


@pytest.mark.parametrize(("encoding", "text"), [("cp1251", "Привет мир"), ("gbk", "你好世界"), ("cp1253", "καλημέρα")])
def test_other_encodings_are_not_taken_for_western_ones_and_can_be_said(write, encoding, text):
    path = write("a.txt", text.encode(encoding))
    with pytest.warns(WGCNWarning, match=r"not UTF-8.*--encoding"):
        assert "\ufffd" in "".join(read_texts(path))
    assert list(read_texts(path, encoding=encoding)) == [text]


def test_a_character_cut_by_the_end_of_the_head_is_no_broken_text(write):
    for shift in range(4):
        text = "x" * (2**16 - 4 + shift) + "😀 é"
        assert list(read_texts(write("a.txt", text))) == [text]


def test_encoding_that_does_not_fit_is_an_error(write):
    path = write("a.txt", "x\n")
    for wrong in ("no-such", "rot13", "base64", "\0"):
        with pytest.raises(InputError, match="no encoding"):
            read_texts(path, encoding=wrong)
    fails(write("b.txt", b"\xff\xfex\x00\x00\xd8y"), "not whole utf-16", encoding="utf-16")
    fails(write("c.txt", "one\ntwo\n"), "not whole utf-16", encoding="utf-16")
    assert list(read_texts(write("d.txt", "ä".encode("utf-16-le")), encoding="UTF-16LE")) == ["ä"]


# --- JSON arrays, dotted fields, lists


def test_dotted_column_is_a_path_and_a_key_with_the_dot_wins(write):
    rows = [{"data": {"body": "a", "x.y": 1}}, {"data.body": "b", "data": {"body": "no"}}, {"data": 5}]
    path = write("a.jsonl", "\n".join(map(json.dumps, rows)))
    assert list(read_rows(path, ["data.body"])) == [("a",), ("b",), (None,)]
    assert list(read_rows(path, ["data.x.y"])) == [("1",), (None,), (None,)]
    fails(path, "no column 'data.title'", "'data'", columns=["data.title"])
    later = [{"label": "a"}, {"data": {"body": "x"}}, {"label": "b", "data": {"body": None}}]
    path = write("b.jsonl", "\n".join(map(json.dumps, later)))
    assert list(read_rows(path, ["data.body", "label"])) == [(None, "a"), ("x", None), (None, "b")]


def test_lists_are_given_only_where_they_are_asked_for(write):
    path = write(
        "a.jsonl", '{"text": "x", "label": ["a", 1, null, true]}\n{"text": "y", "label": "b"}\n{"label": []}\n'
    )
    expected = [(["a", "1", "true"], "x"), ("b", "y"), ([], None)]
    assert list(read_rows(path, ["label", "text"], lists=["label"])) == expected
    assert list(read_rows(path, ["1", "text"], lists=["1"])) == expected
    fails(path, "line 1", "a list", columns=["label", "text"], lists=["text"])
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    pq.write_table(pa.table({"label": [["a", "b"], None]}), sink)
    assert list(read_rows(write("a.parquet", sink.getvalue()), ["label"], lists=[0])) == [(["a", "b"],), (None,)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"n": 1, "tags": ["x"], "data": rows}])
def test_json_array_of_objects(write, indent, wrap):
    rows = [{"text": "one\ntwo", "label": 1}, {"text": "ü", "meta": {"a": [1]}}, {}]
    for name in ("a.json", "a.json.gz"):
        path = write(name, json.dumps(wrap(rows), indent=indent))
        assert list(read_rows(path, ["text", "label"])) == [("one\ntwo", "1"), ("ü", None), (None, None)]


def test_json_file_with_one_object_per_line_or_one_object(write):
    path = write("a.json", '\n{"text": "x", "label": 1}\n\n{"text": "y"}\n')
    assert list(read_texts(path)) == ["x", "y"]
    assert list(read_texts(write("b.json", '{"text": "x"}'))) == ["x"]
    assert list(read_texts(write("c.json", '{\n"text": "x"\n}\n'))) == ["x"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("[1, 2]", "not an object"),
        ('[{"text": "x"}, 5]', "row 2"),
        ('{"a": [{"text": "x"}], "b": [{"text": "y"}]}', "several"),
        ('"x"', "no array of objects"),
        ('[{"text": "x"}', "not valid JSON"),
        ("[]", "no rows"),
        ("[" * 100_000, "nested more than 100 levels"),
    ],
)
def test_json_that_is_no_table(write, data, says):
    fails(write("a.json", data), says)


def test_json_file_is_limited(write, monkeypatch):
    monkeypatch.setattr("wgcn.io.source.MAX_CHARACTERS", 1000)
    rows = [json.dumps({"text": "x" * 50})] * 30
    fails(write("a.json", "[" + ",\n".join(rows) + "]"), "longer than 1000", ".jsonl")


# --- Excel


def workbook(rows, **cells):
    openpyxl = pytest.importorskip("openpyxl")
    book, sink = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    for place, value in cells.items():
        book.active[place] = value
    book.create_sheet("second").append(["another"])
    book.save(sink)
    return sink.getvalue()


def test_first_sheet_of_a_workbook(write):
    rows = [["id", "text", "label"], [1, "one\ntwo", True], [None, None, None], [2.5, "x, y; z"], [3, None, "c"]]
    expected = [("1", "one\ntwo", "true"), ("2.5", "x, y; z", None), ("3", None, "c")]
    for name in ("a.xlsx", "A.XLSX", "a.xlsx.gz"):
        assert list(read_rows(write(name, workbook(rows)), ["id", "text", "label"])) == expected
    assert list(read_rows(write("b.xlsx", workbook([["x", "y"]])), [1], header=False)) == [("y",)]
    assert list(read_rows(write("b.xlsx", workbook([[1, 0], ["x", "y"]])), ["0", "1"])) == [("y", "x")]
    fails(write("c.xlsx", workbook([["id", "text"]])), "no rows")
    fails(write("d.xlsx", workbook([])), "no rows")
    with pytest.warns(WGCNWarning, match="1 row .*more fields"):
        assert list(read_rows(write("e.xlsx", workbook(rows, E3="far")), ["id"]))[1] == (None,)


def test_a_formula_that_was_never_calculated_is_read_as_its_text(write):
    rows = [["text", "label", "other"], ["=good wine", "a", 1], ["fine", "=B2", 2], ["x", None, "=1+1"]]
    path = write("a.xlsx", workbook(rows))
    with pytest.warns(WGCNWarning, match=r"^2 rows of .*a\.xlsx held a formula without a value") as caught:
        assert list(read_rows(path, ["text", "label"])) == [("=good wine", "a"), ("fine", "=B2"), ("x", None)]
    assert len(caught) == 1
    with pytest.warns(WGCNWarning, match=r"^1 row of .*a\.xlsx.gz held a formula"):
        assert list(read_texts(write("a.xlsx.gz", workbook(rows)))) == ["=good wine", "fine", "x"]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("<f>B2</f><v>7</v>", "7"),
        ('<f t="shared" si="0"/><v>7</v>', "7"),
        ("<f>B2</f><v></v>", "=B2"),
        ("<f>B2</f>", "=B2"),
        ("<f>B2</f>\n<v />", "=B2"),
        ('<f t="array" ref="A2">B2</f><v/>', "=B2"),
    ],
)
def test_formulas_with_and_without_a_value(write, cell, value):
    sink = io.BytesIO(workbook([["text", "b"], ["REPLACED", "b"]]))
    changed = io.BytesIO()
    with zipfile.ZipFile(sink) as old, zipfile.ZipFile(changed, "w") as new:
        for part in old.namelist():
            data = re.sub(rb'<c r="A2"[^>]*>.*?</c>', f'<c r="A2">{cell}</c>'.encode(), old.read(part))
            # A text that a formula has calculated to nothing is no formula without a value.
            data = re.sub(rb'<c r="B2"[^>]*>.*?</c>', b'<c r="B2" t="str"><f>""</f><v></v></c>', data)
            new.writestr(part, data)
    path = write("a.xlsx", changed.getvalue())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WGCNWarning)
        assert list(read_rows(path, ["text", "b"])) == [(value, None)]


def test_damaged_or_oversized_workbook(write, monkeypatch):
    data = workbook([["text"], ["x"]])
    fails(write("a.xlsx", "text\nx\n"), "is not xlsx")
    for broken in (data[:-30], data[:200], data[:400] + b"\xff" * 200 + data[600:], b"PK\x03\x04", gzip.compress(b"")):
        fails(write("a.xlsx", broken), "xlsx")
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as parts:
        parts.writestr("readme.txt", "no workbook")
    fails(write("b.xlsx", other.getvalue()), "damaged")
    with monkeypatch.context() as patched:
        patched.setattr("wgcn.io.formats.MAX_UNPACKED", 1000)
        fails(write("c.xlsx", data), "unpacks to more than")
    monkeypatch.setattr("wgcn.io.formats.MAX_SHEET_ROWS", 100)
    fails(write("d.xlsx", workbook([["text"], ["x"]], A200="far")), "1,048,576 rows")


def test_excel_without_openpyxl_says_what_to_install(write, monkeypatch):
    path = write("a.xlsx", b"PK\x03\x04")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"Reading Excel files .*\.\[excel\]"):
        read_texts(path)


# --- standard input


def test_standard_input_needs_a_format(write, monkeypatch):
    for stream in (io.BytesIO(b"label;text\na;x\n"), Unseekable(b"label;text\na;x\n")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        with pytest.warns(WGCNWarning, match="^Standard input is read with semicolons"):
            assert list(read_rows("-", ["text", "label"], format="csv")) == [("x", "a")]
    with pytest.raises(InputError, match=r"Standard input has no ending.*--format"):
        read_texts("-")
    with pytest.raises(InputError, match="Standard input has the format 'doc'"):
        read_texts("-", format="doc")


def test_format_is_said_where_the_name_does_not(write):
    assert list(read_rows(write("a.dat", "label,text\na,x\n"), ["text"], format="csv")) == [("x",)]
    assert list(read_texts(write("b.txt", '{"text": "x"}\n'), format=".JSONL")) == ["x"]


class Unseekable(io.BytesIO):
    """A pipe."""

    def seekable(self):
        return False


@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl"])
def test_text_out_of_a_pipe_is_streamed(monkeypatch, kind):
    monkeypatch.setattr("tempfile.TemporaryFile", None)
    numbers = [str(number) for number in range(50_000)]
    pipe = Unseekable(content(kind, numbers, numbers))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(pipe))
    rows = read_texts("-", format=kind)
    assert list(islice(rows, 10)) == numbers[:10]
    assert 0 < pipe.tell() < len(pipe.getvalue())
    assert list(rows) == numbers[10:]


@pytest.mark.parametrize("kind", ["parquet", "xlsx"])
def test_what_is_read_from_its_end_is_copied_out_of_a_pipe_up_to_a_limit(monkeypatch, kind):
    data = workbook([["text"], ["x"]]) if kind == "xlsx" else content(kind, ["a"], ["x"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Unseekable(data)))
    assert list(read_texts("-", format=kind)) == ["x"]
    monkeypatch.setattr("wgcn.io.source.MAX_UNPACKED", len(data) - 1)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Unseekable(data)))
    with pytest.raises(InputError, match=rf"Standard input holds more than 0 MiB of {kind}.*plain file"):
        read_texts("-", format=kind)


def test_named_pipe_is_read_as_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=["label,text\na,x\n"])
    writer.start()
    assert list(read_texts(tmp_path / "pipe", format="csv")) == ["x"]
    writer.join()


def test_endless_device_is_one_error(monkeypatch):
    monkeypatch.setattr("wgcn.io.source.MAX_CHARACTERS", 10_000)
    fails("/dev/zero", "binary file", format="csv")
    fails("/dev/zero", "not parquet", format="parquet")
    fails("/dev/zero", "longer than 10000 characters", format="txt", encoding="utf-16-le")


# --- broken text


@pytest.mark.parametrize("zipped", ["", ".gz"])
@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "jsonl"])
def test_broken_utf8_is_replaced_and_rows_with_it_are_counted(write, kind, zipped):
    # One row with two broken places, of which one is a cut-off sequence; U+FFFD that was there before does not count.
    texts = ["fine", "caf~ and ^", "\ufffd", "again ~", "mostly UTF-8: naïve, Zoë, Größe"]
    data = content(kind, ["a", "b", "~", "d", "ééé"], texts).replace(b"~", b"\xe9").replace(b"^", b"\xe2\x82")
    path = write(f"a.{kind}{zipped}", data)
    with pytest.warns(
        WGCNWarning, match=r"^\d rows? of .*a\.\w+(\.gz)? held text that is not UTF-8.*--encoding"
    ) as caught:
        found = list(read_texts(path))
    assert found[:4] == ["fine", "caf\ufffd and \ufffd\ufffd", "\ufffd", "again \ufffd"]
    assert [str(warning.message)[0] for warning in caught] == ["2" if kind == "txt" else "3"]


def test_parquet_with_text_that_is_not_utf8_is_damaged(write):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    binary = pa.array([b"caf\xe9"], pa.binary())
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": pa.Array.from_buffers(pa.string(), 1, binary.buffers())}), sink)
    fails(write("a.parquet", sink.getvalue()), "damaged", "utf-8")


def test_multi_line_csv_row_counts_once_as_broken(write):
    path = write("a.csv", b'text\n"x\xff\ny\xff"\nz\n')
    with pytest.warns(WGCNWarning, match="^1 row "):
        assert list(read_texts(path, encoding="utf-8")) == ["x\ufffd\ny\ufffd", "z"]


def test_lone_surrogate_in_json_is_replaced_and_counted(write):
    path = write("a.jsonl", '{"text": "\\ud83d\\ude00"}\n{"text": "\\udcc3\\udca9 \\ud800"}\n')
    with pytest.warns(WGCNWarning, match="^1 row "):
        assert list(read_texts(path)) == ["😀", "\ufffd\ufffd \ufffd"]


@pytest.mark.parametrize(
    ("kind", "data"), [("csv", b"t\xff,b\nx,y\n"), ("tsv", b"t\xff\tb\nx\ty\n"), ("jsonl", b'{"t\xff": "x"}\n')]
)
def test_broken_column_name_is_replaced(write, kind, data):
    with pytest.warns(WGCNWarning, match="^1 row "):
        assert list(read_rows(write(f"a.{kind}", data), ["t\ufffd"], encoding="utf-8")) == [("x",)]


# --- files that cannot be used


def test_missing_file_suggests_neighbours(tmp_path, write):
    write("train.tsv.gz", "x\n")
    fails(tmp_path / "trian.tsv.gz", "no file", "Did you mean train.tsv.gz?")
    fails(tmp_path / "none" / "a.csv", "no file", "Check the path")
    fails(tmp_path / "train.tsv.gz" / "a.csv", "no file")


def test_folder(tmp_path):
    (tmp_path / "data.csv").mkdir()
    fails(tmp_path / "data.csv", "is a folder", "expected a file")


@pytest.mark.parametrize("name", ["a.docx", "a", "a.gz", "a.csv.bz2", ".csv.zip"])
def test_unknown_ending_lists_the_known_ones(tmp_path, name):
    (tmp_path / name).write_bytes(b"x")
    fails(tmp_path / name, ".txt, .csv, .tsv, .jsonl, .ndjson, .json, .parquet, .xlsx", ".gz", "--format")


def test_permission_denied(write, monkeypatch):
    path = write("a.csv", "text\nx\n")

    def deny(self, **options):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:  # root may read anything, so the mode of the file proves nothing
        patched.setattr(Path, "stat", deny)
        with pytest.raises(InputError, match="Permission denied"):
            read_texts(path)


@pytest.mark.parametrize("ending", ["txt", "txt.gz", *KINDS])
def test_file_without_rows(write, ending):
    fails(write(f"a.{ending}", b""), "has no rows", "empty")
    if (kind := ending.removesuffix(".gz")) in ("csv", "tsv", "parquet"):
        fails(write(f"b.{ending}", content(kind, [], [])), "has no rows")
    else:
        fails(write(f"b.{ending}", b"\xef\xbb\xbf"), "has no rows")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (gzip.compress(b"text\nx\n", mtime=0), "gzip; does the name lack .gz?"),
        (b"PK\x03\x04rest", ".xlsx"),
        (b"\xd0\xcf\x11\xe0rest", "old Excel"),
        (b"text\nx\0y\n", "NUL"),
        (b"text\n" + b"x" * 60_000 + b"\0", "NUL"),
    ],
)
@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "jsonl", "csv.gz"])
def test_binary_file_says_what_it_looks_like(write, kind, data, says):
    fails(write(f"a.{kind}", data), "looks like", says)


def test_parquet_under_another_name_and_the_reverse(write):
    fails(write("a.csv", content("parquet", ["a"], ["x"])), "looks like parquet")
    fails(write("a.parquet", "text\nx\n"), "not parquet")


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "jsonl"])
def test_damaged_gzip(tmp_path, kind):
    path = tmp_path / f"a.{kind}.gz"
    numbers = [str(number) for number in range(5000)]
    whole = gzip.compress(content(kind, numbers, numbers))
    bad_block = whole[:10] + b"\xff" + whole[11:]
    bad_sum = whole[:-8] + b"\xff" * 8
    for data in (whole[:-1], whole[: len(whole) // 2], whole[:5], bad_block, bad_sum, whole + b"junk", b"no gzip"):
        path.write_bytes(data)
        fails(path, "not a whole gzip file", "fetch it again")


def test_zipped_parquet_is_not_unpacked(write, monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryFile", None)
    fails(write("a.parquet.gz", content("parquet", ["a"], ["x"])), "compressed in itself", "Unpack it")
    fails(write("b.gz", content("parquet", ["a"], ["x"])), "compressed in itself", format="parquet")


def test_damaged_parquet(write):
    data = content("parquet", LABELS, LINES)
    middle = len(data) // 4
    for broken in (data[:-1], data[: len(data) // 2], b"PAR1", data[:middle] + b"\xff" * 40 + data[middle + 40 :]):
        fails(write("a.parquet", broken), "damaged")


@pytest.mark.parametrize("line", ["{", "nonsense", '{"text": "x"} {"text": "y"}', "[" * 99, '{"a":' * 99])
def test_invalid_json_names_the_line(write, line):
    fails(write("a.jsonl", f'{{"text": "x"}}\n{line}\n'), "line 2", "not valid JSON")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('{"text": "x", "y": ' + "[" * 100 + "]" * 100 + "}", "nested more than 100 levels"),
        ("[" * 200_000, "nested more than 100 levels"),
        ('{"a":' * 200_000, "nested more than 100 levels"),
        ('{"text": "x", "y": [' + "[]," * 700_000 + "1]}", "more than 1,048,576 values"),
        ('{"text": "x", "y": [' + "{}," * 700_000 + "1]}", "more than 1,048,576 values"),
        ('{"text": "x", "y": [' + "1," * 1_100_000 + "1]}", "more than 1,048,576 values"),
    ],
    ids=["deep", "open lists", "open objects", "lists", "objects", "numbers"],
)
def test_json_of_many_values_or_levels_is_refused_before_it_is_built(write, monkeypatch, row, says):
    path = write("a.jsonl.gz", f'{{"text": "x"}}\n{row}\n')
    loads = json.loads

    def small(text, **how):
        assert len(text) < 100
        return loads(text, **how)

    monkeypatch.setattr(json, "loads", small)
    fails(path, "line 2", says)


def test_what_strings_of_json_hold_is_no_value(write):
    text = '[{,\\"' * 500_000
    assert list(read_texts(write("a.jsonl", json.dumps({"text": text}) + "\n"))) == [text]
    deep = '{"text": "x", "y": ' + "[" * 99 + "]" * 99 + "}"
    assert list(read_texts(write("b.jsonl", deep))) == ["x"]


def test_a_json_array_may_have_more_values_than_a_row(write):
    rows = [{"text": "x", "n": [0] * 100}] * 11_000 + [{"text": "x", "late": "x"}]
    assert len(list(read_texts(write("a.json", json.dumps(rows))))) == 11_001
    late = json.dumps([{"id": "x" * 100_000}] * 100 + [{"text": "late"}])  # all of it is in memory, so all is searched
    assert list(read_rows(write("b.json", late), ["text"]))[-1] == ("late",)
    fails(write("c.json", "[" + "[]," * 2_200_000 + "1]"), "more than 4,194,304 values", ".jsonl")


@pytest.mark.parametrize(("kind", "separator"), [("csv", ","), ("tsv", "\t")])
def test_a_row_of_many_fields_is_refused_before_it_is_cut(write, kind, separator):
    head, row = f"text{separator}b\n", "x" + separator * 4_200_000
    fails(write(f"a.{kind}.gz", f"{head}x{separator}y\n{row}\n"), "line 3", "more than 4,194,304 values")


def test_a_wide_header_costs_nothing_in_short_rows(write):
    """Columns that are not asked for are not made up for each row; those that are all kept have a limit."""
    path = write("a.csv.gz", "text" + ",c" * 200_000 + "\n" + "x\n" * 5)
    rows = read_rows(path, ["text"])
    tracemalloc.start()
    assert list(rows) == [("x",)] * 5
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    with pytest.raises(InputError, match=r"has 200,001 columns, of which 16,384 can be kept"):
        read_batches(str(path), keep=True)


def sheet(rows, more=""):
    """Return a workbook with the XML of rows in its first sheet, and a part with more XML."""
    sink = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook([["text"]]))) as old,
        zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            begin, end, rest = old.read(name).decode().partition("</sheetData>")
            new.writestr(name, begin + rows * name.endswith("sheet1.xml") + end + rest)
        new.writestr("xl/more.xml", more)
    return sink.getvalue()


def test_cells_far_to_the_right_are_refused_once_they_are_too_many(write):
    def far(n):
        return "".join(
            f'<row r="{i}"><c r="A{i}"><v>1</v></c><c r="XFD{i}"><v>2</v></c></row>' for i in range(2, n + 2)
        )

    with pytest.warns(WGCNWarning, match="5 rows .*more fields"):
        assert list(read_texts(write("a.xlsx", sheet(far(5))))) == ["1"] * 5
    fails(write("b.xlsx", sheet(far(5000))), "row 4097", "reach over 67,108,864 cells", "save it as .csv")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("<row>" + "<c/>" * 600_000 + "</row>", "524,288 tags in one row"),
        ("<row><c/></row>" * 900_000, " tags. Save"),
        ("<x/>" * 600_000, "524,288 tags in one row or part"),
    ],
    ids=["row", "rows", "others"],
)
def test_a_small_workbook_of_very_many_tags_is_refused_before_it_is_parsed(write, monkeypatch, rows, says):
    openpyxl = pytest.importorskip("openpyxl")
    path = write("a.xlsx", sheet(rows))
    monkeypatch.setattr(openpyxl, "load_workbook", None)
    fails(path, "no plain workbook", says, "Save it as .csv")


def test_other_parts_of_a_workbook_are_limited(write):
    row = "<row><c><v>7</v></c></row>"
    many = "<si><t>text</t></si>" * 200_000  # shared texts are read one after the other
    assert list(read_texts(write("a.xlsx", sheet(row, many)))) == ["7"]
    fails(write("b.xlsx", sheet(row, "<si>" + "<r/>" * 600_000 + "</si>")), "524,288 tags")
    fails(write("c.xlsx", sheet(row, '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><x>&a;</x>')), "defines entities")


@pytest.mark.parametrize("line", ["[1]", '"x"', "1", "null"])
def test_json_line_must_be_an_object(write, line):
    fails(write("a.jsonl", f'{{"text": "x"}}\n{line}\n'), "line 2", line, "not an object")


@pytest.mark.parametrize("kind", ["txt", "tsv", "jsonl", "csv"])
def test_overlong_line_is_an_error_and_not_a_row(write, kind, monkeypatch):
    monkeypatch.setattr("wgcn.io.source.MAX_CHARACTERS", 1000)
    fits = content(kind, ["a", "b"], ["x", "y" * 900])
    assert list(read_texts(write(f"a.{kind}", fits))) == ["x", "y" * 900]
    fails(write(f"b.{kind}", content(kind, ["a", "b"], ["x", "y" * 1100])), "line ", "longer than 1000 characters")


def test_overlong_row_of_parquet_is_an_error_and_not_a_row(write, monkeypatch):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for module in ("source", "formats"):
        monkeypatch.setattr(f"wgcn.io.{module}.MAX_CHARACTERS", 1000)
    assert list(read_texts(write("a.parquet", content("parquet", "ab", ["x", "y" * 900])))) == ["x", "y" * 900]
    rows = read_texts(write("b.parquet", content("parquet", "abc", ["x", "y" * 1100, "z"])))
    assert next(rows) == "x"
    with pytest.raises(InputError, match="row 2: the row is longer than 1000 characters"):
        next(rows)
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": ["x"], "label": [list(range(500))]}), sink)
    path = write("c.parquet", sink.getvalue())
    assert list(read_texts(path)) == ["x"]
    fails(path, "longer than 1000", columns=["text", "label"], lists=["label"])


@pytest.mark.parametrize("as_dictionary", [False, True])
def test_few_bytes_of_parquet_do_not_take_much_memory(write, monkeypatch, as_dictionary):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for module in ("source", "formats"):
        monkeypatch.setattr(f"wgcn.io.{module}.MAX_CHARACTERS", 2**17)
    monkeypatch.setattr("wgcn.io.formats.BATCH_BYTES", 2**20)
    texts, sink = pa.array(["x" * 2**16] * 2048), io.BytesIO()  # 128 MiB
    table = pa.table({"text": texts.dictionary_encode() if as_dictionary else texts})
    pq.write_table(table, sink, compression="zstd", use_dictionary=True, store_schema=False)
    path, held = write("a.parquet", sink.getvalue()), pa.total_allocated_bytes()
    assert path.stat().st_size < 10_000
    tracemalloc.start()  # sees the texts, not what arrow holds
    try:
        most = max(pa.total_allocated_bytes() for _ in read_texts(path)) - held
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20
    assert most < 16 * 2**20


@pytest.mark.parametrize(
    "rest",
    ['2,"never closed\nand on\n', '2,"never closed\n"quoted",x\n', '2,"\n' + "line\n" * 300, '2,"' + '\n","' * 300],
)
def test_unclosed_quote_names_the_line_where_the_row_began(write, rest, monkeypatch):
    monkeypatch.setattr("wgcn.io.source.MAX_CHARACTERS", 1000)
    fails(write("a.csv", 'a,text\n1,"x\ny"\n' + rest), "line 4", "quote", "never closed")


def test_document_longer_than_the_default_csv_limit_is_read(write):
    assert list(read_texts(write("a.csv", "text\n" + "x" * 200_000 + "\n"))) == ["x" * 200_000]


def test_csv_limit_of_the_process_is_never_lowered(write):
    before = csv.field_size_limit(2**30)
    try:
        assert list(read_texts(write("a.csv", "text\nx\n"))) == ["x"]
        assert csv.field_size_limit() == 2**30
    finally:
        csv.field_size_limit(before)


def test_parquet_without_pyarrow_says_what_to_install(write, monkeypatch):
    path = write("a.parquet", b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"Reading parquet files .*\.\[parquet\]"):
        read_texts(path)


# --- streaming


def test_bad_head_fails_at_the_call_and_bad_row_when_it_is_reached(write):
    with pytest.raises(InputError, match="no column"):
        read_rows(write("a.csv", "a,b\n1,2\n"), ["c"])
    rows = read_rows(write("b.csv", "a,b\n1,2\n3\n"), ["b"])
    assert next(rows) == ("2",)
    with pytest.raises(InputError, match="line 3"):
        next(rows)


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "jsonl"])
def test_only_what_is_asked_for_is_read(tmp_path, kind):
    numbers = [str(number) for number in range(50_000)]
    whole = gzip.compress(content(kind, numbers, numbers))
    path = tmp_path / f"a.{kind}.gz"
    path.write_bytes(whole[:-100])  # reading to the end would be an error
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = read_texts(path)
        assert list(islice(texts, 10)) == numbers[:10]
        texts.close()


@pytest.mark.parametrize("ending", ["txt", "txt.gz", *KINDS])
@pytest.mark.parametrize("taken", [0, 2000])
def test_closing_early_closes_the_file(write, ending, taken):
    numbers = [str(number) for number in range(4000)]
    path = write(f"a.{ending}", content(ending.removesuffix(".gz"), numbers, numbers))
    for rows in (read_rows(path, ["text"]), read_texts(path)):
        assert len(list(islice(rows, taken))) == taken
        assert is_open(path)
        rows.close()
        assert next(rows, None) is None
    assert not is_open(path)


def test_file_is_closed_at_its_end_and_after_an_error(write):
    path = write("a.csv", "a,b\n1,2\n3\n")
    rows = read_rows(path, ["b"])
    with pytest.raises(InputError):
        list(rows)
    assert not is_open(path)
    rows = read_rows(path, ["a"])
    assert list(rows) == [("1",), ("3",)]
    assert not is_open(path)


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "jsonl"])
def test_memory_does_not_grow_with_the_file(write, kind):
    texts = [f"document number {number} " * 20 for number in range(5000)]
    path = write(f"a.{kind}", content(kind, texts, texts))
    assert path.stat().st_size > 2_000_000
    tracemalloc.start()
    try:
        rows = sum(1 for _ in read_texts(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == 5000
    assert peak < 1_000_000


def test_parquet_memory_does_not_grow_with_the_row_group(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"{number:02000d}" for number in range(20_000)]})  # 40 MB
    pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=20_000)
    tracemalloc.start()  # sees what arrow asks of the file, which is Python's
    try:
        rows = sum(1 for _ in read_texts(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == 20_000
    assert peak < 20_000_000
