"""On a GPU: epochs recorded as CUDA graphs, and the product of a sparse and a dense matrix, the same bits every time.

cuSPARSE adds in another order at every call. Here the order is fixed. Since rows of a word graph differ in length a
thousandfold, they are cut into pieces: one program sums a piece, and then the pieces of a row are summed. The part of
frequent words is nearly full: its blocks are multiplied as dense ones, on tensor cores, nearly in single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # it comes with torch's builds for CUDA on Linux
    triton = None

_LONGEST, _SHORTER = 1024, 256  # where most rows are short, all wait for the few long ones
_COLUMNS, _ROWS, _WARPS = 256, 4, 2
# A cell of a block takes about 0.015 of the time of an entry: of 0.015, 0.03 and 0.06, and sides of 1,024 to 4,096,
# these are the quickest on an H200 (`python -m benchmarks.gpu --tune`).
_SIDE, _CELL, _NARROW = 2048, 0.015, 64


class Pieces(NamedTuple):
    """Where the rows of a sparse matrix are cut."""

    begins: Tensor  # (pieces + 1,): the first entry of each piece
    rows: Tensor  # (rows + 1,): the first piece of each row
    order: Tensor  # (pieces,): 0, 1, 2, ...
    ones: Tensor  # (pieces,): their weights in the sum of a row


class Blocks(NamedTuple):
    """A sparse matrix as n dense blocks of b rows and columns, and a sparse rest."""

    values: Tensor  # (n, b, 3b), bfloat16: the high parts of the entries, the low parts, and the high parts again
    factors: Tensor  # (n, 3): which blocks of the dense factor, the high parts before the low ones, they meet
    sums: Tensor  # (rows, n b), CSR of ones: which rows of the blocks' products are added to a row
    rest: Tensor  # (rows, columns), CSR
    pieces: Pieces  # of the rest


def cut(matrix: Tensor, longest: int | None = None) -> Pieces:
    """Cut the rows of a CSR tensor into pieces of at most so many entries; an empty row has one."""
    begins, count = matrix.crow_indices(), partial(torch.arange, device=matrix.device)
    lengths = begins.diff()
    if longest is None:
        uneven = len(lengths) and lengths.max() > _LONGEST and matrix.values().numel() < _SHORTER * len(lengths)
        longest = _SHORTER if uneven else _LONGEST
    rows = F.pad(((lengths + longest - 1) // longest).clamp(min=1).cumsum(0, dtype=begins.dtype), (1, 0))
    row = torch.repeat_interleave(count(len(lengths)), rows.diff())
    first = begins[row] + longest * (count(len(row), dtype=begins.dtype) - rows[row])
    ones = torch.ones(len(row), dtype=matrix.dtype, device=matrix.device)
    return Pieces(torch.cat([first, begins[-1:]]), rows, count(len(row), dtype=begins.dtype), ones)


def find_blocks(matrix: Tensor) -> Blocks | None:
    """Return the dense blocks of a square CSR tensor without duplicates, if it is on a GPU and they save time."""
    if matrix.device.type != "cuda" or matrix.dtype != torch.float32 or not hasattr(torch.ops.aten.bmm, "dtype"):
        return None  # torch before 2.8 cannot return float32
    device = torch.cuda.get_device_properties(matrix.device)
    most = int(min(2e9, device.total_memory / 16) / (6 * _SIDE**2))  # not of what is free: the same bits every time
    return make_blocks(matrix, most) if device.major >= 8 and torch.version.hip is None else None


def make_blocks(matrix: Tensor, most: int, side: int = _SIDE, cell: float = _CELL) -> Blocks | None:
    """Return at most so many blocks, those that are faster as dense ones; None if they save less than a fifth."""
    begins, column, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    count, across = partial(torch.arange, device=matrix.device), -(-len(matrix) // side)
    row = torch.repeat_interleave(count(len(matrix)), begins.diff())
    place = row // side * across + column // side  # in a grid of blocks
    counts, order = torch.bincount(place, minlength=across**2).sort(descending=True, stable=True)
    equal = cell * side**2  # entries that take as long as a block; four blocks as long as the kernels to start
    n = min(most, int((counts > equal).sum()))
    if int(counts[:n].sum()) - n * equal < max(len(values) / 5, 4 * equal):
        return None
    chosen = order[:n].sort().values
    number = torch.full_like(order, -1).scatter_(0, chosen, count(n))[place]
    inside, other = number >= 0, number < 0
    cells = ((number * side + row % side) * 3 * side + column % side)[inside]
    full = values.new_zeros(n * side * 3 * side, dtype=torch.bfloat16)
    full[cells] = full[cells + 2 * side] = high = values[inside].bfloat16()
    full[cells + side] = (values[inside] - high).bfloat16()
    rest_begins = F.pad(other.cumsum(0, dtype=begins.dtype), (1, 0))[begins]
    rest = torch.sparse_csr_tensor(rest_begins, column[other], values[other], matrix.shape)
    down, right = chosen // across, chosen % across
    places = torch.stack([(down[:, None] * side + count(side)).flatten(), count(n * side)])
    places = places[:, places[0] < len(matrix)]
    sums = torch.sparse_coo_tensor(places, values.new_ones(places.shape[1]), (len(matrix), n * side)).to_sparse_csr()
    factors = torch.stack([right, right, across + right], 1)
    return Blocks(full.view(n, side, 3 * side), factors, sums, rest, cut(rest))


def multiply(matrix: Tensor, pieces: Pieces | None, dense: Tensor, blocks: Blocks | None = None) -> Tensor:
    """Return matrix @ dense for a CSR tensor, on a GPU with the pieces of its rows; without them each row is one."""
    if blocks is not None and dense.dtype == torch.float32 and dense.shape[1] >= _NARROW:
        return add_blocks(blocks, dense, multiply(blocks.rest, blocks.pieces, dense))
    if dense.device.type == "cpu":
        return matrix @ dense
    begins = matrix.crow_indices() if pieces is None else pieces.begins
    sums = _sum_rows(begins, matrix.col_indices(), matrix.values(), dense.contiguous())
    return sums if pieces is None or len(sums) == matrix.shape[0] else _sum_rows(*pieces[1:], sums)


def add_blocks(blocks: Blocks, dense: Tensor, total: Tensor) -> Tensor:
    """Add the blocks @ dense, without the product of the low parts, to `total`."""
    (n, side, depth), (rows, columns) = blocks.values.shape, dense.shape
    across, width = -(-rows // side), -(-columns // 8) * 8  # tensor cores need a multiple of 8
    parts = dense.new_empty((2, across * side, width), dtype=torch.bfloat16)
    parts[:, rows:] = 0  # while columns beyond the last one are in no result
    high, low = parts[:, :rows, :columns]
    torch.sub(dense, high.copy_(dense), out=low)
    factors = parts.view(torch.int64).view(2 * across, -1)[blocks.factors].view(torch.bfloat16).view(n, depth, width)
    values, sums = blocks.values, blocks.sums
    products = torch.bmm(values, factors, torch.float32) if dense.is_cuda else values.float() @ factors.float()
    return _sum_rows(sums.crow_indices(), sums.col_indices(), sums.values(), products.flatten(0, 1), total)


def _sum_rows(begins: Tensor, columns: Tensor, values: Tensor, dense: Tensor, total: Tensor | None = None) -> Tensor:
    """Return a sparse matrix, as the three arrays of CSR, times a dense one, added to a total of no more columns."""
    plain = {dense.dtype, values.dtype} == {torch.float32} and len(values) and dense.numel()
    if triton is None or dense.device.type == "cpu" or not plain:
        # A row of the product is a weighted sum of rows, an embedding bag to torch: a quarter of the speed.
        sums = F.embedding_bag(columns, dense, begins, mode="sum", per_sample_weights=values, include_last_offset=True)
        return sums if total is None else total.add_(sums[:, : total.shape[1]])
    sums = torch.empty(len(begins) - 1, dense.shape[1], device=dense.device) if total is None else total
    width, stride, adds = sums.shape[1], dense.shape[1], total is not None
    block = max(32, min(_COLUMNS, triton.next_power_of_2(width)))
    grid = (len(sums), triton.cdiv(width, block))  # all rows for some columns, then for the next ones
    _sum_pieces[grid](begins, columns, values, dense, sums, width, stride, adds, block, _ROWS, num_warps=_WARPS)
    return sums


class Recorded:
    """Runs a step of training, which returns a tensor: on a GPU as a CUDA graph, from the fourth call on.

    A step is some eighty kernels, and to start one takes longer than it runs. Recorded, all are started at once, on the
    same memory. So every call must give the same step, what it reads must stay where it is, and it must not wait for
    the GPU. `generator` is what it draws from, if not torch's own: the numbers are those of steps without a recording.
    """

    warm_up = 3  # calls before one is recorded: kernels are compiled, and the state of the optimiser is made

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
        if self.calls <= self.warm_up:
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
        begins, columns, values, dense, sums,
        WIDTH: tl.constexpr, STRIDE: tl.constexpr, ADDS: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        piece = tl.program_id(0)
        places = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        end = tl.load(begins + piece + 1)
        for first in range(tl.load(begins + piece), end, ROWS):
            i = first + tl.arange(0, ROWS)
            row = tl.load(columns + i, mask=i < end, other=0).to(tl.int64)
            value = tl.load(values + i, mask=i < end, other=0.0)
            wanted = (i < end)[:, None] & (places < WIDTH)[None, :]
            total += value[:, None] * tl.load(dense + row[:, None] * STRIDE + places[None, :], mask=wanted, other=0.0)
        target = sums + piece.to(tl.int64) * WIDTH + places
        result = tl.sum(total, 0)
        if ADDS:
            result += tl.load(target, mask=places < WIDTH, other=0.0)
        tl.store(target, result, mask=places < WIDTH)
