"""Sets that hold the right label as often as asked, answers that are left out, weights of siblings, curves of risk."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from wgcn.base.errors import InputError, StoreError
from wgcn.trust import abstention as novelty
from wgcn.trust.abstention import Trust, checked_trust, novelty_weights, risk_coverage
from wgcn.trust.scope import Scope, doubt

NO_SCOPE = Scope(np.empty((0, 3)), np.empty(0))


def answers(n: int, rng: np.random.Generator, n_classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and right labels of texts, some of which a model gets wrong."""
    codes = rng.integers(n_classes, size=n)
    logits = rng.normal(size=(n, n_classes)) + 2.5 * np.eye(n_classes)[codes]
    likely = np.exp(logits)
    return likely / likely.sum(axis=1, keepdims=True), codes


def trust_of(probabilities: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> Trust:
    weights = np.ones(len(codes)) if weights is None else weights
    return Trust.calibrate(probabilities[np.arange(len(codes)), codes], weights, np.empty(0), np.empty((0, 4)))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.97])
def test_sets_of_exchangeable_texts_cover_what_was_asked_for(coverage: float) -> None:
    rng, covered = np.random.default_rng(0), []
    for _ in range(400):  # the guarantee is over draws of the held-out texts too
        held_out, new = answers(60, rng), answers(60, rng)
        sets = trust_of(*held_out).sets(new[0], coverage)
        covered.append(sets[np.arange(60), new[1]].mean())
    assert coverage - 0.01 < np.mean(covered) < coverage + 1 / 61 + 0.01


@given(st.integers(1, 40), st.floats(0.05, 0.95), st.integers(0, 5))
def test_the_threshold_is_the_finite_sample_quantile(n: int, coverage: float, seed: int) -> None:
    probabilities, codes = answers(n, np.random.default_rng(seed))
    trust, place = trust_of(probabilities, codes), int(np.ceil((n + 1) * coverage - 1e-9))
    if place > n:
        with pytest.raises(InputError, match=f"but training held out {n}"):
            trust.sets(probabilities, coverage)
        return
    threshold = np.sort(1 - probabilities[np.arange(n), codes])[place - 1]
    assert np.array_equal(trust.sets(probabilities, coverage), 1 - probabilities <= threshold)


@given(st.integers(5, 30), st.integers(0, 5))
def test_a_weight_of_two_counts_as_a_text_that_is_there_twice(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    probabilities, codes = answers(n, rng)
    weights = rng.integers(0, 3, size=n)
    twice = np.repeat(np.arange(n), weights)
    if weights.sum() < 4:
        return
    weighted = trust_of(probabilities, codes, weights.astype(float)).sets(probabilities, 0.7)
    assert np.array_equal(weighted, trust_of(probabilities[twice], codes[twice]).sets(probabilities, 0.7))


def test_a_set_is_empty_where_no_label_is_credible() -> None:
    trust = trust_of(np.tile([0.99, 0.01], (20, 1)), np.zeros(20, np.int64))
    found = trust.label_sets(np.array([[0.995, 0.005], [0.6, 0.4]]), 0.9, np.array(["a", "b"]))
    assert found == [["a"], []]


def test_the_likeliest_label_of_a_set_comes_first() -> None:
    trust = trust_of(np.tile([0.1, 0.9], (20, 1)), np.zeros(20, np.int64))
    assert trust.label_sets(np.array([[0.4, 0.6]]), 0.9, np.array([7, 3])) == [[3, 7]]


def test_many_held_out_texts_are_thinned_and_give_the_same_threshold() -> None:
    probabilities, codes = answers(30_000, np.random.default_rng(1))
    trust = trust_of(probabilities, codes)
    assert len(trust.nonconformity) == 5000
    assert trust.weights.sum() == pytest.approx(30_000)
    assert trust.sets(probabilities, 0.9)[np.arange(30_000), codes].mean() == pytest.approx(0.9, abs=0.001)


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, float("nan")])
def test_an_impossible_coverage_is_refused(coverage: float) -> None:
    with pytest.raises(InputError, match="coverage must be above 0 and below 1"):
        trust_of(*answers(30, np.random.default_rng(0))).sets(np.ones((1, 4)) / 4, coverage)


def test_too_few_held_out_texts_are_an_error_that_says_how_many_are_needed() -> None:
    trust = trust_of(*answers(8, np.random.default_rng(0)))
    with pytest.raises(InputError, match=r"0\.9 need at least 9 held-out texts, but training held out 8"):
        trust.sets(np.ones((1, 4)) / 4, 0.9)
    with pytest.raises(InputError, match="Fewer than 20 labelled texts were held out"):
        trust.out_of_scope(np.ones((1, 4)) / 4, np.ones((1, 4)))


def test_models_that_cannot_tell_say_why() -> None:
    with pytest.raises(InputError, match=r"wgcn 0\.2 or earlier"):
        checked_trust(None)
    with pytest.raises(InputError, match="one label per text"):
        checked_trust(trust_of(*answers(30, np.random.default_rng(0))), multilabel=True)


def scope_of(rng: np.random.Generator) -> Trust:
    probabilities, codes = answers(200, rng)
    familiar = np.column_stack([np.full(200, 30.0), rng.normal(size=(200, 3))])
    return Trust.calibrate(probabilities[np.arange(200), codes], np.ones(200), doubt(probabilities), familiar)


def test_unlikely_and_strange_texts_get_no_label() -> None:
    trust, usual, strange = scope_of(np.random.default_rng(0)), [30.0, 0, 0, 0], [30.0, 9, 9, 9]
    likely = np.array([[0.97, 0.01, 0.01, 0.01], [0.97, 0.01, 0.01, 0.01], [0.5, 0.3, 0.1, 0.1]])
    labels = trust.labels(likely, np.array([usual, strange, usual]), np.array([5, 6, 7, 8]), 0.8)
    assert labels.tolist() == [5, None, None]
    with pytest.raises(InputError, match="abstain must be a probability"):
        trust.labels(likely, np.array([usual] * 3), np.array([5, 6, 7, 8]), 80)


def test_what_was_saved_comes_back() -> None:
    trust = scope_of(np.random.default_rng(0))
    loaded = Trust.from_tensors({"bias": np.zeros(2), **trust.tensors()}, "folder")
    assert loaded is not None
    for name, part in trust.tensors().items():
        assert np.array_equal(loaded.tensors()[name], part)
    assert Trust.from_tensors({"bias": np.zeros(2)}, "folder") is None
    alone = trust._replace(scope=NO_SCOPE)
    assert Trust.from_tensors(alone.tensors(), "folder") is not None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("nonconformity", np.linspace(1, 0, 200)),
        ("nonconformity", np.append(np.zeros(199), np.nan)),
        ("nonconformity", np.zeros(200, np.float32)),
        ("nonconformity", np.zeros(199)),
        ("nonconformity", np.zeros((200, 1))),
        ("weights", np.full(200, -1.0)),
        ("strangeness", np.zeros(9000)),
        ("strangeness", np.empty(0)),
        ("scales", np.zeros((3, 3))),
        ("scales", np.full((4, 3), -1.0)),
        ("scales", None),
    ],
)
def test_values_that_no_model_has_are_refused(name: str, values: np.ndarray | None) -> None:
    tensors = scope_of(np.random.default_rng(0)).tensors()
    del tensors[f"trust.{name}"]
    changed = tensors if values is None else {**tensors, f"trust.{name}": values}
    with pytest.raises(StoreError, match="folder: the values of held-out texts"):
        Trust.from_tensors(changed, "folder")


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12))
def test_the_risk_of_equally_confident_answers_is_the_mean_over_all_their_orders(
    given_answers: list[tuple[int, bool]],
) -> None:
    confidence, right = (np.array(part) for part in zip(*given_answers, strict=True))
    curve = risk_coverage(confidence, right)
    expected = []
    for k in range(1, len(right) + 1):
        threshold = np.sort(confidence)[::-1][k - 1]
        above, tied = confidence > threshold, confidence == threshold
        wrong = np.sum(~right[above]) + (k - above.sum()) * np.mean(~right[tied])
        expected.append(wrong / k)
    np.testing.assert_allclose(curve.risk, expected)
    assert curve.area == pytest.approx(np.mean(expected))
    assert curve.coverage[-1] == 1


def test_risk_needs_one_confidence_per_answer() -> None:
    with pytest.raises(InputError, match="equally long"):
        risk_coverage([0.5], [True, False])
    with pytest.raises(InputError, match="equally long"):
        risk_coverage([], [])


def threads(n_threads: int, size: int, rng: np.random.Generator) -> csr_array:
    """Texts in threads, which lie together: those of the first half of the threads are alike, others are not."""
    own = random_array((n_threads * size, 4000), density=0.01, rng=rng, format="csr").toarray()
    shared = np.repeat(random_array((n_threads, 4000), density=0.01, rng=rng).toarray(), size, axis=0)
    shared[len(shared) // 2 :] = 0
    rows = own + 3 * shared
    return csr_array(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def test_texts_with_siblings_beside_them_count_less() -> None:
    rng = np.random.default_rng(0)
    terms, codes = threads(80, 10, rng), np.zeros(800, np.int64)
    interleaved = np.argsort(np.tile(np.arange(400), 2), kind="stable")  # both kinds everywhere
    terms = terms[interleaved]
    has_sibling = interleaved < 400
    held_out = np.sort(rng.permutation(800)[:160])
    weights = novelty_weights(terms, codes, held_out)
    assert weights.sum() == pytest.approx(160)
    assert weights[has_sibling[held_out]].mean() < 0.5 * weights[~has_sibling[held_out]].mean()


def test_in_a_random_order_the_weights_are_about_equal() -> None:
    rng = np.random.default_rng(0)
    terms, codes = threads(80, 10, rng)[rng.permutation(800)], rng.integers(3, size=800)
    weights = novelty_weights(terms, codes, np.sort(rng.permutation(800)[:160]))
    assert weights.min() > 0.5
    assert weights.max() < 1.6


def test_far_away_means_far_in_the_own_class() -> None:
    codes = np.array([0, 1, 0, 1, 0, 0])
    np.testing.assert_allclose(novelty._places(codes), [0.125, 0.25, 0.375, 0.75, 0.625, 0.875])


def test_similarities_equal_brute_force() -> None:
    rng = np.random.default_rng(0)
    terms = threads(6, 5, rng)
    own, other = rng.random(10), rng.random(20)
    cosines = (terms[:10] @ terms[10:].T).toarray()
    far = np.where(np.abs(own[:, None] - other) > 0.1, cosines, 0).max(axis=1)
    found = novelty._similarities(terms[:10], terms[10:], [(own, other)])
    np.testing.assert_allclose(found, [cosines.max(axis=1), far])


def test_of_very_many_held_out_texts_some_are_compared() -> None:
    rng = np.random.default_rng(0)
    weights = novelty_weights(threads(20, 10, rng), rng.integers(2, size=200), np.arange(0, 200, 4), 20)
    assert np.count_nonzero(weights) <= 20
    assert weights.sum() == pytest.approx(20)


def test_in_cross_validation_a_text_counts_once_however_often_it_comes() -> None:
    weights = novelty_weights(csr_array(np.eye(3)), np.zeros(3, np.int64), np.array([0, 1, 2, 0, 1]))
    assert weights.tolist() == [0.5, 0.5, 1, 0.5, 0.5]


def test_words_that_many_texts_have_do_not_make_siblings() -> None:
    rows = np.column_stack([np.full((200, 1), 0.6), np.eye(200) * 0.8])
    assert novelty._without_common(csr_array(rows)).toarray().tolist() == (np.eye(200, 201, 1) * 0.8).tolist()
