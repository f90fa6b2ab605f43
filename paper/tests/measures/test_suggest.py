"""Learning curves by who chooses the texts."""

import numpy as np
import pytest

from wgcn import WGCNTextClassifier
from wgcn_paper.datasets import Dataset
from wgcn_paper.measures import suggest
from wgcn_paper.measures.suggest import SmallText, Suggest

SIZES = [5, 10, 60]
WAYS = ["wgcn", "wgcn, random", "svc, margin", "svc, random"]


@pytest.mark.parametrize("way", WAYS)
def test_more_labels_are_better(way: str, made: Dataset) -> None:
    found = Suggest({"way": way, "sizes": SIZES}, seed=2).measure(made)
    assert set(found) == {"accuracy", "5", "10", "60"}
    assert found["5"] <= found["60"] == found["accuracy"]
    assert found["60"] > 0.8


def test_random_texts_are_the_same_for_both_and_others_for_another_draw(
    made: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[list[str]] = []

    class Model(WGCNTextClassifier):
        def fit(self, texts: list[str], labels: np.ndarray, **_: object) -> "Model":  # type: ignore[override]
            fitted.append([text for text, label in zip(texts, labels, strict=True) if label is not None])
            return super().fit(texts, labels)

    def svc(terms: object, labels: np.ndarray, *queries: object) -> list[tuple[np.ndarray, np.ndarray]]:
        given.append(labels.tolist())
        return [(np.full(n, "crude"), np.zeros(n)) for n in (216, 90)]

    given: list[list[str]] = []
    monkeypatch.setattr(suggest, "WGCNTextClassifier", Model)
    monkeypatch.setattr(suggest, "svc_predict", svc)
    for seed in (0, 1):
        for way in ("wgcn, random", "svc, random"):
            Suggest({"way": way, "sizes": SIZES}, seed).measure(made)
    assert [len(texts) for texts in fitted] == [len(labels) for labels in given] == SIZES * 2
    label_of = dict(zip(made.texts or (), made.labels.tolist(), strict=True))
    for texts, labels in zip(fitted, given, strict=True):
        assert sorted(label_of[text] for text in texts) == sorted(labels)
    assert set(fitted[0]) < set(fitted[1]) < set(fitted[2])
    assert set(fitted[0]) != set(fitted[3])


def test_margins_choose_after_the_first_batch(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[set[int]] = []

    def svc(terms: object, labels: np.ndarray, *queries: object) -> list[tuple[np.ndarray, np.ndarray]]:
        given.append(set(map(int, terms.sum(axis=1).A1)))  # type: ignore[attr-defined]
        return [(np.full(216, "crude"), -np.arange(216.0)), (np.full(90, "crude"), np.zeros(90))]

    from scipy.sparse import csr_matrix

    numbered = csr_matrix(np.arange(240.0)[:, None])
    monkeypatch.setattr(suggest, "svc_predict", svc)
    monkeypatch.setattr(suggest, "tf_idf", lambda dataset: (numbered, numbered[:90]))
    Suggest({"way": "svc, margin", "sizes": [4, 7]}, seed=0).measure(made)
    pool = np.random.default_rng(0).permutation(240)[:216]
    assert given == [set(pool[:4]), {*pool[:4], *pool[-3:]}]


def test_a_text_that_is_suggested_twice_is_an_error(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WGCNTextClassifier, "suggest", lambda self, n, texts=None: np.arange(n))
    with pytest.raises(ValueError, match="5 texts have a label, not 10"):
        Suggest({"sizes": [5, 10]}).measure(made)


def test_a_first_batch_of_one_class_is_no_obstacle(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    own = WGCNTextClassifier.suggest
    monkeypatch.setattr(
        WGCNTextClassifier,
        "suggest",
        lambda self, n, texts=None: (
            np.array([i for i, text in enumerate(texts) if "crude" in text][:n])
            if texts is not None and len(texts) == 216
            else own(self, n, texts)
        ),
    )
    found = Suggest({"sizes": [3, 40]}).measure(made)
    assert found["3"] == 1 / 3
    assert found["40"] > 0.6


def test_small_text_has_the_same_curve(made: Dataset) -> None:
    pytest.importorskip("small_text", reason="small-text is not installed")
    found = SmallText({"sizes": SIZES}).measure(made)
    assert found["5"] < found["60"] == found["accuracy"]
