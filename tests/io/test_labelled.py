"""Labels out of files: the same from every format."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from wgcn.base.errors import InputError, WGCNWarning
from wgcn.io.read import (
    distinct_columns,
    label_text,
    read_labelled,
    read_labelled_table,
    texts_and_labels,
)


@pytest.mark.filterwarnings("ignore:.*more than 15 digits")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], ["1", "2", "3"]),
        ([1, None, 3], ["1", None, "3"]),  # pandas makes floats of these
        ([0.0, -2.0, 2.5], ["0", "-2", "2.5"]),
        ([True, False, True], ["true", "false", "true"]),
        ([True, None, False], ["true", None, "false"]),
        (["a", None, "True"], ["a", None, "true"]),
        (["1.0", "01", "1.10"], ["1", "01", "1.10"]),
        ([10**16, 2 * 10**17, 3], ["10000000000000000", "200000000000000000", "3"]),
        ([1e16, 1e-7, None], ["10000000000000000", "0.0000001", None]),
        ([1.5e-5, 2.5e22, -0.0], ["0.000015", "25000000000000000000000", "0"]),
    ],
)
def test_a_table_of_pandas_has_the_same_labels_in_every_format(
    tmp_path: Path, values: list[Any], expected: list[str | None]
) -> None:
    pandas = pytest.importorskip("pandas")
    for module in ("pyarrow", "openpyxl"):
        pytest.importorskip(module)
    frame = pandas.DataFrame({"text": ["x", "y", "z"], "label": values})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_json(tmp_path / "a.json", orient="records")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    for path in tmp_path.iterdir():
        assert list(read_labelled(path)) == list(zip("xyz", expected, strict=True)), path.name


def test_numbers_of_single_precision_and_long_ones_are_the_same_text(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"text": ["x", "y"], "label": pandas.Series([0.1, 1e-7], dtype="float32")})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    for path in tmp_path.iterdir():
        assert [label for _, label in read_labelled(path)] == ["0.1", "0.0000001"], path.name
    (tmp_path / "a.jsonl").write_text('{"text": "x", "label": 12345678901234567}\n{"text": "y", "label": 1e5}\n')
    assert [label for _, label in read_labelled(tmp_path / "a.jsonl")] == ["12345678901234567", "100000"]
    (tmp_path / "a.jsonl").write_text('{"text": "x", "label": 1e9999999999999999999}\n')  # no number in Python
    assert [label for _, label in read_labelled(tmp_path / "a.jsonl")] == ["1e9999999999999999999"]


def test_numbers_of_excel_that_lost_digits_are_counted(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    frame = pandas.DataFrame({"text": ["x", "y"], "label": [12345678901234567, 12345678901234568]})
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    with pytest.warns(WGCNWarning, match="2 rows of .* more than 15 digits"):
        labels = [label for _, label in read_labelled(tmp_path / "a.xlsx")]
    assert labels == ["12345678901234570"] * 2


@pytest.mark.parametrize(
    "text",
    [
        "Sport",
        "v1.0",
        "1.",
        ".0",
        "1.00.0",
        "007.0",
        "1e3",
        "nan",
        "Truest",
        " true",
        "١.0",
        "12e+5",
        "1e+1000",
        "x1e-07",
    ],
)
def test_other_labels_stay_as_they_are(text: str) -> None:
    assert label_text(text) == text


def test_lists_are_several_labels_and_an_empty_label_is_none(tmp_path: Path) -> None:
    rows = [{"label": ["a", "", True]}, {"label": "b"}, {"label": []}, {"label": " "}, {"label": None}]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": "x", **row}) for row in rows))
    found = list(read_labelled(path))
    assert [label for _, label in found] == [["a", "true"], "b", [], None, None]
    assert texts_and_labels(found) == (["x"] * 5, [["a", "true"], ["b"], [], None, None])
    assert texts_and_labels([("x", "a"), ("y", None)]) == (["x", "y"], ["a", None])
    path.write_text('{"text": "x", "label": [""]}\n{"text": "x", "label": [null]}')
    assert list(read_labelled(path)) == [("x", None)] * 2  # as in Python
    path.write_text('{"text": "x", "label": "a; 1.0;;"}')
    assert list(read_labelled(path, separator=";")) == [("x", ["a", "1"])]


SIGNS = ["N/A", "None", "", "N/A", "a", "none", " nan "]


def test_signs_of_a_missing_label_are_classes_that_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,text\n" + "".join(f"{sign},x\n" for sign in SIGNS))
    with pytest.warns(
        WGCNWarning, match="^4 rows of .*'N/A' .2., 'None' .1., 'nan' .1.*--missing N/A,None,nan"
    ) as caught:
        found = [label for _, label in read_labelled(path)]
    assert found == ["N/A", "None", None, "N/A", "a", "none", " nan "]
    assert len(caught) == 1
    with pytest.warns(WGCNWarning, match="^4 rows of"):
        assert [row[1] for row in read_labelled_table(path).rows] == found


@pytest.mark.parametrize("missing", ["N/A, None,nan", ["N/A", "None", "nan"]])
def test_missing_labels_are_those_that_are_named(tmp_path: Path, missing: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,text\n" + "".join(f"{sign},x\n" for sign in SIGNS))
    expected = [None, None, None, None, "a", "none", None]
    assert [label for _, label in read_labelled(path, missing=missing)] == expected
    assert [row[1] for row in read_labelled_table(path, missing=missing).rows] == expected
    path.write_text("label,text\na;N/A,x\nN/A;nan,y\n-1.0,z\n")
    assert [label for _, label in read_labelled(path, missing=missing, separator=";")] == [["a"], None, ["-1"]]
    assert [label for _, label in read_labelled(path, missing="-1")][-1] is None


@pytest.mark.parametrize(
    ("name", "rows", "header"),
    [
        ("a.csv", ["id,text,label", "1,fine,a", "2,so, qux and more,b"], True),
        ("a.tsv", ["id\ttext\tlabel", "1\tfine\ta", "2\tso\t qux and more\tb"], True),
        ("a.csv", ["1,fine,a", "2,so, qux and more,b"], False),
        ("a.csv", ["id,text,label", "2,so, qux and more,b"], True),  # the first row
    ],
)
def test_a_label_of_a_row_that_is_too_wide_is_an_error(
    tmp_path: Path, name: str, rows: list[str], header: bool
) -> None:
    path = tmp_path / name
    path.write_text("\n".join(rows))
    columns: dict[str, Any] = {"text_column": "1", "label_column": "label" if header else "2", "header": header}
    message = f"line {len(rows)}: the row has 4 fields, but the {'header' if header else 'first row'} has 3"
    with pytest.raises(InputError, match=message):
        list(read_labelled(path, **columns, optional=True))
    with pytest.raises(InputError, match=message):
        list(read_labelled_table(path, **columns).rows)


@pytest.mark.parametrize("label_column", ["text", "0", 0])
@pytest.mark.parametrize("read", [read_labelled, lambda *given, **how: read_labelled_table(*given, **how).rows])
def test_one_column_for_texts_and_labels(tmp_path: Path, read: Any, label_column: str | int) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\nx,a\n")
    with pytest.raises(InputError, match=r"'text' of .* has texts and labels at once"):
        next(iter(read(path, label_column=label_column)))
    path = tmp_path / "a.jsonl"
    path.write_text('{"data": {"body": "x"}}')
    with pytest.raises(InputError, match="has texts and labels at once"):
        next(iter(read(path, text_column="data.body", label_column="data.body")))


LONG = [f"sentence number {i} about something or other" for i in range(1200)]


@pytest.mark.parametrize("n", [20, 999, 1000, 1200])
def test_swapped_columns_are_an_error_at_once(n: int) -> None:
    rows = list(zip(["sport", "politics"] * 600, LONG, strict=True))[:n]
    with pytest.raises(InputError, match="look swapped"):
        list(distinct_columns(rows))
    with pytest.raises(InputError, match="is the text itself"):
        list(distinct_columns([(text, text) for text in LONG[:n]]))
    seen = []
    with pytest.raises(InputError):
        seen.extend(distinct_columns(iter(rows)))
    assert len(seen) <= 1000


@pytest.mark.parametrize(
    "rows",
    [
        [(text, "sport" if i % 2 else "politics") for i, text in enumerate(LONG)],
        [(text, f"the name of product number {i}, which is long") for i, text in enumerate(LONG)],  # one text a class
        [("sport", text) for text in LONG[:19]],  # few
        [(text, text) for text in LONG[:19]],
        [("sport", None) for _ in LONG],
        [("the same long text in every row", f"id {i}") for i in range(30)],
        [(f"text {i // 3}", f"a longer label {i // 2}") for i in range(30)],  # copies, and small classes
    ],
)
def test_other_columns_are_left_alone(rows: list[tuple[str, str | None]]) -> None:
    assert list(distinct_columns(rows)) == rows


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "txt", "parquet"])
def test_a_file_that_may_lack_labels_is_opened_once(tmp_path: Path, kind: str) -> None:
    """It may be a pipe, of which a second look finds nothing."""
    texts, path = ["one", "two"], tmp_path / f"in.{kind}"
    if kind == "parquet":
        pytest.importorskip("pandas").DataFrame({"text": texts}).to_parquet(path)
    elif kind == "txt":
        path.write_text("one\ntwo\n")
    else:
        objects = [json.dumps({"text": text}) for text in texts]
        path.write_text({"csv": "text\none\ntwo\n", "jsonl": "\n".join(objects)}.get(kind, f"[{','.join(objects)}]"))
    content, pipe = path.read_bytes(), tmp_path / f"pipe.{kind}"
    os.mkfifo(pipe)
    for read in (
        lambda: list(read_labelled(pipe, optional=True)),
        lambda: [row[:2] for row in read_labelled_table(pipe).rows],
    ):
        writer = threading.Thread(target=pipe.write_bytes, args=[content])
        writer.start()
        assert read() == [("one", None), ("two", None)]
        writer.join(60)


def test_labels_that_are_there_are_read_though_they_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"text": "one"}\n{"label": "x", "text": "two"}\n{"label": ["x", "y"], "text": "z"}'
    )
    assert list(read_labelled(tmp_path / "a.jsonl", optional=True)) == [("one", None), ("two", "x"), ("z", ["x", "y"])]
    (tmp_path / "b.csv").write_text("label,text,label\na,b,c\n")
    with pytest.raises(InputError, match="2 columns 'label'"):
        list(read_labelled(tmp_path / "b.csv", optional=True))
    (tmp_path / "c.csv").write_text("body\nb\n")
    with pytest.raises(InputError, match="no column 'topic'"):
        list(read_labelled(tmp_path / "c.csv", optional=True, label_column="topic", text_column="body"))
