"""Labels out of files: the same from every format."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from wgcn.errors import InputError
from wgcn.labelling.labelled import label_text, read_labelled, read_labelled_table, texts_and_labels


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


@pytest.mark.parametrize(
    "text", ["Sport", "v1.0", "1.", ".0", "1.00.0", "007.0", "1e3", "nan", "Truest", " true", "١.0"]
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
    path.write_text('{"text": "x", "label": "a; 1.0;;"}')
    assert list(read_labelled(path, separator=";")) == [("x", ["a", "1"])]


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
