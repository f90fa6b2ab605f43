"""The project file: whole or not there, and nothing that was answered is lost."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wgcn.base.errors import InputError, StoreError
from wgcn.label.decisions import Decision
from wgcn.label.project import Estimate, Project, create_project, project_path

TEXTS = ["red wine", "white WINE", "a fast car", "ein Straßenrennen", "nul\x00 inside", "half \ud800"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "pets.sqlite"
    create_project(place, ((text, None) for text in TEXTS))
    return place


def test_labels_of_the_file_are_the_first_decisions(tmp_path: Path) -> None:
    place = tmp_path / "p.sqlite"
    create_project(place, [("a", "y"), ("b", None), ("c", "x"), ("d", "y")])
    with Project(place) as project:
        names = {number: each.name for number, each in project.state.live.items()}
        assert {text: names[label] for text, label in project.state.labels.items()} == {0: "y", 2: "x", 3: "y"}
        with pytest.raises(InputError, match="nothing to undo"):
            project.decide("me", Decision("undo"))


def test_a_project_is_whole_or_not_there(tmp_path: Path) -> None:
    def rows() -> object:
        yield "a", None
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        create_project(tmp_path / "p.sqlite", rows())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no text"):
        create_project(tmp_path / "p.sqlite", [])
    with pytest.raises(InputError, match="list of labels"):
        create_project(tmp_path / "p.sqlite", [("a", ["x", "y"])])
    with pytest.raises(InputError, match="201 different labels"):
        create_project(tmp_path / "p.sqlite", [("a", f"class {i}") for i in range(201)])
    assert list(tmp_path.iterdir()) == []


def test_decisions_are_there_after_opening_again(path: Path) -> None:
    with Project(path) as project:
        wine = project.decide("me", Decision("add", value="wine")).decision.label
        project.decide("me", Decision("label", 0, wine))
        project.decide("me", Decision("label", 1, wine))
        project.decide("me", Decision("undo"))
        state = project.state
    with Project(path) as project:
        assert project.state == state
        assert project.state.labels == {0: wine}
        assert list(project.all_texts()) == [*TEXTS[:4], "nul\ufffd inside", "half ?"]


def test_each_undoes_its_own(path: Path) -> None:
    with Project(path) as project:
        label = project.decide("a", Decision("add", value="x")).decision.label
        project.decide("a", Decision("label", 0, label))
        project.decide("b", Decision("label", 1, label))
        project.decide("a", Decision("undo"))
        assert project.state.labels == {1: label}
        with pytest.raises(InputError, match="build on it"):
            project.decide("a", Decision("undo"))
        project.decide("b", Decision("undo"))
        project.decide("a", Decision("undo"))
        assert not project.state.classes


def test_undoing_a_merge_gives_the_labels_back(path: Path) -> None:
    with Project(path) as project:
        one, two = (project.decide("me", Decision("add", value=name)).decision.label for name in "ab")
        project.decide("me", Decision("label", 0, one))
        project.decide("me", Decision("merge", label=one, value=str(two)))
        project.decide("me", Decision("label", 1, one))  # from a page that has not yet seen the merge
        assert project.state.labels == {0: two, 1: two}
        project.decide("me", Decision("undo"))
        project.decide("me", Decision("undo"))
        assert project.state.labels == {0: one}


def test_the_number_of_a_class_is_never_that_of_another(path: Path) -> None:
    """A page that has not seen an undo yet must not label with a class that it does not show."""
    with Project(path) as project:
        one, two = (project.decide("me", Decision("add", value=name)).decision.label for name in "ab")
        project.decide("me", Decision("undo"))
        three = project.decide("me", Decision("add", value="c")).decision.label
        assert len({one, two, three}) == 3
        with pytest.raises(InputError, match="no class number"):
            project.decide("you", Decision("label", 0, two))
        four = project.decide("me", Decision("add", label=one, value="d")).decision.label
        assert four not in (one, two, three)
        assert [each.name for each in project.state.live.values()] == ["a", "c", "d"]


def test_two_writers_leave_one_whole_log(path: Path) -> None:
    """Each in a process of its own, as fast as they can."""
    with Project(path) as project:
        label = project.decide("me", Decision("add", value="x")).decision.label
        program = (
            "import sys; from wgcn.label.project import Project, Decision\n"
            "project = Project(sys.argv[1])\n"
            "for i in range(40): project.decide(sys.argv[2], Decision('label', i % 6, int(sys.argv[3])))\n"
        )
        with ThreadPoolExecutor(2) as pool:
            run = [sys.executable, "-c", program, str(path)]
            list(pool.map(lambda who: subprocess.run([*run, who, str(label)], check=True), "ab"))
        entries = project.entries()
        assert [entry.seq for entry in entries] == list(range(1, 82))
        assert [sum(entry.who == who for entry in entries) for who in "ab"] == [40, 40]
        project.refresh()
        assert project.state.labels == dict.fromkeys(range(6), label)


def test_a_label_is_kept_until_it_is_changed(path: Path) -> None:
    with Project(path) as project, Project(path) as other:
        one, two = (project.decide("me", Decision("add", value=name)).decision.label for name in "ab")
        with pytest.raises(InputError, match="does not have this label"):
            project.decide("me", Decision("keep", 0, one))
        project.decide("me", Decision("label", 0, one))
        project.decide("me", Decision("keep", 0, one))
        assert other.refresh().is_kept(0)
        project.decide("me", Decision("undo"))
        assert not other.refresh().is_kept(0)
        project.decide("me", Decision("keep", 0, one))
        other.decide("you", Decision("label", 0, two))
        with pytest.raises(InputError, match="does not have this label"):
            project.decide("me", Decision("keep", 0, one))  # from a page that has not yet seen the other label
        other.decide("you", Decision("label", 0, one))
        assert not project.refresh().is_kept(0)


def test_a_label_that_somebody_else_kept_can_be_undone(path: Path) -> None:
    with Project(path) as project:
        label = project.decide("me", Decision("add", value="a")).decision.label
        project.decide("me", Decision("label", 0, label))
        project.decide("you", Decision("keep", 0, label))
        project.decide("me", Decision("undo"))
        assert not project.state.labels
    with Project(path) as project:
        assert not project.state.is_kept(0)


def test_a_project_needs_a_newer_version_only_once_something_newer_is_in_it(path: Path) -> None:
    def version() -> str:
        with sqlite3.connect(path) as database:
            (found,) = database.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
        database.close()
        return str(found)

    with Project(path) as project:
        label = project.decide("me", Decision("add", value="a")).decision.label
        project.decide("me", Decision("label", 0, label))
        assert version() == "1"
        project.decide("me", Decision("keep", 0, label))
        assert version() == "2"
    with sqlite3.connect(path) as database:
        database.execute("UPDATE facts SET value = '3' WHERE name = 'version'")
    database.close()
    with pytest.raises(StoreError, match="newer version"):
        Project(path)


def test_the_log_is_only_added_to(path: Path) -> None:
    with Project(path) as project:
        project.decide("me", Decision("add", value="x"))
    with sqlite3.connect(path) as database:
        for change in ("UPDATE log SET who = 'you'", "DELETE FROM log"):
            with pytest.raises(sqlite3.IntegrityError, match="only added to"):
                database.execute(change)
    database.close()


def test_search_is_for_all_words_in_any_case(path: Path) -> None:
    with Project(path) as project:
        assert project.search("wine") == {0, 1}
        assert project.search("WINE red") == {0}
        assert project.search("STRASSEN") == {3}
        assert project.search("wine") == {0, 1}
        assert project.search("%") == frozenset()


def test_estimates_are_kept(path: Path) -> None:
    with Project(path) as project:
        project.keep_estimate(Estimate(3, 10, 7.5, 10))
        project.keep_estimate(Estimate(3, 10, 8.0, 10))
        assert project.estimates() == [Estimate(3, 10, 8.0, 10)]


def test_other_files_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    other.write_bytes(b"not a database at all, but long enough to look like one" * 10)
    with pytest.raises(StoreError, match="is not a project"):
        Project(other)
    sqlite3.connect(tmp_path / "empty.sqlite").execute("CREATE TABLE a (b)").connection.close()
    with pytest.raises(StoreError, match="is not a project"):
        Project(tmp_path / "empty.sqlite")
    with pytest.raises(InputError, match="There is no project"):
        Project(tmp_path / "nothing.sqlite")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE facts SET value = 'x' WHERE name = 'version'",
        "UPDATE facts SET value = '\"x\"' WHERE name = 'version'",
        "DELETE FROM facts",
        "DROP TABLE log",
        "INSERT INTO log (time, who, kind, text, label, value) VALUES (1, 'x', 'label', 99, 1, '')",
        "INSERT INTO log (time, who, kind, value) VALUES (1, 'x', 'undo', 'y')",
    ],
)
def test_a_damaged_project_is_said_to_be_so(path: Path, damage: str) -> None:
    with sqlite3.connect(path) as database:
        database.execute(damage)
    database.close()
    with pytest.raises(StoreError, match="cannot be read as a project"):
        Project(path)


def test_a_full_disk_leaves_no_part_of_a_project(tmp_path: Path) -> None:
    """As a limit of the size of files, in a process of its own."""
    program = (
        "import resource, signal, sys; from pathlib import Path; from wgcn.label.project import create_project\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "create_project(Path(sys.argv[1]), (('some words here', None) for _ in range(20_000)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "p.sqlite")], capture_output=True, text=True)
    assert "InputError" in done.stderr.splitlines()[-1]
    assert "Is the disk full?" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_moved_while_it_is_open_takes_no_decision(path: Path) -> None:
    """It would be written into a file that nobody finds, or an empty one would be made in its place."""
    with Project(path) as project:
        label = project.decide("me", Decision("add", value="a")).decision.label
        away = path.rename(path.with_name("away"))
        for _ in range(2):
            with pytest.raises(StoreError, match=r"The decision is not kept\. Move it back"):
                project.decide("me", Decision("label", 0, label))
            with pytest.raises(StoreError, match="moved, removed or replaced"):
                project.texts([0])
            path.write_bytes(b"another")
        away.replace(path)
        project.decide("me", Decision("label", 0, label))
        assert project.texts([0]) == TEXTS[:1]
    with Project(path) as project:
        assert project.state.labels == {0: label}


def test_a_decision_on_a_full_disk_is_refused_and_the_next_one_is_not(path: Path) -> None:
    """As a limit of the size of files, in a process of its own."""
    program = (
        "import resource, signal, sys; from wgcn.label.project import Project, Decision, StoreError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); project, n = Project(sys.argv[1]), 0\n"
        "project.decide('me', Decision('add', value='a'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    while n < 1000: project.decide('me', Decision('label', n % 6, 1)); n += 1\n"
        "except StoreError as error: print(error)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "project.decide('me', Decision('skip', 0)); print(n)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    said, n = done.stdout.splitlines()
    assert "The decision is not kept" in said
    with Project(path) as project:
        kinds = [entry.decision.kind for entry in project.entries()]
    assert kinds == ["add", *["label"] * int(n), "skip"]


def test_a_name_without_ending_gets_one(path: Path) -> None:
    assert project_path("a/my-project") == Path("a/my-project.sqlite")
    assert project_path("a/my.db") == Path("a/my.db")
    assert project_path("reviews.en") == Path("reviews.en.sqlite")
    assert project_path(path.rename(path.with_suffix(".pets"))) == path.with_suffix(".pets")
    for name in (".", "", "/", "a/.."):
        with pytest.raises(InputError, match="cannot be the name"):
            project_path(name)


# Making it


def run_all(program: str, folder: Path, n: int) -> list[str]:
    """Run a program several times at once, begun together, and return what each has written."""
    begin = "import sys, time; from pathlib import Path; print(flush=True); sys.stdin.readline()\n"
    run = [sys.executable, "-c", begin + program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    processes = [subprocess.Popen(run, cwd=folder, text=True, **pipes) for _ in range(n)]  # type: ignore[call-overload]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate(timeout=120)[0].strip() for process in processes]


def test_of_several_that_make_a_project_at_once_one_does_and_the_others_open_it(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text,label\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(5000)))
    program = (
        "from wgcn.label.start import ready_project; from wgcn.label.project import Project\n"
        "with Project(ready_project(Path('in.csv'), Path('p'))) as project:\n"
        "    print(len(list(project.all_texts())), len(project.state.labels))\n"
    )
    assert run_all(program, tmp_path, 5) == ["5000 5000"] * 5
    with Project(tmp_path / "p.sqlite") as project:
        assert len(list(project.all_texts())) == project.n_texts == 5000
    assert {each.name for each in tmp_path.iterdir()} == {"in.csv", "p.sqlite"}


def test_a_project_is_never_made_over_another_file(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"There is a file .* already"):
        create_project(path, [("a", None)])
    assert path.read_bytes() == before


def test_a_project_does_not_take_over_what_is_left_of_another_one(path: Path) -> None:
    """SQLite takes what is beside a file for a part of it."""
    with Project(path) as project:
        project.decide("me", Decision("add", value="of the other"))
        path.rename(path.with_name("away"))
        with pytest.raises(InputError, match=r"pets\.sqlite-wal is left of another project"):
            create_project(path, [("a", None)])
        assert not path.exists()


def test_who_waits_too_long_for_another_process_is_told(tmp_path: Path) -> None:
    path = tmp_path / "p.sqlite"

    def rows() -> Iterator[tuple[str, None]]:
        with pytest.raises(InputError, match="Another process is making"):
            create_project(path, [("b", None)], wait=0.1)
        yield "a", None

    create_project(path, rows())
    with Project(path) as project:
        assert list(project.all_texts()) == ["a"]


def test_killed_at_any_line_there_is_no_project_or_a_whole_one(tmp_path: Path) -> None:
    """Children of one process, each killed one line later than the one before."""
    program = (
        "import os, signal, sys; from itertools import count; from pathlib import Path; from wgcn.base import files\n"
        "from wgcn.label import project as tested, project_file; from wgcn.label.project import Project\n"
        "sources = {each.__file__ for each in (tested, files, project_file)}\n"
        "rows = [(f'text {i}', 'ab'[i % 2], ['more']) for i in range(3)]\n"
        "columns = {'names': ['n', 'text', 'label'], 'text': 1, 'label': 2}\n"
        "def child(path, left):\n"
        "    def trace(frame, event, _):\n"
        "        nonlocal left\n"
        "        left -= event == 'line'\n"
        "        if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return trace\n"
        "    sys.settrace(lambda frame, *_: trace if frame.f_code.co_filename in sources else None)\n"
        "    tested.create_project(path, rows, {}, columns)\n"
        "    with Project(path): pass\n"
        "    os._exit(0)\n"
        "for n in count(0, 3):\n"
        "    folder = Path(sys.argv[1], str(n)); folder.mkdir(); path = folder / 'p.sqlite'\n"
        "    if not (pid := os.fork()): child(path, n)\n"
        "    status, there = os.waitpid(pid, 0)[1], path.exists()\n"
        "    if not there: tested.create_project(path, rows, {}, columns)\n"
        "    with Project(path) as project:\n"
        "        assert [text for text, _ in project.all_rows()] == ['text 0', 'text 1', 'text 2'], n\n"
        "        assert len(project.state.labels) == 3, n\n"
        "        project.decide('me', tested.Decision('skip', 0))\n"
        "    left = {each.name for each in folder.iterdir() if not each.name.startswith('.wgcn-')}\n"
        "    assert left <= {'p.sqlite', 'p.sqlite.lock'}, left\n"
        "    print(there, flush=True)\n"
        "    if not status: break\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    there = [line == "True" for line in done.stdout.splitlines()]
    assert there == sorted(there)
    assert min(there.count(True), there.count(False)) > 10
