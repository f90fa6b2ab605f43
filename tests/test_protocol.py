"""What fitting may see, and that no method sees more."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn.baselines import wgcn, wgcn_citations
from wgcn.baselines.baseline import make_baseline, method_class, method_names
from wgcn.datasets import Dataset
from wgcn.errors import InputError
from wgcn.protocol import Protocol

CORPUS, INDUCTIVE, FEW = (Protocol.parse(text) for text in ("corpus", "inductive", "few-label:20%"))

# Small settings for methods that would otherwise take long.
QUICK: dict[str, dict[str, Any]] = {
    "wgcn": {"stop_words": False, "min_count": 2, "hidden": 8, "max_epochs": 5},
    "wgcn-citations": {"hidden": 8, "max_epochs": 5},
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Networks this small are slower with several threads, and much slower on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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


# Names


@pytest.mark.parametrize(
    "text", ["corpus", "inductive", "few-label:5%", "few-label:0.5%", "few-label:100%", "few-label:10"]
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
        ("", "is no protocol"),
        ("transductive", "is no protocol"),
        ("corpus ", "is no protocol"),
        ("few-label:", "is no protocol"),
        ("few-label:-1", "is no protocol"),
        ("few-label:nan%", "is no protocol"),
        ("few-label:1.2.3%", "'1.2.3' is not a number"),
        ("few-label:1.5", "'1.5' is not a number"),
        ("few-label", "takes a share or a number"),
        ("few-label:0%", "above 0 and at most 1"),
        ("few-label:101%", "above 0 and at most 1"),
        ("few-label:0", "at least 1"),
        ("corpus:5%", "Only few-label"),
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


@pytest.mark.parametrize("protocol", [CORPUS, INDUCTIVE, FEW, Protocol("few-label", per_class=2)])
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


# The promise: what is not in the task leaves no trace in the model


def digest(method: str, protocol: Protocol, dataset: Dataset, settings: dict[str, Any] | None = None) -> str:
    wgcn._prepared.clear()
    wgcn_citations._graphs.clear()
    made = make_baseline(method, QUICK.get(method, {}) if settings is None else settings, seed=1, device="cpu")
    fit = made.fit(protocol.task(dataset, 1))
    made.predict(protocol.query(dataset))
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


@pytest.mark.parametrize("method", method_names())
def test_test_documents_leave_no_trace_but_under_corpus(method: str, pets: Dataset, papers: Dataset) -> None:
    change: Callable[[Dataset], Dataset]
    dataset, change = (papers, with_other_test_rows) if method == "wgcn-citations" else (pets, with_other_test_texts)
    for protocol in (INDUCTIVE, FEW, CORPUS):
        if protocol.name not in method_class(method).protocols:
            continue
        own, other = digest(method, protocol, dataset), digest(method, protocol, change(dataset))
        assert (own == other) == (protocol is not CORPUS), protocol


@pytest.mark.parametrize("method", method_names())
@pytest.mark.parametrize("protocol", [CORPUS, INDUCTIVE, FEW])
def test_test_labels_leave_no_trace(method: str, protocol: Protocol, pets: Dataset, papers: Dataset) -> None:
    dataset = papers if method == "wgcn-citations" else pets
    labels = dataset.labels.copy()
    labels[dataset.test] = np.roll(labels[dataset.test], 1)
    assert digest(method, protocol, dataset) == digest(method, protocol, replace(dataset, labels=labels))


def test_links_of_test_documents_alone_leave_no_trace(papers: Dataset) -> None:
    assert papers.document_graph is not None
    graph = papers.document_graph.toarray()
    graph[papers.test] = graph[:, papers.test] = 0
    cut = replace(papers, document_graph=csr_array(graph))
    assert digest("wgcn-citations", INDUCTIVE, papers) == digest("wgcn-citations", INDUCTIVE, cut)
    assert digest("wgcn-citations", CORPUS, papers) != digest("wgcn-citations", CORPUS, cut)


def test_test_documents_of_real_text_leave_no_trace(docs: Dataset) -> None:
    settings = {"min_count": 3, "top_k": 20}
    texts = tuple(" ".join(text.split()[:50]) for text in docs.texts or ())
    beginnings = replace(docs, texts=texts, train=docs.train[::4])
    other = with_other_test_texts(beginnings)
    assert digest("wgcn-linear", FEW, beginnings, settings) == digest("wgcn-linear", FEW, other, settings)
