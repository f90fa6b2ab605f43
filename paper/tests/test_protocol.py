"""What fitting may see, and that no method sees more."""

import argparse
import email.message
import inspect
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn.linear import training
from wgcn.linear.task import Thresholds
from wgcn.linear.tuning import Tuned
from wgcn_paper.datasets import Dataset
from wgcn_paper.methods import (
    document_word_graph,
    embedder,
    graph_cnn,
    linear_svc_characters,
    linearised_wgcn,
    sequences,
    text_level_gnn,
    wgcn,
    wgcn_citations,
)
from wgcn_paper.methods.baseline import _METHODS, make_baseline, method_class
from wgcn_paper.protocol import Protocol, Query

CORPUS, INDUCTIVE, FEW = (Protocol.parse(text) for text in ("corpus", "inductive", "few-label:20%"))
UNSEEN = Protocol.parse("unseen:10%")

# Small settings, so that nothing takes long, and no list of stop words, which not every machine has.
TEXT = {"stop_words": False, "min_count": 1}
SEQUENCE = {**TEXT, "word_vectors": "", "dimension": 4, "max_epochs": 2}


class Case(NamedTuple):
    """A method on data of its kind, with the protocols that it can run under there."""

    method: str
    settings: dict[str, Any]
    data: str = "pets"
    protocols: tuple[str, ...] = ("corpus", "inductive", "few-label")
    labelled_only: bool = False  # whether documents without a label mean nothing to it
    vectors: bool = False  # whether it takes the file of word vectors
    encoder: bool = False  # whether it uses the sentence encoder
    tuned: bool = False  # whether settings are chosen although there are few labels


CASES = {
    "wgcn": Case("wgcn", {"stop_words": False, "min_count": 2, "hidden": 8, "max_epochs": 5}),
    "wgcn-linear": Case("wgcn-linear", {}),
    "wgcn-linear, tuned": Case("wgcn-linear", {}, tuned=True),
    "wgcn-linear, not tuned": Case("wgcn-linear", {"tune": False}),
    "wgcn-linear, vectors": Case("wgcn-linear", {"vectors": "encoder"}, encoder=True),
    "wgcn-citations": Case("wgcn-citations", {"hidden": 8, "max_epochs": 5}, "papers"),
    "wgcn-citations, attached": Case("wgcn-citations", {"hidden": 8, "max_epochs": 5, "hops": 2}, "papers"),
    "linearised-wgcn": Case("linearised-wgcn", {**TEXT, "max_epochs": 5}),
    "linearised-wgcn, citations": Case("linearised-wgcn", {"max_epochs": 5}, "papers"),
    "linearised-text-gcn": Case("linearised-text-gcn", {**TEXT, "max_epochs": 5}, protocols=("corpus",)),
    "cnn": Case("cnn", {**SEQUENCE, "feature_maps": 2}),
    "cnn, distilled": Case(
        "cnn", {**SEQUENCE, "feature_maps": 2, "max_epochs": 1, "word_vectors": "distilled"}, encoder=True
    ),
    "lstm": Case("lstm", {**SEQUENCE, "hidden": 4}),
    "graph-cnn": Case("graph-cnn", {**TEXT, "filters": 2, "neighbours": 3, "max_epochs": 2}, vectors=True),
    "text-gcn": Case("text-gcn", {**TEXT, "hidden": 4, "max_epochs": 2}, protocols=("corpus",)),
    "text-level-gnn": Case("text-level-gnn", SEQUENCE),
    "fast-gcn": Case("fast-gcn", {"hidden": 4, "samples": 10, "max_epochs": 2}, "papers"),
    "fast-gcn, texts": Case("fast-gcn", {**TEXT, "hidden": 4, "samples": 10, "max_epochs": 2}, protocols=("corpus",)),
    "gcn": Case("gcn", {"hidden": 4, "max_epochs": 5}, "papers"),
    "gin": Case("gin", {"hidden": 4, "max_epochs": 5}, "papers"),
    "sgc": Case("sgc", {"max_epochs": 5}, "papers"),
    "linear-svc": Case("linear-svc", {}),
    "linear-svc, C chosen": Case("linear-svc", {"C": 0.0}),
    "linear-svc, n-grams and C chosen": Case("linear-svc", {"ngrams": 0, "C": 0.0}),
    "linear-svc-characters": Case("linear-svc-characters", {"ngrams": 0, "longest": 3}),
    "self-training-svc": Case("self-training-svc", {"rounds": 2}),
    "logistic": Case("logistic", {"C": 1.0}),
    "logistic, n-grams and C chosen": Case("logistic", {"ngrams": 0, "C": 0.0}),
    "fasttext": Case("fasttext", {"buckets": 100, "hidden": 4, "validation_fraction": 0.0}, labelled_only=True),
    # Without held-out documents nothing is searched: how much a search can try depends on the clock.
    "fasttext-autotune": Case("fasttext-autotune", {"hidden": 4, "validation_fraction": 0.0}, labelled_only=True),
    "wide-mlp": Case("wide-mlp", {"hidden": 4, "max_epochs": 2}),
    "sentence-embedding": Case("sentence-embedding", {"C": 1.0}, labelled_only=True, encoder=True),
    "static-embedding": Case("static-embedding", {"C": 1.0}, labelled_only=True),
    "setfit": Case("setfit", {"iterations": 1}, labelled_only=True, encoder=True),
    "embedding": Case("embedding", {"n_components": 10}),
    "embedding, nearest": Case("embedding", {"n_components": 10, "representation": "svd", "head": "nearest"}),
}

# What methods keep for the runs that follow.
KEPT = (
    embedder._kept,
    wgcn._prepared,
    wgcn_citations._graphs,
    linear_svc_characters._kept,
    linearised_wgcn._graphs,
    sequences._prepared,
    text_level_gnn._pairs,
    graph_cnn._prepared,
    document_word_graph._graphs,
)


pytestmark = pytest.mark.usefixtures("one_thread")


def texts_of(labels: np.ndarray, seed: int) -> list[str]:
    """Write short texts, half of whose words are of their class."""
    rng = np.random.default_rng(seed)
    words = {label: [f"{label}{i}" for i in range(15)] for label in np.unique(labels)}
    common = [f"word{i}" for i in range(30)]
    return [" ".join([*rng.choice(words[label], 6), *rng.choice(common, 6)]) for label in labels]


@pytest.fixture(scope="module")
def pets() -> Dataset:
    """Texts of three classes of different sizes, the test documents in between."""
    labels = np.random.default_rng(0).permutation(np.repeat(["bird", "cat", "dog"], [120, 60, 21]))
    test = np.arange(0, len(labels), 3)
    return Dataset(
        "pets", tuple(texts_of(labels, 1)), None, labels, np.setdiff1d(np.arange(len(labels)), test)[::-1].copy(), test
    )


@pytest.fixture(scope="module")
def papers() -> Dataset:
    """Documents with features and links: training, validation, test, and some in no part."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    features = rng.random((90, 24)) < 0.1 + 0.4 * (np.arange(24) % 3 == labels[:, None])
    links = (rng.random((90, 90)) < 0.06) & (labels[:, None] == labels)
    order = rng.permutation(90)
    labels[order[80:]] = -1
    return Dataset(
        "papers",
        None,
        csr_array(features.astype(np.float32)),
        labels,
        order[:30],
        order[45:80],
        csr_array((links | links.T).astype(np.float32)),
        None,
        order[30:45],
    )


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Word vectors for half of the words of `pets`."""
    rng = np.random.default_rng(0)
    words = [f"{kind}{i}" for kind in ("bird", "cat", "dog", "word") for i in range(8)]
    path = tmp_path_factory.mktemp("vectors") / "made.vec"
    path.write_text("".join(f"{word} {' '.join(map(str, rng.normal(size=3)))}\n" for word in words))
    return str(path)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is encoded goes into a cache that is thrown away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WGCN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


# Names


@pytest.mark.parametrize(
    "text",
    [
        "corpus",
        "inductive",
        "few-label:5%",
        "few-label:0.5%",
        "few-label:100%",
        "few-label:10",
        "unseen:5%",
        "unseen:3",
    ],
)
def test_a_protocol_is_what_it_is_written_as(text: str) -> None:
    assert str(Protocol.parse(text)) == text
    assert Protocol.parse(str(Protocol.parse(text))) == Protocol.parse(text)


@given(st.integers(1, 10_000))
def test_every_share_survives_writing_and_reading(share: int) -> None:
    protocol = Protocol("few-label", share / 10_000)
    assert Protocol.parse(str(protocol)).fraction == pytest.approx(share / 10_000, abs=1e-12)
    assert str(Protocol.parse(str(protocol))) == str(protocol)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a protocol"),
        ("transductive", "is not a protocol"),
        ("corpus ", "is not a protocol"),
        ("few-label:", "is not a protocol"),
        ("few-label:-1", "is not a protocol"),
        ("few-label:nan%", "is not a protocol"),
        ("few-label:1.2.3%", "'1.2.3' is not a number"),
        ("few-label:1.5", "'1.5' is not a number"),
        ("few-label", "takes a share or a number"),
        ("few-label:0%", "above 0 and at most 1"),
        ("few-label:101%", "above 0 and at most 1"),
        ("few-label:0", "at least 1"),
        ("unseen", "unseen takes a share or a number of labels: 'unseen:5%'"),
        ("unseen:0%", "above 0 and at most 1"),
        ("corpus:5%", "Only few-label and unseen"),
        ("inductive:10", "Only few-label"),
    ],
)
def test_what_is_no_protocol_is_explained(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Protocol.parse(text)


def test_a_protocol_made_by_hand_is_checked_too() -> None:
    with pytest.raises(InputError, match="one of corpus, inductive, few-label"):
        Protocol("all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="share or a number"):
        Protocol("few-label", 0.1, 10)
    with pytest.raises(InputError, match="above 0"):
        Protocol("few-label", float("nan"))


# What is seen


def test_corpus_sees_all_texts_and_the_labels_of_training_alone(pets: Dataset) -> None:
    assert pets.texts is not None
    seen = CORPUS.seen(pets)
    assert seen[: len(pets.train)].tolist() == pets.train.tolist()
    assert sorted(seen) == list(range(len(pets)))
    task = CORPUS.task(pets)
    assert task.texts == tuple(pets.texts[i] for i in seen)
    assert task.labels[: len(pets.train)].tolist() == pets.labels[pets.train].tolist()
    assert set(task.labels[len(pets.train) :]) == {None}
    assert (task.features, task.document_graph, task.validation.size) == (None, None, 0)


@pytest.mark.parametrize("protocol", [INDUCTIVE, FEW])
def test_test_texts_are_in_no_other_task(pets: Dataset, protocol: Protocol) -> None:
    assert pets.texts is not None
    assert protocol.seen(pets).tolist() == pets.train.tolist()
    assert protocol.task(pets).texts == tuple(pets.texts[i] for i in pets.train)
    assert not {pets.texts[i] for i in pets.test} & set(protocol.task(pets).texts or ())


@pytest.mark.parametrize("protocol", [CORPUS, INDUCTIVE, FEW])
def test_query_has_the_test_texts_in_their_order(pets: Dataset, protocol: Protocol) -> None:
    assert pets.texts is not None
    query = protocol.query(pets)
    assert query.texts == tuple(pets.texts[i] for i in pets.test)
    assert (query.features, query.document_graph) == (None, None)
    if protocol is CORPUS:
        assert query.places is not None
        texts = protocol.task(pets).texts or ()
        assert tuple(texts[i] for i in query.places) == query.texts
    else:
        assert query.places is None


@pytest.mark.parametrize("protocol", [CORPUS, INDUCTIVE, FEW])
def test_citations_of_a_task_are_those_between_its_documents(papers: Dataset, protocol: Protocol) -> None:
    assert papers.features is not None
    assert papers.document_graph is not None
    assert papers.validation is not None
    seen, task, query = protocol.seen(papers), protocol.task(papers), protocol.query(papers)
    inside = np.isin(np.arange(90), papers.test) & (protocol is not CORPUS)
    assert sorted(seen) == np.flatnonzero(~inside).tolist()
    assert task.features is not None
    assert task.document_graph is not None
    assert query.features is not None
    assert query.document_graph is not None
    features, graph = papers.features.toarray(), papers.document_graph.toarray()
    assert np.array_equal(task.features.toarray(), features[seen])
    assert np.array_equal(task.document_graph.toarray(), graph[np.ix_(seen, seen)])
    assert np.array_equal(query.features.toarray(), features[papers.test])
    assert np.array_equal(query.document_graph.toarray(), graph[np.ix_(papers.test, seen)])
    assert seen[task.validation].tolist() == [i for i in seen if i in papers.validation]
    assert task.labels[task.validation].tolist() == papers.labels[seen[task.validation]].tolist()
    others = np.isin(seen, np.concatenate([papers.train, papers.validation]), invert=True)
    assert set(task.labels[others]) == {None}


def test_documents_of_a_task_come_as_a_query(papers: Dataset, pets: Dataset) -> None:
    task = INDUCTIVE.task(papers)
    query = task.documents(task.validation)
    assert task.features is not None
    assert task.document_graph is not None
    assert query.features is not None
    assert query.document_graph is not None
    assert np.array_equal(query.features.toarray(), task.features.toarray()[task.validation])
    assert np.array_equal(query.document_graph.toarray(), task.document_graph.toarray()[task.validation])
    assert query.places is task.validation
    texts = INDUCTIVE.task(pets)
    assert texts.documents(np.array([2, 0])).texts == ((texts.texts or ())[2], (texts.texts or ())[0])


@pytest.mark.parametrize("protocol", [CORPUS, INDUCTIVE])
def test_some_documents_of_a_query(papers: Dataset, pets: Dataset, protocol: Protocol) -> None:
    some = np.array([4, 0, 2])
    texts, rows = protocol.query(pets), protocol.query(papers)
    for dataset, query in ((pets, texts), (papers, rows)):
        part = query.only(some)
        assert (len(query), len(part), len(query.only(some[:0]))) == (len(dataset.test), 3, 0)
        assert (part.texts is None, part.features is None) == (query.texts is None, query.features is None)
        assert (part.document_graph is None) == (query.document_graph is None)
        if query.places is None:
            assert part.places is None
        else:
            assert part.places is not None
            assert protocol.seen(dataset)[part.places].tolist() == dataset.test[some].tolist()
    assert pets.texts is not None
    assert texts.only(some).texts == tuple(pets.texts[i] for i in pets.test[some])
    part = rows.only(some)
    assert part.features is not None
    assert papers.features is not None
    assert part.document_graph is not None
    assert papers.document_graph is not None
    assert np.array_equal(part.features.toarray(), papers.features.toarray()[papers.test[some]])
    between = np.ix_(papers.test[some], protocol.seen(papers))
    assert np.array_equal(part.document_graph.toarray(), papers.document_graph.toarray()[between])


def test_a_query_of_nothing_has_no_documents() -> None:
    assert len(Query(None, None, None)) == len(Query((), None, None)) == 0


@pytest.mark.parametrize("protocol", [CORPUS, INDUCTIVE, FEW, Protocol("few-label", per_class=2), UNSEEN])
def test_labels_of_test_documents_are_in_no_task(pets: Dataset, papers: Dataset, protocol: Protocol) -> None:
    for dataset, other in ((pets, "poison"), (papers, 77)):
        labels = dataset.labels.astype(object)
        labels[dataset.test] = other
        poisoned = replace(dataset, labels=labels)
        task = protocol.task(poisoned, 3)
        assert other not in task.labels.tolist()
        assert task.labels.tolist() == protocol.task(dataset, 3).labels.tolist()


def test_digest_of_a_task_is_that_of_its_documents(pets: Dataset, papers: Dataset) -> None:
    for dataset in (pets, papers):
        tasks = [INDUCTIVE.task(dataset), FEW.task(dataset), FEW.task(dataset, 1)]
        assert len({task.digest for task in tasks}) == 1
        assert CORPUS.task(dataset).digest != tasks[0].digest
    assert papers.features is not None
    wider = csr_array((papers.features.data, papers.features.indices, papers.features.indptr), shape=(90, 25))
    assert CORPUS.task(replace(papers, features=wider)).digest != CORPUS.task(papers).digest
    joined, apart = (
        Dataset("x", texts, None, np.array(["a", "b"]), np.arange(2), np.arange(0))
        for texts in (("ab", ""), ("a", "b"))
    )
    assert CORPUS.task(joined).digest != CORPUS.task(apart).digest


# The draw of labels


def drawn(protocol: Protocol, dataset: Dataset, seed: int) -> Counter[str]:
    return Counter(label for label in protocol.task(dataset, seed).labels if label is not None)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=2, max_size=6),
    percent=st.integers(1, 100),
    seed=st.integers(0, 1000),
)
def test_share_of_labels_is_stratified_and_whole(sizes: list[int], percent: int, seed: int) -> None:
    labels = np.random.default_rng(seed).permutation(np.repeat([f"c{i}" for i in range(len(sizes))], sizes))
    dataset = Dataset("x", ("",) * len(labels), None, labels, np.arange(len(labels)), np.arange(0))
    counts = drawn(Protocol("few-label", percent / 100), dataset, seed)
    for i, size in enumerate(sizes):
        taken = counts[f"c{i}"]
        assert 1 <= taken <= size
        assert abs(taken - size * percent / 100) < 1 or taken == 1
    expected = round(len(labels) * percent / 100)
    lifted = any(size * percent / 100 < 1 for size in sizes)
    assert counts.total() == expected or (lifted and counts.total() > expected)


@given(per_class=st.integers(1, 50), seed=st.integers(0, 100))
def test_number_of_labels_a_class(pets: Dataset, per_class: int, seed: int) -> None:
    everything = Counter(pets.labels[pets.train].tolist())
    expected = {label: min(per_class, count) for label, count in everything.items()}
    assert drawn(Protocol("few-label", per_class=per_class), pets, seed) == expected


def test_seed_alone_decides_the_draw(pets: Dataset) -> None:
    draws = [[label is not None for label in FEW.task(pets, seed).labels] for seed in (0, 0, 1, 2)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2] != draws[3]
    assert INDUCTIVE.task(pets, 0).labels.tolist() == INDUCTIVE.task(pets, 1).labels.tolist()


def test_what_keeps_its_label_keeps_its_own(pets: Dataset) -> None:
    truth = pets.labels[pets.train]
    for label, own in zip(FEW.task(pets, 5).labels, truth, strict=True):
        assert label in (None, own)
    whole = Protocol.parse("few-label:100%").task(pets, 5)
    assert whole.labels.tolist() == truth.tolist()


# Words that fitting does not see


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("protocol", [UNSEEN, Protocol("unseen", per_class=1)])
def test_unseen_fits_the_documents_that_are_drawn_and_no_others(pets: Dataset, protocol: Protocol, seed: int) -> None:
    assert pets.texts is not None
    task = protocol.task(pets, seed)
    few = Protocol("few-label", protocol.fraction, protocol.per_class).task(pets, seed)
    drawn = [i for i, label in enumerate(few.labels) if label is not None]
    assert few.texts is not None
    assert task.texts == tuple(few.texts[i] for i in drawn)
    assert task.labels.tolist() == few.labels[drawn].tolist()
    assert Counter((*task.texts, *task.pool)) == Counter(few.texts)
    assert (few.pool, INDUCTIVE.task(pets).pool, CORPUS.task(pets).pool) == ((), (), ())
    assert protocol.seen(pets, seed).tolist() == pets.train[drawn].tolist()


@pytest.mark.parametrize("seed", [0, 1])
def test_unseen_asks_for_documents_with_a_new_word(pets: Dataset, seed: int) -> None:
    assert pets.texts is not None
    protocol = Protocol("unseen", per_class=5)
    known = {word for text in protocol.task(pets, seed).texts or () for word in text.split()}
    expected = [i for i in pets.test if set(pets.texts[i].split()) - known]
    assert 0 < len(expected) < len(pets.test)
    assert protocol.tested(pets, seed).tolist() == expected
    assert protocol.query(pets, seed).texts == tuple(pets.texts[i] for i in expected)
    assert INDUCTIVE.tested(pets).tolist() == pets.test.tolist()


def test_unseen_is_for_texts(papers: Dataset) -> None:
    with pytest.raises(InputError, match="papers has no texts"):
        UNSEEN.query(papers)


@pytest.mark.parametrize("text", ["corpus", "inductive", "few-label:100%", "unseen:100%", "few-label:3", "unseen:5%"])
def test_a_protocol_says_whether_it_draws(text: str) -> None:
    assert Protocol.parse(text).is_drawn == (text in ("few-label:3", "unseen:5%"))


@pytest.mark.parametrize("extend", ["", "graph", "fit", "drop"])
def test_the_pool_leaves_a_trace_where_it_is_asked_for_and_test_texts_never(pets: Dataset, extend: str) -> None:
    assert pets.texts is not None
    seen = UNSEEN.seen(pets, 1)
    others = [text if i in seen or i in pets.test else f"{text} new new cat0" for i, text in enumerate(pets.texts)]
    changed = replace(pets, texts=tuple(others))
    first = digest("wgcn-linear", UNSEEN, pets, {"extend": extend})
    assert digest("wgcn-linear", UNSEEN, with_other_test_texts(pets), {"extend": extend}) == first
    assert (digest("wgcn-linear", UNSEEN, changed, {"extend": extend}) != first) == (extend in ("graph", "fit"))


# The promise: what is not in the task leaves no trace in the model


def test_every_method_keeps_the_promise() -> None:
    assert {case.method for case in CASES.values()} >= set(_METHODS)
    for case in CASES.values():
        assert set(case.protocols) <= set(method_class(case.method).protocols)


class Fitted(NamedTuple):
    """A case with its data."""

    case: Case
    dataset: Dataset
    settings: dict[str, Any]

    def digest(self, protocol: Protocol, dataset: Dataset) -> str:
        return digest(self.case.method, protocol, dataset, self.settings)


def encode(texts: Sequence[str], kind: str, device: str = "auto") -> np.ndarray:
    """Stand in for the sentence encoder: a vector that depends on the text alone."""
    return np.array([np.random.default_rng(list(text.encode())).normal(size=8) for text in texts], np.float32)


def tune_with_few_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have settings chosen for pets, which are too few for it, and have few labels beside the teacher."""
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=0, hold_out=0, beside_teacher=0))


@pytest.fixture
def fitted(request: pytest.FixtureRequest, vectors: str, monkeypatch: pytest.MonkeyPatch) -> Fitted:
    """A case by its name."""
    case = CASES[request.param]
    if case.tuned:
        tune_with_few_labels(monkeypatch)
    if case.encoder:
        request.getfixturevalue("tiny_encoder")
        for module in ("wgcn_paper.vectors.encoder", "wgcn_paper.methods.sentence_embedding"):
            monkeypatch.setattr(f"{module}.encode_cached", encode)
    settings = {**case.settings, **({"word_vectors": vectors} if case.vectors else {})}
    return Fitted(case, request.getfixturevalue(case.data), settings)


def runs(*protocols: Protocol) -> list[Any]:
    """Return all cases with each of the protocols that they can run under."""
    return [
        pytest.param(name, protocol, id=f"{name}, {protocol.name}")
        for name, case in CASES.items()
        for protocol in protocols
        if protocol.name in case.protocols
    ]


def digest(method: str, protocol: Protocol, dataset: Dataset, settings: dict[str, Any]) -> str:
    for kept in KEPT:
        kept.clear()
    made = make_baseline(method, settings, seed=1, device="cpu")
    fit = made.fit(protocol.task(dataset, 1))
    guesses = made.predict(protocol.query(dataset, 1))
    assert len(guesses) == len(protocol.tested(dataset, 1))
    assert set(guesses.tolist()) <= set(dataset.labels[dataset.train].tolist())
    assert fit.digest is not None
    return fit.digest


def with_other_test_texts(dataset: Dataset) -> Dataset:
    texts = list(dataset.texts or ())
    for i in dataset.test:
        texts[i] = f"altogether other words {i} bird0 dog1"
    return replace(dataset, texts=tuple(texts))


def with_other_test_rows(dataset: Dataset) -> Dataset:
    assert dataset.features is not None
    assert dataset.document_graph is not None
    features, graph = dataset.features.toarray(), dataset.document_graph.toarray()
    features[dataset.test] = 1 - features[dataset.test]
    graph[dataset.test] = 1 - graph[dataset.test]
    graph[:, dataset.test] = graph[dataset.test].T
    return replace(dataset, features=csr_array(features), document_graph=csr_array(graph))


@pytest.mark.parametrize(("fitted", "protocol"), runs(INDUCTIVE, FEW, CORPUS), indirect=["fitted"])
def test_test_documents_leave_no_trace_but_under_corpus_and_their_labels_never(
    fitted: Fitted, protocol: Protocol
) -> None:
    dataset = fitted.dataset
    labels = dataset.labels.copy()
    labels[dataset.test] = np.roll(labels[dataset.test], 1)
    change = with_other_test_rows if fitted.case.data == "papers" else with_other_test_texts
    own = fitted.digest(protocol, dataset)
    other = replace(dataset, labels=labels)
    if protocol is not CORPUS or fitted.case.labelled_only:
        assert fitted.digest(protocol, change(other)) == own
    else:
        assert fitted.digest(protocol, other) == own
        assert fitted.digest(protocol, change(dataset)) != own


@pytest.mark.parametrize("fitted", [name for name, case in CASES.items() if case.data == "papers"], indirect=True)
def test_links_of_test_documents_alone_leave_no_trace(fitted: Fitted) -> None:
    papers = fitted.dataset
    assert papers.document_graph is not None
    graph = papers.document_graph.toarray()
    graph[papers.test] = graph[:, papers.test] = 0
    cut = replace(papers, document_graph=csr_array(graph))
    assert fitted.digest(INDUCTIVE, papers) == fitted.digest(INDUCTIVE, cut)
    assert fitted.digest(CORPUS, papers) != fitted.digest(CORPUS, cut)


@pytest.mark.parametrize(
    "fitted", [name for name, case in CASES.items() if case.protocols == ("corpus",)], indirect=True
)
def test_a_method_that_needs_test_documents_says_so(fitted: Fitted) -> None:
    made = make_baseline(fitted.case.method, fitted.settings, device="cpu")
    made.fit(INDUCTIVE.task(fitted.dataset))
    with pytest.raises(
        InputError, match=f"^{fitted.case.method} cannot classify documents that it has not seen. .*nodes"
    ):
        made.predict(INDUCTIVE.query(fitted.dataset))


@pytest.mark.parametrize("protocol", [INDUCTIVE, FEW])
def test_tuning_compares_alike_whatever_the_test_documents(
    pets: Dataset, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Tuned] = []
    tune = training.Trainer.tune

    def recorded(trainer: Any) -> Tuned | None:
        tuned = tune(trainer)
        assert tuned is not None
        found.append(tuned)
        return tuned

    tune_with_few_labels(monkeypatch)
    monkeypatch.setattr(training.Trainer, "tune", recorded)
    for dataset in (pets, with_other_test_texts(pets)):
        digest("wgcn-linear", protocol, dataset, {})
    one, other = found
    assert one == other
    assert one.n_fits >= 2
    assert one.n_held_out > 0


@pytest.mark.parametrize("protocol", [INDUCTIVE, FEW])
@pytest.mark.parametrize("method", ["linear-svc", "logistic"])
def test_pets_have_folds_to_choose_n_grams_by(pets: Dataset, protocol: Protocol, method: str) -> None:
    fit = make_baseline(method, {"ngrams": 0, "C": 0.0}).fit(protocol.task(pets, 1))
    assert fit.validation_accuracy is not None


@pytest.mark.parametrize("fitted", ["wgcn-linear, vectors"], indirect=True)
def test_vectors_of_the_encoder_are_used(fitted: Fitted) -> None:
    assert fitted.digest(FEW, fitted.dataset) != digest("wgcn-linear", FEW, fitted.dataset, {})


def test_test_documents_of_real_text_leave_no_trace() -> None:
    modules = (argparse, email.message, inspect, socket)
    labelled = [
        (module.__name__, text)
        for module in modules
        for _, function in inspect.getmembers(module, callable)
        if (text := inspect.getdoc(function))
    ]
    labels, texts = zip(*labelled, strict=True)
    places = np.random.default_rng(0).permutation(len(texts))
    real = Dataset("docstrings", texts, None, np.array(labels), places[::2], places[1::2])
    settings = {"min_count": 3, "top_k": 20}
    other = with_other_test_texts(real)
    assert digest("wgcn-linear", FEW, real, settings) == digest("wgcn-linear", FEW, other, settings)
