"""Predictions for files of texts: each file becomes a file, made by any worker, whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from wgcn.base.errors import InputError
from wgcn.io.source import explained
from wgcn.io.tables import table_kind
from wgcn.model.predict_file import predict_file
from wgcn.model.text_model import TextModel
from wgcn.scale.corpus import Shard, check_unchanged, find_shards
from wgcn.scale.store import Outputs, WorkFolder, open_work, remove_work
from wgcn.scale.workers import connect
from wgcn.store.folder import CONFIG, check_target, read_file


def predict_files(
    folder: str | Path,
    paths: Sequence[str | Path],
    output: str | Path,
    *,
    output_format: str | None = None,
    overwrite: bool = True,
    scheduler: str | None = None,
    n_workers: int | None = None,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Path]:
    """Write a table of predictions for each file to a folder, and return their paths.

    What an interrupted run has finished is not repeated.

    Parameters
    ----------
    folder : path
        Of a saved model.
    paths : sequence of paths
        Files with texts.
    output : path
        Folder for the tables, which have the names of the files.
    output_format : str, optional
        One of `wgcn.io.tables.KINDS`, by default "csv".
    overwrite : bool
        Whether tables that are there are replaced. Those of an interrupted run always are, and no file of texts is.
    scheduler, n_workers, reading
        As for `wgcn.scale.files.fit_files`.
    **options
        Those of `wgcn.model.predict_file.predict_file`.
    """
    kind, output = table_kind(None, output_format or "csv"), Path(output)
    shards, digest = find_shards(paths, reading), hashlib.sha256(read_file(Path(folder), CONFIG)).hexdigest()
    _load(str(folder), digest)  # what is wrong with it is said at once
    names = [f"{shard.path.name.partition('.')[0]}.{kind}" for shard in shards]
    if len(set(names)) < len(names):
        raise InputError("Some of the files have the same name, and so would their predictions. Rename them.")
    settings = {"result": "predictions", "model": digest, "kind": kind, "options": repr(sorted(options.items()))}
    items = [(shard, output / name) for shard, name in zip(shards, names, strict=True)]
    work_folder = Path(f"{output if output.name else output.absolute()}.work")
    for _, path in items:
        check_target(path, overwrite=overwrite or work_folder.exists(), inputs=paths)
    inputs = [shard.identity() for shard in shards]
    with open_work(work_folder, settings, inputs) as work:
        with connect(scheduler, n_workers) as workers:
            how = {**options, "output_format": kind}
            written = [Path(path) for path in workers.map(_predict, items, work, (str(folder), digest), how)]
            check_unchanged(shards, inputs)
        remove_work(work)
    return written


def _predict(item: tuple[Shard, Path], work: WorkFolder, model: tuple[str, str], how: Mapping[str, Any]) -> str:
    shard, path = item
    task = f"predict-{path.name}"
    done = work.result(task)
    if done is None or done["digest"] != _digest(path):
        predict_file(_load(*model), str(shard.path), path, **how, **shard.reading)
        Outputs(work, task).finish(digest=_digest(path))
    return str(path)


def _digest(path: Path) -> str:
    """Return the digest of a table; "" if it is not there."""
    if not path.is_file():
        return ""
    with explained(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def _load(folder: str, digest: str) -> TextModel:
    """Load a model once per process; the digest tells it from one that was in the same folder before."""
    return TextModel.load(folder)
