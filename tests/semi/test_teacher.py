"""What unlabelled documents teach, against a dense reference in double precision."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, hstack, random_array
from threadpoolctl import threadpool_limits

from wgcn.semi.space import NeighbourSearch, find_space
from wgcn.semi.teacher import Taught, Teacher, TeacherSettings

DEFAULT = TeacherSettings()


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """Matrices so small take a hundred times longer on several threads of a busy machine."""
    with threadpool_limits(1, "blas"):
        yield


def documents(n: int = 40, v: int = 15, seed: int = 0) -> csr_array:
    rng = np.random.default_rng(seed)
    dense = random_array((n, v), density=0.3, rng=rng).toarray()
    dense[np.arange(n), rng.integers(0, v, n)] += 0.5
    return csr_array((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))


def graph(v: int = 15, seed: int = 1) -> csr_array:
    half = random_array((v, v), density=0.3, rng=np.random.default_rng(seed)).toarray()
    return csr_array((half + half.T + np.eye(v)).astype(np.float32))


def classes(codes: list[int], n_classes: int | None = None) -> np.ndarray:
    return np.eye(n_classes or max(codes) + 1, dtype=np.float32)[codes]


def spread_labels(near: np.ndarray, targets: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Return shares of the classes: spreading as it is written, class mass normalisation, and the labels kept."""
    known = np.zeros((len(near), targets.shape[1]))
    known[labelled] = targets
    spread = known
    for _ in range(DEFAULT.n_steps):
        spread = DEFAULT.spreading * near @ spread + (1 - DEFAULT.spreading) * known
    return with_shares(spread, targets, labelled)


def with_shares(spread: np.ndarray, targets: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Return rows of sum 1 after scaling the classes to their shares among the labels; the labels are kept."""
    shares = np.zeros_like(spread)
    for i, row in enumerate(spread):
        mass = [
            targets[:, c].mean() * row[c] / spread[:, c].sum() if spread[:, c].any() else 0 for c in range(len(row))
        ]
        if sum(mass) > 0:
            shares[i] = np.array(mass) / sum(mass)
    shares[labelled] = targets
    return shares


def nearest(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the graph of the k nearest of each row, as a dense normalised matrix."""
    cosines = rows @ rows.T
    edges = np.zeros_like(cosines)
    for i in range(len(rows)):
        others = [j for j in np.argsort(-cosines[i], kind="stable") if j != i][:k]
        edges[i, others] = np.maximum(cosines[i, others], 0) ** 3
    edges = np.maximum(edges, edges.T)
    degrees = edges.sum(axis=1)
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros(len(rows)), where=degrees > 0)
    return scale[:, None] * edges * scale


def ridge(rows: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve least squares with a penalty on the weights, not on the intercept, as one larger plain problem."""
    n, columns = rows.shape
    penalty = DEFAULT.penalty * np.mean(np.sum((rows - rows.mean(axis=0)) ** 2, axis=0))
    larger = np.zeros((n + columns, columns + 1))
    larger[:n, :columns], larger[:n, -1] = rows, 1
    larger[n:, :columns] = np.sqrt(penalty) * np.eye(columns)
    solved = np.linalg.lstsq(larger, np.vstack([targets, np.zeros((columns, targets.shape[1]))]), rcond=None)[0]
    return solved[:-1], solved[-1]


def reference(
    terms: csr_array,
    adjacency: csr_array | None,
    targets: np.ndarray,
    labelled: np.ndarray,
    how: TeacherSettings = DEFAULT,
) -> Taught:
    found = find_space(terms, adjacency, graph_weight=DEFAULT.graph_weight)
    shares = spread_labels(nearest(found.place(terms @ found.words).astype(float), how.n_near), targets, labelled)
    reached = shares.sum(axis=1) > 0
    words = found.words.astype(float)
    rows = terms @ words
    weights, bias = ridge(rows[reached], 2 * shares[reached] - 1)
    # More regressions on what the one before says, decided more clearly.
    few = len(labelled) < how.few_labels
    for _ in range(how.more_with_few if few else how.more_with_many):
        sharp = np.exp(how.sharpness * (rows @ weights + bias))
        sharp[:, ~targets.any(axis=0)] = sharp[~reached] = 0
        shares = with_shares(sharp / np.maximum(sharp.sum(axis=1, keepdims=True), 1e-12), targets, labelled)
        weights, bias = ridge(rows[reached], 2 * shares[reached] - 1)
    trust = 1 if few else how.many_trust
    return Taught(trust * (words @ weights), trust * bias)


def assert_alike(taught: Taught, expected: Taught, atol: float = 1e-3) -> None:
    np.testing.assert_allclose(taught.word_scores, expected.word_scores, atol=atol)
    np.testing.assert_allclose(taught.bias, expected.bias, atol=atol)


@pytest.mark.parametrize("with_graph", [False, True])
@pytest.mark.parametrize(("n_near", "block"), [(5, 7), (40, 2000), (60, 40)])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_it_teaches_what_the_dense_reference_does(with_graph: bool, n_near: int, block: int, seed: int) -> None:
    terms, adjacency = documents(seed=seed), graph(seed=seed + 1) if with_graph else None
    targets, labelled = classes([0, 0, 0, 1, 1, 2]), np.arange(6)
    how = TeacherSettings(n_near=n_near, block=block, search=NeighbourSearch(part=block))
    taught = Teacher(terms, adjacency, settings=how).teach(targets, labelled)
    assert (taught.word_scores.shape, taught.bias.shape) == ((15, 3), (3,))
    assert_alike(taught, reference(terms, adjacency, targets, labelled, how))


def test_every_further_regression_decides_more_clearly() -> None:
    terms, targets = documents(), classes([0, 0, 0, 1, 1, 2])
    sizes = []
    for n_more in range(4):
        how = TeacherSettings(more_with_few=n_more)
        taught = Teacher(terms, graph(), settings=how).teach(targets, np.arange(6))
        assert_alike(taught, reference(terms, graph(), targets, np.arange(6), how))
        sizes.append(float(np.std(taught.word_scores)))
    assert sizes == sorted(set(sizes))


def test_where_labels_are_not_few_one_more_regression_follows_and_scores_count_more() -> None:
    terms, targets = documents(), classes([0, 0, 0, 1, 1, 2])
    few = Teacher(terms, graph()).teach(targets, np.arange(6))
    how = TeacherSettings(few_labels=6)
    many = Teacher(terms, graph(), settings=how).teach(targets, np.arange(6))
    assert_alike(many, reference(terms, graph(), targets, np.arange(6), how))
    assert not np.allclose(many.word_scores, few.word_scores, atol=1e-3)
    fewer = Teacher(terms, graph(), settings=how).teach(targets[:5], np.arange(5))
    assert_alike(fewer, reference(terms, graph(), targets[:5], np.arange(5), how))


def test_some_of_the_labelled_documents_can_be_taken_as_unlabelled() -> None:
    terms, labelled = documents(), np.array([0, 2, 3, 5])
    taught = Teacher(terms, graph()).teach(classes([0, 0, 1, 2]), labelled)
    assert_alike(taught, reference(terms, graph(), classes([0, 0, 1, 2]), labelled))


def clusters(n: int = 25, words: int = 12, seed: int = 0) -> tuple[csr_array, np.ndarray]:
    """Return documents of two topics that share no word, one of each topic first, and their topics."""
    rng = np.random.default_rng(seed)
    topics = np.tile([0, 1], n)
    dense = np.zeros((2 * n, 2 * words), np.float32)
    for row, topic in zip(dense, topics, strict=True):
        row[topic * words + rng.choice(words, 4, replace=False)] = 0.5
    return csr_array(dense), topics


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_one_label_a_cluster_reaches_all_its_documents(seed: int) -> None:
    terms, topics = clusters(seed=seed)
    taught = Teacher(terms, None).teach(classes([0, 1]), np.arange(2))
    scores = terms @ taught.word_scores + taught.bias
    assert np.array_equal(scores.argmax(axis=1), topics)
    # Also a word that neither of the labelled documents has.
    unseen = np.flatnonzero(terms[:2].sum(axis=0) == 0)
    words = np.asarray(taught.word_scores + taught.bias)[unseen]
    assert np.array_equal(words.argmax(axis=1), unseen // 12)


def test_a_class_of_more_labels_gets_more_of_the_documents_in_between() -> None:
    terms, _ = clusters()
    mixed = csr_array(terms.toarray() + np.float32(0.3) * np.roll(terms.toarray(), 12, axis=1))
    means = []
    for first in ([0, 2, 4, 1], [0, 2, 1, 3], [0, 1, 3, 5]):
        rows = mixed[[*first, *np.setdiff1d(np.arange(50), first)]]
        taught = Teacher(rows, None).teach(classes([i % 2 for i in first]), np.arange(4))
        means.append(np.mean(rows @ taught.word_scores[:, 0] + taught.bias[0]))
    assert means[0] > 0.2 > means[1] > -0.2 > means[2]


def test_a_class_that_is_said_to_be_frequent_gets_more_of_the_documents_in_between() -> None:
    terms, _ = clusters()
    rows = csr_array(terms.toarray() + np.float32(0.3) * np.roll(terms.toarray(), 12, axis=1))
    known, teaching = classes([0, 1, 0, 1]), Teacher(rows, None)
    means = []
    for prior in ([0.8, 0.2], [0.5, 0.5], [0.2, 0.8]):
        taught = teaching.teach(known, np.arange(4), np.array(prior))
        means.append(np.mean(rows @ taught.word_scores[:, 0] + taught.bias[0]))
    assert means[0] > 0.2 > means[1] > -0.2 > means[2]
    assert_alike(teaching.teach(known, np.arange(4), np.array([0.5, 0.5])), teaching.teach(known, np.arange(4)), 1e-6)


def test_scores_of_one_class_and_the_rest_are_opposite_with_two_classes() -> None:
    taught = Teacher(documents(), graph()).teach(classes([0, 1, 1, 0]), np.arange(4))
    np.testing.assert_allclose(taught.word_scores[:, 0], -taught.word_scores[:, 1], atol=1e-5)
    np.testing.assert_allclose(taught.bias[0], -taught.bias[1], atol=1e-5)


def test_names_of_the_classes_do_not_matter() -> None:
    codes = np.array([0, 0, 1, 1, 2, 2])
    order = np.array([2, 0, 1])
    guide = Teacher(documents(), graph())
    taught = guide.teach(classes(codes.tolist()), np.arange(6))
    renamed = guide.teach(classes(order[codes].tolist()), np.arange(6))
    assert_alike(Taught(renamed.word_scores[:, order], renamed.bias[order]), taught, 1e-5)


@pytest.mark.parametrize("place", [2, 20, 40])
def test_an_unlabelled_document_without_words_does_no_harm(place: int) -> None:
    terms = documents().toarray()
    targets, labelled = classes([0, 1]), np.arange(2)
    plain = Teacher(csr_array(terms), graph()).teach(targets, labelled)
    longer = csr_array(np.insert(terms, [place, place], 0, axis=0))
    assert_alike(Teacher(longer, graph()).teach(targets, labelled), plain)


def test_words_without_an_edge_take_no_part() -> None:
    # The last five of twenty words are such; two documents have no others.
    rows = documents(v=20).toarray()
    rows[-2:, :15] = 0
    adjacency = graph(15)
    wide = csr_array((adjacency.data, adjacency.indices, np.append(adjacency.indptr, [adjacency.nnz] * 5)), (20, 20))
    targets, labelled = classes([0, 0, 1, 2]), np.arange(4)
    taught = Teacher(csr_array(rows), wide).teach(targets, labelled)
    assert not taught.word_scores[15:].any()
    expected = reference(csr_array(rows[:, :15]), adjacency, targets, labelled)
    assert_alike(Taught(taught.word_scores[:15], taught.bias), expected)


def sayings(n: int = 60) -> tuple[csr_array, np.ndarray, np.ndarray]:
    """Return documents of which each has one word of its class that no other has, vectors that know it, and classes."""
    codes = np.arange(n) % 2
    rows = np.zeros((n, n + 5), np.float32)
    rows[np.arange(n), np.arange(n)] = 1
    rows[:, n:] = np.random.default_rng(0).random((n, 5)) < 0.5
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors = np.zeros((n + 5, 3), np.float32)
    vectors[np.arange(n), codes] = 1
    return csr_array(rows), vectors, codes


@pytest.mark.parametrize("n_labelled", [4, 10])
def test_vectors_tell_what_the_text_does_not(n_labelled: int) -> None:
    terms, vectors, codes = sayings()
    labelled, right = np.arange(n_labelled), []
    for given_vectors in (None, vectors):
        taught = Teacher(terms, None, given_vectors).teach(classes(codes[:n_labelled].tolist()), labelled)
        guesses = (terms @ taught.word_scores + taught.bias).argmax(axis=1)
        right.append(np.mean(guesses[n_labelled:] == codes[n_labelled:]))
    assert right[0] < 0.8
    assert right[1] == 1


def test_vectors_that_say_nothing_leave_what_is_taught_as_it_was_but_for_its_weight() -> None:
    terms, targets = documents(), classes([0, 0, 1, 2])
    plain = Teacher(terms, graph()).teach(targets, np.arange(4))
    nothing = Teacher(terms, graph(), np.zeros((15, 3), np.float32)).teach(targets, np.arange(4))
    np.testing.assert_allclose(nothing.word_scores, plain.word_scores, atol=0.1)


def test_the_size_of_vectors_does_not_matter() -> None:
    terms, vectors, codes = sayings()
    small, large = (
        Teacher(terms, None, size * vectors).teach(classes(codes[:6].tolist()), np.arange(6)) for size in (0.1, 100)
    )
    assert_alike(small, large)


def test_labels_of_one_class_need_no_regression() -> None:
    terms, vectors, _ = sayings()
    taught = Teacher(terms, None, vectors).teach(classes([0, 0], 2), np.arange(2))
    assert np.isfinite(taught.word_scores).all()
    assert ((terms @ taught.word_scores + taught.bias).argmax(axis=1) == 0).all()


@pytest.mark.parametrize("n_others", [1, 10])
def test_documents_that_no_label_reaches_are_not_learnt_from(n_others: int) -> None:
    # They share no word with the others, nor do their words with other words.
    terms, _ = clusters()
    rows = np.zeros((50 + n_others, 30), np.float32)
    rows[:50, :24], rows[50:, 24:] = terms.toarray(), np.sqrt(1 / 6)
    taught = Teacher(csr_array(rows), None).teach(classes([0, 1]), np.arange(2))
    np.testing.assert_allclose(taught.word_scores[24:], 0, atol=1e-3)


def test_a_labelled_document_without_words_spreads_nothing_but_stays_labelled() -> None:
    terms, _ = clusters()
    rows = np.vstack([np.zeros((1, 24), np.float32), terms.toarray()])
    targets = classes([2, 0, 1])
    taught = Teacher(csr_array(rows), None).teach(targets, np.arange(3))
    scores = rows @ taught.word_scores + taught.bias
    assert np.isfinite(scores).all()
    assert set(scores[1:].argmax(axis=1).tolist()) == {0, 1}
    assert scores[0, 2] > scores[1:, 2].max()
    assert_alike(taught, reference(csr_array(rows), None, targets, np.arange(3)))


def test_a_class_without_a_label_is_nowhere() -> None:
    taught = Teacher(documents(), graph()).teach(classes([0, 1, 1, 0], n_classes=3), np.arange(4))
    np.testing.assert_allclose(taught.word_scores[:, 2], 0, atol=1e-5)
    assert taught.bias[2] == pytest.approx(-1, abs=1e-5)
    two = Teacher(documents(), graph()).teach(classes([0, 1, 1, 0]), np.arange(4))
    assert_alike(Taught(taught.word_scores[:, :2], taught.bias[:2]), two, 1e-5)


def test_the_scores_have_the_bits_that_they_had_the_first_time() -> None:
    targets, labelled = classes([0, 1, 2, 0]), np.arange(4)
    once, twice = (Teacher(documents(), graph()) for _ in range(2))
    expected = once.teach(targets, labelled)
    once.teach(classes([1, 0, 2, 2]), labelled)
    for taught in (once.teach(targets, labelled), twice.teach(targets, labelled)):
        assert taught.word_scores.tobytes() == expected.word_scores.tobytes()
        assert taught.bias.tobytes() == expected.bias.tobytes()


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_scores_have_the_same_bits_for_any_number_of_threads(n_jobs: int) -> None:
    targets, labelled = classes([0, 1, 2, 0]), np.arange(4)
    one, more = (Teacher(documents(400, 60), graph(60), n_jobs=n).teach(targets, labelled) for n in (1, n_jobs))
    assert one.word_scores.tobytes() == more.word_scores.tobytes()
    assert one.bias.tobytes() == more.bias.tobytes()


def test_of_many_documents_each_keeps_its_own_label() -> None:
    how = TeacherSettings(search=NeighbourSearch(most_exact=100, part=60))  # trees put documents in another order
    terms, topics = clusters(150)
    taught = Teacher(terms, None, settings=how).teach(classes(topics[:6].tolist()), np.arange(6))
    assert np.array_equal(taught.scores(terms).argmax(axis=1), topics)


@pytest.mark.parametrize("n", [2, 3])
def test_very_few_documents_are_enough(n: int) -> None:
    terms = csr_array(np.eye(3, dtype=np.float32)[:n])
    taught = Teacher(terms, None).teach(classes([0, 1]), np.arange(2))
    scores = terms @ taught.word_scores + taught.bias
    assert np.isfinite(scores).all()
    assert scores[:2].argmax(axis=1).tolist() == [0, 1]


def test_documents_that_are_all_alike_teach_nothing_but_the_shares() -> None:
    terms = csr_array(np.ones((8, 1), np.float32))
    taught = Teacher(terms, None).teach(classes([0, 0, 0, 1]), np.arange(4))
    scores = terms @ taught.word_scores + taught.bias
    np.testing.assert_allclose(scores, np.tile([0.5, -0.5], (8, 1)), atol=0.05)


@pytest.mark.parametrize("n", [999, 1000])
def test_of_many_documents_words_that_only_one_has_take_no_part(n: int) -> None:
    common, _ = clusters(n // 2)
    common = csr_array(common.toarray()[np.arange(n) % common.shape[0]])
    rng = np.random.default_rng(0)
    own = csr_array((np.full(10, 0.5, np.float32), (rng.choice(n, 10, replace=False), np.arange(10))), shape=(n, 10))
    adjacency = graph(34)
    targets, labelled = classes([0, 1, 0, 1]), np.arange(4)
    taught = Teacher(csr_array(hstack([common, own])), adjacency).teach(targets, labelled)
    assert taught.word_scores[24:].any() == (n < 1000)
    if n == 1000:
        expected = Teacher(common, csr_array(adjacency[:24][:, :24])).teach(targets, labelled)
        assert_alike(Taught(taught.word_scores[:24], taught.bias), expected, 1e-5)


def test_of_many_documents_that_share_no_word_all_words_take_part() -> None:
    terms = csr_array(np.eye(1000, dtype=np.float32))
    taught = Teacher(terms, csr_array(np.eye(1000, dtype=np.float32))).teach(classes([0, 1]), np.arange(2))
    assert np.isfinite(taught.word_scores).all()
    assert taught.scores(terms)[:2].argmax(axis=1).tolist() == [0, 1]


def test_a_class_without_a_label_is_nowhere_though_it_is_said_to_be_frequent() -> None:
    guide = Teacher(documents(), graph())
    taught = guide.teach(classes([0, 1, 1, 0], n_classes=3), np.arange(4), np.array([0.3, 0.3, 0.4]))
    np.testing.assert_allclose(taught.word_scores[:, 2], 0, atol=1e-5)
    assert taught.bias[2] == pytest.approx(-1, abs=1e-5)
