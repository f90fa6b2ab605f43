from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from wgcn.base.errors import InputError
from wgcn_paper.datasets import DATASETS
from wgcn_paper.datasets.derived import SOURCES
from wgcn_paper.experiments import published
from wgcn_paper.experiments.efficiency import WHOLE
from wgcn_paper.experiments.pages import TABLES
from wgcn_paper.experiments.table import Options, Row, Table, _searched, load_table, row_name, variant_name
from wgcn_paper.methods.baseline import method_class
from wgcn_paper.protocol import Protocol

# What methods read that read no texts.
KINDS = dict.fromkeys(("wgcn-citations", "gcn", "gin", "sgc"), "citation")
BOTH = ("fast-gcn", "linearised-wgcn", "linearised-text-gcn")

TABLE = Table(
    "accuracy",
    "A table",
    ["r8", "mr"],
    ["corpus", "inductive", "few-label:5%", "few-label:100%", "few-label:10"],
    3,
    [
        Row("network", "wgcn", {"hidden": 4, "window": 5}, {"mr": {"window": 7}}),
        Row("linear", "wgcn-linear", protocols=["corpus", "few-label:5%", "few-label:100%", "few-label:10"]),
    ],
    set_seeds={"mr": 2},
    versions={"wgcn-linear": 2},  # of which seeds give no other model
)

# The settings files


def test_every_settings_file_is_of_a_table() -> None:
    files = [file.name for file in resources.files("wgcn_paper").joinpath("settings").iterdir()]
    assert sorted(file for file in files if file.endswith(".toml")) == sorted(f"{name}.toml" for name in TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_settings_files_load_and_their_cells_can_be_made(name: str) -> None:
    table = load_table(name)
    assert (table.name, bool(table.title), bool(table.datasets)) == (name, True, True)
    assert set(table.datasets) <= {*DATASETS, *SOURCES} & set(published.TITLES)
    for protocol in table.protocols:
        assert str(Protocol.parse(protocol)) == protocol
    names = [row.name for row in table.rows]
    assert len(set(names)) == len(names)
    cells = table.cells(Options(rows=names))  # those that are planned too
    assert bool(cells) == (name not in ("datasets", "elements", "readme"))
    assert len({cell.place for cell in cells}) == len(cells)
    for row in table.rows:
        assert {row_name(place) for place in row.sets} <= set(table.datasets)
        assert set(row.protocols or table.protocols) <= set(table.protocols)
        assert all(dataset in table.datasets and 0 <= n <= table.seeds for dataset, n in row.seeds.items())
        [read] = {DATASETS[SOURCES.get(dataset, dataset)].kind for dataset in table.datasets}
        assert read in ({"text", "citation"} if row.method in BOTH else {KINDS.get(row.method, "text")})
    for cell in cells:
        kind = method_class(cell.method)
        assert kind(cell.settings).settings == cell.settings
        assert set(cell.settings) == set(kind.defaults)


@pytest.mark.parametrize("name", TABLES)
def test_everything_that_a_search_tries_is_a_setting(name: str) -> None:
    for row in load_table(name).rows:
        for setting, values in row.search.items():
            assert len(set(values)) == len(values) > 1
            for value in values:
                default = method_class(row.method).defaults[setting]
                assert type(value) is type(default)


@pytest.mark.parametrize("name", TABLES)
def test_settings_have_the_types_of_their_defaults(name: str) -> None:
    table = load_table(name)
    for cell in table.cells(Options(rows=[row.name for row in table.rows])):
        for setting, value in cell.settings.items():
            several = setting in ("window", "citation_order") and isinstance(value, list)
            for each in value if several else [value]:
                assert type(each) is type(method_class(cell.method).defaults[setting]), setting


def test_costs_are_under_the_name_of_their_device() -> None:
    table = load_table("efficiency")
    variants = {cell.variant for cell in table.all_cells()}
    assert variants == {f"{row.name}; {device}" for row in table.rows for device in ("cpu", "cuda")}
    assert load_table("orders").all_cells() == load_table("orders").cells()


def of_row(table: Table, name: str, dataset: str) -> dict[str, object]:
    """Return the settings of a row on a data set under corpus."""
    [cell] = table.cells(Options([dataset], ["corpus"], [name], 1))
    return {"method": cell.method, **cell.settings}


def test_whole_trainings_are_those_of_the_table_of_accuracies() -> None:
    costs, accuracies = load_table("efficiency"), load_table("accuracy")
    whole = [row.name.removesuffix(WHOLE) for row in costs.rows if row.name.endswith(WHOLE)]
    assert whole == [row.name for row in costs.rows if not row.name.endswith(WHOLE)]
    assert set(published.EFFICIENCY) <= set(whole)
    for name in whole:
        for dataset in costs.datasets:
            own = of_row(costs, name + WHOLE, dataset)
            assert own == of_row(accuracies, name, dataset), (name, dataset)
            # The epochs that are measured are those of the same network, a few, on all training documents.
            epochs = of_row(costs, name, dataset)
            assert epochs["validation_fraction"] == 0
            for setting in ("max_epochs", "validation_fraction", "refit"):
                own.pop(setting, None)
                epochs.pop(setting, None)
            assert epochs == own, (name, dataset)


@pytest.mark.parametrize("name", ["accuracy", "citations"])
def test_every_published_row_is_run(name: str) -> None:
    assert {row.published for row in load_table(name).rows} - {""} == set(getattr(published, name.upper()))


def test_published_rows_are_complete() -> None:
    text = {name for name in DATASETS if DATASETS[name].kind == "text"}
    assert set(published.ACCURACY["WGCN"]) == set(published.EFFICIENCY["WGCN"]) == text
    assert set(published.CITATIONS["WGCN"]) == set(published.CITATION_ORDERS)
    assert set(load_table("accuracy").datasets) == text
    assert set(load_table("citations").datasets) == set(published.CITATIONS["WGCN"])
    for figures in (*published.ACCURACY.values(), *published.CITATIONS.values()):
        assert all(50 * (name != "ohsumed") < mean < 100 for name, (mean, _) in figures.items())
    for orders, name in ((published.ORDERS, "orders"), (published.CITATION_ORDERS, "citation-orders")):
        [(_, values)] = load_table(name).vary
        assert all(len(figures) == len(values) for figures in orders.values())
    assert set(published.TITLES) == {*DATASETS, "docs", *SOURCES}


# Cells


def test_cells_of_a_data_set_are_next_to_each_other() -> None:
    datasets = [cell.dataset for cell in TABLE.cells()]
    assert datasets == sorted(datasets, reverse=True)


def test_settings_of_a_single_set_come_first() -> None:
    windows = {(cell.dataset, cell.settings["window"]) for cell in TABLE.cells() if cell.method == "wgcn"}
    assert windows == {("r8", 5), ("mr", 7)}


def test_seeds_are_run_where_something_is_drawn() -> None:
    def seeds(dataset: str, protocol: str, method: str) -> list[int]:
        return [c.seed for c in TABLE.cells() if (c.dataset, c.protocol, c.method) == (dataset, protocol, method)]

    for protocol in TABLE.protocols:
        assert seeds("r8", protocol, "wgcn") == [0, 1, 2]
        assert seeds("mr", protocol, "wgcn") == [0, 1]
    assert seeds("r8", "corpus", "wgcn-linear") == [0]
    assert seeds("r8", "few-label:100%", "wgcn-linear") == [0]
    assert seeds("r8", "few-label:5%", "wgcn-linear") == [0, 1, 2]
    assert seeds("r8", "few-label:10", "wgcn-linear") == [0, 1, 2]
    assert seeds("r8", "inductive", "wgcn-linear") == []


def test_a_slow_row_has_fewer_seeds() -> None:
    def seeds(options: Options, dataset: str, protocol: str = "corpus") -> list[int]:
        cells = table.cells(replace(options, protocols=[protocol]))
        return [cell.seed for cell in cells if (cell.dataset, cell.variant) == (dataset, "network")]

    network = replace(TABLE.rows[0], seeds={"r8": 1, "mr": 3})
    table = replace(TABLE, rows=[network, TABLE.rows[1]])
    assert seeds(Options(), "r8") == seeds(Options(), "r8", "few-label:10") == [0]
    assert seeds(Options(), "mr") == [0, 1, 2]  # its own number comes before that of the set
    assert seeds(Options(seeds=2), "mr") == [0, 1]
    # The other row has as many as before.
    others = [[cell for cell in each.cells() if cell.variant == "linear"] for each in (table, TABLE)]
    assert others[0] == others[1] != []
    # What draws nothing is run once, whatever the row says.
    [fixed] = replace(TABLE, rows=[replace(TABLE.rows[1], seeds={"r8": 3})]).cells(Options(["r8"], ["corpus"]))
    assert fixed.seed == 0


def test_a_row_may_have_seeds_though_its_method_has_none() -> None:
    row = Row("linear", "wgcn-linear", version=2)
    counts = [
        len(replace(TABLE, rows=[replace(row, seeded=seeded)]).cells(Options(["r8"], ["corpus"])))
        for seeded in (None, False, True)
    ]
    assert counts == [1, 1, 3]
    assert [replace(row, seeded=seeded).has_seeds for seeded in (None, True)] == [False, True]
    assert not replace(TABLE.rows[0], seeded=False).has_seeds


def test_seeds_are_those_of_the_version_that_is_shown() -> None:
    def count(row: Row, **versions: int) -> int:
        table = replace(TABLE, rows=[row], versions={name.replace("_", "-"): n for name, n in versions.items()})
        cells = table.cells(Options(["r8"], ["corpus"]))
        assert table.has_seeds(row) == (len(cells) > 1)
        return len(cells)

    row = Row("linear", "wgcn-linear")
    assert [count(row), count(row, wgcn_linear=3), count(row, wgcn_linear=2), count(row, wgcn_linear=1)] == [3, 3, 1, 1]
    assert count(replace(row, version=2)) == count(replace(row, version=2), wgcn_linear=3) == 1
    assert count(replace(row, seeded=True), wgcn_linear=2) == 3


def test_earlier_versions_are_those_of_the_row_or_else_of_the_table() -> None:
    today = method_class("wgcn").version
    rows = [*TABLE.rows, replace(TABLE.rows[0], name="old", version=today + 7)]
    table = replace(TABLE, protocols=["corpus"], rows=rows, versions={"wgcn": today + 5})

    def versions(table: Table) -> dict[str, set[int]]:
        return {row.name: {c.version for c in table.cells() if c.variant == row.name} for row in table.rows}

    linear = method_class("wgcn-linear").version
    assert versions(table) == {"network": {today + 5}, "linear": {linear}, "old": {today + 7}}
    assert versions(replace(table, versions={})) == {"network": {today}, "linear": {linear}, "old": {today + 7}}


def test_every_value_is_varied_on_its_own() -> None:
    table = replace(TABLE, protocols=["corpus"], vary=[("hidden", [2, 3]), ("window", [5])], rows=TABLE.rows[:1])
    found = {(c.variant, c.settings["hidden"], c.settings["window"]) for c in table.cells() if c.dataset == "r8"}
    assert found == {("network; hidden 2", 2, 5), ("network; hidden 3", 3, 5), ("network; window 5", 4, 5)}
    assert variant_name("network", "hidden", 2) == "network; hidden 2"


def test_options_narrow() -> None:
    options = Options(["mr"], ["corpus", "few-label:5%"], ["linear"], 1)
    assert [(c.dataset, c.protocol, c.variant, c.seed) for c in TABLE.cells(options)] == [
        ("mr", "corpus", "linear", 0),
        ("mr", "few-label:5%", "linear", 0),
    ]
    assert TABLE.cells(Options()) == TABLE.cells()
    assert TABLE.cells(Options(seeds=99)) == TABLE.cells()
    assert TABLE.cells(Options(datasets=[])) == []


def test_a_planned_row_is_run_only_if_it_is_selected() -> None:
    table = replace(TABLE, rows=[TABLE.rows[0], replace(TABLE.rows[1], planned=True)])
    assert {cell.variant for cell in table.cells()} == {"network"}
    for options in (Options(rows=["linear"]), Options(models=["wgcn-linear"])):
        assert {cell.variant for cell in table.cells(options)} == {"linear"}
    assert table.all_cells() == table.cells()


def test_models_narrow_to_the_rows_of_methods() -> None:
    rows = [*TABLE.rows, replace(TABLE.rows[0], name="wide network", settings={"hidden": 9})]
    table = replace(TABLE, rows=rows)
    assert {cell.variant for cell in table.cells(Options(models=["wgcn"]))} == {"network", "wide network"}
    assert {cell.variant for cell in table.cells(Options(models=["wgcn-linear"]))} == {"linear"}
    assert table.cells(Options(models=["wgcn-linear", "wgcn"])) == table.cells()
    both = Options(rows=["network", "linear"], models=["wgcn"])
    assert {cell.variant for cell in table.cells(both)} == {"network"}
    assert table.cells(Options(models=[])) == []


def test_a_row_that_is_asked_for_by_name_is_not_left_out_without_a_word() -> None:
    graph = Row("Text-GCN", "text-gcn", protocols=["corpus"])
    table = replace(TABLE, protocols=["corpus", "inductive"], rows=[*TABLE.rows, graph])
    message = r"^Text-GCN cannot run under the protocol inductive here. Documents are nodes of the graph"
    for wanted in (Options(rows=["Text-GCN"]), Options(models=["text-gcn", "wgcn"])):
        with pytest.raises(InputError, match=message):
            table.cells(replace(wanted, protocols=["inductive"]))
        with pytest.raises(InputError, match=message):
            table.cells(replace(wanted, protocols=["corpus", "inductive"]))
        # Where no protocol is named, it is run under those that it can.
        found = [cell.protocol for cell in table.cells(wanted) if cell.method == "text-gcn"]
        assert set(found) == {"corpus"}
    everything = {cell.variant for cell in table.cells(Options(protocols=["inductive"]))}
    assert everything == {"network"}
    # A method that has no reason of its own has none to give.
    with pytest.raises(InputError, match=r"^linear cannot run under the protocol inductive here\.$"):
        table.cells(Options(protocols=["inductive"], rows=["linear"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(datasets=["r9"]), "no data set 'r9' in this table. There are: r8, mr"),
        (Options(protocols=["open"]), "no protocol 'open' in this table. There are: corpus"),
        (Options(rows=["svm"]), "no row 'svm' in this table. There are: network, linear"),
        (Options(models=["text-gcn"]), "no model 'text-gcn' in this table. There are: wgcn, wgcn-linear"),
    ],
)
def test_unknown_names_are_explained(options: Options, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TABLE.cells(options)


# Files


def test_a_settings_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'title = "T"\ndatasets = ["r8"]\nprotocols = ["corpus"]\nseeds = 2\n[set_seeds]\nr8 = 1\n'
        '[[vary]]\nsetting = "C"\nvalues = [1.0, 2.0]\n'
        '[[row]]\nname = "R"\nmethod = "linear-svc"\nprotocols = ["corpus"]\n[row.settings]\nngrams = 2\n'
        "[row.set.r8]\nngrams = 3\n[row.search]\nC = [0.5, 1.0]\n"
        '[[row]]\nname = "S"\nmethod = "lstm"\npublished = "LSTM"\n[row.seeds]\nr8 = 1\n'
    )
    table = load_table("accuracy", path)
    row = Row("R", "linear-svc", {"ngrams": 2}, {"r8": {"ngrams": 3}}, {"C": [0.5, 1.0]}, ["corpus"])
    other = Row("S", "lstm", seeds={"r8": 1}, published="LSTM")
    assert table == Table("accuracy", "T", ["r8"], ["corpus"], 2, [row, other], [("C", [1.0, 2.0])], {"r8": 1})


SEARCHED = """
[[chosen]]
row = "found"
set = "r8"
settings = { hidden = 8, window = 9 }
[[chosen]]
row = "found"
set = "r8; order 2"
settings = { hidden = 16 }
[[chosen]]
row = "own"
set = "r8"
settings = { hidden = 99 }
"""


def test_searched_rows_take_what_was_chosen_for_each_set_and_varied_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings/searched").mkdir(parents=True)
    (tmp_path / "settings/mine.toml").write_text(
        'title = "T"\ndatasets = ["r8", "mr"]\nprotocols = ["corpus"]\nversions = { wgcn = 7 }\n'
        '[[vary]]\nsetting = "order"\nvalues = [1, 2]\n'
        '[[row]]\nname = "found"\nmethod = "wgcn"\nsearched = true\nsettings = { hidden = 4, window = 5 }\n'
        "set.r8 = { hidden = 5, min_count = 3 }\n"
        '[[row]]\nname = "own"\nmethod = "wgcn"\nversion = 6\nseeded = false\nsettings = { hidden = 4 }\n'
    )
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)

    def found(row: str) -> dict[tuple[str, int], tuple[object, ...]]:
        cells = load_table("mine").cells(Options(rows=[row], seeds=1))
        settings = [cell.settings for cell in cells]
        values = [tuple(each[name] for name in ("hidden", "window", "min_count")) for each in settings]
        return {(cell.dataset, cell.settings["order"]): each for cell, each in zip(cells, values, strict=True)}

    before = found("own"), found("found")
    assert before[1]["r8", 1] == (5, 5, 3)  # there is no file of a search yet
    (tmp_path / "settings/searched/mine.toml").write_text(SEARCHED)
    assert found("found") == {**before[1], ("r8", 1): (8, 9, 3), ("r8", 2): (16, 9, 3)}
    assert found("own") == before[0]  # it is not marked as searched
    table = load_table("mine")
    assert table.versions == {"wgcn": 7}
    assert [(row.version, row.seeded) for row in table.rows] == [(None, None), (6, False)]


@pytest.mark.parametrize("name", [name for name in TABLES if any(row.search for row in load_table(name).rows)])
def test_what_was_chosen_is_of_rows_sets_and_ranges_of_the_table(name: str) -> None:
    chosen = _searched(name)
    rows = {row.name: row for row in load_table(name).rows}
    for row, sets in chosen.items():
        assert {row_name(place) for place in sets} <= set(load_table(name).datasets)
        for values in sets.values():
            assert set(values) == set(rows[row].search)
            assert all(value in rows[row].search[setting] for setting, value in values.items())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"title = ",
        b"\xff",
        b'title = "T"\ndatasets = ["r8"]\n[[row]]\nname = "R"\n',
        b'title = "T"\ndatasets = ["r8"]\nrow = [1]',
    ],
)
def test_what_is_no_settings_file_is_explained(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"own.toml is no settings file for 'accuracy'"):
        load_table("accuracy", path)
    with pytest.raises(InputError, match=r"nowhere.toml is no settings file"):
        load_table("accuracy", tmp_path / "nowhere.toml")


def test_a_row_may_be_like_one_of_the_table_of_accuracies(tmp_path: Path) -> None:
    model = next(row for row in load_table("accuracy").rows if row.name == "WGCN")
    path = tmp_path / "mine.toml"
    path.write_text(
        """title = "Mine"
datasets = ["mr"]
[[row]]
name = "Short"
like = "WGCN"
[row.settings]
max_epochs = 3
[row.set.mr]
hidden = 7
"""
    )
    [row] = load_table("mine", path).rows
    assert (row.name, row.method) == ("Short", model.method)
    assert row.settings == {**model.settings, "max_epochs": 3}
    assert row.settings_for("mr") == {**model.settings, "max_epochs": 3, **model.sets["mr"], "hidden": 7}
    assert row.settings_for("20ng") == {**model.settings, "max_epochs": 3, **model.sets["20ng"]}
    path.write_text(path.read_text().replace('"WGCN"', '"WGNC"'))
    with pytest.raises(InputError, match=r"no row 'WGNC' in the table of accuracies for 'Short'"):
        load_table("mine", path)


def test_a_set_that_a_row_leaves_out_is_left_out_also_without_seeds() -> None:
    row = Row("svc", "linear-svc", seeds={"r8": 0})
    table = replace(TABLE, protocols=["inductive", "few-label:5%"], rows=[row])
    assert {cell.dataset for cell in table.cells()} == {"mr"}
