import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wgcn.base.errors import InputError, StoreError
from wgcn_paper.experiments import results
from wgcn_paper.experiments.cells import Cell, Run, make_cell, run_cell
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.table import load_table
from wgcn_paper.methods.linear_svc import LinearSVCMethod
from wgcn_paper.methods.wgcn import LinearMethod


def made(seed: int = 0, variant: str = "row", accuracy: float = 0.5, **settings: object) -> Run:
    cell = Cell("r8", "corpus", "a method", dict(settings), seed, variant)
    return Run(cell, accuracy, 10, None, 3, 1.5, 2.0, 0.1, 100.0, None, "abc", "cpu", "2026-01-01", {"machine": "m"})


def test_runs_are_found_again(tmp_path: Path) -> None:
    runs = [made(seed, variant) for seed in range(12) for variant in ("a", "b")]
    results = ResultFile(tmp_path / "new" / "folder", "accuracy")
    assert results.find(runs[0].cell) is None
    results.add(runs)
    for found in (results, ResultFile(tmp_path / "new" / "folder", "accuracy")):
        assert found.runs(run.cell for run in runs) == runs
        assert found.find(made(99).cell) is None


def test_a_setting_that_a_method_got_later_has_its_default(tmp_path: Path) -> None:
    old = replace(made(), cell=Cell("r8", "corpus", "linear-svc", {"C": 2.0}))
    ResultFile(tmp_path, "accuracy").add([old])
    results = ResultFile(tmp_path, "accuracy")
    assert results.find(make_cell("r8", "corpus", "linear-svc", {"C": 2.0})) is not None
    assert results.find(make_cell("r8", "corpus", "linear-svc", {"C": 2.0, "ngrams": 2})) is None
    assert results.find(make_cell("r8", "corpus", "linear-svc", {})) is None


def test_a_run_from_before_self_training_counts_as_one_without(tmp_path: Path) -> None:
    settings = make_cell("r8", "few-label:1%", "wgcn-linear", {}).settings
    del settings["self_training"]
    cell = Cell("r8", "few-label:1%", "wgcn-linear", settings, version=LinearMethod.version)
    ResultFile(tmp_path, "accuracy").add([replace(made(), cell=cell)])
    results = ResultFile(tmp_path, "accuracy")
    assert results.find(make_cell("r8", "few-label:1%", "wgcn-linear", {})) is None
    assert results.find(make_cell("r8", "few-label:1%", "wgcn-linear", {"self_training": 0.0})) is not None


def test_changed_settings_replace_only_their_own_place(tmp_path: Path) -> None:
    results = ResultFile(tmp_path, "accuracy")
    results.add([made(0), made(1), made(0, "other")])
    new = made(0, C=2.0)
    assert results.find(new.cell) is None
    assert results.runs([new.cell]) == []
    results.add([new])
    again = ResultFile(tmp_path, "accuracy")
    assert again.find(new.cell) == new
    assert again.find(made(0).cell) is None
    assert again.runs([made(1).cell, made(0, "other").cell]) == [made(1), made(0, "other")]
    assert len(json.loads((tmp_path / "accuracy.json").read_text())["runs"]) == 3


def test_runs_of_another_table_are_taken_under_the_own_name(tmp_path: Path) -> None:
    ResultFile(tmp_path, "orders").add([made(0, "order 1", accuracy=0.7)])
    wanted = made(0, "row").cell
    found = ResultFile(tmp_path, "accuracy").find(wanted)
    assert found is not None
    assert (found.cell, found.accuracy) == (wanted, 0.7)
    assert ResultFile(tmp_path, "accuracy").find(made(0, "row", C=2.0).cell) is None
    assert ResultFile(tmp_path, "efficiency", reuse=False).find(wanted) is None


def test_other_tables_are_read_only_for_runs_that_the_own_file_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders", "accuracy"):
        ResultFile(tmp_path, name).add([made()])
    read, asked = results._read, []
    monkeypatch.setattr(results, "_read", lambda path, needed=True: asked.append(path.stem) or read(path, needed))
    found = ResultFile(tmp_path, "accuracy")
    assert found.missing([made().cell]) == []
    assert asked == ["accuracy"]
    assert found.missing([made(1).cell]) == [made(1).cell]
    assert asked == ["accuracy", "orders"]


def test_own_run_comes_before_that_of_another_table(tmp_path: Path) -> None:
    ResultFile(tmp_path, "orders").add([made(accuracy=0.7)])
    ResultFile(tmp_path, "accuracy").add([made(accuracy=0.8)])
    found = ResultFile(tmp_path, "accuracy").find(made().cell)
    assert found is not None
    assert found.accuracy == 0.8


def test_environments_are_written_once(tmp_path: Path) -> None:
    runs = [replace(made(seed), environment={"machine": "ab"[seed % 2]}) for seed in range(6)]
    ResultFile(tmp_path, "accuracy").add(runs)
    document = json.loads((tmp_path / "accuracy.json").read_text())
    assert document["environments"] == [{"machine": "a"}, {"machine": "b"}]
    assert ResultFile(tmp_path, "accuracy").runs(run.cell for run in runs) == runs
    # A run a line.
    assert sum('"seed"' in line for line in (tmp_path / "accuracy.json").read_text().splitlines()) == 6


def test_same_runs_make_the_same_file(tmp_path: Path) -> None:
    runs = [made(seed) for seed in range(5)]
    for name, order in (("a", runs), ("b", runs[::-1])):
        results = ResultFile(tmp_path / name, "accuracy")
        for run in order:
            results.add([run])
    assert (tmp_path / "a/accuracy.json").read_bytes() == (tmp_path / "b/accuracy.json").read_bytes()


UNSOUND: list[tuple[str, Any]] = [
    *(("seed", value) for value in (None, "1", 1.5, [], True, 2**70)),
    *(("accuracy", value) for value in (None, "1", float("nan"), float("inf"), [0.5])),
    *(("method", value) for value in (None, ["a"], {"a": 1})),
    ("n_test", -1),
    ("metrics", [1]),
    ("right", 5),
    ("right", "qg=="),
    ("right", "not base64"),
    ("right", "\ud800"),
]


def damaged() -> dict[str, bytes]:
    run = made().as_json()
    lists = {"environments": [{}], "settings": [run["settings"]]}
    whole = {"format": "wgcn-results-2", "table": "x", **lists, "runs": [{**run, "environment": 0, "settings": 0}]}
    text = json.dumps(whole)
    return {
        "cut": text[: len(text) // 2].encode(),
        "empty": b"",
        "bytes": b"\xff\xfe\x00",
        "list": b"[]",
        "other format": text.replace("results-2", "results-9").encode(),
        "no runs": b'{"format": "wgcn-results-2", "environments": [], "settings": []}',
        "runs of another kind": json.dumps({**whole, "runs": [1]}).encode(),
        "runs that are none": json.dumps({**whole, "runs": None}).encode(),
        "environment that is not there": text.replace('"environment": 0', '"environment": 5').encode(),
        "settings that are not there": text.replace('"settings": 0', '"settings": 5').encode(),
        "changed seed": text.replace('"seed": 0', '"seed": 1').encode(),
        "key too many": text.replace('"seed": 0', '"seed": 0, "colour": 1').encode(),
        "deep": b"[" * 100_000,
        **{f"{key} that is {value}": changed(whole, **{key: value}) for key, value in UNSOUND},
        "a huge seed": text.replace('"seed": 0', f'"seed": {"9" * 5000}').encode(),
        "environments that are none": json.dumps({**whole, "environments": {"0": {}}}).encode(),
        "an environment from the end": text.replace('"environment": 0', '"environment": -1').encode(),
    }


def changed(document: dict[str, Any], **values: object) -> bytes:
    """Return a file whose run has other values, under a key that fits."""
    run = {**document["runs"][0], **values}
    cell = Cell(**{**{name: run[name] for name in Cell.__dataclass_fields__}, "settings": {}})
    return json.dumps({**document, "runs": [{**run, "key": cell.key}]}).encode()


@pytest.mark.parametrize("kind", damaged())
def test_a_damaged_file_is_one_error_and_is_left_as_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "accuracy.json"
    path.write_bytes(damaged()[kind])
    with pytest.raises(StoreError, match=r"accuracy.json is damaged or not a result file.*Move it away"):
        ResultFile(tmp_path, "accuracy")
    assert path.read_bytes() == damaged()[kind]
    # Another table does not need it.
    ResultFile(tmp_path, "orders").add([made()])


def test_the_file_is_whole_at_every_moment(tmp_path: Path) -> None:
    file, path = ResultFile(tmp_path, "accuracy"), tmp_path / "accuracy.json"
    file.add([made(0)])
    ended = threading.Event()

    def write() -> None:
        for seed in range(1, 15):
            file.add([made(seed)])
        ended.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = [1]
    while not ended.is_set():
        seen.append(len(json.loads(path.read_bytes())["runs"]))
    thread.join()
    assert seen == sorted(seen)
    assert len(ResultFile(tmp_path, "accuracy").runs(made(seed).cell for seed in range(15))) == 15
    assert [file.name for file in tmp_path.iterdir()] == ["accuracy.json"]


def test_a_failed_save_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    results, path = ResultFile(tmp_path, "accuracy"), tmp_path / "accuracy.json"
    results.add([made(0)])
    before = path.read_bytes()
    with pytest.raises(TypeError):
        results.add([made(1, colour=object())])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["accuracy.json"]


def test_two_commands_may_write_to_one_file(tmp_path: Path) -> None:
    first, second = ResultFile(tmp_path, "accuracy"), ResultFile(tmp_path, "accuracy")
    first.add([made(0)])
    second.add([made(1)])
    first.add([made(2)])
    assert len(ResultFile(tmp_path, "accuracy").runs(made(seed).cell for seed in range(3))) == 3


def test_processes_that_write_to_one_file_lose_no_run(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from wgcn_paper.experiments.cells import Cell, Run; from wgcn_paper.experiments.results import ResultFile\n"
        "file = ResultFile(Path(sys.argv[1]), 'accuracy')\n"
        "figures = 0.5, 10, None, 3, 1.5, 2.0, 0.1, 100.0, None, 'abc', 'cpu', '2026-01-01'\n"
        "for seed in range(int(sys.argv[2]), int(sys.argv[2]) + 40):\n"
        "    file.add([Run(Cell('r8', 'corpus', 'a method', {}, seed), *figures)])\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), f"{first}"]) for first in (0, 40)]
    assert [process.wait() for process in processes] == [0, 0]
    cells = [Cell("r8", "corpus", "a method", {}, seed) for seed in range(80)]
    assert len(ResultFile(tmp_path, "accuracy").runs(cells)) == 80


def test_a_pipe_in_place_of_a_file_is_one_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "accuracy.json")
    with pytest.raises(StoreError, match="not a plain file"):
        ResultFile(tmp_path, "accuracy")


def test_a_run_of_an_earlier_version_of_the_code_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = make_cell("r8", "corpus", "linear-svc", {}, variant="LinearSVC")
    ResultFile(tmp_path, "accuracy").add([replace(made(), cell=before)])
    monkeypatch.setattr(LinearSVCMethod, "version", 2)
    now = make_cell("r8", "corpus", "linear-svc", {}, variant="LinearSVC")
    assert now.key != before.key
    results = ResultFile(tmp_path, "accuracy")
    assert results.missing([now, before]) == [now]
    results.add([replace(made(), cell=now)])  # takes the place of the earlier one
    assert ResultFile(tmp_path, "accuracy").missing([now, before]) == [before]
    with pytest.raises(InputError, match="is at version 2; runs of version 1 are kept but cannot be made"):
        run_cell(before)


def test_a_table_can_show_runs_of_an_earlier_version() -> None:
    assert {cell.version for cell in load_table("ablation").cells() if cell.method == "wgcn-linear"} == {1}
    assert {cell.version for cell in load_table("review").cells()} == {1}
    assert {cell.version for cell in load_table("abstain").cells()} == {2}  # where none is named


def test_what_runs_have_in_common_is_written_once_and_a_float_stays_one(tmp_path: Path) -> None:
    runs = [made(seed, C=value) for seed, value in enumerate((1, 1, 1.0))]
    ResultFile(tmp_path, "accuracy").add(runs)
    document = json.loads((tmp_path / "accuracy.json").read_bytes())
    assert (len(document["environments"]), len(document["settings"])) == (1, 2)
    found = ResultFile(tmp_path, "accuracy").runs([run.cell for run in runs])
    assert [repr(run.cell.settings["C"]) for run in found] == ["1", "1", "1.0"]


def test_a_file_that_is_nested_deeply_is_damaged(tmp_path: Path) -> None:
    deep = '{"a": ' * 400 + "1" + "}" * 400
    document = f'{{"format": "wgcn-results-2", "environments": [{deep}], "settings": [{{}}], "runs": []}}'
    (tmp_path / "some.json").write_text(document)
    with pytest.raises(StoreError, match="nested"):
        ResultFile(tmp_path, "some")
