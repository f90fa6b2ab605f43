"""WGCNEmbedder against its equations, as an estimator, and beside latent semantic analysis."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from threadpoolctl import threadpool_limits

from wgcn import WGCNEmbedder
from wgcn.base.errors import InputError
from wgcn.estimators.preparation import Preparation
from wgcn_paper.datasets.docstrings import DocsCorpus

TEXTS = ["red wine", "white wine", "fast car", "slow car"]


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1, "blas"):
        yield


def topics(n: int = 120, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Return texts of three topics, each with words of its own and with words that all share."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    texts = [
        " ".join([*(f"t{label}w{i}" for i in rng.integers(0, 15, 4)), *(f"w{i}" for i in rng.integers(0, 8, 6))])
        for label in labels
    ]
    return texts, labels


def test_it_is_what_its_equations_say() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 12, 5)) for _ in range(100)]
    # With a singular vector for each word, the search for them can miss nothing.
    embedder = WGCNEmbedder(24, graph_weight=3.0).fit(texts)
    prepared = Preparation(ngram_range=(1, 1)).prepare(texts)
    x, a = prepared.document_terms.toarray().astype(float), prepared.word_graph.adjacency.toarray().astype(float)  # type: ignore[union-attr]
    v = np.linalg.svd(x, full_matrices=False)[2].T
    b = a @ v
    sizes, directions = np.linalg.eigh((x @ b).T @ (x @ b))
    assert sizes[-1] > 2 * sizes[-2]
    b -= np.outer(b @ directions[:, -1], directions[:, -1])
    v, b = (block / np.linalg.norm(x @ block, axis=1).mean() for block in (v, b))
    rows = x @ np.hstack([v, 3 * b])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = embedder.transform(texts)
    # Singular vectors are known up to sign, the angles between documents are known.
    np.testing.assert_allclose(found @ found.T, rows @ rows.T, atol=1e-4)
    assert embedder.word_embeddings_.shape == (12, 24)
    assert embedder.word_graph_.vocabulary == embedder.vocabulary_ == prepared.vocabulary


def test_fit_transform_gives_the_bits_of_transform_and_reads_once() -> None:
    texts, _ = topics()
    embedder = WGCNEmbedder(6)
    rows = embedder.fit_transform(iter(texts))
    assert np.array_equal(rows, embedder.transform(texts))
    assert np.array_equal(rows, WGCNEmbedder(6).fit(np.array(texts)).transform(iter(texts)))
    assert rows.dtype == np.float32


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12))
@settings(max_examples=30)
def test_rows_are_finite_and_of_length_one_or_zero(texts: list[str]) -> None:
    rows = WGCNEmbedder(4, tokenizer=str.split).fit_transform(texts)
    assert rows.shape[0] == len(texts)
    assert rows.shape[1] <= 4
    lengths = np.linalg.norm(rows, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))


def test_a_text_without_a_known_word_is_zero_and_no_text_no_row() -> None:
    embedder = WGCNEmbedder(4).fit(TEXTS)
    rows = embedder.transform(["", "zzz", "!", "wine zzz"])
    assert not rows[:3].any()
    assert np.array_equal(rows[3:], embedder.transform(["wine"]))
    assert embedder.transform([]).shape == (0, 4)


def test_texts_of_one_topic_are_near_each_other() -> None:
    # Two kinds of texts of equal size: neither is what all have in common.
    rows = WGCNEmbedder(4).fit_transform(TEXTS)
    cosines = rows @ rows.T
    assert cosines[0, 1] > cosines[0, 2] + 0.5
    assert cosines[2, 3] > cosines[2, 1] + 0.5
    texts, labels = topics()
    cosines = (rows := WGCNEmbedder(8).fit_transform(texts)) @ rows.T
    same = labels[:, None] == labels
    assert cosines[same].mean() > cosines[~same].mean() + 0.3


@pytest.mark.parametrize("text", ["a", "a b"])
def test_texts_that_are_all_the_same_have_the_same_row(text: str) -> None:
    rows = WGCNEmbedder(4, tokenizer=str.split).fit_transform([text] * 3)
    np.testing.assert_allclose(rows @ rows.T, 1, atol=1e-6)


def test_a_seed_gives_the_same_bits_and_other_settings_other_words() -> None:
    texts, _ = topics()
    first = WGCNEmbedder(6).fit(texts).word_embeddings_
    assert np.array_equal(WGCNEmbedder(6).fit(texts).word_embeddings_, first)
    others = [
        {"window": 3},
        {"graph_weight": 1.0},
        {"ngram_range": (1, 2)},
        {"min_count": 20},
        {"stop_words": ["w0"]},
        {"random_state": 1},
        {"n_components": 4},
    ]
    for other in others:
        changed = WGCNEmbedder(**{"n_components": 6, **other}).fit(texts).word_embeddings_
        assert not np.array_equal(changed, first), other


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_set_params,
        estimator_checks.check_valid_tag_types,
    ],
)
def test_checks_of_scikit_learn_that_need_no_matrix(check: Callable[[str, WGCNEmbedder], None]) -> None:
    check("WGCNEmbedder", WGCNEmbedder())


def test_it_is_an_estimator() -> None:
    parameters = {"n_components": 6, "window": 5, "stop_words": ("a",), "graph_weight": 1.5}
    embedder = clone(WGCNEmbedder(**parameters))
    assert {name: embedder.get_params()[name] for name in parameters} == parameters
    with pytest.raises(NotFittedError):
        embedder.transform(["a"])
    with pytest.raises(NotFittedError):
        embedder.get_feature_names_out()
    assert embedder.fit(TEXTS) is embedder
    assert embedder.get_feature_names_out().tolist() == [f"wgcn{i}" for i in range(6)]
    texts, labels = topics()
    pipeline = make_pipeline(WGCNEmbedder(8), LogisticRegression()).fit(texts[:60], labels[:60])
    assert pipeline.score(texts[60:], labels[60:]) > 0.9


def test_a_data_frame_comes_out_if_asked_for() -> None:
    pandas = pytest.importorskip("pandas")
    frame = WGCNEmbedder(4).set_output(transform="pandas").fit_transform(TEXTS)
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["wgcn0", "wgcn1", "wgcn2", "wgcn3"]


@pytest.mark.parametrize(
    ("parameters", "texts", "message"),
    [
        ({"n_components": 5}, TEXTS, "even number of at least 2, got 5"),
        ({"n_components": 0}, TEXTS, "even number of at least 2, got 0"),
        ({"graph_weight": -1.0}, TEXTS, "graph_weight must be at least 0"),
        ({"graph_weight": float("nan")}, TEXTS, "graph_weight must be at least 0"),
        ({"graph_weight": 1e300}, TEXTS, r"graph_weight must be below 2\*\*63"),
        ({}, "a text", "put it into a list"),
        ({}, np.array([TEXTS]), "one-dimensional"),
        ({}, ["", "!"], "no word in the 2 documents"),
        ({}, [1, 2], "must be a str"),
    ],
)
def test_unusable_input_is_explained(parameters: dict[str, object], texts: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        WGCNEmbedder(**parameters).fit(texts)  # type: ignore[arg-type]


def test_few_labels_go_further_than_with_latent_semantic_analysis(docs: DocsCorpus) -> None:
    assert docs.texts is not None
    texts = [docs.texts[i] for i in docs.train]
    embedder = WGCNEmbedder(100).fit(texts)
    rows = embedder.transform(texts)
    terms = Preparation(ngram_range=(1, 1)).prepare(texts, with_graph=False).document_terms
    plain = TruncatedSVD(100, random_state=0).fit_transform(terms)
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    labels = docs.labels[docs.train]
    shares = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(labels))
        kept = np.concatenate([order[labels[order] == name][:3] for name in docs.classes])
        probes = [LogisticRegression(C=100, max_iter=2000).fit(each[kept], labels[kept]) for each in (rows, plain)]
        shares.append([probe.score(each, labels) for probe, each in zip(probes, (rows, plain), strict=True)])
    ours, theirs = np.mean(shares, axis=0)
    print(ours, theirs)
    assert ours > theirs
