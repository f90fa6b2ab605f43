"""fastText: its model is the one that its paper describes, and no text can pass for a label."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fasttext")

from wgcn.text.tokenize import TOKENIZERS
from wgcn_paper.methods.fasttext import FastTextMethod
from wgcn_paper.protocol import Query, Task

TEXTS = ("red wine", "white wine and red wine", "fast car", "slow car and fast car") * 6
LABELS = np.array(["drink", "drink", "drive", "drive"] * 6, object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
# Every training allocates large tables, which takes a tenth of a second; with nothing held out there is only one.
SMALL = {"buckets": 50, "hidden": 5, "epochs": 20, "validation_fraction": 0.0}


def fitted(task: Task = TASK, seed: int = 0, **settings: Any) -> FastTextMethod:
    method = FastTextMethod(SMALL | settings, seed=seed)
    method.fit(task)
    return method


def digest(task: Task = TASK, seed: int = 0, **settings: Any) -> str | None:
    return FastTextMethod(SMALL | settings, seed=seed).fit(task).digest


def test_it_learns(capfd: pytest.CaptureFixture[str]) -> None:
    method = FastTextMethod(SMALL | {"validation_fraction": 0.1})
    fit = method.fit(TASK)
    assert method.predict(Query(("a red wine", "the car"), None, None)).tolist() == ["drink", "drive"]
    assert (fit.epochs, fit.validation_accuracy) == (20, 1.0)
    assert fit.seconds_per_epoch is not None
    assert fit.seconds_per_epoch > 0
    assert capfd.readouterr() == ("", "")


def test_scores_are_those_of_the_mean_of_words() -> None:
    method = fitted(ngrams=1)
    model = method._model
    vectors, outputs = model.get_input_matrix(), model.get_output_matrix()
    words = model.get_words()
    rows = [words.index(word) for word in ("red", "wine", "</s>")]  # "unheard" is left out, the end counts
    scores = outputs @ vectors[rows].mean(0)
    expected = np.exp(scores) / np.exp(scores).sum()
    found = model.f.predict("red unheard wine\n", 2, 0.0, "strict")
    by_label = dict(zip(model.get_labels(), expected, strict=True))
    assert {label: pytest.approx(float(p), abs=1e-4) for p, label in found} == by_label
    assert vectors.shape == (len(words), 5)


def test_order_of_documents_changes_nothing() -> None:
    texts = tuple(f"{text} w{i}" for i, text in enumerate(TEXTS))
    task = replace(TASK, texts=texts)
    order = np.random.default_rng(0).permutation(len(texts))
    other = replace(task, texts=tuple(texts[i] for i in order), labels=LABELS[order])
    method = FastTextMethod(SMALL)
    assert method.fit(task).digest == digest(other)
    guesses = method.predict(Query(texts, None, None))
    assert method.predict(Query(other.texts, None, None)).tolist() == guesses[order].tolist()


def test_same_seed_same_model() -> None:
    assert FastTextMethod.seeded
    first = digest()
    assert digest() == first
    assert digest(seed=1) != first


VALUES = {"min_count": 7, "ngrams": 3, "buckets": 60, "hidden": 6, "learning_rate": 0.3, "epochs": 21}


def test_every_setting_is_used() -> None:
    assert set(FastTextMethod.defaults) == {*VALUES, "tokenizer", "validation_fraction"}
    digests = [digest(), *(digest(**{name: value}) for name, value in VALUES.items())]
    digests.append(digest(replace(TASK, texts=("it's wine", *TEXTS[1:])), tokenizer="words"))
    digests.append(digest(replace(TASK, texts=("it's wine", *TEXTS[1:]))))
    assert len(set(digests)) == len(digests)


def test_what_is_held_out_is_trained_on_in_the_end() -> None:
    fit = FastTextMethod(SMALL).fit(TASK)
    assert fit.validation_accuracy is None
    assert fit.digest == digest(validation_fraction=0.5)


def test_documents_for_validation_never_train() -> None:
    apart = np.arange(20, 24)
    labels = LABELS.copy()
    labels[apart] = LABELS[apart][::-1]
    task = replace(TASK, validation=apart)
    fits = [FastTextMethod(SMALL).fit(one) for one in (task, replace(task, labels=labels))]
    assert fits[0].digest == fits[1].digest != digest()
    assert [fit.validation_accuracy for fit in fits] == [1.0, 0.0]
    assert all(fit.seconds_per_epoch for fit in fits)


@pytest.mark.parametrize("tokenizer", sorted(TOKENIZERS))
def test_no_text_passes_for_a_label_or_for_two_documents(tokenizer: str) -> None:
    hostile = "wine #1 #0 __label__1 __label__drive </s> \n#1 car\r\n\0#1\x85\u2028#1 caf\u00e9 \ud800"
    task = replace(TASK, texts=(hostile, *TEXTS[1:]))
    method = fitted(task, tokenizer=tokenizer)
    model = method._model
    assert sorted(model.get_labels()) == ["#0", "#1"]
    words, counts = model.get_words(include_freq=True)
    assert counts[words.index("</s>")] == len(TEXTS)
    assert method.predict(Query((hostile,), None, None)).shape == (1,)


def test_odd_documents() -> None:
    labels = np.array([*LABELS, None, "grow", "drink"], object)
    task = replace(TASK, texts=(*TEXTS, "merlot", "green tree", ""), labels=labels)
    method = fitted(task)
    assert "merlot" not in method._model.get_words()  # it has no label
    guesses = method.predict(Query(("", "unheard", "?!", "green tree"), None, None))
    assert set(guesses) <= {"drink", "drive", "grow"}
    assert method.predict(Query((), None, None)).shape == (0,)
    assert digest(replace(TASK, labels=np.array([*LABELS[:-1], None], object))) != digest()


def test_labels_keep_their_kind() -> None:
    numbers = np.where(LABELS == "drink", 7, 3).astype(object)
    assert fitted(replace(TASK, labels=numbers)).predict(Query(("wine",), None, None)).tolist() == [7]
