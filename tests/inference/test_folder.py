"""Saved folders: damage of every kind is one exception, and a crash leaves the old folder whole."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from wgcn.errors import InputError, StoreError
from wgcn.graph import WordGraph
from wgcn.graph.counts import WindowCounts
from wgcn.inference import folder as store
from wgcn.inference.folder import CONFIG, README, VOCABULARY, load_folder, save_folder, write_file
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary

TENSORS = "test.safetensors"
SCHEMA = {"window": int, "note": (str, type(None))}
WORDS = Vocabulary(["wine", "naïve", "two words"], [3, 2, 1], [2, 2, 1])


def save(path: Path, window: int = 5) -> str:
    tensors = {
        "vector": np.arange(3.0),
        "m.data": np.ones(2),
        "m.indices": np.array([0, 2]),
        "m.indptr": np.array([0, 1, 2, 2]),
    }
    return save_folder(path, "test", {"window": window, "note": None}, tensors, WORDS, "# For people\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "saved")
    return tmp_path / "saved"


def rewrite_config(folder: Path, *, sign: bool = True, **changes: object) -> None:
    """Change the config as an attacker or a newer version would: with a digest that fits."""
    document = json.loads((folder / CONFIG).read_text())
    document.update(changes)
    document["files"] = {
        name: store.hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (VOCABULARY, TENSORS, README)
    }
    if sign:
        document["digest"] = store._digest(document)
    (folder / CONFIG).write_text(json.dumps(document))


def test_everything_comes_back(folder: Path) -> None:
    loaded = load_folder(folder, "test", SCHEMA)
    assert loaded.config == {"window": 5, "note": None}
    assert loaded.vocabulary == WORDS
    assert loaded.vocabulary.counts.tolist() == [3, 2, 1]
    assert loaded.vector("vector", 3, np.float64).tolist() == [0, 1, 2]
    assert loaded.csr("m", (3, 3)).toarray().tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_saving_again_replaces_and_leaves_nothing_beside(folder: Path) -> None:
    save(folder, window=7)
    assert load_folder(folder, "test", SCHEMA).config["window"] == 7
    assert [entry.name for entry in folder.parent.iterdir()] == ["saved"]


@pytest.mark.parametrize("name", [CONFIG, VOCABULARY, TENSORS, README])
def test_every_flipped_byte_is_noticed(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    for place in range(len(content)):
        (folder / name).write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(StoreError):
            load_folder(folder, "test", SCHEMA)


@pytest.mark.parametrize("name", [CONFIG, VOCABULARY, TENSORS, README])
def test_every_truncation_is_noticed(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    for size in range(len(content) - 1):  # the config's last byte is a line break that JSON does not need
        (folder / name).write_bytes(content[:size])
        with pytest.raises(StoreError):
            load_folder(folder, "test", SCHEMA)


@pytest.mark.parametrize("name", [CONFIG, VOCABULARY, TENSORS, README])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(StoreError, match=name):
        load_folder(folder, "test", SCHEMA)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no test folder"):
        load_folder(tmp_path / "nowhere", "test", SCHEMA)


def test_a_swapped_vocabulary_is_noticed(folder: Path) -> None:
    (folder / VOCABULARY).write_text("naïve\nwine\ntwo words\n")
    with pytest.raises(StoreError, match="do not match their digests"):
        load_folder(folder, "test", SCHEMA)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "newer than this wgcn reads"),
        ({"version": True}, "wrong type"),
        ({"version": "1"}, "expected a number"),
        ({"format": "wgcn-model"}, "holds 'wgcn-model'"),
        ({"format": "other"}, "not written by wgcn"),
        ({"extra": 1}, "unknown keys"),
        ({"config": {"window": 5}}, "lacks"),
        ({"config": {"window": 5, "note": None, "code": "x"}}, "unknown keys"),
        ({"config": {"window": "5", "note": None}}, "wrong type"),
        ({"config": {"window": True, "note": None}}, "wrong type"),
        ({"config": []}, "wrong type"),
    ],
)
def test_a_config_that_does_not_fit_the_schema_is_refused(
    folder: Path, changes: dict[str, object], message: str
) -> None:
    rewrite_config(folder, **changes)
    with pytest.raises(StoreError, match=message):
        load_folder(folder, "test", SCHEMA)


def test_a_huge_or_deep_config_is_refused(folder: Path) -> None:
    (folder / CONFIG).write_text("[" * 500_000)
    with pytest.raises(StoreError, match="JSON"):
        load_folder(folder, "test", SCHEMA)
    (folder / CONFIG).write_text(" " * (store._MAX_CONFIG_BYTES + 1))
    with pytest.raises(StoreError, match="larger than"):
        load_folder(folder, "test", SCHEMA)


def test_what_could_not_be_read_back_is_not_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (folder / CONFIG).stat().st_size
    monkeypatch.setattr(store, "_MAX_CONFIG_BYTES", size)
    save(folder, window=7)
    assert load_folder(folder, "test", SCHEMA).config["window"] == 7
    with pytest.raises(InputError, match="could not be read back"):
        save(folder, window=77)
    assert load_folder(folder, "test", SCHEMA).config["window"] == 7


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"m.indices": np.array([0, 9])}, "not a sparse matrix"),
        ({"m.indices": np.array([0, -1])}, "not a sparse matrix"),
        ({"m.indptr": np.array([0, 5, 2, 2])}, "not a sparse matrix"),
        ({"m.indptr": np.array([0, 1])}, "not a sparse matrix"),
        ({"m.data": np.ones((2, 2))}, "not a sparse matrix"),
        ({"m.data": np.ones(1)}, "not a sparse matrix"),
        ({"m.data": np.array([1, np.nan])}, "not finite"),
        ({"m.indptr": np.array([1, 1, 2, 2])}, "not a sparse matrix"),
        ({"m.indptr": np.array([0, 1, 2, 3])}, "not a sparse matrix"),
        # scipy looks at no index of a matrix that ends where it began, or before.
        ({"m.indptr": np.array([0, 2, 2, 0]), "m.indices": np.array([0, 99])}, "do not follow"),
        ({"m.indptr": np.array([0, 2, 1, 0])}, "do not follow"),
        ({"m.indptr": np.array([0, 0, 0, -5])}, "do not follow"),
        ({"m.indptr": np.array([0, 10**9, 2, -1])}, "do not follow"),
        # The difference from one entry to the next is too large for its type, and comes out positive.
        ({"m.indptr": np.array([0, 2**63 - 1, -2, 2])}, "do not follow"),
        (
            {"m.indptr": np.array([0, 2**31 - 1, -2, 2], np.int32), "m.indices": np.array([0, 2], np.int32)},
            "do not fol",
        ),
        ({"m.indptr": np.array([0.0, 1, 2, 2])}, "indices are"),
        ({"m.indices": np.array([0, 2], np.int32)}, "indices are"),
        ({"m.data": np.ones(2, bool)}, "values are bool"),
        ({"m.data": np.ones(2, np.complex64)}, "values are complex64"),
    ],
)
def test_a_signed_folder_with_a_hostile_matrix_is_refused(
    folder: Path, tensors: dict[str, np.ndarray], message: str
) -> None:
    save_file({**load_file(folder / TENSORS), **tensors}, folder / TENSORS)
    rewrite_config(folder)
    with pytest.raises(StoreError, match=message):
        load_folder(folder, "test", SCHEMA).csr("m", (3, 3))


@pytest.mark.parametrize(
    "indptr", [[0, 2, 0], [0, 0, -5], [0, -5, 0], [0, 2**31 - 1, 0], [0, 2**40, 0], [0, 1, 2**40], [1, 2, 2]]
)
@pytest.mark.parametrize("kind", ["graph", "counts"])
def test_a_signed_graph_with_hostile_rows_is_refused(tmp_path: Path, kind: str, indptr: list[int]) -> None:
    corpus = Corpus.from_texts(["red wine"])
    source = WordGraph.from_corpus(corpus) if kind == "graph" else WindowCounts.from_corpus(corpus)
    source.save(tmp_path / kind)
    type(source).load(tmp_path / kind)
    document = json.loads((tmp_path / kind / CONFIG).read_text())
    file, name = tmp_path / kind / f"{kind}.safetensors", "adjacency" if kind == "graph" else "pair_windows"
    tensors = load_file(file)
    tensors[f"{name}.indptr"] = np.array(indptr)
    tensors[f"{name}.indices"] = np.array([1, 99])
    tensors[f"{name}.data"] = np.ones(2, tensors[f"{name}.data"].dtype)
    save_file(tensors, file)
    document["files"][file.name] = store.hashlib.sha256(file.read_bytes()).hexdigest()
    document["digest"] = store._digest(document)
    (tmp_path / kind / CONFIG).write_text(json.dumps(document))
    with pytest.raises(StoreError, match=f"'{name}' is not a sparse matrix"):
        type(source).load(tmp_path / kind)


def test_a_vector_of_another_shape_or_type_is_refused(folder: Path) -> None:
    loaded = load_folder(folder, "test", SCHEMA)
    for size, dtype in ((4, np.float64), (3, np.float32)):
        with pytest.raises(StoreError, match="expected"):
            loaded.vector("vector", size, dtype)
    with pytest.raises(StoreError, match="no tensor 'other'"):
        loaded.vector("other", 3, np.float64)
    loaded.tensors["vector"] = np.array([0, np.nan, 1])
    with pytest.raises(StoreError, match="expected finite float64"):
        loaded.vector("vector", 3, np.float64)


@pytest.mark.parametrize("name", ["vocabulary.counts", "vocabulary.document_counts"])
@pytest.mark.parametrize(
    "counts", [np.ones((3, 1), int), np.ones(2, int), np.ones(3), np.ones(3, bool), -np.ones(3, int)]
)
def test_a_signed_vocabulary_with_hostile_counts_is_refused(folder: Path, name: str, counts: np.ndarray) -> None:
    save_file({**load_file(folder / TENSORS), name: counts}, folder / TENSORS)
    rewrite_config(folder)
    with pytest.raises(StoreError, match="counts of the vocabulary"):
        load_folder(folder, "test", SCHEMA)


def test_a_signed_vocabulary_with_a_word_twice_is_refused(folder: Path) -> None:
    (folder / VOCABULARY).write_text("wine\nwine\nx\n")
    rewrite_config(folder)
    with pytest.raises(StoreError, match="twice"):
        load_folder(folder, "test", SCHEMA)


def test_a_crash_while_writing_leaves_the_old_folder_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(InputError, match="No space left"):
        save(folder, window=7)
    monkeypatch.undo()
    assert load_folder(folder, "test", SCHEMA).config["window"] == 5
    assert [entry.name for entry in folder.parent.iterdir()] == ["saved"]


def test_a_crash_between_the_renames_is_repaired_on_the_next_load(folder: Path) -> None:
    folder.rename(folder.with_name(".saved.previous"))
    assert load_folder(folder, "test", SCHEMA).config["window"] == 5


def test_other_peoples_folders_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    with pytest.raises(InputError, match="Choose another place"):
        save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "years of work"


def test_a_file_in_the_way_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="not a folder"):
        save(tmp_path / "file")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")

    def crash(file: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_file(tmp_path / "file", crash)
    assert (tmp_path / "file").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
