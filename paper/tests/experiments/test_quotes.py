"""Figures in prose, on made-up pages and runs."""

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from wgcn.base.errors import InputError
from wgcn_paper.experiments.cells import Cell, Run
from wgcn_paper.experiments.published import ACCURACY, ORDERS
from wgcn_paper.experiments.quotes import Quote, check_quotes, load_quotes
from wgcn_paper.experiments.recipes import Sources, UntrueError, figures
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.table import Options, load_table

# Accuracy in percent of two draws, by row and data set.
MADE = {
    "ours": {"mr": (70.0, 72.0), "r8": (95.0, 96.0)},
    "theirs": {"mr": (69.0, 70.0), "r8": (96.0, 97.5)},
    "single": {"mr": (60.0,), "r8": (90.0,)},
}


def made(cell: Cell, accuracy: float, **metrics: float) -> Run:
    told = (cell, accuracy / 100, 100, None, 3, 1.5, 2.0 + cell.seed, 0.1, 100.0, None, "abc", "cpu", "2026-01-01", {})
    return Run(*told, metrics=metrics)


def runs_of(protocol: str) -> list[Run]:
    return [
        made(Cell(dataset, protocol, "linear-svc", {}, seed, row), accuracy, half=accuracy / 200, seconds=seed + 1.0)
        for row, sets in MADE.items()
        for dataset, accuracies in sets.items()
        for seed, accuracy in enumerate(accuracies)
    ]


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """Made-up runs of two tables: with one protocol, and with two."""
    known = {"summary": runs_of("few-label:1%"), "accuracy": [*runs_of("inductive"), *runs_of("few-label:5%")]}
    found = Sources(tmp_path)
    found.runs = known.__getitem__
    found.report = {"seeds": "| LinearSVC | 92 | more than\n100 |\nMeasured: 1,234 s"}.__getitem__
    return found


def of(sources: Sources, **recipe: Any) -> list[float]:
    return figures({"table": "summary", **recipe}, sources)


# Recipes


def test_a_figure_is_the_mean_in_percent_on_every_set(sources: Sources) -> None:
    assert of(sources, row="ours") == pytest.approx([71, 95.5])
    assert of(sources, row="ours", set="r8") == pytest.approx([95.5])
    assert of(sources, row="ours", set=["r8", "mr"]) == pytest.approx([95.5, 71])
    assert of(sources, row=["single", "ours"], set="r8") == pytest.approx([90, 95.5])


@pytest.mark.parametrize(("stat", "value"), [("mean", 71), ("sd", 2**0.5), ("min", 70), ("max", 72)])
def test_draws_are_taken_together(sources: Sources, stat: str, value: float) -> None:
    assert of(sources, row="ours", set="mr", stat=stat) == pytest.approx([value])


def test_metrics_and_fields_of_a_run(sources: Sources) -> None:
    assert of(sources, row="ours", set="mr", metric="half") == pytest.approx([35.5])
    assert of(sources, row="ours", set="mr", metric="half", scale=1) == pytest.approx([0.355])
    assert of(sources, row="ours", set="mr", metric="fit_seconds") == pytest.approx([2.5])
    # Run by run: the mean of 0.35 / 1 and 0.36 / 2.
    assert of(sources, row="ours", set="mr", metric="half", per="seconds") == pytest.approx([26.5])


def test_differences_and_ratios_take_what_they_do_not_say_from_the_recipe(sources: Sources) -> None:
    assert of(sources, row="ours", minus={"row": "theirs"}) == pytest.approx([1.5, -1.25])
    assert of(sources, row="ours", set="mr", minus={"metric": "half"}) == pytest.approx([35.5])
    assert of(sources, row="ours", set="mr", over={"metric": "half"}) == pytest.approx([2])
    assert of(sources, row="ours", set="mr", minus={"set": "r8"}) == pytest.approx([-24.5])


def test_published_figures_and_numbers(sources: Sources) -> None:
    paper = ACCURACY["WGCN"]["r8"][0]
    assert of(sources, published="WGCN", set="r8") == [paper]
    assert of(sources, table="orders", published="order 1", set=["r8", "r52"]) == [ORDERS["r8"][1], ORDERS["r52"][1]]
    assert of(sources, row="ours", set="r8", minus={"published": "WGCN"}) == pytest.approx([95.5 - paper])
    assert of(sources, number=80, set=["mr", "r8"], minus={"row": "ours"}) == pytest.approx([9, -15.5])


def test_p_and_interval_of_a_difference_are_of_pairs_of_draws(sources: Sources) -> None:
    recipe = {"row": "ours", "set": "mr", "minus": {"row": "theirs"}}
    [low], [high], [p] = (of(sources, **recipe, stat=stat) for stat in ("low", "high", "p"))
    assert low < 1.5 < high
    assert low + high == pytest.approx(3)
    assert 0.05 < p < 1
    with pytest.raises(InputError, match="Nothing varies, so there is no p"):
        of(sources, row="single", set="mr", minus={"row": "single"}, stat="p")


def test_a_metric_is_compared_by_draw_too(sources: Sources) -> None:
    recipe = {"row": "ours", "set": "mr", "metric": "half", "minus": {"row": "theirs"}}
    assert of(sources, **recipe) == pytest.approx([0.75])
    assert 0 < of(sources, **recipe, stat="p")[0] < 1


@pytest.mark.parametrize(
    ("take", "values"),
    [
        ("min", [-1.25]),
        ("max", [1.5]),
        ("mean", [0.125]),
        ("range", [-1.25, 1.5]),
        ("spread", [2.75]),
        ("farthest", [1.5]),
        ("count", [1]),
    ],
)
def test_sets_are_taken_together(sources: Sources, take: str, values: list[float]) -> None:
    assert of(sources, row="ours", minus={"row": "theirs"}, take=take) == pytest.approx(values)


def test_a_figure_out_of_its_limits_is_untrue(sources: Sources) -> None:
    assert of(sources, row="ours", above=70, below=96) == pytest.approx([71, 95.5])
    with pytest.raises(UntrueError, match="71 is not above 72: table summary, row ours"):
        of(sources, row="ours", above=72)
    with pytest.raises(UntrueError, match=r"95\.5 is not below 90"):
        of(sources, row="ours", below=90)


def test_figures_of_reports_and_benchmarks(sources: Sources, tmp_path: Path) -> None:
    assert figures({"report": "seeds", "find": "| LinearSVC | {} | more than 100 |"}, sources) == [92]
    assert figures({"report": "seeds", "find": "Measured: {} s"}, sources) == [1234]
    with pytest.raises(InputError, match="no such line"):
        figures({"report": "seeds", "find": "fastText | {}"}, sources)
    cells = [{"set": "r8", "times": [1], "seconds": 1.5}, {"set": "mr", "times": [2], "seconds": 2.5}]
    write(tmp_path, "benchmarks/results/bench-fit.json", json.dumps({"parts": {"fit": {"cells": cells}}}))
    assert figures({"bench": "fit", "where": {"set": "mr"}, "key": "seconds"}, sources) == [2.5]
    with pytest.raises(InputError, match="2 cells of the benchmark"):
        figures({"bench": "fit", "where": {}, "key": "seconds"}, sources)
    with pytest.raises(InputError, match=r"bench-graph\.json cannot be read"):
        figures({"bench": "graph", "where": {}, "key": "seconds"}, sources)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"row": "ours", "sett": "mr"}, "A recipe has no sett"),
        ({"row": "ours", "minus": {"rows": "theirs"}}, "A recipe has no rows"),
        ({"row": "nobody"}, "There is no run on any set: table summary, row nobody"),
        ({"row": "ours", "set": ["mr", "r52"]}, "There is no run on r52"),
        ({"row": "ours", "metric": "f1"}, "'f1' is missing or not known"),
        ({"row": "ours", "take": "median"}, "'median' is missing or not known"),
        ({"row": "ours", "stat": "median"}, "'median' is missing or not known"),
        ({}, "'row' is missing or not known"),
        ({"table": "accuracy", "row": "ours"}, "Which protocol, few-label:5% or inductive"),
        ({"row": "ours", "set": ["mr"], "minus": {"set": ["mr", "r8"]}}, "1 figures stand against 2"),
    ],
)
def test_a_recipe_that_cannot_be_computed_is_an_error(sources: Sources, recipe: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        of(sources, **recipe)


# Slots


@pytest.mark.parametrize(
    ("slot", "value", "shown"),
    [
        ("{:.1f}", 1.26, "1.3"),
        ("{:+.2f}", -0.5, "-0.50"),
        ("{:+.1f}", -0.01, "+0.0"),
        ("{:.1f}", -0.01, "0.0"),
        ("{:.0f}", 24.6, "25"),
        ("{:up.1f}", 0.24, "0.3"),
        ("{:up.1f}", 0.3, "0.3"),
        ("{:up.0f}", 2.1, "3"),
        ("{:,.0f}", 1234, "1,234"),
        ("{:words}", 4, "four"),
        ("{:words}", 12, "12"),
        ("{:p}", 0.0342, "p = 0.034"),
        ("{:p}", 0.0001, "p < 0.001"),
    ],
)
def test_a_slot_says_how_a_figure_is_shown(slot: str, value: float, shown: str, sources: Sources) -> None:
    quote = Quote("README.md", f"It has {slot}, {{{{so}}}}.", [{"number": value}])
    assert quote.expected(sources) == [shown]
    assert quote.filled([shown]) == f"It has {shown}, {{so}}."
    found = quote.pattern.search(f"Look. It  has\n**{shown}**, {{so}}.")
    assert found is not None
    assert found[1] == shown


def test_a_slot_without_a_sign_is_for_figures_that_are_not_negative(sources: Sources) -> None:
    with pytest.raises(UntrueError, match=r"the figure is -1\.2"):
        Quote("README.md", "ahead by {:.1f}", [{"number": -1.2}]).expected(sources)


def test_slots_and_figures_are_as_many(sources: Sources) -> None:
    with pytest.raises(InputError, match="1 figures do not fill 2 slots"):
        Quote("README.md", "{:.1f} and {:.1f}", [{"number": 1}]).expected(sources)
    with pytest.raises(InputError, match="no format of a number"):
        Quote("README.md", "{:abc}", [{"number": 1}]).expected(sources)


# Pages


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


@pytest.fixture
def page(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a README and its quotes."""

    def make(text: str, quotes: str) -> Path:
        write(tmp_path, "paper/results/quotes/readme.toml", 'page = "README.md"\n' + dedent(quotes))
        return write(tmp_path, "README.md", text)

    return make


def findings(root: Path, **options: bool) -> list[str]:
    return [str(finding) for finding in check_quotes(root, **options).findings]


def test_figures_come_from_the_result_files_of_the_checkout(tmp_path: Path, page: Callable[..., Path]) -> None:
    cells = load_table("seeds").cells(Options(["r8"], rows=["LinearSVC", "counting seed words"]))
    ResultFile(tmp_path / "paper/results", "seeds").add(
        made(cell, 80 if cell.variant == "LinearSVC" else 70, **{"10": 0.9}) for cell in cells
    )
    quotes = """
        defaults = { table = "seeds" }

        [[quote]]
        text = "With ten labels it has {:.1f} %, {:.1f} points more than by counting."
        figures = [
            { row = "LinearSVC", metric = "10" },
            { row = "LinearSVC", metric = "10", minus = { row = "counting seed words", metric = "accuracy" } },
        ]
        """
    page("So: with ten. With ten labels it has\n90.0 %, **20.0 points** more than by counting.\n", quotes)
    outcome = check_quotes(tmp_path)
    assert (outcome.n_figures, outcome.n_pages, outcome.findings) == (2, 1, [])
    page("\nWith ten labels it has 90.0 %, 21.0 points more than by counting.\n", quotes)
    [found] = findings(tmp_path)
    assert found.startswith("README.md:2: in the runs 21.0 is 20.0\n    page: With ten labels it has 90.0 %, 21.0")


ONE = """
    [[quote]]
    text = "It has {:.1f} %."
    figures = [{ number = 71.04 }]
    """


def test_a_sentence_that_is_not_there_is_shown_as_it_should_be(tmp_path: Path, page: Callable[..., Path]) -> None:
    page("It is good.\n", ONE)
    assert findings(tmp_path) == ["README.md:1: is not on the page\n    runs: It has 71.0 %."]


def test_of_equal_sentences_one_has_to_be_right(tmp_path: Path, page: Callable[..., Path]) -> None:
    page("It has 70.0 %. It has 71.0 %.\n", ONE)
    assert [found.splitlines()[0] for found in findings(tmp_path)] == ["README.md:1: in no quote: 70.0"]
    page("It has 70.0 %. It has 72.0 %.\n", ONE)
    assert "README.md:1: stands 2 times on the page, never so" in findings(tmp_path, fix=True)[0]
    assert (tmp_path / "README.md").read_text() == "It has 70.0 %. It has 72.0 %.\n"


def test_a_claim_without_a_figure_is_checked(tmp_path: Path, page: Callable[..., Path]) -> None:
    quotes = '[[quote]]\ntext = "It is better."\nholds = [{{ number = {}, above = 0 }}]\n'
    page("It is better.\n", quotes.format(1))
    assert findings(tmp_path) == []
    page("It is better.\n", quotes.format(-1))
    assert findings(tmp_path) == [
        "README.md:1: no longer true, -1 is not above 0: number -1, above 0\n    page: It is better."
    ]


def test_a_recipe_that_fails_is_a_finding(tmp_path: Path, page: Callable[..., Path]) -> None:
    page("It has 1.0 %.\n", '[[quote]]\ntext = "It has {:.1f} %."\nfigures = [{ table = "tables", row = "ours" }]\n')
    [found] = findings(tmp_path)
    assert "README.md:1: cannot be recomputed: There is no table 'tables'" in found


def test_every_figure_that_looks_measured_is_in_a_quote(tmp_path: Path, page: Callable[..., Path]) -> None:
    text = """\
        # Python 3.11.4, 2026

        It has 71.0 %. It has 20 classes, `0.5` and [a link](a-1.5.md).
        It takes 12 s, 3 points
        and 2.5e-6.

            code 1.5

        ```
        0.7
        ```

        <!-- table -->
        | 1.5 |
        <!-- end -->

        | 2.5 | **7 %** |
        """
    page(text, ONE)
    assert [found.splitlines()[0] for found in findings(tmp_path)] == [
        "README.md:4: in no quote: 12, 3",
        "README.md:5: in no quote: 2.5",
        "README.md:17: in no quote: 2.5, 7",
    ]


def test_exempt_are_texts_sections_and_pages(tmp_path: Path, page: Callable[..., Path]) -> None:
    text = "The limit\nis 1.5 s.\n\n## Settings\n\nIt is 2.5.\n\n### More\n\n3.5\n\n## Other\n\n4.5\n"
    exempt = '[[exempt]]\nreason = "setting"\n'
    page(text, f'{exempt}text = "limit is 1.5"\n\n{exempt}section = "## Settings"\n')
    assert findings(tmp_path) == ["README.md:14: in no quote: 4.5\n    page: 4.5"]
    page(text, exempt)
    assert findings(tmp_path) == []


def test_an_exemption_that_exempts_nothing_is_a_finding(tmp_path: Path, page: Callable[..., Path]) -> None:
    page("Nothing.\n", '[[exempt]]\ntext = "1.5"\nreason = "setting"\n')
    assert findings(tmp_path) == ["README.md:1: exempt, but not on the page: 1.5"]


def test_exemptions_of_all_pages_and_quotes_of_no_page(tmp_path: Path, page: Callable[..., Path]) -> None:
    page("In 1.5 s.\n", "")
    write(tmp_path, "docs/results/seeds.md", "In 1.5 s, not 1.6 s.\n")
    write(tmp_path, "paper/results/quotes/all.toml", 'page = "*"\n[[exempt]]\ntext = "1.5 s"\nreason = "setting"\n')
    write(tmp_path, "paper/results/quotes/none.toml", 'page = "docs/none.md"\n[[exempt]]\nreason = "setting"\n')
    assert [found.splitlines()[0] for found in findings(tmp_path)] == [
        "docs/results/seeds.md:1: in no quote: 1.6",
        "docs/none.md:1: has quotes, but there is no such page",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("page = 1 2", "readme.toml is no file of quotes"),
        ('[[quote]]\ntext = "a"\n', "no file of quotes: it lacks 'page'"),
        ('page = "a"\n[[quote]]\ntext = "a"\nfigure = []\n', "a quote has no figure"),
        ('page = "a"\n[[exempt]]\ntext = "a"\n', "reason"),
    ],
)
def test_a_file_that_has_no_quotes_is_named(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, "readme.toml", text)
    with pytest.raises(InputError, match=message):
        load_quotes(tmp_path)


def test_without_a_checkout_there_is_nothing_to_check(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Give the folder of a checkout"):
        check_quotes(tmp_path)


# Fixes


def test_a_fix_writes_the_figures_and_nothing_else(tmp_path: Path, page: Callable[..., Path]) -> None:
    path = page("# A  page\n\nIt has\n**9.9** %. And 5.5 %.\n", ONE)
    outcome = check_quotes(tmp_path, fix=True)
    assert outcome.rewritten == ["README.md"]
    assert path.read_text() == "# A  page\n\nIt has\n**71.0** %. And 5.5 %.\n"
    assert [str(found).splitlines()[0] for found in outcome.findings] == ["README.md:4: in no quote: 5.5"]
    assert check_quotes(tmp_path, fix=True).rewritten == []


def test_a_sentence_that_is_untrue_is_not_fixed(tmp_path: Path, page: Callable[..., Path]) -> None:
    path = page("It has 1.5 %.\n", ONE.replace("71.04", "-1"))
    assert "no longer true, the figure is -1.0" in findings(tmp_path, fix=True)[0]
    assert path.read_text() == "It has 1.5 %.\n"


def test_a_paragraph_that_a_fix_makes_too_wide_is_filled_again(tmp_path: Path, page: Callable[..., Path]) -> None:
    words = " ".join(["word"] * 21)
    wide = f"    code {words} {words}"
    before = f"{wide}\n\n- {words} It has 7.0 %.\n  More words.\n  - It is short.\n"
    assert len(before.splitlines()[2]) == 120
    path = page(before, ONE)
    assert findings(tmp_path, fix=True) == []
    assert path.read_text() == f"{wide}\n\n- {words} It has 71.0\n  %. More words.\n  - It is short.\n"
    assert findings(tmp_path) == []
