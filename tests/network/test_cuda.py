import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from wgcn.network.cuda import Blocks, Recorded, cut, find_blocks, make_blocks, multiply
from wgcn.network.module import sparse_matrix, sparse_tensor

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 8))
def test_pieces_cover_every_row_in_order_and_none_is_too_long(lengths: list[int], longest: int) -> None:
    indptr = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]).astype(np.int32)
    entries = np.zeros(indptr[-1], np.int32)
    matrix = csr_array((entries.astype(np.float32), entries, indptr), shape=(len(lengths), 1))
    begins, rows, order, ones = (part.numpy() for part in cut(sparse_tensor(matrix), longest))
    assert len(rows) == len(indptr)
    assert (begins[0], begins[-1], rows[-1]) == (0, indptr[-1], len(begins) - 1)
    np.testing.assert_array_equal(begins[rows], indptr)  # a row begins where its first piece does
    np.testing.assert_array_equal(order, np.arange(len(begins) - 1))
    np.testing.assert_array_equal(ones, np.ones(len(begins) - 1, np.float32))
    assert (np.diff(begins) >= 0).all()
    assert (np.diff(begins) <= longest).all()
    assert (np.diff(rows) == np.maximum(1, -(-np.array(lengths, np.int64) // longest))).all()


def test_pieces_are_shorter_where_few_rows_are_long() -> None:
    def longest(lengths: list[int]) -> int:
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        matrix = csr_array((np.ones(indptr[-1], np.float32), np.zeros(indptr[-1], np.int32), indptr))
        return int(cut(sparse_tensor(matrix)).begins.diff().max())

    assert longest([1000, *[1] * 50]) == 1000  # no row has to be cut
    assert longest([5000, *[1] * 50]) == 256
    assert longest([5000, *[600] * 50]) == 1024


def word_graph(n_words: int, seed: int, scale: float = 1.0) -> csr_array:
    """Return a symmetric matrix that is dense where frequent words meet."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, n_words + 1)
    links = np.triu(rng.random((n_words, n_words)) < 0.75 * n_words * frequency[:, None] * frequency)
    weights = np.where(links, rng.random((n_words, n_words)) * scale, 0)
    return csr_array(weights + np.triu(weights, 1).T, dtype=np.float32)


def error(product: torch.Tensor, matrix: csr_array, dense: torch.Tensor) -> float:
    exact = matrix.astype(np.float64) @ dense.cpu().numpy().astype(np.float64)
    return float(np.linalg.norm(product.cpu().numpy() - exact)) / float(np.linalg.norm(exact))


def some_blocks(matrix: csr_array, most: int = 100, side: int = 8) -> Blocks | None:
    return make_blocks(sparse_tensor(matrix), most, side, cell=0.1)


@given(
    st.integers(33, 90),
    st.integers(0, 1000),
    st.sampled_from([1e-20, 1.0, 1e10]),
    st.integers(3, 13),
    st.integers(1, 70),
)
def test_blocks_and_rest_are_the_matrix(n_words: int, seed: int, scale: float, side: int, width: int) -> None:
    matrix = word_graph(n_words, seed, scale)
    blocks = some_blocks(matrix, side=side)
    assert blocks is not None
    assert blocks.rest.values().numel() < matrix.nnz
    high, low, again = blocks.values.float().view(-1, side, 3, side).unbind(2)
    assert torch.equal(high, again)
    kept = np.concatenate([blocks.rest.values().numpy(), (high + low)[high != 0].numpy()])
    np.testing.assert_allclose(np.sort(kept), np.sort(matrix.data), rtol=2**-16)
    dense = torch.randn(n_words, width, generator=torch.Generator().manual_seed(seed))
    product = multiply(sparse_tensor(matrix), None, dense, blocks)
    assert error(product, matrix, dense) < 1e-5
    if width < 64:  # a narrow product is not worth the blocks
        assert torch.equal(product, sparse_tensor(matrix) @ dense)


def test_blocks_are_the_fullest_ones() -> None:
    matrix = word_graph(80, 0)
    grid = matrix.toarray().astype(bool).reshape(10, 8, 10, 8).sum(axis=(1, 3))
    blocks = some_blocks(matrix)
    assert blocks is not None
    assert len(blocks.values) == (grid > 0.1 * 64).sum()
    assert blocks.rest.values().numel() == grid[grid <= 0.1 * 64].sum()
    fewer = some_blocks(matrix, most=7)
    assert fewer is not None
    assert fewer.rest.values().numel() == np.sort(grid, axis=None)[:-7].sum()


def test_blocks_that_save_little_are_not_made() -> None:
    assert some_blocks(word_graph(80, 0), most=1) is None
    assert some_blocks(csr_array(np.eye(80, dtype=np.float32))) is None
    assert some_blocks(csr_array((80, 80), dtype=np.float32)) is None
    assert find_blocks(sparse_tensor(word_graph(80, 0))) is None  # only a GPU has tensor cores
    assert sparse_matrix(word_graph(80, 0), symmetric=True).blocks is None


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
@pytest.mark.parametrize("width", [64, 250, 256])
def test_products_with_blocks_and_their_gradients_are_the_same_every_time(width: int, device: str) -> None:
    matrix = word_graph(1000, 0)
    sparse = sparse_matrix(matrix, device, symmetric=True)
    sparse = sparse._replace(blocks=make_blocks(sparse.matrix, 100, 64))
    assert sparse.blocks is not None
    dense = torch.randn(1000, width, device=device, requires_grad=True)
    product = sparse @ dense
    assert error(product.detach(), matrix, dense.detach()) < 2e-5
    for _ in range(5):
        assert torch.equal(sparse @ dense, product)
    gradient = torch.randn(1000, width, device=device)
    product.backward(gradient)  # type: ignore[no-untyped-call]
    assert dense.grad is not None
    assert error(dense.grad, matrix, gradient) < 2e-5


@needs_cuda
@pytest.mark.parametrize("width", [1, 2, 31, 64, 250, 256, 300, 1000])
def test_rows_of_all_lengths_and_widths(width: int) -> None:
    rng = np.random.default_rng(0)
    dense_part = csr_array(rng.normal(size=(3, 3000)).astype(np.float32))
    sparse_part = random_array((500, 3000), density=0.002, format="csr", dtype=np.float32, rng=rng)
    matrix = csr_array(np.vstack([sparse_part.toarray(), dense_part.toarray(), np.zeros((2, 3000), np.float32)]))
    vectors = rng.normal(size=(3000, width)).astype(np.float32)
    for given_matrix, factor in ((matrix, vectors), (csr_array(matrix.T), vectors[: matrix.shape[0]])):
        product = sparse_matrix(given_matrix, "cuda") @ torch.from_numpy(factor).cuda()
        np.testing.assert_allclose(product.cpu(), given_matrix @ factor, rtol=1e-4, atol=1e-3)


def test_a_step_that_is_not_on_a_gpu_is_called_as_it_is() -> None:
    calls: list[int] = []

    def step() -> torch.Tensor:
        calls.append(len(calls))
        return torch.tensor(float(len(calls)))

    weights = torch.nn.Parameter(torch.zeros(1))
    recorded = Recorded(torch.optim.Adam([weights]))
    assert [recorded(step).item() for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    assert recorded.graph is None


@needs_cuda
def test_a_recorded_step_goes_on_as_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> tuple[list[float], bytes, int]:
        device = torch.device("cuda")
        weights = torch.nn.Parameter(torch.ones(50, device=device))
        optimizer = torch.optim.Adam([weights], lr=0.1, fused=True)
        generator = torch.Generator(device).manual_seed(5)
        recorded = Recorded(optimizer, generator)
        called: list[int] = []

        def step() -> torch.Tensor:
            called.append(1)
            loss = (weights * torch.empty(50, device=device).uniform_(generator=generator)).square().sum()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            return loss.detach()

        losses = [recorded(step).item() for _ in range(20)]
        return losses, generator.get_state().numpy().tobytes(), len(called)

    losses, state, called = run()
    assert called == 4  # of which the last was recorded, not run
    assert len(set(losses)) == 20
    monkeypatch.setattr(Recorded, "warm_up", 100)
    usual, usual_state, called = run()
    assert called == 20
    np.testing.assert_allclose(losses, usual, rtol=1e-6)
    assert state == usual_state
