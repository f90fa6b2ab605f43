"""WideMLP: a perceptron on tf-idf, whose first layer is never a product with dense rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from wgcn_paper.methods.wide_mlp import WideMLPMethod
from wgcn_paper.protocol import Query, Task

TEXTS = ("red wine", "white wine and red wine", "fast car", "slow car and fast car") * 5
TEXTS = tuple(f"{text} n{i % 7}" for i, text in enumerate(TEXTS))
LABELS = np.array(["drink", "drink", "drive", "drive"] * 5, object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
SMALL = {"hidden": 8, "batch_size": 6, "learning_rate": 0.01, "max_epochs": 30}


pytestmark = pytest.mark.usefixtures("one_thread")


def fitted(task: Task = TASK, seed: int = 0, **settings: Any) -> WideMLPMethod:
    method = WideMLPMethod(SMALL | settings, seed=seed, device="cpu")
    method.fit(task)
    return method


def digest(task: Task = TASK, seed: int = 0, **settings: Any) -> str | None:
    return WideMLPMethod(SMALL | settings, seed=seed, device="cpu").fit(task).digest


def test_it_learns() -> None:
    method = WideMLPMethod(SMALL, device="cpu")
    fit = method.fit(TASK)
    assert method.predict(Query(("old red wine", "my car"), None, None)).tolist() == ["drink", "drive"]
    assert fit.validation_accuracy == 1.0
    assert fit.epochs is not None
    assert 1 <= fit.epochs <= 30


@pytest.mark.parametrize("sublinear", [False, True])
def test_logits_are_those_of_the_formula(sublinear: bool) -> None:
    method = fitted(sublinear=sublinear)
    words = list(method._vocabulary.words)
    vectorizer = TfidfVectorizer(vocabulary=words, sublinear_tf=sublinear, tokenizer=str.split, token_pattern=None)
    vectorizer.fit(TEXTS)
    new = ("white wine and wine and wine n3", "", "unheard", "fast fast car")
    x = vectorizer.transform(new).toarray()
    state = {name: value.numpy() for name, value in method.network.state_dict().items()}
    hidden = np.maximum(x @ state["word_weights"] + state["bias"], 0)
    expected = hidden @ state["classes.weight"].T + state["classes.bias"]
    with torch.no_grad():
        found = method._query_logits(Query(new, None, None)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.array_equal(found[1], found[2])  # no known word is as good as no word


def test_gradient_of_the_first_layer_is_that_of_a_dense_product() -> None:
    method = fitted(dropout=0.0)
    rows = np.array([7, 0, 3])
    network = method.network.eval()
    network.zero_grad()
    method._logits(rows).square().sum().backward()  # type: ignore[no-untyped-call]
    words, weights, begins = method._documents.rows(rows)
    x = torch.zeros(3, len(method._vocabulary))
    ends = [*begins[1:].tolist(), len(words)]
    for i, (begin, end) in enumerate(zip(begins.tolist(), ends, strict=True)):
        x[i, words[begin:end]] = weights[begin:end]
    dense = network.word_weights.detach().clone().requires_grad_()
    logits = network.classes(torch.relu(x @ dense + network.bias))
    logits.square().sum().backward()
    torch.testing.assert_close(network.word_weights.grad, dense.grad)


def test_order_of_documents_changes_nothing() -> None:
    order = np.random.default_rng(0).permutation(len(TEXTS))
    other = replace(TASK, texts=tuple(TEXTS[i] for i in order), labels=LABELS[order])
    assert digest() == digest(other)
    method = fitted()
    guesses = method.predict(Query(TEXTS, None, None))
    assert method.predict(Query(other.texts, None, None)).tolist() == guesses[order].tolist()


def test_same_seed_same_model() -> None:
    assert digest() == digest()
    assert digest() != digest(seed=1)


VALUES = {
    "tokenizer": "words",
    "stop_words": True,
    "min_count": 3,
    "sublinear": True,
    "hidden": 9,
    "dropout": 0.2,
    "learning_rate": 0.02,
    "weight_decay": 0.1,
    "batch_size": 5,
    "max_epochs": 3,
    "validation_fraction": 0.3,
}


def test_every_setting_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn_paper.methods.preparation.stop_words", lambda: frozenset({"and"}))
    assert set(WideMLPMethod.defaults) == {*VALUES, "patience", "stopping"}  # these two are tested in test_network
    task = replace(TASK, texts=("it's wine", *TEXTS[1:]))
    few = {"max_epochs": 4}
    digests = [digest(task, **few), *(digest(task, **(few | {name: value})) for name, value in VALUES.items())]
    assert len(set(digests)) == len(digests)
    paper = {name: WideMLPMethod.defaults[name] for name in ("hidden", "dropout", "learning_rate", "max_epochs")}
    assert paper == {"hidden": 1024, "dropout": 0.5, "learning_rate": 0.001, "max_epochs": 100}


def test_texts_without_labels_count_for_vocabulary_and_idf() -> None:
    texts, labels = (*TEXTS, "merlot"), np.array([*LABELS, None], object)
    method = fitted(replace(TASK, texts=texts, labels=labels))
    assert "merlot" in method._vocabulary.words


def test_odd_documents() -> None:
    labels = np.array([*LABELS, "grow", "drink", None], object)
    method = fitted(replace(TASK, texts=(*TEXTS, "green tree", "", ""), labels=labels))
    guesses = method.predict(Query(("", "unheard", "green tree"), None, None))
    assert guesses[0] == guesses[1]
    assert set(guesses) <= {"drink", "drive", "grow"}
    assert method.predict(Query((), None, None)).shape == (0,)
