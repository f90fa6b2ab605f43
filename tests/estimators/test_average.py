"""The average of the network and the linear model is one scorer, and says what both say."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("torch", reason="the network needs torch")


from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier
from wgcn.errors import InputError, InterruptWarning, MissingDependencyError, WGCNWarning
from wgcn.estimators import matrix as module
from wgcn.estimators.average import averaged, columns_with_edges
from wgcn.inference.model import Scorer
from wgcn.network.settings import EpochRecord, NetworkSettings, TrainingSettings

pytestmark = pytest.mark.usefixtures("one_thread")

Kind = Literal["linear", "network", "average"]
NETWORK = NetworkSettings(hidden=6)
TRAINING = TrainingSettings(max_epochs=15, device="cpu", seed=3)


def settings(model: Kind, **more: Any) -> WGCNClassifier:
    return WGCNClassifier(**{"model": model, "network": NETWORK, "training": TRAINING, **more})


def made(labels: str, n: int = 140) -> tuple[csr_array, np.ndarray]:
    """Documents of 20 words, of which each class has its own; some words have no edge."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2 if labels == "two classes" else 4, n)
    x = rng.random((n, 20)) * (rng.random((n, 20)) < 0.25)
    x[np.arange(n), 4 * codes + rng.integers(0, 3, n)] += 1
    x[:, 18:] = 0
    x[0, 18] = x[1, 19] = 1
    x[0, :18] = x[1, :18] = 0
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    if labels == "several labels":
        return csr_array(x), (np.eye(4)[codes] + np.eye(4)[rng.integers(0, 4, n)] > 0).astype(int)
    return csr_array(x), codes


def scores(scorer: Scorer, x: csr_array) -> np.ndarray:
    return scorer.scores(x.data, x.indices, x.indptr)


# The joint scorer


@pytest.mark.parametrize("unlabelled", [0, 40])
@pytest.mark.parametrize("labels", ["two classes", "four classes", "several labels"])
def test_the_scores_are_the_mean_of_the_logits_of_both(labels: str, unlabelled: int) -> None:
    x, y = made(labels)
    known = slice(unlabelled, None)
    graph = WGCNClassifier().fit(x, y).word_graph_
    more: dict[str, Any] = {"word_graph": graph, "unlabeled": x[:unlabelled]}
    both, linear, network = (
        settings(kind).fit(x[known], y[known], **more) for kind in ("average", "linear", "network")
    )
    assert len(columns_with_edges(graph.adjacency)) == 20  # a word has an edge to itself
    assert linear.scorer_.sharpness not in (1.0, 2.0)
    expected = (linear.scorer_.sharpness * scores(linear.scorer_, x) + scores(network.scorer_, x)) / 2
    np.testing.assert_allclose(scores(both.scorer_, x), expected, atol=1e-5)
    assert both.scorer_.sharpness == 1
    assert both.word_embeddings_.shape == (20, 6 + 2 * expected.shape[1])
    assert np.ptp(expected - scores(network.scorer_, x)) > 0.01
    guesses = expected > 0 if labels == "several labels" else expected.argmax(axis=1)
    np.testing.assert_array_equal(both.predict(x), guesses)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(1, 5),
    hidden=st.integers(1, 7),
    sharpness=st.floats(0.1, 50),
    multilabel=st.booleans(),
    kind=st.sampled_from([np.float32, np.float64]),
)
def test_any_two_scorers_are_averaged(
    seed: int, n_classes: int, hidden: int, sharpness: float, multilabel: bool, kind: type
) -> None:
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(n_classes)).astype(kind)
    network = Scorer(
        rng.normal(size=(9, hidden)).astype(np.float32),
        rng.normal(size=(hidden, n_classes)).astype(np.float32),
        rng.normal(size=n_classes).astype(np.float32),
        prior,
        multilabel=multilabel,
    )
    table, bias = rng.normal(size=(9, n_classes)).astype(kind), rng.normal(size=n_classes).astype(kind)
    linear = Scorer(table, None, bias, prior, sharpness, multilabel)
    both = averaged(network, linear)
    x = csr_array((rng.random((6, 9)) * (rng.random((6, 9)) < 0.4)).astype(kind))
    expected = (scores(network, x) + sharpness * scores(linear, x)) / 2
    np.testing.assert_allclose(scores(both, x), expected, atol=1e-5 * (1 + sharpness))
    assert both.bias.dtype == both.class_weights.dtype == kind  # type: ignore[union-attr]
    # A document with no word gets the shares of the classes.
    np.testing.assert_allclose(both.probabilities(scores(both, csr_array((1, 9), dtype=kind)))[0], prior, rtol=1e-4)


# What the network learns


def test_the_network_of_an_average_learns_the_words_with_edges_alone() -> None:
    x, y = made("four classes")
    graph = WGCNClassifier().fit(x, y).word_graph_
    adjacency = graph.adjacency.tolil()
    adjacency[5], adjacency[:, 5] = 0, 0
    adjacency = csr_array(adjacency)
    adjacency.eliminate_zeros()
    graph = replace(graph, adjacency=adjacency)
    others = np.delete(np.arange(20), 5)
    assert columns_with_edges(adjacency).tolist() == others.tolist()
    features = np.random.default_rng(0).normal(size=(20, 3))
    for network, of_others in (
        (NETWORK, NETWORK),
        (replace(NETWORK, word_features=features), replace(NETWORK, word_features=features[others])),
    ):
        both = settings("average", network=network).fit(x, y, word_graph=graph)
        rest = replace(graph, adjacency=csr_array(adjacency[others][:, others]))
        alone = settings("network", network=of_others).fit(x[:, others], y, word_graph=rest)
        assert np.array_equal(both.word_embeddings_[others, :6], alone.word_embeddings_)
        assert not both.word_embeddings_[5, :6].any()
        assert both.word_embeddings_[5, 6:].any()
    with pytest.raises(InputError, match=r"word_features has the shape \(19, 3\).*each of the 20 words"):
        settings("average", network=replace(NETWORK, word_features=features[1:])).fit(x, y, word_graph=graph)


def test_without_any_edge_the_linear_model_still_counts() -> None:
    x, y = made("four classes")
    graph = WGCNClassifier().fit(x, y).word_graph_
    none = replace(graph, adjacency=csr_array((20, 20), dtype=np.float32))
    assert columns_with_edges(none.adjacency).tolist() == list(range(20))
    both, linear = (settings(kind).fit(x, y, word_graph=none) for kind in ("average", "linear"))
    assert both.score(x, y) == pytest.approx(linear.score(x, y), abs=0.1)
    assert both.score(x, y) > 0.8


def test_ngrams_are_left_to_the_linear_model() -> None:
    model = WGCNTextClassifier(classifier=settings("average")).fit(TEXTS, LABELS)
    are_ngrams = model.model_.vocabulary.are_ngrams
    assert 0 < are_ngrams.sum() < len(are_ngrams)
    assert not model.word_embeddings_[are_ngrams, :6].any()
    assert model.word_embeddings_[~are_ngrams, :6].any(axis=1).all()
    assert model.word_embeddings_[:, 6:].any(axis=1).all()


# What a fit tells


def test_attributes_are_of_the_linear_model_but_for_the_history() -> None:
    x, y = made("four classes")
    both, linear, network = (settings(kind).fit(x, y) for kind in ("average", "linear", "network"))
    assert (both.held_out_accuracy_, both.n_held_out_) == (linear.held_out_accuracy_, 14)
    assert both.alpha_ == 0.5
    assert both.tuned_ is None
    assert not both.interrupted_
    assert both.n_iter_ == len(network.history_)
    assert [record["loss"] for record in both.history_] == [record["loss"] for record in network.history_]
    learnt = settings("average", learn_alpha="word").fit(x, y)
    assert np.shape(learnt.alpha_) == (20,)
    assert both.word_embeddings_.tobytes() == settings("average").fit(x, y).word_embeddings_.tobytes()


def test_documents_without_a_label_and_word_vectors_are_for_the_linear_model() -> None:
    x, y = made("four classes")
    known = np.where(np.arange(len(y)) < 30, y, -1)
    graph = WGCNClassifier().fit(x, y).word_graph_
    more: dict[str, Any] = {"word_graph": graph, "word_vectors": np.eye(20)}
    both, linear = (settings(kind).fit(x, known, **more) for kind in ("average", "linear"))
    network = settings("network").fit(x[:30], y[:30], word_graph=graph)
    assert np.array_equal(both.word_embeddings_[:, :6], network.word_embeddings_)
    assert np.array_equal(both.word_embeddings_[:, 6:10], linear.word_embeddings_)
    assert np.array_equal(both.word_embeddings_[:, 10:], -linear.word_embeddings_)


class Interrupting:
    def on_epoch(self, record: EpochRecord, model: object) -> None:
        if record.epoch == 4:
            raise KeyboardInterrupt


def test_ctrl_c_keeps_the_network_and_a_checkpoint_goes_on(tmp_path: Path) -> None:
    x, y = made("four classes")
    advice = f"after 4 epochs; the best network so far is kept. Fit again with resume=True to go on from {tmp_path}"
    with pytest.warns(InterruptWarning, match=advice):
        kept = settings("average", checkpoint=tmp_path / "state").fit(x, y, callbacks=[Interrupting()])
    assert kept.interrupted_
    assert len(kept.history_) == 4
    assert kept.score(x, y) > 0.8
    with pytest.warns(WGCNWarning, match="Give a checkpoint, and later resume=True"):
        settings("network").fit(x, y, callbacks=[Interrupting()])
    whole = settings("average").fit(x, y)
    again = settings("average", checkpoint=tmp_path / "state", resume=True).fit(x, y)
    assert not again.interrupted_
    assert again.word_embeddings_.tobytes() == whole.word_embeddings_.tobytes()
    assert kept.word_embeddings_.tobytes() != whole.word_embeddings_.tobytes()


def test_settings_of_the_linear_model_can_be_chosen() -> None:
    pytest.importorskip("optuna", reason="tune needs Optuna")
    x, y = made("four classes")
    more: dict[str, Any] = {"tune": True, "tune_seconds": np.inf, "tune_trials": 3, "C": 1e-4}
    both, linear = (settings(kind, **more).fit(x, y) for kind in ("average", "linear"))
    assert both.tuned_ is not None
    assert linear.tuned_ is not None
    assert both.tuned_.settings == linear.tuned_.settings
    assert np.array_equal(both.word_embeddings_[:, 6:10], linear.word_embeddings_)


def test_what_cannot_be_done_is_said_before_the_linear_model_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "train_linear", lambda *_: pytest.fail("the work has begun"))
    with pytest.raises(InputError, match="resume needs a checkpoint"):
        settings("average", resume=True).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(InputError, match="model must be 'linear', 'network' or 'average', got 'mean'"):
        WGCNClassifier(model="mean").fit(np.eye(4), [0, 1, 0, 1])  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "wgcn.device", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="The network needs the package 'torch'"):
        settings("average").fit(np.eye(4), [0, 1, 0, 1])


NOT_FOR_NETWORKS = {
    "check_sample_weight_equivalence_on_dense_data": "dropout and early stopping draw documents, not weights",
    "check_sample_weight_equivalence_on_sparse_data": "dropout and early stopping draw documents, not weights",
}


@parametrize_with_checks([settings("average")], expected_failed_checks=lambda _: NOT_FOR_NETWORKS)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check) -> None:  # type: ignore[no-untyped-def]
    check(estimator)


# Texts

TEXTS = ["red wine", "white wine and red wine", "fast car", "slow car and fast car", "wine and car"] * 6
LABELS = ["drink", "drink", "drive", "drive", None] * 6


def test_a_saved_average_says_the_same(tmp_path: Path) -> None:
    model = WGCNTextClassifier(classifier=settings("average")).fit(TEXTS, LABELS)
    model.save(tmp_path / "m")
    loaded = TextModel.load(tmp_path / "m")
    texts = ["a red wine", "my fast car", "", "unknown"]
    assert np.array_equal(loaded.predict_proba(texts), model.predict_proba(texts))
    assert loaded.predict(texts).tolist() == model.predict(texts).tolist()
    assert loaded.scorer.class_weights is not None
    assert loaded.settings["model"] == "average"
    assert "hidden=6" in loaded.settings["network"]
