"""Saved folders: damage of every kind is one exception, and a crash leaves the old folder whole."""

import json
import os
import shutil
import stat
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from wgcn.base import files
from wgcn.base.errors import InputError, StoreError
from wgcn.base.files import locked_folder, open_whole, write_file
from wgcn.graph import WordGraph
from wgcn.graph.counts import WindowCounts
from wgcn.store import folder as store
from wgcn.store.contents import MAX_WORD_BYTES, read_vocabulary
from wgcn.store.folder import (
    CONFIG,
    README,
    VOCABULARY,
    SessionFiles,
    check_target,
    load_folder,
    save_folder,
)
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary

TENSORS = "test.safetensors"
SCHEMA = {"window": int, "note": (str, type(None))}
WORDS = Vocabulary(["wine", "naïve", "two words"], [3, 2, 1], [2, 2, 1])


SESSION = SessionFiles({"note": "ä"}, {"vector": np.arange(3)}, lambda folder: None)


def save(path: Path, window: int = 5, session: SessionFiles | None = None) -> str:
    tensors = {
        "vector": np.array([window, 1.0, 2.0]),
        "m.data": np.ones(2),
        "m.indices": np.array([0, 2]),
        "m.indptr": np.array([0, 1, 2, 2]),
    }
    config = {"window": window, "note": None}
    return save_folder(path, "test", config, tensors, WORDS, "# For people\n", session=session)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "saved")
    return tmp_path / "saved"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


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
    assert loaded.tensor("vector", 3, dtype=np.float64).tolist() == [5, 1, 2]
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
        ({"version": 4}, "format version 4, but this wgcn reads version 3 alone"),
        ({"version": 2}, "format version 2, but .* Fit and save it again"),
        ({"version": True}, "format version True, but"),
        ({"version": "1"}, "format version '1', but"),
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
    (folder / CONFIG).write_text(" " * (store.MAX_CONFIG_BYTES + 1))
    with pytest.raises(StoreError, match="larger than"):
        load_folder(folder, "test", SCHEMA)


def test_what_could_not_be_read_back_is_not_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (folder / CONFIG).stat().st_size
    monkeypatch.setattr(store, "MAX_CONFIG_BYTES", size)
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
    for shape, dtype in (((4,), np.float64), ((3,), np.float32), ((3, 1), np.float64), ((), np.float64)):
        with pytest.raises(StoreError, match="expected finite"):
            loaded.tensor("vector", *shape, dtype=dtype)
    with pytest.raises(StoreError, match="no tensor 'other'"):
        loaded.tensor("other", 3)
    loaded.tensors["vector"] = np.array([0, np.nan, 1])
    with pytest.raises(StoreError, match="expected finite float64"):
        loaded.tensor("vector", 3, dtype=np.float64)


@pytest.mark.parametrize("name", ["vocabulary.counts", "vocabulary.document_counts"])
@pytest.mark.parametrize(
    "counts", [np.ones((3, 1), int), np.ones(2, int), np.ones(3), np.ones(3, bool), -np.ones(3, int)]
)
def test_a_signed_vocabulary_with_hostile_counts_is_refused(folder: Path, name: str, counts: np.ndarray) -> None:
    save_file({**load_file(folder / TENSORS), name: counts}, folder / TENSORS)
    rewrite_config(folder)
    with pytest.raises(StoreError, match="counts of the vocabulary"):
        load_folder(folder, "test", SCHEMA)


@pytest.mark.parametrize(("count", "document_count"), [(1, 2), (1 << 52, 1)])
def test_a_signed_vocabulary_with_counts_of_no_texts_is_refused(folder: Path, count: int, document_count: int) -> None:
    counts = {"vocabulary.counts": np.full(3, count), "vocabulary.document_counts": np.full(3, document_count)}
    save_file({**load_file(folder / TENSORS), **counts}, folder / TENSORS)
    rewrite_config(folder)
    with pytest.raises(StoreError, match="cannot be those of texts"):
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


class Killed(BaseException):
    """The process ends here."""


def kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process end at a step of writing: no later step is done, those that would clean up neither."""
    steps = count()

    def stepping(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(steps) >= step:
                raise Killed
            return function(*arguments, **options)

        return call

    for name in ("mkdir", "open", "fsync", "rename", "replace", "chmod", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, stepping(getattr(os, name)))


@pytest.mark.parametrize("exists", [True, False])
def test_a_crash_at_any_step_leaves_the_old_or_the_new_folder_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    path, seen = tmp_path / "saved", []
    for step in count():
        shutil.rmtree(path, ignore_errors=True)
        if exists:
            save(path)
            (path / "notes.txt").write_text("mine")
        kill_at(step, monkeypatch)
        try:
            save(path, window=7)
            done = True
        except Killed:
            done = False
        monkeypatch.undo()
        try:
            seen.append(load_folder(path, "test", SCHEMA).config["window"])
        except StoreError:
            seen.append(None)
        # Whatever was left, saving works, and tidies up.
        if not done:
            save(path, window=9)
            assert load_folder(path, "test", SCHEMA).config["window"] == 9
        notes = ["notes.txt"] if exists else []
        assert names(path) == sorted([CONFIG, README, VOCABULARY, TENSORS, *notes])
        assert names(tmp_path) == ["saved"]
        if done:
            break
    assert len(seen) > 15
    before = 5 if exists else None
    assert seen == [before] * seen.count(before) + [7] * seen.count(7)
    assert 2 < seen.count(7) < len(seen) - 2


@pytest.mark.parametrize(("before", "after"), [(SESSION, None), (None, SESSION), (SESSION, SESSION)])
def test_a_crash_at_any_step_leaves_a_version_with_its_own_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: SessionFiles | None, after: SessionFiles | None
) -> None:
    path, seen = tmp_path / "saved", []
    for step in count():
        shutil.rmtree(path, ignore_errors=True)
        save(path, 5, before)
        kill_at(step, monkeypatch)
        try:
            save(path, 7, after)
            done = True
        except Killed:
            done = False
        monkeypatch.undo()
        found = load_folder(path, "test", SCHEMA, with_session=True)
        assert load_folder(path, "test", SCHEMA).session is None
        seen.append(found.config["window"])
        session = before if seen[-1] == 5 else after
        assert (found.session is None) == (session is None)
        if found.session is not None:
            assert found.session.config == {"note": "ä"}
            assert found.session.tensor("vector", 3, dtype=np.int64).tolist() == [0, 1, 2]
        save(path, 9)  # whatever was left
        assert names(path) == sorted([CONFIG, README, VOCABULARY, TENSORS])
        if done:
            break
    assert seen == sorted(seen)
    assert 2 < seen.count(7) < len(seen) - 2


@pytest.mark.parametrize("moment", range(12))
def test_a_reader_sees_one_version_while_another_is_saved(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    read, moments = store.read_whole, count()

    def read_and_save(path: Path, limit: int | None = None) -> bytes:
        if next(moments) == moment:
            monkeypatch.setattr(store, "read_whole", read)
            save(folder, window=7)
        return read(path, limit)

    monkeypatch.setattr(store, "read_whole", read_and_save)
    loaded = load_folder(folder, "test", SCHEMA)
    assert loaded.config["window"] in (5, 7)
    assert loaded.tensor("vector", 3, dtype=np.float64)[0] == loaded.config["window"]


@pytest.mark.parametrize("moment", range(12))
def test_a_reader_is_not_misled_by_a_version_that_comes_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    read, moments = store.read_whole, count()

    def read_and_save(path: Path, limit: int | None = None) -> bytes:
        number = next(moments)
        if number in (moment, moment + 2):  # the same bytes as before in the end
            with monkeypatch.context() as plain:
                plain.setattr(store, "read_whole", read)
                save(folder, window=7 if number == moment else 5)
        return read(path, limit)

    monkeypatch.setattr(store, "read_whole", read_and_save)
    loaded = load_folder(folder, "test", SCHEMA)
    assert loaded.tensor("vector", 3, dtype=np.float64)[0] == loaded.config["window"]


def test_a_reader_needs_no_lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    assert load_folder(folder, "test", SCHEMA).config["window"] == 5
    save(folder, window=7)
    assert load_folder(folder, "test", SCHEMA).config["window"] == 7


@pytest.mark.parametrize("name", [CONFIG, VOCABULARY, README, TENSORS])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_plain_files_are_opened(folder: Path, name: str, kind: str) -> None:
    (folder / name).rename(folder / "kept")
    (folder / name).symlink_to("kept")
    assert load_folder(folder, "test", SCHEMA).config["window"] == 5
    (folder / name).unlink()
    if kind == "pipe":
        os.mkfifo(folder / name)
    elif kind == "device":
        (folder / name).symlink_to("/dev/zero")
    else:
        (folder / name).mkdir()
    with pytest.raises(StoreError, match=r"not a plain file|Is a directory"):
        load_folder(folder, "test", SCHEMA)


def test_what_killed_processes_left_is_removed_by_the_next_save(folder: Path) -> None:
    (folder / ".wgcn-new-0123").mkdir()
    (folder / ".wgcn-new-0123" / CONFIG).write_text("half")
    with locked_folder(folder) as is_locked:
        assert is_locked
        thread = threading.Thread(target=save, args=(folder, 7))
        thread.start()  # which waits: the folder may be that of the process that has the lock
        assert load_folder(folder, "test", SCHEMA).config["window"] == 5
        assert (folder / ".wgcn-new-0123" / CONFIG).exists()
    thread.join()
    assert load_folder(folder, "test", SCHEMA).config["window"] == 7
    assert not [name for name in names(folder) if name.startswith(".")]


def test_temporary_files_of_killed_processes_are_removed_and_no_others(tmp_path: Path) -> None:
    left, used, new, other = (tmp_path / f".wgcn-{name}" for name in ("a" * 16, "b" * 16, "c" * 16, "notes"))
    for path in (left, used, new, other):
        path.write_text("half")
        if path != new:
            os.utime(path, (0, 0))
    with locked_folder(used):
        write_file(tmp_path / "file", lambda file: file.write(b"x"))
    assert names(tmp_path) == sorted([used.name, new.name, other.name, "file"])
    with open_whole(tmp_path / "slow") as file:  # one process writes, and another does not take its file away
        (own,) = {*tmp_path.glob(".wgcn-*")} - {used, new, other}
        os.utime(own, (0, 0))
        write_file(tmp_path / "file", lambda file: file.write(b"y"))
        file.write(b"z")
    assert (tmp_path / "slow").read_text() == "z"
    assert names(tmp_path) == sorted([new.name, other.name, "file", "slow"])


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 500 + b"]" * 500,
        b"[" * 100_000,
        b'{"format": ' + b"9" * 5000 + b"}",
        b"[" + b"1," * (1 << 18) + b"1]",
        b'{"format": NaN}',
        b"null",
        b'{"format": "wgcn-test", "version": 9, "version": 3}',
    ],
    ids=["deep", "very deep", "a huge number", "many values", "NaN", "nothing", "a key twice"],
)
def test_a_config_of_odd_json_is_one_error(folder: Path, content: bytes) -> None:
    (folder / CONFIG).write_bytes(content)
    with pytest.raises(StoreError, match="not valid JSON"):
        load_folder(folder, "test", SCHEMA)
    with pytest.raises(InputError, match="other files in it"):
        save(folder)


@pytest.mark.parametrize("words", [["a\nb"], ["\x1b[31m"], ["\ud800"], []])
def test_words_that_could_not_be_loaded_are_not_saved(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(InputError, match="could not be read back"):
        save_folder(tmp_path / "m", "test", {"window": 5, "note": None}, {}, Vocabulary(words))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"a\n\x1b[31m\nc\n", b"\xed\xa0\x80\nb\nc\n", b""])
def test_a_signed_vocabulary_with_hostile_words_is_refused(folder: Path, content: bytes) -> None:
    (folder / VOCABULARY).write_bytes(content)
    rewrite_config(folder)
    with pytest.raises(StoreError, match="damaged"):
        load_folder(folder, "test", SCHEMA)


def test_a_header_of_tensors_is_short(folder: Path) -> None:
    # What safetensors makes of a header takes twenty times its size.
    entries = ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(2000))
    content = f"{{{entries}}}".encode()
    (folder / TENSORS).write_bytes(len(content).to_bytes(8, "little") + content)
    rewrite_config(folder)
    with pytest.raises(StoreError, match="header of"):
        load_folder(folder, "test", SCHEMA)


def test_lines_are_counted_before_they_become_words(folder: Path) -> None:
    (folder / VOCABULARY).write_bytes(b"\n" * 1000)
    rewrite_config(folder)
    with pytest.raises(StoreError, match="not one number per word"):
        load_folder(folder, "test", SCHEMA)


@pytest.mark.parametrize("block", [1, 2, 5, 7, 1000])
def test_words_are_the_same_in_blocks_of_any_size(block: int) -> None:
    words = ("", "a", "é漢", "\U0001f377", "a b", "x" * 20, "z")
    counts = dict.fromkeys(("vocabulary.counts", "vocabulary.document_counts"), np.zeros(len(words), np.int64))
    assert read_vocabulary("".join(f"{word}\n" for word in words).encode(), counts, block).words == words


def test_words_and_texts_of_settings_have_a_longest(tmp_path: Path) -> None:
    for words, note in ((["x" * (MAX_WORD_BYTES + 1)], None), (["x"], "y" * (1 << 20) + "z")):
        with pytest.raises(InputError, match="could not be read back"):
            save_folder(tmp_path / "m", "test", {"window": 5, "note": note}, {}, Vocabulary(words))


def test_no_code_changes_the_mask_of_modes() -> None:
    # It is that of all threads.
    package = Path(files.__file__).parent
    assert not [path for path in package.rglob("*.py") if "umask" in path.read_text()]


def test_saving_again_leaves_all_other_files(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref")
    save(folder, window=7)
    assert load_folder(folder, "test", SCHEMA).config["window"] == 7
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / ".git" / "HEAD").read_text() == "ref"


def test_a_readme_that_was_not_saved_stays(tmp_path: Path) -> None:
    config = {"window": 5, "note": None}
    save_folder(tmp_path / "m", "test", config, {}, WORDS)
    (tmp_path / "m" / README).write_text("mine")
    save_folder(tmp_path / "m", "test", config, {}, WORDS, "# Ours\n")
    assert (tmp_path / "m" / README).read_text() == "mine"
    assert load_folder(tmp_path / "m", "test", SCHEMA).config == config


def test_a_folder_of_another_kind_is_not_replaced(folder: Path) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    graph = WordGraph.from_corpus(Corpus.from_texts(["red wine"]))
    for function in (graph.save, lambda path: check_target(path, "graph")):
        with pytest.raises(InputError, match=r"holds 'wgcn-test', which 'wgcn-graph' must not replace"):
            function(folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_folder_of_a_newer_version_is_not_replaced(folder: Path) -> None:
    rewrite_config(folder, version=4)
    with pytest.raises(InputError, match="newer wgcn"):
        save(folder)


def test_a_damaged_folder_can_be_saved_again(folder: Path) -> None:
    (folder / VOCABULARY).write_text("x")
    save(folder, window=7)
    assert load_folder(folder, "test", SCHEMA).config["window"] == 7


def test_a_link_to_a_folder_stays_a_link(folder: Path) -> None:
    link = folder.with_name("link")
    link.symlink_to("saved")
    for window in (7, 8):
        save(link, window)
        assert link.is_symlink()
        assert load_folder(folder, "test", SCHEMA).config["window"] == window


def test_a_link_that_leads_nowhere_or_to_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to("none")
    (tmp_path / "file").write_text("x")
    (tmp_path / "to_file").symlink_to("file")
    with pytest.raises(InputError, match="leads nowhere"):
        save(tmp_path / "nowhere")
    with pytest.raises(InputError, match="not a folder"):
        save(tmp_path / "to_file")
    assert not (tmp_path / "none").exists()
    assert (tmp_path / "file").read_text() == "x"


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.iterdir())}


def test_folders_and_files_keep_their_modes_and_new_ones_have_the_usual(folder: Path) -> None:
    names = (CONFIG, README, VOCABULARY, TENSORS)
    mask = os.umask(0o027)
    try:
        save(folder.with_name("new"))
        assert modes(folder.with_name("new")) == {"new": "0o750", **dict.fromkeys(names, "0o640")}
        folder.chmod(0o700)
        for name in names:
            (folder / name).chmod(0o600)
        save(folder, window=7)
        assert modes(folder) == {"saved": "0o700", **dict.fromkeys(names, "0o600")}
    finally:
        os.umask(mask)


def test_the_current_folder_can_be_saved_to_and_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    save(Path(), window=7)
    assert load_folder(".", "test", SCHEMA).config["window"] == 7


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


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o600)
    mask = os.umask(0o027)
    try:
        for name in ("old", "new"):
            write_file(tmp_path / name, lambda file: file.write(b"x"))
    finally:
        os.umask(mask)
    assert {name: mode for name, mode in modes(tmp_path).items() if name in ("old", "new")} == {
        "old": "0o600",
        "new": "0o640",
    }


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text("old")
    (tmp_path / "a" / "link").symlink_to("file")
    (tmp_path / "link").symlink_to("a/link")
    write_file(tmp_path / "link", lambda file: file.write(b"new"))
    assert (tmp_path / "a" / "file").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a" / "link").is_symlink()
    assert names(tmp_path / "a") == ["file", "link"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # so that nothing waits
    try:
        write_file(pipe, lambda file: file.write(b"text"))
        assert os.read(reader, 1000) == b"text"
        write_file(pipe, lambda file: np.save(file, np.arange(3)))
        assert os.read(reader, 1000).startswith(b"\x93NUMPY")
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_to(tmp_path: Path) -> None:
    # A terminal of its own, in whose folder no file can be made: a mistake must not replace the machine's /dev/null.
    master, slave = os.openpty()
    try:
        device = Path(os.ttyname(slave))
        (tmp_path / "link").symlink_to(device)
        for path in (device, tmp_path / "link"):
            check_target(path)
            write_file(path, lambda file: file.write(b"text"))
            assert os.read(master, 100) == b"text"
        assert stat.S_ISCHR(device.stat().st_mode)
        assert (tmp_path / "link").is_symlink()
    finally:
        os.close(master)
        os.close(slave)


def test_a_link_to_an_open_file_is_written_to_at_its_end(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        file.write(b"one ")
        file.flush()
        with open_whole(f"/dev/fd/{file.fileno()}") as out:
            out.write(b"two")
    assert (tmp_path / "out").read_bytes() == b"one two"


def test_a_folder_is_no_place_for_a_file(tmp_path: Path) -> None:
    for function in (check_target, lambda path: write_file(path, lambda file: file.write(b"x"))):
        with pytest.raises(InputError, match="is a folder; a file is to be written"):
            function(tmp_path)


@pytest.mark.parametrize("kind", [None, "test"])
def test_checking_a_place_makes_nothing(tmp_path: Path, kind: str | None) -> None:
    check_target(tmp_path / "a" / "b" / "new", kind)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [None, "test"])
def test_a_place_below_a_file_is_reported(tmp_path: Path, kind: str | None) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=r"b cannot be written: .*(is not a folder|Not a directory)"):
        check_target(tmp_path / "file" / "a" / "b", kind)


@pytest.mark.parametrize("kind", [None, "test"])
def test_a_place_in_a_folder_that_cannot_be_written_is_reported(
    tmp_path: Path, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(dir: Path) -> None:  # noqa: A002
        assert dir == tmp_path
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.tempfile, "TemporaryFile", refuse)
    with pytest.raises(InputError, match=r"no file can be made in .* \(Permission denied\)"):
        check_target(tmp_path / "a" / "b", kind)


def test_a_file_that_is_read_only_is_reported_and_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write all
    with pytest.raises(InputError, match="Permission denied"):
        write_file(tmp_path / "file", lambda file: file.write(b"x"))
    assert (tmp_path / "file").read_text() == "old"


def test_a_save_that_fails_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(InputError, match="No space left"):
        save(tmp_path / "a" / "b")
    with pytest.raises(InputError, match="No space left"):
        write_file(tmp_path / "a" / "b", lambda file: file.write(b"x"))
    assert not list(tmp_path.iterdir())
