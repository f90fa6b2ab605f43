"""A project file from somebody else: it is used, or refused with one message, and nothing in it is run."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from wgcn.base.errors import InputError, StoreError
from wgcn.label.decisions import Decision
from wgcn.label.page import LabelPage, write_labels
from wgcn.label.project import Estimate, Project, create_project

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
HUGE = "printf('%.*c', 900000000, 'x')"
SQL = sqlite3.Connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "p.sqlite"
    rows = [(f"text {i} of wine", ("a", "b", None)[i % 3], [f"cell {i}"]) for i in range(30)]
    create_project(place, rows, {"tokenizer": "words"}, {"names": ["note", "text", "label"], "text": 1, "label": 2})
    return place


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def anyhow(path: Path, statement: str) -> None:
    """Change rows in a way that the tables do not allow, and leave the tables as they were."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        before = database.execute("SELECT name, sql FROM sqlite_schema").fetchall()
        database.execute("DROP TRIGGER no_UPDATE")
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '')")
        database.execute("PRAGMA writable_schema = RESET")
        database.execute(statement)
        database.execute(dict(before)["no_UPDATE"])
        database.execute("PRAGMA writable_schema = ON")
        database.executemany("UPDATE sqlite_schema SET sql = ?2 WHERE name = ?1", before)


def use(path: Path) -> None:
    """Do what a page does."""
    with Project(path) as project:
        page = LabelPage(project, with_model=False)
        page.summary()
        page._listed({"query": "wine"})
        list(project.all_texts())
        label = project.decide("me", Decision("add", value="new")).decision.label
        project.decide("me", Decision("label", 3, label))
        project.keep_estimate(Estimate(1, 1, 1.0, 1))
        write_labels(project, path.with_name("out.csv"))


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE texts", f"CREATE VIEW texts AS {ENDLESS} SELECT x - 1 AS id, 'a' AS text FROM c"],
        ["DROP TABLE facts", f"CREATE VIEW facts AS {ENDLESS} SELECT x AS name, '1' AS value FROM c"],
        ["DROP TABLE estimates", f"CREATE VIEW estimates AS {ENDLESS} SELECT x AS seq, 1, 0.5, 1 FROM c"],
        ["DROP TABLE texts", f"CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT AS ({HUGE}) VIRTUAL)"],
        ["DROP TABLE texts", "CREATE VIRTUAL TABLE texts USING fts5(text)"],
        [f"CREATE TRIGGER t AFTER INSERT ON log BEGIN INSERT INTO estimates {ENDLESS} SELECT x, 1, 1, 1 FROM c; END"],
        ["CREATE INDEX i ON texts (length(text))"],
        [f"CREATE TABLE more (a CHECK (length({HUGE}) > 1))"],
        ["ALTER TABLE log ADD COLUMN more"],
        ["DROP TRIGGER no_DELETE"],
    ],
)
def test_nothing_but_the_tables_of_a_project_is_opened(path: Path, statements: list[str]) -> None:
    change(path, *statements)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"p\.sqlite cannot be read as a project: it (has the|lacks)"):
        Project(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE texts SET text = NULL WHERE id = 3",
        "UPDATE texts SET text = x'00ff' WHERE id = 3",
        "UPDATE texts SET text = CAST(x'1b5b324aff42' AS TEXT) WHERE id = 3",  # which would clear the terminal
        "DELETE FROM texts WHERE id = 3",
        "UPDATE texts SET id = 99 WHERE id = 3",
        "UPDATE others SET cells = '[1]' WHERE id = 3",
        "UPDATE others SET cells = '[[[[' WHERE id = 3",
        "UPDATE others SET cells = '[\"\\ud800\"]' WHERE id = 3",
        "UPDATE facts SET value = replace(value, 'note', '\\ud800') WHERE name = 'columns'",
        "UPDATE log SET label = 9223372036854775807 WHERE seq = 1",
        "UPDATE log SET label = -1 WHERE seq = 1",
        "UPDATE log SET time = NULL WHERE seq = 1",
        "UPDATE log SET who = x'00' WHERE seq = 1",
        "UPDATE log SET kind = NULL WHERE seq = 1",
        "UPDATE log SET value = 7 || char(0) WHERE seq = 1",
        "UPDATE log SET text = 'x' WHERE seq = 4",
        "UPDATE log SET seq = 1000 WHERE seq = 4",
        "UPDATE sqlite_sequence SET seq = 9223372036854775807",
        "INSERT INTO estimates VALUES (2, NULL, NULL, NULL)",
        "INSERT INTO estimates VALUES (2, 1, 9e999, 1)",
        "INSERT INTO estimates VALUES (2, 1, 1.0, 0)",
        "UPDATE facts SET value = NULL WHERE name = 'source'",
        "UPDATE facts SET value = '[1]' WHERE name = 'source'",
        "UPDATE facts SET value = '{\"tokenizer\": \"of somebody\"}' WHERE name = 'source'",
        "UPDATE facts SET value = '{}' WHERE name = 'columns'",
        'UPDATE facts SET value = \'{"names": ["a"], "text": 0, "label": 9}\' WHERE name = \'columns\'',
        "UPDATE facts SET value = '1e300' WHERE name = 'n_texts'",
        "UPDATE facts SET value = printf('%.*c', 50000, '[') WHERE name = 'made'",
        "DELETE FROM facts WHERE name = 'n_texts'",
    ],
)
def test_a_value_of_the_wrong_kind_is_one_error(path: Path, statement: str) -> None:
    anyhow(path, statement)
    with pytest.raises(StoreError, match=r"p\.sqlite cannot be read as a project") as error:
        use(path)
    assert str(error.value).isprintable()


def test_trees_of_pages_that_lead_in_circles_are_refused(tmp_path: Path) -> None:
    """Each of the pages that lead to the leaves names one and the same page again and again."""
    path = tmp_path / "p.sqlite"
    create_project(path, ((f"text {i} " + "x" * 2000, None) for i in range(600)))
    with closing(sqlite3.connect(path)) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'texts'").fetchone()
    data, size = bytearray(path.read_bytes()), 4096
    page = (root - 1) * size
    n_cells, child = int.from_bytes(data[page + 3 : page + 5], "big"), data[page + 8 : page + 12]
    assert n_cells > 10
    for i in range(n_cells):  # all cells lead where the last one does
        place = page + int.from_bytes(data[page + 12 + 2 * i : page + 14 + 2 * i], "big")
        data[place : place + 4] = child
    path.write_bytes(data)
    with pytest.raises(StoreError, match="its pages are damaged"):
        Project(path)


def test_a_schema_without_end_is_refused(path: Path) -> None:
    """The first page, which SQLite reads before anything can be checked, leads to itself."""
    data = bytearray(path.read_bytes())
    data[100:112] = bytes([5, 0, 0, 0, 0, 15, 0, 0]) + (1).to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises(StoreError, match="cannot be read as a project"):
        Project(path)


def test_classes_that_are_added_and_merged_without_end_are_refused(path: Path) -> None:
    """What a class costs grows with the classes that were there before."""
    with closing(sqlite3.connect(path)) as database:
        insert = "INSERT INTO log (time, who, kind, label, value) VALUES (1.5, 'x', ?, ?, ?)"
        for label in range(3, 2100):
            database.execute(insert, ("add", label, f"class {label}"))
            database.execute(insert, ("merge", label, "1"))
        database.commit()
    with pytest.raises(StoreError, match="2,000 classes"):
        Project(path)


def test_files_that_are_no_projects_are_not_touched(tmp_path: Path) -> None:
    """SQLite would take over what another program has left beside its file, and then remove it."""
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE a (b); INSERT INTO a VALUES (1)")
        content = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert len(content) > 1
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(StoreError, match="is not a project of 'wgcn label'"):
        Project(path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == content


def test_projects_of_the_first_version_are_opened(path: Path) -> None:
    """They had no table of other columns."""
    change(path, "DROP TABLE others", "DELETE FROM facts WHERE name = 'columns'")
    use(path)
    change(path, "ALTER TABLE estimates RENAME TO more", "ALTER TABLE more RENAME TO estimates")
    with pytest.raises(StoreError, match="a newer wgcn may know it"):
        Project(path)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_project_is_a_plain_file(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "p.sqlite")
    with pytest.raises(InputError, match="not a plain file"):
        Project(tmp_path / "p.sqlite")


def test_a_file_that_is_damaged_while_it_is_open_is_one_error(path: Path) -> None:
    with Project(path) as project, path.open("r+b") as file:
        before = project.state
        file.seek(4096)
        file.write(bytes(path.stat().st_size - 4096))
        file.flush()
        for read in (
            lambda: project.texts([3]),
            lambda: list(project.all_texts()),
            lambda: list(project.all_rows()),
            lambda: project.search("wine"),
            project.estimates,
            lambda: project.decide("me", Decision("skip", 0)),
        ):
            with pytest.raises(StoreError, match=r"p\.sqlite cannot be (read|written)"):
                read()
        assert project.state == before
