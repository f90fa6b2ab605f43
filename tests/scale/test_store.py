"""Work folders: what is done counts only if it is there as it was written, for the same build alone."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn.base.errors import InputError
from wgcn.scale.corpus import Shard
from wgcn.scale.store import Outputs, WorkFolder, end_work, is_ended, open_work, remove_work

SETTINGS = {"window": 3}
INPUTS = [{"path": "a", "size": 1}]


def finished(work: WorkFolder) -> Any:
    outputs = Outputs(work, "task")
    outputs.save("numbers", np.arange(5), np.arange(3))
    outputs.save("bytes", b"abc")
    return outputs.finish(n=8)


def test_a_task_counts_when_it_is_finished(tmp_path: Path) -> None:
    with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
        outputs = Outputs(work, "task")
        outputs.save("numbers", np.arange(5))
        assert work.result("task") is None
        assert finished(work) == work.result("task") == {"n": 8}
        assert work.read("task.numbers", np.int64).tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
        assert work.read("task.numbers", np.int64, 3, 2).tolist() == [3, 4]
        assert work.read_spans("task.bytes", [2, 0], [3, 1]) == b"ca"
        assert work.size() > 64 + 3
    with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
        assert work.result("task") == {"n": 8}


def shortened(path: Path) -> None:
    os.truncate(path, 10)


def changed(path: Path) -> None:
    path.write_bytes(b"x" + path.read_bytes()[1:])


@pytest.mark.parametrize("damage", [shortened, changed, Path.unlink])
@pytest.mark.parametrize("where", ["files/task.numbers", "done/task.json"])
def test_a_damaged_file_makes_its_task_undone(tmp_path: Path, damage: Callable[[Path], None], where: str) -> None:
    with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
        finished(work)
        damage(work.path / where)
        assert work.result("task") is None
        finished(work)
        assert work.result("task") == {"n": 8}


def test_another_build_is_an_error_and_begins_anew_if_that_is_wished(tmp_path: Path) -> None:
    with open_work(tmp_path, SETTINGS, INPUTS) as work:
        finished(work)
    with (
        pytest.raises(InputError, match=r"other settings \(window\).* --restart"),
        open_work(tmp_path, {"window": 4}, INPUTS),
    ):
        pass
    changed = [{"path": "a", "size": 2}]
    with pytest.raises(InputError, match=r"began with: a changed.* --restart"), open_work(tmp_path, SETTINGS, changed):
        pass
    with pytest.raises(InputError, match=r"began with: a changed"), open_work(tmp_path, SETTINGS, []):
        pass
    with open_work(tmp_path, {"window": 4}, INPUTS, restart=True) as work:
        assert work.result("task") is None
        assert not list((tmp_path / "files").iterdir())
    for damaged in ("{", "[]", '{"format": 1, "settings": [], "inputs": []}', "[" * 100_000):
        (tmp_path / "build.json").write_text(damaged)
        with pytest.raises(InputError, match="is damaged"), open_work(tmp_path, SETTINGS, INPUTS):
            pass


def test_one_build_at_a_time(tmp_path: Path) -> None:
    with (
        open_work(tmp_path / "w", SETTINGS, INPUTS),
        pytest.raises(InputError, match="Another build is at work"),
        open_work(tmp_path / "w", SETTINGS, INPUTS),
    ):
        pass
    with open_work(tmp_path / "w", SETTINGS, INPUTS):
        pass


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InputError, match="no work folder"), open_work(tmp_path, SETTINGS, INPUTS, restart=True):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(InputError, match="no work folder"), open_work(tmp_path / "mine", SETTINGS, INPUTS):
        pass


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_that_looks_like_a_work_folder_is_left_alone(tmp_path: Path, restart: bool) -> None:
    for name in ("files/thesis.txt", "done/list.txt", "lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("precious")
    with pytest.raises(InputError, match="no work folder"), open_work(tmp_path, SETTINGS, INPUTS, restart=restart):
        pass
    assert (tmp_path / "files" / "thesis.txt").read_text() == (tmp_path / "done" / "list.txt").read_text() == "precious"


def test_a_build_that_failed_before_its_first_task_was_done_leaves_nothing(tmp_path: Path) -> None:
    def begin(*steps: Callable[[WorkFolder], object]) -> None:
        with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
            for step in steps:
                step(work)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        begin(lambda work: Outputs(work, "task").save("numbers", np.arange(5)))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError):
        begin(finished)
    with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
        assert work.result("task") == {"n": 8}


def test_folders_of_a_fit_that_was_killed_are_removed(tmp_path: Path) -> None:
    with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
        (work.path / "files" / "scratch-fit" / "0").mkdir(parents=True)
        (work.path / "files" / "scratch-fit" / "0" / "labels").write_text("x")
        finished(work)
        remove_work(work)
    assert not list(tmp_path.iterdir())


def test_files_of_writers_that_were_killed_are_removed(tmp_path: Path) -> None:
    with open_work(tmp_path, SETTINGS, INPUTS):
        pass
    (tmp_path / "files" / ".wgcn-0123").write_text("half")
    with open_work(tmp_path, SETTINGS, INPUTS):
        assert not list((tmp_path / "files").iterdir())


def test_a_build_that_was_killed_while_its_folder_was_removed_has_ended(tmp_path: Path) -> None:
    result = tmp_path / "result"
    result.mkdir()
    with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
        finished(work)
        assert not is_ended(work, result)
        end_work(work, "abc")
        assert not is_ended(work, result)
        (result / "config.json").write_text('{"digest": "abc"}')
        for path in (work.path / "files").iterdir():
            path.unlink()
    with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
        assert is_ended(work, result)
        (work.path / "build.json").unlink()
    with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
        assert is_ended(work, result)
        remove_work(work)
    assert not (tmp_path / "w").exists()


def test_what_has_ended_is_not_taken_for_another_build(tmp_path: Path) -> None:
    result = tmp_path / "result"
    result.mkdir()
    (result / "config.json").write_text('{"digest": "abc"}')
    with open_work(tmp_path / "w", SETTINGS, INPUTS) as work:
        end_work(work, "abc")
        (work.path / "build.json").unlink()
    with open_work(tmp_path / "w", {**SETTINGS, "more": 1}, INPUTS) as work:
        assert not is_ended(work, result)


def test_a_shard_is_known_by_size_time_and_content(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(bytes(3_000_000))
    before, there = Shard(path).identity(), path.stat()
    assert before == Shard(path).identity()
    for place in (0, 2_999_999):
        content = bytearray(3_000_000)
        content[place] = 1
        path.write_bytes(content)
        os.utime(path, ns=(there.st_atime_ns, there.st_mtime_ns))
        assert before["sample"] != Shard(path).identity()["sample"]
        assert before["mtime_ns"] == Shard(path).identity()["mtime_ns"]
