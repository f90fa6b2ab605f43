"""Static embeddings; what it shares with the sentence encoder is tested there."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from wgcn_paper.methods import static_embedding
from wgcn_paper.methods.baseline import make_baseline
from wgcn_paper.methods.static_embedding import StaticEmbeddingMethod
from wgcn_paper.packages import MissingPackageError
from wgcn_paper.protocol import Query, Task

DRINK = ("red wine", "a glass of beer", "white wine", "cider and ale", "an old merlot", "cold lager")
DRIVE = ("a fast car", "the engine stalled", "my new truck", "two wheels", "a bus driver", "change gears")
TEXTS = DRINK + DRIVE
LABELS = np.array(["drink"] * 6 + ["drive"] * 6, object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(MissingPackageError, match=r"static-embedding needs .*'wordllama'.*'\./paper\[static\]'"):
        make_baseline("static-embedding")


pytest.importorskip("wordllama", reason="needs the vectors: pip install './paper[static]'")


def digest(task: Task = TASK, **settings: object) -> str | None:
    return StaticEmbeddingMethod(settings).fit(task).digest


def test_a_text_is_the_mean_of_its_pieces() -> None:
    tokenizer, table = static_embedding._model()
    found = StaticEmbeddingMethod()._vectors([*TEXTS, "", "a\ud800b", "merlot " * 3000])
    for text, vector in zip(TEXTS, found, strict=False):
        mean = table[tokenizer.encode(text, add_special_tokens=False).ids].mean(0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-12)
    assert not found[12].any()
    np.testing.assert_allclose(np.linalg.norm(found[13:], axis=1), 1.0)
    assert table.shape == (32000, 256)


def test_batches_do_not_change_the_vectors() -> None:
    method = StaticEmbeddingMethod()
    whole = method._vectors(TEXTS)
    method.batch = 5
    np.testing.assert_array_equal(method._vectors(TEXTS), whole)


def test_it_knows_words_that_it_was_never_shown() -> None:
    method = StaticEmbeddingMethod()
    fit = method.fit(TASK)
    assert fit.validation_accuracy is not None
    new = Query(("whisky", "he parked the van", "champagne", "a motorway"), None, None)
    assert method.predict(new).tolist() == ["drink", "drive", "drink", "drive"]
    assert method.predict(Query((), None, None)).tolist() == []


def test_no_seed_order_or_unlabelled_text_changes_it() -> None:
    order = np.random.default_rng(0).permutation(12)
    other = replace(TASK, texts=tuple(TEXTS[i] for i in order), labels=LABELS[order])
    more = replace(TASK, texts=(*TEXTS, "a goat", ""), labels=np.append(LABELS, [None, None]))
    assert not StaticEmbeddingMethod.seeded
    assert digest(other) == digest() == digest(more)


def test_every_setting_is_used() -> None:
    assert set(StaticEmbeddingMethod.defaults) == {"C"}
    assert len({digest(C=c) for c in (0.1, 1.0, 10.0)}) == 3


def test_one_document_per_class() -> None:
    method = StaticEmbeddingMethod()
    labels = np.array(["drink", *[None] * 10, "drive"], object)
    assert method.fit(replace(TASK, labels=labels)).validation_accuracy is None
    assert set(method.predict(Query(TEXTS, None, None))) <= {"drink", "drive"}
