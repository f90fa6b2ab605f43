"""WGCN, the Word Grounded Graph Convolutional Network (eq. 5, 6 and 7 of the paper), in one file.

H_vm  = act(A_vv^n X_v W_0)                    one row per word        eq. 5, 6
    H_dm  = X_dv H_vm                              one row per document    eq. 5, 6
    Y_dc  = softmax(ReLU(H_dm) W_1 + b_1)          one row per document    eq. 7

W_0, W_1 and b_1 are learnt; X_v is the identity. Documents are not nodes of the graph, so the rows of words can be kept
in a table after training, and a new document needs that table alone.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from wgcn.base.errors import InputError
from wgcn.network.cuda import Blocks, Pieces, cut, find_blocks, multiply
from wgcn.network.settings import NetworkSettings


class SparseMatrix(NamedTuple):
    """A sparse matrix and its transpose, which the gradient needs; a symmetric matrix is its own."""

    matrix: Tensor  # (rows, columns), CSR
    transposed: Tensor  # (columns, rows), CSR
    pieces: Pieces | None = None  # of the rows of each, which a GPU needs
    transposed_pieces: Pieces | None = None
    blocks: Blocks | None = None  # of a symmetric one, where they save time

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = SparseProduct.apply(self, dense)  # type: ignore[no-untyped-call]
        return product


class SparseProduct(torch.autograd.Function):
    """A sparse matrix times a dense one. The sparse one is data, so only the dense one has a gradient.

    torch can differentiate the product by itself, but it would transpose the matrix again in every epoch.
    """

    @staticmethod
    def forward(ctx: Any, sparse: SparseMatrix, dense: Tensor) -> Tensor:
        """Return sparse @ dense."""
        ctx.sparse = sparse
        return multiply(sparse.matrix, sparse.pieces, dense, sparse.blocks)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        """Return the gradient of the dense factor."""
        _, transposed, _, pieces, blocks = ctx.sparse
        return None, multiply(transposed, pieces, gradients[0], blocks)


def sparse_matrix(matrix: csr_array, device: torch.device | str = "cpu", *, symmetric: bool = False) -> SparseMatrix:
    """Bring a scipy matrix to a device, with its transpose unless it is symmetric."""
    tensor = sparse_tensor(matrix, device)
    pieces = cut(tensor)
    if symmetric:
        blocks = find_blocks(tensor) if tensor.is_cuda and matrix.has_canonical_format else None
        return SparseMatrix(tensor, tensor, pieces, pieces, blocks)
    transposed = sparse_tensor(csr_array(matrix.T), device)
    return SparseMatrix(tensor, transposed, pieces, cut(transposed))


def sparse_tensor(matrix: csr_array, device: torch.device | str = "cpu") -> Tensor:
    """Bring a scipy matrix to a device as a CSR tensor; on the CPU the two share their memory where they can."""
    # MKL takes 32-bit indices as they are; of 64-bit ones torch would make a copy in each product.
    index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
    with warnings.catch_warnings():
        # torch calls sparse CSR a beta, and would warn of read-only arrays, which nothing here writes to.
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index, copy=False)),
            torch.from_numpy(matrix.indices.astype(index, copy=False)),
            torch.from_numpy(matrix.data),
            matrix.shape,
        ).to(device)


class Centring(NamedTuple):
    """What makes the graph's rows differ: S^n becomes l D^-1/2 (S - u u^T)^n D^1/2, with S normalised symmetrically.

    A normalised graph is dominated by its first eigenvector, u = sqrt(d / sum of d): most of a row X A is the same for
    every document, and learning has to work against it. Without it, and with rows of about length 1, weight decay and
    learning rate act on what tells documents apart. A word without edges gets nothing from the graph.
    """

    common: npt.NDArray[np.floating]  # u, of shape (words,); 0 for a word without edges
    length: float  # l, which makes the rows of X A about 1 long


class WGCN(nn.Module):
    """logits = ReLU(dropout(X dropout(H_v))) W_1 + b_1, with H_v = act((A^n + r I) W_0).

    settings : m, n, r and the others. With n = 0 the graph is not used: the network is a two-layer perceptron.
    centring : see `Centring`; it changes nothing with n = 0. With `NetworkSettings.centred`, the training finds it.
    generator : where the first weights come from. It is one of the CPU, so that they are the same on every device.
    """

    common: Tensor | None

    def __init__(
        self,
        n_words: int,
        n_classes: int,
        settings: NetworkSettings,
        centring: Centring | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.settings, hidden = settings, settings.hidden
        centring = centring if settings.order else None
        common = None if centring is None else torch.as_tensor(centring.common, dtype=torch.get_default_dtype())
        self.register_buffer("common", None if common is None else common[:, None])  # (words, 1)
        self.length = 1.0 if centring is None else centring.length
        self.word_weights = nn.Parameter(torch.empty(n_words, hidden))  # W_0
        self.class_weights = nn.Parameter(torch.empty(hidden, n_classes))  # W_1
        self.bias = nn.Parameter(torch.zeros(n_classes))  # b_1
        for weights in (self.word_weights, self.class_weights):
            nn.init.xavier_uniform_(weights, generator=generator)

    def word_embeddings(self, adjacency: SparseMatrix) -> Tensor:
        """Return H_vm (first line of eq. 5); in eq. 6 A_vv is X^T A_dd^n X, which is just another adjacency."""
        own = self.word_weights
        h = own if self.common is None else self.common * own  # (words, hidden)
        for _ in range(self.settings.order):
            passed = adjacency @ h  # (words, words) x (words, hidden)
            h = passed if self.common is None else passed - self.common * (self.common.T @ h)
        if self.common is not None:
            h = h * (self.length / self.common.clamp(min=1e-6))
        if self.settings.residual:
            h = h + self.settings.residual * own
        return torch.relu(h) if self.settings.word_activation else h

    def classify(
        self, document_terms: SparseMatrix, word_embeddings: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the logits of documents whose words have these embeddings."""
        h = self._dropout(word_embeddings, self.settings.word_dropout, generator)  # (words, hidden)
        h = document_terms @ h  # eq. 5: H_dm = X H_vm, (documents, hidden)
        h = torch.relu(self._dropout(h, self.settings.document_dropout, generator))
        return h @ self.class_weights + self.bias  # eq. 7 before the softmax, (documents, classes)

    def forward(
        self, document_terms: SparseMatrix, adjacency: SparseMatrix, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the logits, (documents, classes); in training `generator`, of the device, decides what is dropped."""
        return self.classify(document_terms, self.word_embeddings(adjacency), generator)

    def _dropout(self, x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
        # torch's own dropout knows only the global generator, and on a CPU it draws one number an entry, which takes
        # as long as the products with X. Here each draw of 64 bits decides four entries.
        if not self.training or rate == 0:
            return x
        draws = torch.empty(x.numel() // 4 + 1, dtype=torch.int64, device=x.device)
        draws.random_(-(2**63), None, generator=generator)
        kept = draws.view(torch.int16)[: x.numel()].view_as(x) >= min(round(rate * 2**16), 2**16 - 1) - 2**15
        return x * (kept * torch.ones((), dtype=x.dtype).div_(1 - rate))


_MAX_POWER_ITERATIONS = 300


def can_fold(adjacency: csr_array, document_terms: csr_array, network: NetworkSettings) -> bool:
    """Whether nothing stands between X and A, and X A is smaller than A: then it is formed once, not in every epoch."""
    small = bool(document_terms.shape[0] * document_terms.shape[1] < adjacency.nnz)
    return small and network.order > 0 and not network.word_activation and network.word_dropout == 0


def fold(
    adjacency: csr_array, document_terms: csr_array, network: NetworkSettings, centring: Centring | None
) -> csr_array:
    """Return X (A^n + r I), or the same with the graph centred."""
    rows = document_terms.toarray().astype(np.float64).T  # (words, documents)
    own = network.residual * rows
    if centring is None:
        for _ in range(network.order):
            rows = adjacency @ rows
    else:
        rows = _spread(adjacency, rows, centring.common.astype(np.float64), network.order) * centring.length
    return csr_array((rows + own).T, dtype=np.float32)


def _spread(
    adjacency: csr_array, rows: npt.NDArray[np.float64], common: npt.NDArray[np.float64], order: int
) -> npt.NDArray[np.float64]:
    """Return D^1/2 (S - u u^T)^n D^-1/2 rows, the transpose of what words are multiplied by."""
    rows = rows / np.maximum(common, 1e-6)[:, None]
    for _ in range(order):
        rows = adjacency @ rows - np.outer(common, common @ rows)
    return rows * common[:, None]


def find_centring(adjacency: csr_array, document_terms: csr_array, order: int) -> Centring:
    """Find the first eigenvector of the graph, and how long the rows of X A are without it.

    In a graph of several parts, u is sqrt(d) times a factor for each of the parts, and 0 for words without edges. It
    is an eigenvector like each part's own, and what is taken away is still one mean over all words.
    """
    if adjacency.nnz and adjacency.data.min() < 0:
        raise InputError("The word graph has negative edges, which cannot be centred. Train without centred.")
    common = np.sqrt(np.asarray(abs(adjacency).sum(axis=1), np.float64))
    for _ in range(_MAX_POWER_ITERATIONS):
        step = adjacency @ common
        step /= max(np.linalg.norm(step), 1e-300)
        done = np.abs(step - common).max() < 1e-9
        before, common = common, step
        if done:
            break
    else:
        # A bipartite graph, such as a tree without self-loops, makes the steps alternate: their mean is the answer.
        common = before + common
        common /= max(np.linalg.norm(common), 1e-300)
    if not common.any():
        raise InputError("The word graph has no edges, so that there is nothing to centre. Train without centred.")
    some = np.unique(np.linspace(0, document_terms.shape[0] - 1, 400).astype(int))
    rows = _spread(adjacency, document_terms[some].toarray().astype(np.float64).T, common, order)
    length = float(np.sqrt(np.mean(np.sum(rows**2, axis=0))))
    # If nothing is left but rounding errors, they are left small.
    least = 1e-6 * float(np.sqrt(np.mean(document_terms[some].power(2).sum(axis=1))))
    return Centring(common.astype(np.float32), 1 / length if length > least else 1.0)
