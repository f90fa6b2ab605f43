import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from wgcn.network.cuda import Recorded, cut
from wgcn.network.module import sparse_matrix

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 8))
def test_pieces_cover_every_row_in_order_and_none_is_too_long(lengths: list[int], longest: int) -> None:
    indptr = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]).astype(np.int32)
    begins, rows, order, ones = (part.numpy() for part in cut(indptr, longest))
    assert len(rows) == len(indptr)
    assert (begins[0], begins[-1], rows[-1]) == (0, indptr[-1], len(begins) - 1)
    np.testing.assert_array_equal(begins[rows], indptr)  # a row begins where its first piece does
    np.testing.assert_array_equal(order, np.arange(len(begins) - 1))
    np.testing.assert_array_equal(ones, np.ones(len(begins) - 1, np.float32))
    assert (np.diff(begins) >= 0).all()
    assert (np.diff(begins) <= longest).all()
    assert (np.diff(rows) == np.maximum(1, -(-np.array(lengths, np.int64) // longest))).all()


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
    monkeypatch.setattr("wgcn.network.cuda._WARM_UP", 100)
    usual, usual_state, called = run()
    assert called == 20
    np.testing.assert_allclose(losses, usual, rtol=1e-6)
    assert state == usual_state
