"""Predictions of many files, each into a file of its own."""

import os
from pathlib import Path

import pytest

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import InputError, StoreError
from wgcn.model.predict_file import predict_file
from wgcn.scale import prediction
from wgcn.scale.prediction import predict_files

TEXTS = ["red wine", "white wine", "fast car", "slow car", "a fast red car"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    WGCNTextClassifier(n_jobs=1).fit(TEXTS, ["drink", "drink", "drive", "drive", None]).save(path)
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{i}.txt" for i in range(4)]
    for i, path in enumerate(paths):
        path.write_text("\n".join(TEXTS[i:]))
    return paths


def test_a_file_of_predictions_is_that_of_its_texts_alone(folder: Path, files: list[Path], tmp_path: Path) -> None:
    written = predict_files(folder, files, tmp_path / "found", n_workers=2, top=2)
    assert [path.name for path in written] == ["0.csv", "1.csv", "2.csv", "3.csv"]
    predict_file(TextModel.load(folder), str(files[1]), tmp_path / "one.csv", top=2)
    assert written[1].read_bytes() == (tmp_path / "one.csv").read_bytes()
    assert not (tmp_path / "found.work").exists()


def test_what_an_interrupted_run_has_finished_is_not_repeated(
    folder: Path, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ["stop"]

    def counted(model: TextModel, texts: str, output: Path, **how: object) -> str:
        if texts.endswith("2.txt") and "stop" in done:
            raise KeyboardInterrupt
        done.append(texts)
        return predict_file(model, texts, output, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(prediction, "predict_file", counted)
    with pytest.raises(KeyboardInterrupt):
        predict_files(folder, files, tmp_path / "found", n_workers=1)
    done.clear()
    whole = (tmp_path / "found" / "1.csv").read_bytes()
    (tmp_path / "found" / "1.csv").write_bytes(whole[:-9])
    assert len(predict_files(folder, files, tmp_path / "found", n_workers=1)) == 4
    assert {*map(str, files[1:3])} <= {*done}  # also that whose table was cut
    assert str(files[0]) not in done
    assert (tmp_path / "found" / "1.csv").read_bytes() == whole


def test_a_file_that_changes_meanwhile_is_an_error_that_says_how_to_begin_anew(
    folder: Path, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changing(model: TextModel, texts: str, output: Path, **how: object) -> str:
        with files[3].open("a") as file:
            file.write("\nmore wine")
        return predict_file(model, texts, output, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(prediction, "predict_file", changing)
    with pytest.raises(InputError, match=r"3\.txt changed while it was read"):
        predict_files(folder, files, tmp_path / "found", n_workers=1)
    with pytest.raises(InputError, match=r"3\.txt changed\. Remove that folder\.$"):  # there is no --restart
        predict_files(folder, files, tmp_path / "found", n_workers=1)


def test_files_of_one_name_are_an_error(folder: Path, files: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "more" / "0.txt"
    other.parent.mkdir()
    other.write_text("wine")
    with pytest.raises(InputError, match="same name"):
        predict_files(folder, [*files, other], tmp_path / "found")


def test_a_model_that_is_none_is_one_error(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        predict_files(tmp_path / "none", files, tmp_path / "found")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "config.json")  # which nobody writes to
    with pytest.raises(StoreError, match="not a plain file"):
        predict_files(tmp_path / "pipe", files, tmp_path / "found")


def test_tables_that_are_there_are_replaced_only_if_asked_and_inputs_never(
    folder: Path, files: list[Path], tmp_path: Path
) -> None:
    predict_files(folder, files, tmp_path / "found", overwrite=False)
    with pytest.raises(InputError, match="is there already"):
        predict_files(folder, files, tmp_path / "found", overwrite=False)
    assert len(predict_files(folder, files, tmp_path / "found")) == 4
    before = files[0].read_bytes()
    with pytest.raises(InputError, match="is an input of this command"):
        predict_files(folder, files, tmp_path, output_format="txt")
    assert files[0].read_bytes() == before
