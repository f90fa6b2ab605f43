"""WGCNNetworkClassifier, the paper's network as an estimator of matrices."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch", reason="the network needs torch")

from wgcn import WGCNNetworkClassifier  # noqa: E402
from wgcn.base.errors import InputError  # noqa: E402
from wgcn.estimators.preparation import Preparation  # noqa: E402
from wgcn.network.module import WGCN, sparse_matrix  # noqa: E402
from wgcn.network.settings import NetworkSettings  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["red wine", "white wine", "fast car", "slow car"]
LABELS = ["drink", "drink", "drive", "drive"]
NOT_FOR_NETWORKS = {
    "check_sample_weight_equivalence_on_dense_data": "dropout and early stopping draw documents, not weights",
    "check_sample_weight_equivalence_on_sparse_data": "dropout and early stopping draw documents, not weights",
    "check_transformer_preserve_dtypes": "the network is trained in single precision",
    "check_classifiers_train": "five epochs of four hidden units are too few",
    "check_class_weight_classifiers": "five epochs of four hidden units are too few",
}


def network(**parameters: Any) -> WGCNNetworkClassifier:
    return WGCNNetworkClassifier(**{"hidden": 4, "max_epochs": 5, "device": "cpu", **parameters})


@parametrize_with_checks([network()], expected_failed_checks=lambda _: NOT_FOR_NETWORKS)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check) -> None:  # type: ignore[no-untyped-def]
    check(estimator)


def test_every_parameter_can_be_searched() -> None:
    model = network()
    defaults = model.get_params()
    assert clone(model.set_params(**{**defaults, "hidden": 3})).get_params() == {**defaults, "hidden": 3}
    grid = {name: [value] for name, value in defaults.items()}
    assert GridSearchCV(network(), grid, cv=2).fit(np.eye(4), [0, 0, 1, 1]).best_params_ == defaults


def test_it_learns_and_predicts_with_numpy_what_torch_would() -> None:
    x = csr_array(np.array([[1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]] * 10, np.float32))
    y = np.array(["a", "b"] * 20)
    model = network(hidden=8, max_epochs=60, validation_fraction=0).fit(x, y)
    assert model.score(x, y) == 1
    assert model.word_embeddings_.shape == (4, 8)
    assert len(model.history_) == 60
    reference = WGCN(4, 2, NetworkSettings(hidden=8, order=0)).eval()
    with torch.no_grad():
        for name, value in (("word_weights", model.word_embeddings_), ("class_weights", model.scorer_.class_weights)):
            getattr(reference, name).copy_(torch.from_numpy(value))
        reference.bias.copy_(torch.from_numpy(model.scorer_.bias))
        logits = reference(sparse_matrix(x), sparse_matrix(model.word_graph_.adjacency, symmetric=True)).numpy()
    np.testing.assert_allclose(model._scores(x), logits, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stopping", ["best", "mean"])
@pytest.mark.parametrize("refit", [False, True])
def test_the_reported_accuracy_is_that_of_the_weights_that_are_kept(
    stopping: Literal["best", "mean"], refit: bool
) -> None:
    rng = np.random.default_rng(0)
    # Random labels: the accuracy goes up and down.
    model = network(hidden=8, max_epochs=100, patience=6, stopping=stopping, validation_fraction=0.4, refit=refit).fit(
        rng.random((60, 10)), rng.integers(0, 2, 60)
    )
    searched = [record for record in model.history_ if not record["refit"]]
    losses = [record["validation_loss"] for record in searched]
    kept = searched[-1] if stopping == "mean" else searched[int(np.argmin(losses))]
    assert len(searched) < 100
    assert model.held_out_accuracy_ == kept["validation_accuracy"]
    assert model.n_held_out_ == 24


def test_the_number_of_held_out_documents_of_a_long_tail() -> None:
    model = network(max_epochs=2).fit(np.eye(60), np.maximum(np.arange(60) - 2, 0))  # three of one class, one of others
    assert model.n_held_out_ == 1
    model.fit(np.eye(60), np.arange(60))
    assert (model.n_held_out_, model.held_out_accuracy_) == (0, None)


@pytest.mark.parametrize("texts", [["a a a", "a a", "a", ""], ["red wine"] * 4])
@pytest.mark.parametrize("labels", [["x", "y", "x", "x"], ["x", "y", None, None]])
def test_texts_whose_words_have_no_edges(texts: list[str], labels: list[str | None]) -> None:
    prepared = Preparation().prepare(texts)
    model = network(max_epochs=2).fit(prepared.document_terms, labels, word_graph=prepared.word_graph)
    assert np.isfinite(prepared.text_model(model, {}).predict_proba([*texts, "", "zzz"])).all()


def test_a_text_model_gives_the_probabilities_of_the_matrix(tmp_path: Path) -> None:
    prepared = Preparation(min_pairs=1).prepare(TEXTS)
    model = network(max_epochs=60, n_models=2).fit(prepared.document_terms, LABELS, word_graph=prepared.word_graph)
    text_model = prepared.text_model(model, {"model": "network"})
    assert np.array_equal(text_model.predict_proba(TEXTS), model.predict_proba(prepared.document_terms))
    assert text_model.settings["model"] == "network"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"device": "abacus"}, "abacus"),
        ({"resume": True}, "resume needs a checkpoint"),
        ({"checkpoint": Path(__file__).parent}, "is a folder"),
        ({"checkpoint": Path(__file__) / "state"}, "cannot be written"),
        ({"hidden": "many"}, "hidden must be a"),
        ({"order": 0.5}, "order must be a"),
        ({"residual": "x"}, "residual must be a"),
        ({"validation_fraction": 1}, "validation_fraction"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"top_k": 0}, "top_k"),
        ({"class_weight": "fair"}, "class_weight"),
    ],
)
def test_unusable_parameters_are_found_before_training(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        network(**parameters).check_parameters()
    with pytest.raises(InputError, match=message):
        network(**parameters).fit(np.eye(4), LABELS)


def test_training_resumes_from_a_checkpoint_to_the_same_bytes(tmp_path: Path) -> None:
    x, state = np.eye(6), tmp_path / "state"
    whole = network(max_epochs=8, validation_fraction=0).fit(x, [0, 1] * 3)
    first = network(max_epochs=8, validation_fraction=0, checkpoint=state)

    class Stop:
        def on_epoch(self, record: Any, model: object) -> None:
            if record.epoch == 3:
                raise KeyboardInterrupt

    with pytest.warns(UserWarning, match=f"resume=True to go on from {state}"):
        first.fit(x, [0, 1] * 3, callbacks=[Stop()])
    assert first.interrupted_
    resumed = first.set_params(resume=True).fit(x, [0, 1] * 3)
    assert not resumed.interrupted_
    assert resumed.word_embeddings_.tobytes() == whole.word_embeddings_.tobytes()
