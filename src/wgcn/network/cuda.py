"""The product of a sparse and a dense matrix on a GPU: as fast as cuSPARSE, and the same bits every time.

cuSPARSE adds in another order at every call. Here each row of the sparse matrix is cut into pieces of bounded length,
one program sums the dense rows of a piece from left to right, and the pieces of a row are summed in their order. Rows
of a word graph differ in length a thousandfold, so that without pieces a few programs would run long after the others.
"""

from __future__ import annotations

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

__all__ = ["Pieces", "cut", "multiply"]

_LONGEST = 1024  # 64 to 1,024 are equally fast on an H200, and long pieces need the least memory
_WIDEST = 256


class Pieces(NamedTuple):
    """Where the rows of a sparse matrix are cut."""

    begins: Tensor  # (pieces + 1,): the first entry of each piece
    rows: Tensor  # (rows + 1,): the first piece of each row
    order: Tensor  # (pieces,): 0, 1, 2, ...


def cut(indptr: npt.NDArray[Any], longest: int = _LONGEST) -> Pieces:
    """Cut rows, given by where each begins, into pieces of at most so many entries; an empty row has one."""
    lengths = np.diff(indptr)
    rows = np.zeros(len(indptr), np.int64)
    np.cumsum(np.maximum(1, -(-lengths // longest)), out=rows[1:])
    row = np.repeat(np.arange(len(lengths)), np.diff(rows))
    begins = indptr[row] + longest * (np.arange(len(row)) - rows[row])
    index = np.int32 if max(int(indptr[-1]), len(row)) < 2**31 else np.int64
    parts = (np.append(begins, indptr[-1]), rows, np.arange(len(row)))
    return Pieces(*(torch.from_numpy(part.astype(index)) for part in parts))


def multiply(matrix: Tensor, pieces: Pieces | None, dense: Tensor) -> Tensor:
    """Return matrix @ dense for a CSR tensor, on a GPU with the pieces of its rows."""
    if dense.device.type == "cpu":
        return matrix @ dense
    dense = dense.contiguous()
    columns, values = matrix.col_indices(), matrix.values()
    plain = {dense.dtype, values.dtype} == {torch.float32} and len(values) and dense.numel()
    if triton is None or pieces is None or not plain:
        # A row of the product is a weighted sum of rows, an embedding bag to torch: a quarter of the speed.
        return F.embedding_bag(
            columns, dense, matrix.crow_indices(), mode="sum", per_sample_weights=values, include_last_offset=True
        )
    n_pieces, width = len(pieces.begins) - 1, dense.shape[1]
    block = max(32, min(_WIDEST, triton.next_power_of_2(width)))
    sums = torch.empty(n_pieces, width, device=dense.device)
    grid = (n_pieces, triton.cdiv(width, block))
    _sum_pieces[grid](pieces.begins, columns, values, dense, sums, width, BLOCK=block, num_warps=block // 64 or 1)
    if n_pieces == matrix.shape[0]:
        return sums
    return F.embedding_bag(pieces.order, sums, pieces.rows, mode="sum", include_last_offset=True)


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _sum_pieces(begins, columns, values, dense, sums, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        piece = tl.program_id(0)
        places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = places < width
        total = tl.zeros((BLOCK,), tl.float32)
        for i in range(tl.load(begins + piece), tl.load(begins + piece + 1)):
            row = tl.load(columns + i).to(tl.int64)
            total += tl.load(values + i) * tl.load(dense + row * width + places, mask=inside, other=0.0)
        tl.store(sums + piece.to(tl.int64) * width + places, total, mask=inside)
