"""The linear model (`wgcn.linear.model`) fitted to documents on disk.

It is the problem of `fit_linear`, and its solver takes the same steps (`wgcn.scale.solver`). In memory are a few tables
with a row per word and a column per class, and what the workers hold of a part of the documents each. Classes whose
tables would be too large are fitted in blocks, one after another.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats, column_blocks
from wgcn.base.files import writing
from wgcn.base.threads import n_threads
from wgcn.labels.targets import Targets
from wgcn.linear.model import Blocks, FittedColumns, LinearFit, LinearSettings, Scales, used_blocks
from wgcn.linear.naive_bayes import NaiveBayesScales
from wgcn.linear.operator import GraphBlock, Memory, SubwordBlock
from wgcn.linear.solver import descend
from wgcn.scale.documents import ShardedDocuments
from wgcn.scale.passes import Part, class_counts
from wgcn.scale.solver import ShardedProblem, ShardedState, SumsOperator
from wgcn.scale.store import Outputs, WorkFolder, key_of, remove
from wgcn.scale.workers import Workers
from wgcn.semi.teacher import Taught

_TABLES = 16  # with a row per word and a column per class, in memory at a time


@dataclass(frozen=True, eq=False)
class Workplace:
    """Where a fit is done, and by whom."""

    work: WorkFolder
    workers: Workers
    memory: int = 4 * 10**9  # bytes, for everything
    n_jobs: int | None = None

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """Give an empty folder for the time of a fit."""
        path = self.work.path / "files" / f"scratch-{name}"
        with writing(path):
            remove(path)
            path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def fit_sharded(
    documents: ShardedDocuments,
    targets: Targets,
    blocks: Blocks,
    settings: LinearSettings,
    place: Workplace,
    *,
    sample_weight: Floats,
    scales: Scales,
    taught: Taught | None = None,
    start: Floats | None = None,
    negligible: float = 0.0,
) -> LinearFit:
    """Fit the linear model. The parameters are those of `fit_linear`, but `dual` and `start` are X^T dual.

    Where documents are very many, `negligible` is the share of the objective below which a step is the last.

    What a finished fit found is kept in the work folder, where the same fit finds it again.
    """
    name = _name(documents, targets, settings, sample_weight, taught)
    if (found := _read(name, place.work)) is not None:
        return found
    graph, subwords = used_blocks(blocks, settings, documents.dtype)
    factor = float(settings.alpha * scales.graph) if graph is not None else 0.0
    n_rows = documents.n_words + (0 if subwords is None else subwords.shape[1])
    columns = column_blocks(targets.n_classes, _TABLES * n_rows * documents.dtype.itemsize, place.memory // 2)
    with place.scratch(name) as scratch, ThreadPoolExecutor(n_threads(place.n_jobs)) as pool:
        cost = (2 * settings.C * sample_weight).astype(documents.dtype)
        parts, memory = list(_parts(documents, targets, cost, scratch)), Memory(documents.dtype)
        graph_block = GraphBlock(graph, factor, pool, memory)
        subword_block = SubwordBlock(subwords, settings.subwords * scales.subwords, pool, memory)
        operator = SumsOperator((graph_block, subword_block), memory)

        def count(some: slice | None) -> Floats:
            which = None if some is None else np.arange(some.start, some.stop)
            counts: Floats = place.workers.total(class_counts, parts, which, documents.n_words)
            counts /= counts.dtype.type(2 * settings.C)
            return counts

        naive_bayes = NaiveBayesScales(count, settings.naive_bayes, pool, subwords, columns)
        fitted = FittedColumns(settings, documents.n_words, targets.n_classes, documents.dtype)
        for block in columns:
            operator.scale(*naive_bayes(block))
            own = None if taught is None else Taught(taught.word_scores[:, block], taught.bias[block])
            shape = documents.n_words, block, documents.dtype
            problem = ShardedProblem(operator.product, parts, place.workers, scratch, *shape, own and own[:2])
            begin = start[:, block] if start is not None and start.shape[1] else None
            state = ShardedState(problem, begin)
            solution = descend(state, tol=settings.tol, max_iter=settings.max_iter, negligible=negligible)
            fitted.add(block, solution, operator.tables(solution.dual), own)
    result = fitted.result(factor)
    _write(name, place.work, result)
    return result


def _parts(documents: ShardedDocuments, targets: Targets, cost: Floats, scratch: Path) -> Iterator[Part]:
    """Write the labels and costs of the documents of each part; those that are not among the documents cost nothing."""
    matrix = targets.matrix
    for number, (stored, own, places) in enumerate(documents.by_part()):
        folder = scratch / str(number)
        with writing(folder):
            folder.mkdir()
        labels = csr_array(matrix[own])
        indptr, costs = np.zeros(stored.n_documents + 1, np.int64), np.zeros(stored.n_documents, cost.dtype)
        indptr[places + 1] = np.diff(labels.indptr)
        costs[places] = cost[own]
        shape = stored.n_documents, targets.n_classes
        part = Part(stored, str(folder), documents.lead)
        part.write_labels(csr_array((labels.data, labels.indices, np.cumsum(indptr)), shape=shape), costs)
        yield part


def _name(
    documents: ShardedDocuments, targets: Targets, settings: LinearSettings, weight: Floats, taught: Taught | None
) -> str:
    digest = hashlib.sha256(repr((documents.parts, documents.lead, targets.shape)).encode())
    held = targets.held if isinstance(targets.held, np.ndarray) else targets.held.indices
    for array in (documents.rows, held, weight, *(() if taught is None else taught[:2])):
        digest.update(np.ascontiguousarray(array).data)
    return f"fit-{key_of(asdict(settings), digest.hexdigest())}"


_ARRAYS = "dual", "word_embeddings", "bias", "own_rows", "subword_rows"


def _write(name: str, work: WorkFolder, fit: LinearFit) -> None:
    outputs = Outputs(work, name)
    arrays = {each: getattr(fit, each) for each in _ARRAYS if getattr(fit, each) is not None}
    for each, array in arrays.items():
        outputs.save(f"{name}.{each}", array)
    shapes = {each: [str(array.dtype), *array.shape] for each, array in arrays.items()}
    outputs.finish(shapes=shapes, history=fit.history, factor=fit.factor)


def _read(name: str, work: WorkFolder) -> LinearFit | None:
    if (done := work.result(name)) is None:
        return None
    arrays = {
        each: work.read(f"{name}.{each}", dtype).reshape(shape) for each, (dtype, *shape) in done["shapes"].items()
    }
    return LinearFit(**arrays, history=done["history"], factor=done["factor"])
