"""Labels out of files: the same from every format."""

import json
from pathlib import Path
from typing import Any

import pytest

from wgcn.errors import WGCNWarning
from wgcn.labelling.labelled import label_text, read_labelled, texts_and_labels


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
    path.write_text('{"text": "x", "label": "a; 1.0;;"}')
    assert list(read_labelled(path, separator=";")) == [("x", ["a", "1"])]
