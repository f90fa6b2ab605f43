"""WGCNTextClassifier and scikit-learn's contract: its common checks, and what they cannot ask of texts."""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from threadpoolctl import threadpool_limits

from wgcn import WGCNTextClassifier
from wgcn.linear.task import Thresholds

TOPICS = ("art", "law", "sea")
METHODS = ("predict", "predict_proba", "decision_function", "transform")

OF_ESTIMATORS = (
    "do_not_raise_errors_in_init_or_set_params estimator_cloneable estimator_repr estimator_tags_renamed "
    "estimators_unfitted get_feature_names_out_error get_params_invariance mixin_order no_attributes_set_in_init "
    "parameters_default_constructible requires_y_none set_params transformers_unfitted valid_tag_types "
)

# Not asked: n_features_in_ (texts have no columns), and sample weights that stand for copies, which count in the graph.
OF_ROWS = (
    "all_zero_sample_weights_error class_weight_classifiers classifiers_classes "
    "classifiers_multilabel_output_format_decision_function classifiers_multilabel_output_format_predict "
    "classifiers_multilabel_output_format_predict_proba classifiers_multilabel_representation_invariance "
    "classifiers_one_label_sample_weights decision_proba_consistency dict_unchanged dont_overwrite_parameters "
    "dtype_object estimators_fit_returns_self estimators_overwrite_params estimators_pickle "
    "f_contiguous_array_estimator fit_check_is_fitted fit_idempotent fit_score_takes_y "
    "methods_sample_order_invariance methods_subset_invariance non_transformer_estimators_n_iter "
    "pipeline_consistency readonly_memmap_input sample_weights_list sample_weights_not_overwritten "
    "sample_weights_pandas_series sample_weights_shape supervised_y_2d "
)


class RowsAsTexts(WGCNTextClassifier):
    """The estimator for rows of numbers, each of which is a word: for checks that know no texts."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RowsAsTexts":
        super().fit(as_texts(X), y, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        return super().predict(as_texts(X))

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(as_texts(X))

    def decision_function(self, X: Any) -> Any:
        return super().decision_function(as_texts(X))

    def transform(self, X: Any) -> Any:
        return super().transform(as_texts(X))


def as_texts(X: Any) -> list[str]:
    rows = np.asarray(X, float).tolist()
    return [" ".join(f"w{place}v{round(2 * value)}" for place, value in enumerate(row)) for row in rows]


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1, "blas"), pytest.MonkeyPatch.context() as patch:
        # What needs many labels is done with few.
        patch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=150, beside_teacher=150))
        yield


@pytest.mark.parametrize("name", OF_ESTIMATORS.split())
def test_checks_of_scikit_learn_that_need_no_rows(name: str) -> None:
    getattr(estimator_checks, f"check_{name}")("WGCNTextClassifier", WGCNTextClassifier(n_jobs=1))


@pytest.mark.parametrize("name", OF_ROWS.split())
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn_with_rows_as_texts(name: str) -> None:
    getattr(estimator_checks, f"check_{name}")("RowsAsTexts", RowsAsTexts(n_jobs=1))


def corpus(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return texts of which every tenth is a copy, and their topics."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(TOPICS, n)
    texts = [
        " ".join([f"{label}{i}" for i in rng.integers(0, 30, 3)] + [f"common{i}" for i in rng.integers(0, 40, 6)])
        for label in labels
    ]
    for place in range(10, n, 10):
        texts[place], labels[place] = texts[place - 5], labels[place - 5]
    return np.array(texts, object), labels.astype(object)


NEW = corpus(300, seed=1)[0].tolist()


def some(labels: np.ndarray, n: int) -> np.ndarray:
    labels = labels.copy()
    labels[n:] = None
    return labels


def lists(labels: np.ndarray) -> np.ndarray:
    found = np.empty(len(labels), object)
    found[:] = [[label, "old"] if label == "sea" else [label] for label in labels]
    return found


def case(name: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    n, n_labelled, *_ = {"few": (24, 24), "few, others": (240, 24), "many": (300, 300), "many, others": (400, 250)}.get(
        name, (200, 120)
    )
    texts, labels = corpus(n)
    if name == "several labels":
        return texts[:n_labelled], lists(labels[:n_labelled]), {}
    if name == "seeds":
        known = {word for text in texts for word in text.split()}
        return (
            texts,
            some(labels, 0),
            {"seeds": {topic: [w for w in sorted(known) if topic in w][:4] for topic in TOPICS}},
        )
    return texts, some(labels, n_labelled), {}


CASES = ("few", "few, others", "many", "many, others", "several labels", "seeds")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::wgcn.base.errors.WGCNWarning")
def test_the_order_of_training_texts_changes_no_label(name: str) -> None:
    texts, labels, options = case(name)
    model = WGCNTextClassifier(n_jobs=1).fit(texts.tolist(), labels.tolist(), **options)
    expected, scores = model.predict(NEW), model.decision_function(NEW)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(texts))
        other = WGCNTextClassifier(n_jobs=1).fit(texts[order].tolist(), labels[order].tolist(), **options)
        assert np.array_equal(other.predict(NEW), expected)
        np.testing.assert_allclose(other.decision_function(NEW), scores, atol=1e-3)


@pytest.fixture(scope="module")
def fitted() -> WGCNTextClassifier:
    texts, labels, _ = case("few, others")
    return WGCNTextClassifier(n_jobs=1, stop_words=["common1"]).fit(texts.tolist(), labels.tolist())


@pytest.mark.parametrize("method", METHODS)
def test_a_text_gets_the_same_alone_and_among_others_in_any_order(fitted: WGCNTextClassifier, method: str) -> None:
    ask = getattr(fitted, method)
    whole, order = ask(NEW), np.random.default_rng(0).permutation(len(NEW))
    assert np.array_equal(ask([NEW[i] for i in order]), whole[order])
    assert np.array_equal(np.concatenate([ask([text]) for text in NEW[:20]]), whole[:20])
    assert np.array_equal(ask(iter(NEW)), whole)
    assert np.array_equal(ask(np.array(NEW, object)), whole)


@pytest.mark.filterwarnings("ignore::wgcn.base.errors.WGCNWarning")
@pytest.mark.parametrize(
    "again",
    [
        lambda model, texts, labels: clone(model).fit(texts, labels),
        lambda model, texts, labels: copy.deepcopy(model).fit(texts, labels),
        lambda model, texts, labels: (
            copy.deepcopy(model).fit(NEW[:30], seeds={"a": "common3", "b": "common4"}).fit(texts, labels)
        ),
        lambda model, texts, labels: pickle.loads(pickle.dumps(model)),
        lambda model, texts, labels: copy.deepcopy(model),
    ],
    ids=["clone", "fit again", "fit to others between", "pickle", "deepcopy"],
)
def test_the_same_fit_gives_the_same_bits(fitted: WGCNTextClassifier, again: Callable[..., WGCNTextClassifier]) -> None:
    texts, labels, _ = case("few, others")
    parameters, state = copy.deepcopy(fitted.get_params()), dict(vars(fitted))
    other = again(fitted, texts.tolist(), labels.tolist())
    assert other.get_params() == parameters == fitted.get_params()
    for method in METHODS:
        assert np.array_equal(getattr(other, method)(NEW), getattr(fitted, method)(NEW))
    assert vars(other).keys() == state.keys()
    assert all(vars(fitted)[name] is value for name, value in state.items())  # asking changes nothing


def test_what_was_given_is_not_changed() -> None:
    texts, labels, _ = case("few, others")
    weight = np.linspace(0.5, 2, len(texts))
    given = texts.copy(), labels.copy(), weight.copy()
    WGCNTextClassifier(n_jobs=1).fit(texts, labels, weight)
    assert all(np.array_equal(one, other) for one, other in zip(given, (texts, labels, weight), strict=True))


def test_there_is_a_name_for_each_column_and_none_for_texts(fitted: WGCNTextClassifier) -> None:
    assert len(fitted.get_feature_names_out()) == fitted.transform(NEW[:1]).shape[1]
    assert not hasattr(fitted, "n_features_in_")
