import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from wgcn import WGCNTextClassifier
from wgcn.active.suggest import Suggestion, as_csv, as_lines, greedy_cover, suggest, uncertainty
from wgcn.base.errors import InputError
from wgcn.scoring.scorer import Scorer

_TOPICS = {
    "drink": ["wine", "beer", "glass", "bottle", "red", "white", "grape", "taste"],
    "drive": ["car", "engine", "wheel", "fast", "slow", "road", "tyre", "brake"],
    "play": ["team", "game", "score", "goal", "match", "ball", "coach", "league"],
}


def made_texts(n_per_topic: int = 12) -> tuple[list[str], list[str]]:
    """Texts of three topics, one topic after another, and their topics."""
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(words, 6)) for words in _TOPICS.values() for _ in range(n_per_topic)]
    return texts, [topic for topic in _TOPICS for _ in range(n_per_topic)]


def clusters(*sizes: int) -> np.ndarray:
    """Rows of length 1: each cluster near an axis of its own."""
    random = np.random.default_rng(1)
    rows = np.concatenate([np.eye(len(sizes))[[i] * size] for i, size in enumerate(sizes)])
    rows = rows + 0.1 * random.standard_normal(rows.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def choose(
    rows: np.ndarray, n: int, labelled: list[int] | None = None, probabilities: np.ndarray | None = None
) -> list:
    mask = np.isin(np.arange(len(rows)), labelled or [])
    scorer = None
    if probabilities is not None:
        with np.errstate(divide="ignore"):
            table = np.maximum(np.log(probabilities), -50)
        scorer = Scorer(table, None, np.zeros(table.shape[1]), np.ones(table.shape[1]))
    terms = csr_array(np.eye(len(rows)))  # each text has a word of its own
    return suggest(terms, lambda some: some @ rows, mask, n, scorer).tolist()


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_the_lazy_choice_is_the_greedy_one(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    similar = random.integers(0, 8, (6, 9)).astype(float)  # whole numbers: sums are exact, and gains are often equal
    weight, covered = random.integers(0, 4, 9).astype(float), random.integers(0, 4, 9).astype(float)
    expected: list[int] = []
    for _ in range(n):
        best = np.maximum(similar[expected].max(axis=0, initial=0), covered)
        gains = np.maximum(similar - best, 0) @ weight
        gains[expected] = -1
        expected.append(int(gains.argmax()))
    assert greedy_cover(similar, weight, covered, n).tolist() == expected


def test_a_batch_is_near_the_best_of_all() -> None:
    similar = np.random.default_rng(2).random((9, 20))
    zero, one = np.zeros(20), np.ones(20)
    value = [similar[list(batch)].max(axis=0).sum() for batch in combinations(range(9), 3)]
    assert similar[greedy_cover(similar, one, zero, 3)].max(axis=0).sum() >= (1 - 1 / np.e) * max(value)


def test_the_first_batch_has_a_text_of_every_cluster_the_largest_first() -> None:
    chosen = choose(clusters(10, 30, 20), 3)
    assert [np.searchsorted([10, 40], i, "right") for i in chosen] == [1, 2, 0]


def test_a_batch_holds_no_duplicates_while_others_are_left() -> None:
    rows = np.repeat(clusters(2, 2, 2, 2), 10, axis=0)  # each text ten times
    chosen = choose(rows, 8)
    assert len({i // 10 for i in chosen}) == 8


def test_clusters_with_a_label_come_later() -> None:
    assert choose(clusters(10, 30, 20), 1, labelled=[15, 16])[0] >= 40


def test_texts_of_which_the_model_is_uncertain_come_first() -> None:
    certain, uncertain = [0.99, 0.01], [0.55, 0.45]
    likely = np.array([certain] * 30 + [uncertain] * 10)
    rows = clusters(30, 10)
    assert choose(rows, 1)[0] < 30
    assert choose(rows, 1, probabilities=likely)[0] >= 30


def test_labelled_texts_are_never_suggested_and_fewer_are_returned_if_there_are_fewer() -> None:
    assert sorted(choose(clusters(4, 4), 20, labelled=[0, 5])) == [1, 2, 3, 4, 6, 7]


def test_of_very_many_texts_some_are_looked_at_and_the_result_is_the_same_again() -> None:
    rows = clusters(3000, 2500, 2000)
    chosen = choose(rows, 3, labelled=list(range(0, 7500, 2)))
    assert chosen == choose(rows, 3, labelled=list(range(0, 7500, 2)))
    assert all(i % 2 for i in chosen)
    assert len(set(choose(rows, 3000))) == 3000


def test_texts_without_words_come_last() -> None:
    rows = np.concatenate([np.zeros((2, 2), np.float32), clusters(3, 3)])
    assert sorted(choose(rows, 8)[-2:]) == [0, 1]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3"])
def test_n_is_a_number_of_texts(n: object) -> None:
    with pytest.raises(InputError, match="n must be a number of texts"):
        choose(clusters(3, 3), n)  # type: ignore[arg-type]


def test_without_an_unlabelled_text_there_is_nothing_to_suggest() -> None:
    with pytest.raises(InputError, match="Every text has a label"):
        choose(clusters(2, 2), 1, labelled=[0, 1, 2, 3])


def test_uncertainty_is_one_less_the_margin() -> None:
    likely = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(uncertainty(likely), [1.0, 0.5, 0.0])
    np.testing.assert_allclose(uncertainty(np.array([[0.9, 0.4], [1.0, 0.0]]), multilabel=True), [0.8, 0.0])


def test_before_a_fit_every_topic_is_among_the_first_three() -> None:
    texts, topics = made_texts()
    chosen = WGCNTextClassifier().suggest(3, texts)
    assert {topics[i] for i in chosen} == set(_TOPICS)


@pytest.fixture(scope="module")
def fitted() -> WGCNTextClassifier:
    """Fitted with the first twelve texts as X, four of them labelled, and the others as `unlabeled`."""
    texts, _ = made_texts()
    order = np.argsort(np.arange(36) % 12, kind="stable")  # topics take turns
    texts = [texts[i] for i in order]
    labels = ["drink", "drive", None, "drink", "drive", *[None] * 7]
    return WGCNTextClassifier().fit(texts[:12], labels, unlabeled=texts[12:])


def test_after_a_fit_the_topic_without_a_label_comes_first(fitted: WGCNTextClassifier) -> None:
    chosen = fitted.suggest(32)
    assert chosen[0] % 3 == 2  # play
    assert sorted(chosen) == [i for i in range(36) if i not in (0, 1, 3, 4)]
    np.testing.assert_array_equal(fitted.suggest(5), chosen[:5])


def test_what_was_pickled_suggests_the_same(fitted: WGCNTextClassifier) -> None:
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).suggest(9), fitted.suggest(9))


def test_texts_are_given_before_a_fit_and_not_after_it(fitted: WGCNTextClassifier) -> None:
    with pytest.raises(NotFittedError):
        WGCNTextClassifier().suggest()
    with pytest.raises(InputError, match="as unlabeled"):
        fitted.suggest(1, ["a text"])


def test_a_multi_label_model_suggests_too() -> None:
    texts, topics = made_texts(6)
    labels = [[topic] if i % 3 else None for i, topic in enumerate(topics)]
    assert set(WGCNTextClassifier().fit(texts, labels).suggest(4)) <= set(range(0, 18, 3))


def test_lines_are_short_and_harmless_and_a_table_has_a_column_to_fill_in() -> None:
    found = [Suggestion(7, "two\nlines, \x1b[31m" + 200 * "x", "a,b", 0.256), Suggestion(12, "short", "c", 1.0)]
    head, first, second = as_lines(found)
    assert head.split() == ["row", "guess", "text"]
    assert "\x1b" not in first
    assert len(first) < 130
    assert second == " 12  c 100%   short"
    assert as_lines([Suggestion(3, "a text")]) == ["row  text", "  3  a text"]
    assert as_csv(found[1:]) == b"row,text,guess,confidence,label\n12,short,c,1.000,\n"
