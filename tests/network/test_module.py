"""The network gives what the formulas of the paper give, written out with dense matrices."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array, random_array
from torch import Tensor

from wgcn.network.module import WGCN, Centring, sparse_matrix, sparse_tensor
from wgcn.network.settings import NetworkSettings

N_WORDS, N_DOCUMENTS, N_CLASSES, HIDDEN = 11, 7, 3, 5
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_cuda)]


def made_data(dtype: type = np.float64) -> tuple[csr_array, csr_array]:
    """A symmetric graph and documents, one of them empty."""
    rng = np.random.default_rng(0)
    a = random_array((N_WORDS, N_WORDS), density=0.3, format="csr", rng=rng)
    x = random_array((N_DOCUMENTS, N_WORDS), density=0.4, format="csr", rng=rng).toarray()
    x[2] = 0
    return csr_array(a + a.T, dtype=dtype), csr_array(x, dtype=dtype)


def model(seed: int = 0, centring: Centring | None = None, **options: Any) -> WGCN:
    settings = NetworkSettings(HIDDEN, **options)
    return WGCN(N_WORDS, N_CLASSES, settings, centring, torch.Generator().manual_seed(seed))


def dense_logits(network: WGCN, x: Tensor, a: Tensor, weights: list[Tensor]) -> Tensor:
    """Eq. 5 and 7 as they stand in the paper, with the residual."""
    w0, w1, b1 = weights
    h = (torch.linalg.matrix_power(a, network.settings.order) + network.settings.residual * torch.eye(N_WORDS)) @ w0
    if network.settings.word_activation:
        h = h.clamp(min=0)
    return (x @ h).clamp(min=0) @ w1 + b1


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("residual", [0.0, 0.5])
@pytest.mark.parametrize("word_activation", [False, True])
def test_logits_and_gradients_are_those_of_the_formula(order: int, residual: float, word_activation: bool) -> None:
    a, x = made_data()
    network = model(order=order, residual=residual, word_activation=word_activation).double()
    network.eval()
    logits = network(sparse_matrix(x), sparse_matrix(a, symmetric=True))
    weights = [w.detach().clone().requires_grad_() for w in network.parameters()]
    expected = dense_logits(network, torch.from_numpy(x.toarray()), torch.from_numpy(a.toarray()), weights)
    torch.testing.assert_close(logits, expected, rtol=1e-10, atol=1e-10)
    factors = torch.from_numpy(np.random.default_rng(2).normal(size=logits.shape))
    (logits * factors).sum().backward()
    (expected * factors).sum().backward()
    for ours, dense in zip(network.parameters(), weights, strict=True):
        torch.testing.assert_close(ours.grad, dense.grad, rtol=1e-10, atol=1e-10)


@pytest.fixture
def _double() -> Iterator[None]:
    """Buffers and first weights are in double precision."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def normalized_graph(n_lonely: int = 0) -> tuple[csr_array, np.ndarray]:
    """A graph S = D^-1/2 G D^-1/2 whose last words have no edges, and its degrees d."""
    rng = np.random.default_rng(3)
    g = rng.random((N_WORDS, N_WORDS)) * (rng.random((N_WORDS, N_WORDS)) < 0.4)
    g = g + g.T + np.diag(rng.random(N_WORDS))
    kept = np.arange(N_WORDS) < N_WORDS - n_lonely
    g *= np.outer(kept, kept)
    d = g.sum(axis=1)
    root = np.sqrt(np.where(kept, d, 1))
    return csr_array(g / np.outer(root, root)), d


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("residual", [0.0, 0.5])
@pytest.mark.parametrize("n_lonely", [0, 2])
def test_centred_logits_and_gradients_are_those_of_the_formula(order: int, residual: float, n_lonely: int) -> None:
    s, d = normalized_graph(n_lonely)
    _, x = made_data()
    u, length = np.sqrt(d / d.sum()), 1.7
    network = model(order=order, residual=residual, centring=Centring(u, length)).eval()
    logits = network(sparse_matrix(x), sparse_matrix(s, symmetric=True))

    # l D^-1/2 (S - u u^T)^n D^1/2: the rows of words without edges are 0. With order 0 there is no graph to centre.
    inverse = np.divide(1, np.sqrt(d), out=np.zeros(N_WORDS), where=d > 0)
    power = np.linalg.matrix_power(s.toarray() - np.outer(u, u), order)
    centred = length * inverse[:, None] * power * np.sqrt(d) if order else np.eye(N_WORDS)
    mixed = torch.from_numpy(centred + residual * np.eye(N_WORDS))
    weights = [w.detach().clone().requires_grad_() for w in network.parameters()]
    expected = (torch.from_numpy(x.toarray()) @ (mixed @ weights[0])).clamp(min=0) @ weights[1] + weights[2]
    torch.testing.assert_close(logits, expected, rtol=1e-10, atol=1e-10)
    factors = torch.from_numpy(np.random.default_rng(2).normal(size=logits.shape))
    (logits * factors).sum().backward()
    (expected * factors).sum().backward()
    for ours, dense in zip(network.parameters(), weights, strict=True):
        torch.testing.assert_close(ours.grad, dense.grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("residual", [0.0, 0.5])
def test_a_word_without_edges_gets_nothing_from_a_centred_graph(residual: float) -> None:
    s, d = normalized_graph(n_lonely=2)
    centring = Centring(np.sqrt(d / d.sum()), 1e4)
    network = model(order=2, residual=residual, centring=centring)
    table = network.word_embeddings(sparse_matrix(csr_array(s, dtype=np.float32), symmetric=True))
    assert torch.isfinite(table).all()
    assert torch.equal(table[-2:], residual * network.word_weights[-2:])
    assert table[:-2].all()


@pytest.mark.parametrize("device", DEVICES)
def test_gradient_of_a_sparse_product_is_the_transpose_times_it(device: str) -> None:
    a, x = made_data()
    for matrix, symmetric in ((x, False), (a, True)):
        sparse = sparse_matrix(matrix, device, symmetric=symmetric)
        dense = torch.randn(N_WORDS, 3, dtype=torch.float64, device=device, requires_grad=True)
        assert torch.autograd.gradcheck(lambda d, s=sparse: s @ d, dense)


def test_a_symmetric_matrix_is_held_once_and_shares_its_memory() -> None:
    a, x = made_data()
    sparse = sparse_matrix(a, symmetric=True)
    assert sparse.transposed is sparse.matrix
    assert sparse.matrix.values().data_ptr() == a.data.ctypes.data
    np.testing.assert_array_equal(sparse_matrix(x).transposed.to_dense().numpy(), x.toarray().T)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_products_take_indices_of_32_bits(device: str, index: type) -> None:
    _, x = made_data(np.float32)
    x.indices, x.indptr = x.indices.astype(index), x.indptr.astype(index)
    sparse = sparse_matrix(x, device)
    assert sparse.matrix.col_indices().dtype == sparse.matrix.crow_indices().dtype == torch.int32
    np.testing.assert_allclose((sparse @ torch.eye(N_WORDS, device=device)).cpu(), x.toarray(), rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_matrix_without_entries_gives_zeros(device: str) -> None:
    sparse = sparse_matrix(csr_array((3, N_WORDS), dtype=np.float32), device)
    dense = torch.ones(N_WORDS, 2, device=device, requires_grad=True)
    product = sparse @ dense
    product.sum().backward()
    assert product.shape == (3, 2)
    assert not product.any()
    assert dense.grad is not None
    assert not dense.grad.any()


@pytest.mark.parametrize("device", DEVICES)
def test_large_products_give_the_same_bits_every_time(device: str) -> None:
    matrix = random_array((2000, 2000), density=0.05, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    sparse = sparse_matrix(csr_array(matrix), device)
    dense = torch.randn(2000, 100, generator=torch.Generator().manual_seed(0)).to(device)
    first = sparse @ dense
    np.testing.assert_allclose(first.cpu(), matrix @ dense.cpu().numpy(), rtol=1e-3, atol=1e-4)
    for _ in range(20):
        assert torch.equal(sparse @ dense, first)


def test_read_only_arrays_are_taken_without_a_warning() -> None:
    a, _ = made_data(np.float32)
    a.data.flags.writeable = False
    assert sparse_tensor(a).values().sum() > 0


def test_order_0_is_a_perceptron_that_never_sees_the_graph() -> None:
    a, x = made_data(np.float32)
    network = model(order=0).eval()
    terms = sparse_matrix(x)
    logits = network(terms, sparse_matrix(a, symmetric=True))
    centred = model(order=0, centring=Centring(np.full(N_WORDS, 0.3), 7.0)).eval()
    assert torch.equal(centred(terms, sparse_matrix(a, symmetric=True)), logits)
    nothing = csr_array((N_WORDS, N_WORDS), dtype=np.float32)
    assert torch.equal(logits, network(terms, sparse_matrix(nothing, symmetric=True)))
    perceptron = torch.relu(terms @ network.word_weights) @ network.class_weights + network.bias
    assert torch.equal(logits, perceptron)


def test_dropout_drops_words_and_documents_at_the_given_rates_and_keeps_the_mean() -> None:
    ones = torch.ones(500, 400)
    for rate in (0.1, 0.6, 0.9):
        dropped = WGCN(1, 1, NetworkSettings())._dropout(ones, rate, torch.Generator().manual_seed(0))
        assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=0.01)
        assert float(dropped.mean()) == pytest.approx(1, abs=0.03)
    assert not WGCN(1, 1, NetworkSettings())._dropout(ones, 1 - 1e-9, None).isnan().any()


def test_dropout_follows_its_generator_and_stops_with_training() -> None:
    a, x = made_data(np.float32)
    terms, graph = sparse_matrix(x), sparse_matrix(a, symmetric=True)
    network = model()

    def logits(seed: int) -> Tensor:
        return network(terms, graph, torch.Generator().manual_seed(seed))  # type: ignore[no-any-return]

    assert torch.equal(logits(1), logits(1))
    assert not torch.equal(logits(1), logits(2))
    network.eval()
    assert torch.equal(logits(1), logits(2))


def test_first_weights_come_from_the_generator_alone() -> None:
    before = torch.get_rng_state()
    for ours, same in zip(model(3).parameters(), model(3).parameters(), strict=True):
        assert torch.equal(ours, same)
    assert not torch.equal(model(3).word_weights, model(4).word_weights)
    assert torch.equal(torch.get_rng_state(), before)
    bound = (6 / (N_WORDS + HIDDEN)) ** 0.5
    assert bound / 2 < model().word_weights.abs().max() <= bound
    assert not model().bias.any()


@needs_cuda
def test_cuda_gives_what_the_cpu_gives() -> None:
    a, x = made_data(np.float32)
    results = []
    for device in ("cpu", "cuda"):
        network = model(order=2, residual=0.5).to(device).eval()
        terms, graph = sparse_matrix(x, device), sparse_matrix(a, device, symmetric=True)
        logits = network(terms, graph)
        logits.square().sum().backward()
        results.append([logits.detach().cpu(), network.word_weights.grad.cpu()])
    for cpu, cuda in zip(*results, strict=True):
        torch.testing.assert_close(cpu, cuda, rtol=1e-4, atol=1e-5)
