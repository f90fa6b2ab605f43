"""On a GPU: epochs recorded as CUDA graphs, and the product of a sparse and a dense matrix, the same bits every time.

cuSPARSE adds in another order at every call. Here the order is fixed. Since rows of a word graph differ in length a
thousandfold, they are cut into pieces: one program sums a piece, and then the pieces of a row are summed.
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
_COLUMNS, _ROWS, _WARPS = 256, 4, 2
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
    parts = [part.astype(index) for part in (np.append(begins, indptr[-1]), rows, np.arange(len(row)))]
    return Pieces(*map(torch.from_numpy, [*parts, np.ones(len(row), np.float32)]))


def multiply(matrix: Tensor, pieces: Pieces | None, dense: Tensor) -> Tensor:
    """Return matrix @ dense for a CSR tensor, on a GPU with the pieces of its rows; without them each row is one."""
    if dense.device.type == "cpu":
        return matrix @ dense
    begins, columns, values, dense = matrix.crow_indices(), matrix.col_indices(), matrix.values(), dense.contiguous()
    plain = {dense.dtype, values.dtype} == {torch.float32} and len(values) and dense.numel()
    if triton is None or not plain:
        # A row of the product is a weighted sum of rows, an embedding bag to torch: a quarter of the speed.
        return F.embedding_bag(columns, dense, begins, mode="sum", per_sample_weights=values, include_last_offset=True)
    sums = _sum_rows(begins if pieces is None else pieces.begins, columns, values, dense)
    return sums if pieces is None or len(sums) == matrix.shape[0] else _sum_rows(*pieces[1:], sums)


def _sum_rows(begins: Tensor, columns: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """Return a sparse matrix, as the three arrays of CSR, times a dense one."""
    sums = torch.empty(len(begins) - 1, dense.shape[1], device=dense.device)
    block = max(32, min(_COLUMNS, triton.next_power_of_2(dense.shape[1])))
    grid = (len(sums), triton.cdiv(dense.shape[1], block))  # all rows for some columns, then for the next ones
    _sum_pieces[grid](begins, columns, values, dense, sums, dense.shape[1], block, _ROWS, num_warps=_WARPS)
    return sums


class Recorded:
    """Runs a step of training, which returns a tensor: on a GPU as a CUDA graph, from the fourth call on.

    A step is some eighty kernels, and to start one takes longer than it runs. Recorded, all are started at once, on the
    same memory. So every call must give the same step, what it reads must stay where it is, and it must not wait for
    the GPU. `generator` is what it draws from, if not torch's own: the numbers are those of steps without a recording.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, generator: torch.Generator | None = None) -> None:
        self.optimizer, self.generator, self.calls = optimizer, generator, 0
        device = optimizer.param_groups[0]["params"][0].device
        # The usual stream cannot be recorded, and autograd stays in the stream of its first use.
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, step: Callable[[], Tensor]) -> Tensor:
        """Run the step; the result of a recorded one is in the same memory every time."""
        if self.stream is None:
            return step()
        self.calls += 1
        if self.calls <= _WARM_UP:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.result = step()
            torch.cuda.current_stream().wait_stream(self.stream)
            return self.result
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            for group in self.optimizer.param_groups:
                group["capturable"] = True  # not earlier, since torch warns of it where nothing is recorded
            if self.generator is not None:
                self.graph.register_generator_state(self.generator)
            with torch.cuda.graph(self.graph, stream=self.stream, capture_error_mode="thread_local"):
                self.result = step()
        self.graph.replay()
        return self.result


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _sum_pieces(  # type: ignore[no-untyped-def]
        begins, columns, values, dense, sums, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr
    ):
        piece = tl.program_id(0)
        places = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        end = tl.load(begins + piece + 1)
        for first in range(tl.load(begins + piece), end, ROWS):
            i = first + tl.arange(0, ROWS)
            row = tl.load(columns + i, mask=i < end, other=0).to(tl.int64)
            value = tl.load(values + i, mask=i < end, other=0.0)
            wanted = (i < end)[:, None] & (places < WIDTH)[None, :]
            total += value[:, None] * tl.load(dense + row[:, None] * WIDTH + places[None, :], mask=wanted, other=0.0)
        tl.store(sums + piece.to(tl.int64) * WIDTH + places, tl.sum(total, 0), mask=places < WIDTH)
