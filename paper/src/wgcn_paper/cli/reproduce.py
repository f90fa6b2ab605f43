"""wgcn-paper reproduce: show a table or figure of the paper, after running what is missing of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wgcn.cli.console import say, steps

if TYPE_CHECKING:
    from rich.progress import Progress


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the table or figure, or 'all'.")],
    datasets: Annotated[str | None, typer.Option(metavar="A,B", help="Only these data sets.")] = None,
    protocol: Annotated[str | None, typer.Option(metavar="A,B", help="Only these protocols.")] = None,
    rows: Annotated[str | None, typer.Option(metavar="A;B", help="Only the rows with these names.")] = None,
    models: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only the rows of these methods, such as text-gcn; or 'all'.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Run at most this many seeds.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel runs, each in its own process.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder of the runs and figures. Default: paper/results if it exists, else results.",
        ),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings file (TOML) to use instead of the built-in one.")
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Search hyper-parameters on validation documents instead.")
    ] = False,
    trials: Annotated[int, typer.Option(min=1, help="Number of settings that --search tries per data set.")] = 40,
    word_vectors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Word vectors (GloVe, word2vec) to use instead of distilled ones."),
    ] = None,
) -> None:
    """Show a table or figure, after running the experiments that have no result yet.

    datasets, accuracy, orders, sensitivity, efficiency, citations, citation-orders, labels, summary, worth,
    ablation, embedder, unseen, explanations, seeds, suggest, review, abstain, update, elements, readme, or all. Results
    that are there are shown without running anything and need no data sets. Every finished run is saved, so an
    interrupted command can be repeated to continue.
    """
    from wgcn.base.errors import InputError
    from wgcn.store.folder import check_target
    from wgcn_paper.experiments.pages import TABLES, Page
    from wgcn_paper.experiments.reproduce import reproduce as run
    from wgcn_paper.experiments.reproduce import table_of
    from wgcn_paper.experiments.runner import workers
    from wgcn_paper.experiments.search import search as run_search
    from wgcn_paper.experiments.table import Options
    from wgcn_paper.vectors.word_vectors import register_word_vectors

    output = output or next(
        (path for path in (Path("paper/results"), Path("results")) if path.is_dir()), Path("results")
    )
    names = list(TABLES) if name == "all" else [name]
    if name == "all" and (settings is not None or search):
        raise InputError("--settings and --search are for one table: name it instead of 'all'.")
    for each in names:
        if each in TABLES:
            check_target(Page.of(each, output).path)
    vectors = None if word_vectors is None else register_word_vectors(word_vectors)
    for each in names:
        table = table_of(each, settings)
        if vectors is not None:
            table = _with_vectors(table, vectors)
        wanted = Options(_split(datasets, ","), _split(protocol, ","), _split(rows, ";"), seeds, _models(models))
        if name == "all":
            wanted = table.known(wanted)
        where = _device(device) if each == "efficiency" else device
        # Costs are measured one at a time, each in a new process.
        fresh = each == "efficiency"
        with workers(1 if fresh else jobs, fresh=fresh) as pool, steps() as progress:
            shown = _bar(progress, each)
            if search:
                path = run_search(table, wanted, output, pool, trials=trials, device=device, progress=shown)
                say(f"Every trial is in {path}. To use what was chosen, mark rows as searched, and copy")
                say(f"{path.with_suffix('.toml')} to settings/searched/{each}.toml of the package.")
                return
            try:
                run(table, wanted, output, pool, device=where, progress=shown)
            except KeyboardInterrupt:
                say("Interrupted. The finished runs are saved; repeat the command to continue.")
                raise
        page = Page.of(each, output)
        print(page.shown())
        say(f"Report: {page.path}")


def _split(given: str | None, separator: str) -> list[str] | None:
    return None if given is None else [part.strip() for part in given.split(separator) if part.strip()]


def _models(given: str | None) -> list[str] | None:
    """Return the names of methods, or None for all. An unknown name is an error."""
    from wgcn.base.errors import InputError
    from wgcn_paper.methods import method_names

    names = _split(given, ",")
    if names is None or names == ["all"]:
        return None
    for name in names:
        if name not in method_names():
            raise InputError(f"There is no method {name!r}. There are: {', '.join(method_names())}.")
    return names


def _with_vectors(table: Any, source: str) -> Any:
    """Replace distilled word vectors by those of a file, in every row that uses them."""
    from dataclasses import replace

    from wgcn_paper.methods.baseline import method_class
    from wgcn_paper.vectors.word_vectors import DISTILLED

    def put(values: Any) -> dict[str, Any]:
        return {**values, **({"word_vectors": source} if values.get("word_vectors") == DISTILLED else {})}

    rows = []
    for row in table.rows:
        default = {key: value for key, value in method_class(row.method).defaults.items() if key == "word_vectors"}
        sets = {dataset: put(values) for dataset, values in row.sets.items()}
        rows.append(replace(row, settings=put(default | row.settings), sets=sets))
    return replace(table, rows=rows)


def _device(name: str) -> str:
    """Return the device that "auto" stands for."""
    if name != "auto":
        return name
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _bar(progress: Progress, name: str) -> Callable[[int, int, str], None]:
    """Return a callback that shows the finished cells and the last one."""
    task = progress.add_task(name, total=None, note="")

    def show(done: int, total: int, last: str) -> None:
        progress.update(task, completed=done, total=total, note=f"{done}/{total} {last}")

    return show
