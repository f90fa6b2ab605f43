"""wgcn-paper reproduce: the paper's tables and figures, and ours, one command each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wgcn.cli.console import out, say, steps

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["reproduce"]


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Table or figure, or 'all'.")],
    datasets: Annotated[str | None, typer.Option(metavar="A,B", help="Only these data sets.")] = None,
    protocol: Annotated[str | None, typer.Option(metavar="A,B", help="Only these protocols.")] = None,
    rows: Annotated[str | None, typer.Option(metavar="A;B", help="Only these rows, by their names.")] = None,
    models: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only rows of these methods, such as text-gcn; or 'all'.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Run this many seeds at most.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, each in a process of its own.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Results. Default: paper/results, or results elsewhere."),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings file (TOML) instead of the table's own.")
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Search the rows' ranges on validation documents instead.")
    ] = False,
    trials: Annotated[int, typer.Option(min=1, help="Settings to try with --search, for each data set.")] = 40,
    word_vectors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Word vectors (GloVe, word2vec) instead of distilled ones.")
    ] = None,
) -> None:
    """Run the experiments of a table or figure, and write what comes of them.

    datasets, accuracy, orders, sensitivity, efficiency, citations, citation-orders, labels, summary, ablation,
    embedder, unseen, or all. A finished run is saved at once, so an interrupted command goes on where it was; a changed
    setting runs only what it changes.
    """
    from wgcn.errors import InputError
    from wgcn.inference.folder import check_target
    from wgcn.text.word_vectors import register_word_vectors
    from wgcn_paper.experiments.reproduce import TABLES, table_of, write_overview
    from wgcn_paper.experiments.reproduce import reproduce as run
    from wgcn_paper.experiments.runner import workers
    from wgcn_paper.experiments.search import search as run_search
    from wgcn_paper.experiments.table import Options

    output = output or next(
        (path for path in (Path("paper/results"), Path("results")) if path.is_dir()), Path("results")
    )
    names = list(TABLES) if name == "all" else [name]
    if name == "all" and (settings is not None or search):
        raise InputError("--settings and --search are for one table: name it instead of 'all'.")
    for each in names:
        check_target(output / f"{each}.md")
    vectors = None if word_vectors is None else register_word_vectors(word_vectors)
    for each in names:
        table = table_of(each, settings)
        if vectors is not None:
            table = _with_vectors(table, vectors)
        wanted = Options(_split(datasets, ","), _split(protocol, ","), _split(rows, ";"), seeds, _models(models))
        if name == "all":
            wanted = _that_apply(wanted, table)
        where = _device(device) if each == "efficiency" else device
        # Costs are measured one at a time, each in a process that has done nothing else.
        fresh = each == "efficiency"
        with workers(1 if fresh else jobs, fresh=fresh) as pool, steps() as progress:
            shown = _bar(progress, each)
            if search:
                path = run_search(table, wanted, output, pool, trials=trials, device=device, progress=shown)
                say(f"What was tried and chosen is in {path}; copy what was chosen into a settings file to use it.")
                return
            try:
                path = run(table, wanted, output, pool, device=where, progress=shown)
            except KeyboardInterrupt:
                say("Interrupted. The finished runs are saved: the same command goes on from there.")
                raise
        out.print(path.read_text(encoding="utf-8"), markup=False)
        say(f"Written to {path}.")
    write_overview(output)


def _split(given: str | None, separator: str) -> list[str] | None:
    return None if given is None else [part.strip() for part in given.split(separator) if part.strip()]


def _models(given: str | None) -> list[str] | None:
    """Check the names of methods: one that exists but has no row in a table is no misspelling."""
    from wgcn.errors import InputError
    from wgcn_paper.methods import method_names

    names = _split(given, ",")
    if names is None or names == ["all"]:
        return None
    for name in names:
        if name not in method_names():
            raise InputError(f"There is no method {name!r}. There are: {', '.join(method_names())}.")
    return names


def _that_apply(options: Any, table: Any) -> Any:
    """Leave out what a table does not have, when all tables are made."""
    from wgcn_paper.experiments.table import Options

    def known(given: list[str] | None, has: Any) -> list[str] | None:
        return None if given is None else [name for name in given if name in has]

    return Options(
        known(options.datasets, table.datasets),
        known(options.protocols, table.protocols),
        known(options.rows, [row.name for row in table.rows]),
        options.seeds,
        known(options.models, [row.method for row in table.rows]),
    )


def _with_vectors(table: Any, source: str) -> Any:
    """Put a file's word vectors into the place of the distilled ones, in every row that has them."""
    from dataclasses import replace

    from wgcn.text.word_vectors import DISTILLED
    from wgcn_paper.methods.baseline import method_class

    def put(values: Any) -> dict[str, Any]:
        return {**values, **({"word_vectors": source} if values.get("word_vectors") == DISTILLED else {})}

    rows = []
    for row in table.rows:
        default = {key: value for key, value in method_class(row.method).defaults.items() if key == "word_vectors"}
        sets = {dataset: put(values) for dataset, values in row.sets.items()}
        rows.append(replace(row, settings=put(default | row.settings), sets=sets))
    return replace(table, rows=rows)


def _device(name: str) -> str:
    """Say which device "auto" is."""
    if name != "auto":
        return name
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _bar(progress: Progress, name: str) -> Callable[[int, int, str], None]:
    """Show cells done, the last one, and the time that is left."""
    task = progress.add_task(name, total=None, note="")

    def show(done: int, total: int, last: str) -> None:
        progress.update(task, completed=done, total=total, note=f"{done}/{total} {last}")

    return show
