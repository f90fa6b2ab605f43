"""What the methods that read words in order share; each one's own equations are in its own file."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from wgcn_paper.methods import sequences
from wgcn_paper.methods.cnn import CNNMethod
from wgcn_paper.methods.lstm import LSTMMethod
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.sequences import SEQUENCES, Batch, Documents, SequenceBaseline, Sequences
from wgcn_paper.methods.text_level_gnn import TextLevelGNNMethod
from wgcn_paper.protocol import Query, Task

TEXTS = ("the red wine", "a white wine and the red wine", "a fast car", "a slow car and the fast car , a fast one") * 5
LABELS = np.array(["drink", "drink", "drive", "drive"] * 5, object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
PLAIN = {**SEQUENCES, "word_vectors": "", "dimension": 6}
CPU = torch.device("cpu")

METHODS: list[tuple[type[SequenceBaseline], dict[str, Any]]] = [
    (CNNMethod, {"feature_maps": 4}),
    (LSTMMethod, {"hidden": 5}),
    (TextLevelGNNMethod, {"min_count": 1}),
]
SMALL = {
    "word_vectors": "",
    "dimension": 6,
    "max_epochs": 2,
    "batch_size": 8,
    "learning_rate": 0.02,
    "stopping": "mean",
}
each_method = pytest.mark.parametrize(("kind", "settings"), METHODS, ids=[kind.name for kind, _ in METHODS])


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    sequences._prepared.clear()
    monkeypatch.setattr("wgcn_paper.methods.preparation.stop_words", lambda: frozenset({"and", "the"}))
    monkeypatch.setattr(sequences, "word_vectors", made_vectors)


def made_vectors(words: tuple[str, ...], source: str) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of four values for all words but wine."""
    known = np.array([word != "wine" for word in words])
    vectors = np.arange(len(words) * 4, dtype=np.float32).reshape(-1, 4)[:: -1 if source == "turned" else 1]
    return vectors * known[:, None], known


def query(*texts: str) -> Query:
    return Query(texts, None, None)


# Ids and batches


def test_a_batch_has_the_words_of_its_documents_in_order() -> None:
    texts = ("red wine", "", "wine and red wine", "car")
    made = Sequences(texts, PLAIN)
    documents = Documents(made.corpus, 0, CPU)
    batch = documents.batch(np.array([2, 1, 0]))
    words = ["", *made.vocabulary.words]
    assert [words[i] for i in batch.ids] == ["wine", "and", "red", "wine", "red", "wine"]
    assert batch.lengths.tolist() == batch.sizes.tolist() == [4, 0, 2]
    assert batch.document.tolist() == [0, 0, 0, 0, 2, 2]
    assert batch.place.tolist() == [0, 1, 2, 3, 0, 1]
    assert len(documents) == 4


def test_short_documents_are_filled_and_long_ones_cut() -> None:
    made = Sequences(("red wine", "", "a b c d e f"), PLAIN)
    batch = Documents(made.corpus, 4, CPU).batch(np.arange(3), at_least=3)
    assert batch.lengths.tolist() == [2, 0, 4]
    assert batch.sizes.tolist() == [3, 3, 4]
    grid = batch.padded(batch.ids, 0)
    words = ["", *made.vocabulary.words]
    assert [[words[i] for i in row] for row in grid] == [["red", "wine", "", ""], [""] * 4, ["a", "b", "c", "d"]]


def test_padding_has_the_value_that_is_asked_for() -> None:
    batch = Batch(
        ids=torch.tensor([3, 1, 2]),
        document=torch.tensor([0, 1, 1]),
        place=torch.tensor([0, 0, 1]),
        lengths=torch.tensor([1, 2]),
        sizes=np.array([1, 2]),
    )
    values = torch.arange(6.0).reshape(3, 2)
    expected = [[[0.0, 1.0], [-7.0, -7.0]], [[2.0, 3.0], [4.0, 5.0]]]
    assert batch.padded(values, -7).tolist() == expected


def test_a_batch_of_empty_documents_is_empty() -> None:
    batch = Documents(Sequences(("", "red"), PLAIN).corpus, 0, CPU).batch(np.array([0, 0]))
    assert batch.ids.shape == (0,)
    assert batch.padded(batch.ids, 0).shape == (2, 0)


def test_words_outside_the_vocabulary_are_left_out() -> None:
    made = Sequences(("red wine", "red car"), {**PLAIN, "min_count": 2})
    assert made.vocabulary.words == ("red",)
    assert made.encode(["a red car", "blue"]).lengths.tolist() == [1, 0]
    assert "the" not in Sequences(TEXTS, {**PLAIN, "stop_words": True}).vocabulary


# Vectors


def test_random_vectors_are_small_and_nothing_has_none() -> None:
    table = Sequences(TEXTS, PLAIN).embedding(scale=0.1)
    assert table.weight.shape == (len(Sequences(TEXTS, PLAIN).vocabulary) + 1, 6)
    assert not table.weight[0].any()
    assert table.weight[1:].abs().amax(1).min() > 0
    assert table.weight.abs().max() <= 0.1
    assert table.weight.requires_grad


def test_given_vectors_are_taken_and_all_have_the_same_variance() -> None:
    made = Sequences(TEXTS, {**PLAIN, "word_vectors": "made"})
    given, known = made_vectors(made.vocabulary.words, "made")
    table = made.embedding(scale=0.3).weight.detach().numpy()
    np.testing.assert_allclose(table[1:][known], given[known] * 0.3 / 3**0.5 / given[known].std(), rtol=1e-5)
    assert table[1:][known].std() == pytest.approx(0.3 / 3**0.5)
    [drawn] = table[1:][~known]
    assert 0 < np.abs(drawn).max() <= 0.3
    assert not table[0].any()


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_vectors_of_no_word_or_without_variance_do_no_harm(monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    monkeypatch.setattr(
        sequences,
        "word_vectors",
        lambda words, _: (np.full((len(words), 4), value, np.float32), np.full(len(words), value > 0)),
    )
    table = Sequences(TEXTS, {**PLAIN, "word_vectors": "made"}).embedding().weight
    assert table.isfinite().all()
    assert table[1:].any(1).all()


# All methods


@each_method
def test_order_of_documents_does_not_matter(kind: type[SequenceBaseline], settings: dict[str, Any]) -> None:
    order = np.random.default_rng(1).permutation(len(TEXTS))
    texts = tuple(f"{text} {i}" for i, text in enumerate(TEXTS))
    other = replace(TASK, texts=tuple(texts[i] for i in order), labels=LABELS[order])
    methods = [kind(SMALL | settings, device="cpu") for _ in range(2)]
    fits = [method.fit(task) for method, task in zip(methods, (replace(TASK, texts=texts), other), strict=True)]
    assert fits[0].digest == fits[1].digest
    new = ("old wine", "my fast car and the wine", "", "red", "the car , a slow one") * 3
    guesses = methods[0].predict(query(*new))
    assert guesses.tolist() == methods[1].predict(query(*new)).tolist()
    shuffled = np.random.default_rng(2).permutation(len(new))
    assert methods[0].predict(query(*(new[i] for i in shuffled))).tolist() == guesses[shuffled].tolist()


@each_method
def test_seed_and_every_shared_setting_change_the_model(kind: type[SequenceBaseline], settings: dict[str, Any]) -> None:
    first = SMALL | settings
    values: dict[str, Any] = {
        "tokenizer": "words",
        "stop_words": True,
        "min_count": 6,
        "word_vectors": "made",
        "dimension": 5,
        "max_length": 2,
        "learning_rate": 0.01,
        "weight_decay": 0.1,
        "batch_size": 5,
        "max_epochs": 1,
        "validation_fraction": 0.3,
    }
    # Which epoch is kept is the business of the loop, and tested there.
    assert set(values) | {"patience", "stopping"} == {*SEQUENCES, *TRAINING}
    digests = [kind(first | {name: value}, device="cpu").fit(TASK).digest for name, value in values.items()]
    digests += [kind(first, seed=seed, device="cpu").fit(TASK).digest for seed in (0, 1)]
    digests.append(kind(first | {"word_vectors": "turned"}, device="cpu").fit(TASK).digest)
    assert None not in digests
    assert len(set(digests)) == len(digests)
    assert kind(first, device="cpu").fit(TASK).digest == digests[len(values)]


@each_method
def test_odd_documents_are_classified(kind: type[SequenceBaseline], settings: dict[str, Any]) -> None:
    texts = (*TEXTS, "", "tea", "unlabelled wine", "")
    labels = np.array([*LABELS, "drive", "once", None, None], object)
    method = kind(SMALL | settings, device="cpu")
    fit = method.fit(replace(TASK, texts=texts, labels=labels))
    assert fit.validation_accuracy is not None
    assert method.classes.tolist() == ["drink", "drive", "once"]
    guesses = method.predict(query("", "zzz qqq", "wine", ""))
    assert set(guesses) <= {"drink", "drive", "once"}
    assert guesses[0] == guesses[1] == guesses[3]
    assert method.predict(query()).shape == (0,)
    assert len(method.predict(query("zzz"))) == 1


@each_method
def test_logits_do_not_depend_on_the_batch(kind: type[SequenceBaseline], settings: dict[str, Any]) -> None:
    method = kind(SMALL | settings, device="cpu")
    method.fit(TASK)
    method.network.eval()
    texts = ("red", "", "a slow car and the fast car , a fast one , a red one", "wine and car")
    with torch.no_grad():
        together = method._query_logits(query(*texts))
        alone = torch.cat([method._query_logits(query(text)) for text in texts])
    torch.testing.assert_close(together, alone)
    assert len({tuple(row) for row in alone.tolist()}) == len(texts)


@each_method
def test_a_batch_may_hold_all_documents(kind: type[SequenceBaseline], settings: dict[str, Any]) -> None:
    method = kind(SMALL | settings | {"batch_size": 0}, device="cpu")
    method.fit(TASK)
    assert len(method.predict(query("red wine", "car"))) == 2


@each_method
def test_texts_without_labels_are_never_trained_on(kind: type[SequenceBaseline], settings: dict[str, Any]) -> None:
    labels = LABELS.copy()
    labels[::3] = None
    rows: list[int] = []
    method = kind(SMALL | settings, device="cpu")
    logits = method._logits
    method._logits = lambda places: rows.extend(places) or logits(places)  # type: ignore[method-assign,func-returns-value]
    method.fit(replace(TASK, labels=labels))
    assert len(set(rows)) == sum(label is not None for label in labels)


def test_vocabularies_are_shared_by_seeds_and_never_mixed() -> None:
    CNNMethod(SMALL | METHODS[0][1], device="cpu").fit(TASK)
    [kept] = sequences._prepared.values()
    LSTMMethod(SMALL | METHODS[1][1] | {"max_length": 1000}, seed=3, device="cpu").fit(TASK)
    LSTMMethod(SMALL | METHODS[1][1] | {"max_length": 1000}, seed=4, device="cpu").fit(TASK)
    assert [*sequences._prepared.values()] == [kept]
    alone = CNNMethod(SMALL | {"min_count": 6}, device="cpu").fit(TASK).digest
    assert len(sequences._prepared) == 2
    sequences._prepared.clear()
    assert CNNMethod(SMALL | {"min_count": 6}, device="cpu").fit(TASK).digest == alone
    for size in range(3, 8):
        CNNMethod(SMALL | {"dimension": size}, device="cpu").fit(TASK)
    assert len(sequences._prepared) == sequences._prepared.most == 2
