"""On a GPU: epochs recorded as CUDA graphs, and the product of a sparse and a dense matrix, the same bits every time.

cuSPARSE adds in another order at every call. Here each row of the sparse matrix is cut into pieces of bounded length,
one program sums the dense rows of a piece in a fixed order, and the pieces of a row are summed in theirs. Rows of a
word graph differ in length a thousandfold, so that without pieces a few programs would run long after the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # it comes with torch's builds for CUDA on Linux
    triton = None

__all__ = ["Pieces", "Recorded", "cut", "multiply"]

_LONGEST = 1024  # 64 to 1,024 are equally fast on an H200, and long pieces need the least memory
# A program sums few columns, so that more of what all programs read at a time is in the caches, and has several rows on
# their way at once. `python -m benchmarks.gpu --tune` compares other values.
_COLUMNS, _ROWS, _WARPS = 128, 8, 1
_WARM_UP = 3  # calls before one is recorded: kernels are compiled, and the state of the optimiser is made


class Pieces(NamedTuple):
    """Where the rows of a sparse matrix are cut."""

    begins: Tensor  # (pieces + 1,): the first entry of each piece
    rows: Tensor  # (rows + 1,): the first piece of each row
    order: Tensor  # (pieces,): 0, 1, 2, ...
    ones: Tensor  # (pieces,): their weights in the sum of a row


def cut(indptr: npt.NDArray[Any], longest: int = _LONGEST) -> Pieces:
    """Cut rows, given by where each begins, into pieces of at most so many entries; an empty row has one."""
    lengths = np.diff(indptr)
    rows = np.zeros(len(indptr), np.int64)
    np.cumsum(np.maximum(1, -(-lengths // longest)), out=rows[1:])
    row = np.repeat(np.arange(len(lengths)), np.diff(rows))
    begins = indptr[row] + longest * (np.arange(len(row)) - rows[row])
    index = np.int32 if max(int(indptr[-1]), len(row)) < 2**31 else np.int64
    parts = (np.append(begins, indptr[-1]), rows, np.arange(len(row)))
    return Pieces(*(torch.from_numpy(part.astype(index)) for part in parts), torch.ones(len(row)))


def multiply(matrix: Tensor, pieces: Pieces | None, dense: Tensor) -> Tensor:
    """Return matrix @ dense for a CSR tensor, on a GPU with the pieces of its rows; without them each row is one."""
    if dense.device.type == "cpu":
        return matrix @ dense
    dense = dense.contiguous()
    begins, columns, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    plain = {dense.dtype, values.dtype} == {torch.float32} and len(values) and dense.numel()
    if triton is None or not plain:
        # A row of the product is a weighted sum of rows, an embedding bag to torch: a quarter of the speed.
        return F.embedding_bag(columns, dense, begins, mode="sum", per_sample_weights=values, include_last_offset=True)
    if pieces is None or len(pieces.order) == matrix.shape[0]:
        return _sum_rows(begins, columns, values, dense)
    return _sum_rows(pieces.rows, pieces.order, pieces.ones, _sum_rows(pieces.begins, columns, values, dense))


def _sum_rows(begins: Tensor, columns: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """Return a sparse matrix, as the three arrays of CSR, times a dense one."""
    n_sums, width = len(begins) - 1, dense.shape[1]
    block = max(32, min(_COLUMNS, triton.next_power_of_2(width)))
    sums = torch.empty(n_sums, width, device=dense.device)
    options = {"WIDTH": width, "COLUMNS": block, "ROWS": _ROWS, "num_warps": _WARPS}
    # The first part of the grid runs first: all rows for some columns, then for the next ones.
    _sum_pieces[(n_sums, triton.cdiv(width, block))](begins, columns, values, dense, sums, **options)
    return sums


class Recorded:
    """Runs a step of training that returns a tensor: on a GPU as a CUDA graph, from the fourth call on.

    A step is some eighty kernels, and to start one of them takes longer than it runs. Recorded once, all are started
    together, on the same memory. So whatever the step reads has to stay where it is, every call must give the same
    step, and it must not wait for the GPU. `generator` is what it draws from, if that is not torch's own; its numbers
    are those that it would have given without a recording.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, device: torch.device, generator: torch.Generator | None = None
    ) -> None:
        self.optimizer, self.generator = optimizer, generator
        # The usual stream cannot be recorded, and autograd stays in the stream that it was first used in.
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.calls, self.recording = 0, False
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result: Tensor | None = None

    def __call__(self, step: Callable[[], Tensor]) -> Tensor:
        """Run the step; with a recording, its result is in the same memory every time."""
        if self.stream is None:
            return step()
        self.calls += 1
        if self.calls <= _WARM_UP:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                result = step()
            torch.cuda.current_stream().wait_stream(self.stream)
            return result
        if self.graph is None or self.result is None:
            self.graph, self.result = self._record(step)
        self.graph.replay()
        return self.result

    def _record(self, step: Callable[[], Tensor]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        for group in self.optimizer.param_groups:
            group["capturable"] = True  # not earlier, since torch warns of it where nothing is recorded
        graph = torch.cuda.CUDAGraph()
        if self.generator is not None:
            graph.register_generator_state(self.generator)
        self.recording = True
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            result = step()
        self.recording = False
        return graph, result


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _sum_pieces(  # type: ignore[no-untyped-def]
        begins, columns, values, dense, sums, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr
    ):
        piece = tl.program_id(0)
        places = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        inside = places < WIDTH
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        end = tl.load(begins + piece + 1)
        for first in range(tl.load(begins + piece), end, ROWS):
            i = first + tl.arange(0, ROWS)
            row = tl.load(columns + i, mask=i < end, other=0).to(tl.int64)
            value = tl.load(values + i, mask=i < end, other=0.0)
            wanted = (i < end)[:, None] & inside[None, :]
            total += value[:, None] * tl.load(dense + row[:, None] * WIDTH + places[None, :], mask=wanted, other=0.0)
        tl.store(sums + piece.to(tl.int64) * WIDTH + places, tl.sum(total, 0), mask=inside)
