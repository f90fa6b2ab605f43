"""Rows for unseen words from the word alone, by word vectors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wgcn import TextModel, WGCNNetworkClassifier, WGCNTextClassifier
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.estimators.preparation import Preparation
from wgcn_paper.methods import extension as module
from wgcn_paper.methods.extension import extend_by_vectors

SIDES = ("drink", "drive")
KNOWN = {side: [f"{side}{i}" for i in range(8)] for side in SIDES}
NEW = {side: [f"neu{side[-2:]}{i}" for i in range(6)] for side in SIDES}
# Each stem is in one text, with an ending; STEMS[i] is of class i % 2.
STEMS = ["".join(np.random.default_rng(i).permutation(list("abcdefghijklmnop"))[:9]) for i in range(30)]
ENDED = [f"{stem} {stem}s" for stem in STEMS]


def made(n: int, seed: int, *, new: bool) -> list[str]:
    """Write texts with words of their class and of others, with or without new words of the class."""
    rng = np.random.default_rng(seed)
    texts = []
    for i in range(n):
        side = SIDES[i % 2]
        own = [*rng.choice(KNOWN[side], 3), *(rng.choice(NEW[side], 3) if new else ())]
        texts.append(" ".join(rng.permutation([*own, *(f"word{i}" for i in rng.integers(0, 20, 3))])))
    return texts


TEXTS, LABELS = made(40, 0, new=False), list(SIDES) * 20
POOL = made(60, 1, new=True)


@pytest.fixture(scope="module")
def model() -> TextModel:
    return WGCNTextClassifier().fit(TEXTS, LABELS).model_


@pytest.fixture(scope="module")
def network() -> TextModel:
    prepared = Preparation(ngram_range=(1, 1)).prepare(TEXTS)
    classifier = WGCNNetworkClassifier(hidden=8, max_epochs=20, device="cpu")
    classifier.fit(prepared.document_terms, LABELS, word_graph=prepared.word_graph)
    return prepared.text_model(classifier, {})


@pytest.fixture(scope="module")
def spelt() -> TextModel:
    return WGCNTextClassifier(ngram_range=(1, 1)).fit(ENDED, list(SIDES) * 15).model_


def write_vectors(path: Path, vectors: dict[str, Any]) -> str:
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in vectors.items()))
    return str(path)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write vectors of known and new words, each near those of its class, all far from the origin."""
    rng = np.random.default_rng(0)
    sides = [[*KNOWN[side], *NEW[side], *(f"{stem}{end}" for stem in STEMS[i::2] for end in ("", "s", "ing"))]
             for i, side in enumerate(SIDES)]  # fmt: skip
    groups = [*sides, [f"word{i}" for i in range(20)]]
    return write_vectors(
        tmp_path_factory.mktemp("vectors") / "vectors.txt",
        {word: 3 + 2 * (np.arange(6) == i) + rng.normal(0, 0.5, 6) for i, group in enumerate(groups) for word in group},
    )


def row(model: TextModel, word: str) -> np.ndarray:
    return model.scorer.word_embeddings[model.vocabulary.id_of(word)]


class Expected:
    """The rows of words by a plain reference, from their similarities to the learnt words."""

    def __init__(self, model: TextModel, similarities: Any) -> None:
        self.learnt = [word for word in model.vocabulary.words if " " not in word]
        self.similarities = similarities
        self.table = np.array([row(model, word) for word in self.learnt], float)
        counts = [model.vocabulary.document_counts[model.vocabulary.id_of(word)] for word in self.learnt]
        weights = np.sqrt(1.0 + np.array(counts))
        self.mean = weights @ self.table / weights.sum()
        self.table -= self.mean
        found = [(i, near) for i, word in enumerate(self.learnt) if (near := self.nearby(word)) is not None]
        places, rows = np.array([i for i, _ in found]), np.array([near for _, near in found])
        self.middle = weights[places] @ rows / weights[places].sum()
        lengths = [(weights[places] @ np.square(part)).sum() for part in (self.table[places], rows - self.middle)]
        self.scale = np.sqrt(lengths[0] / lengths[1])
        self.longest = np.linalg.norm(self.table[places], axis=1).max()

    def nearby(self, word: str) -> np.ndarray | None:
        near: np.ndarray = self.similarities(word, self.learnt)
        return near @ self.table / near.sum() if near.any() else None

    def row(self, word: str) -> np.ndarray | None:
        near = self.nearby(word)
        if near is None:
            return None
        own = self.scale * (near - self.middle)
        return 2 * (self.mean + own * min(1, self.longest / np.linalg.norm(own)))


@pytest.mark.parametrize("kind", ["model", "network"])
def test_words_with_similar_vectors_get_similar_rows(kind: str, vectors: str, request: pytest.FixtureRequest) -> None:
    model: TextModel = request.getfixturevalue(kind)
    larger = extend_by_vectors(model, [" ".join(NEW["drink"]), " ".join(NEW["drive"]), "zzzz"], vectors)
    for side in SIDES:
        assert larger.predict(NEW[side]).tolist() == [side] * 6
    assert "zzzz" not in larger.vocabulary
    assert larger.weighting.idf[-1] == pytest.approx(model.weighting.idf.max() / 2)
    assert np.array_equal(larger.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert larger.extensions == [{"how": "vectors", "words": 12, "texts": 3}]


@pytest.mark.parametrize("nearest", [3, 1000])
def test_rows_by_vectors_are_those_of_a_plain_reference(
    model: TextModel, nearest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_NEAREST", nearest)
    rng = np.random.default_rng(1)
    learnt = [word for word in model.vocabulary.words if " " not in word]
    new = [f"neu{i}" for i in range(20)]
    given = {word: rng.normal(2, 1, 4) for word in [*learnt[3:], *new[2:]]}
    middle = np.mean([given[word] for word in learnt[3:]], axis=0)

    def similarities(word: str, others: list[str]) -> np.ndarray:
        near = np.zeros(len(others))
        for i, other in enumerate(others):
            if word in given and other in given and word != other:
                a, b = given[word] - middle, given[other] - middle
                near[i] = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        near[np.argsort(near)[: -min(nearest, len(others))]] = 0
        return np.where(near < 0.1, 0, near)

    expected = Expected(model, similarities)
    rows = {word: found for word in new if (found := expected.row(word)) is not None}
    larger = extend_by_vectors(model, [" ".join(new)], write_vectors(tmp_path / "vectors.txt", given))
    assert set(larger.vocabulary.words[len(model.vocabulary) :]) == set(rows)
    assert len(rows) == 18
    for word, found in rows.items():
        np.testing.assert_allclose(row(larger, word), found, rtol=1e-3, atol=1e-5)


def test_no_order_decides_among_words_that_are_equally_near(
    model: TextModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = {"drink": [1, 0, 0], "drive": [0, 1, 0], "word": [0, 0, 1]}
    path = write_vectors(tmp_path / "vectors.txt", {"new": [1, 0, 0], **{
        word: vector for word in model.vocabulary.words for side, vector in sides.items() if word.startswith(side)
    }})  # fmt: skip
    all_of_them = extend_by_vectors(model, ["new"], path)
    monkeypatch.setattr(module, "_NEAREST", 1)
    np.testing.assert_allclose(row(extend_by_vectors(model, ["new"], path), "new"), row(all_of_them, "new"), rtol=1e-5)


def test_by_default_vectors_are_those_of_the_encoder(model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []

    def encode(words: Any, kind: str) -> np.ndarray:
        assert kind == "words"
        encoded.extend(words)
        return np.array([[word.startswith(("drink", "neunk")), word.startswith(("drive", "neuve"))] for word in words],
                        np.float32)  # fmt: skip

    monkeypatch.setattr("wgcn_paper.vectors.encoder.encode_cached", encode)
    larger = extend_by_vectors(model, POOL)
    assert set(encoded) == {word for word in larger.vocabulary.words if " " not in word}
    assert len(encoded) == len(set(encoded))
    assert larger.predict([" ".join(NEW[side]) for side in SIDES]).tolist() == list(SIDES)


@pytest.mark.parametrize(
    "vector",
    [
        lambda word: [0, 0],
        lambda word: [1, 1],
        lambda word: [3e38, -3e38] if word.startswith("d") else [-3e38, 3e38],
        lambda word: [1e-45, 0] if word.startswith("d") else [0, 1e-45],
        lambda word: [0, 0] if word.startswith("neu") else [1, len(word)],
        lambda word: [0, 0] if word.startswith("d") else [1, len(word)],
    ],
)
def test_odd_vectors_do_no_harm(model: TextModel, vector: Any, tmp_path: Path) -> None:
    words = [*(word for word in model.vocabulary.words if " " not in word), *NEW["drink"], *NEW["drive"]]
    path = write_vectors(tmp_path / "vectors.txt", {word: vector(word) for word in words})
    larger = extend_by_vectors(model, POOL, path)
    assert np.isfinite(larger.predict_proba(POOL)).all()
    longest = np.linalg.norm(model.scorer.word_embeddings, axis=1).max()
    assert np.abs(larger.scorer.word_embeddings).max() < 5 * longest


@pytest.mark.parametrize("words", [["neunk0", "neuve0"], ["drink0", "drive0"], ["drink0", "neunk0"]])
def test_with_few_vectors_words_stay_unknown(model: TextModel, words: list[str], tmp_path: Path) -> None:
    path = write_vectors(tmp_path / "vectors.txt", {word: [i, 1] for i, word in enumerate(words)})
    assert extend_by_vectors(model, POOL, path) is model


def test_vectors_of_another_language_are_a_warning(model: TextModel, tmp_path: Path) -> None:
    path = write_vectors(tmp_path / "vectors.txt", {"Hund": [1, 2]})
    with pytest.warns(WGCNWarning, match=r"words is among the word vectors of vectors\.txt"):
        assert extend_by_vectors(model, POOL, path) is model


def test_a_missing_file_is_an_error(model: TextModel) -> None:
    with pytest.raises(InputError, match=r"There are no word vectors 'nowhere\.txt'"):
        extend_by_vectors(model, POOL, "nowhere.txt")


@settings(max_examples=10)
@given(
    st.lists(st.lists(st.sampled_from([STEMS[0], f"{STEMS[0]}er", f"{STEMS[1]}ing", "zzz"]), max_size=4), max_size=4)
)
def test_a_row_depends_on_the_word_alone(spelt: TextModel, vectors: str, documents: list[list[str]]) -> None:
    new = f"{STEMS[0]}ing"
    alone = extend_by_vectors(spelt, [new], vectors)
    larger = extend_by_vectors(spelt, [new, *map(" ".join, documents)], vectors)
    np.testing.assert_allclose(row(larger, new), row(alone, new), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("texts", [[], ["", " .", "!"], ENDED[:3]])
def test_texts_without_a_new_word_change_nothing(spelt: TextModel, texts: list[str], vectors: str) -> None:
    assert extend_by_vectors(spelt, texts, vectors) is spelt


def test_a_loaded_model_is_extended_alike(
    spelt: TextModel, vectors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spelt.save(tmp_path / "model")
    texts = [f"{stem}s {stem}ing {stem}ing" for stem in STEMS]
    models = (spelt, TextModel.load(tmp_path / "model"))
    here, there = (extend_by_vectors(each, texts, vectors) for each in models)
    assert here.save(tmp_path / "here") == there.save(tmp_path / "there")
    assert TextModel.load(tmp_path / "here").extensions == [{"how": "vectors", "words": 30, "texts": 30}]
    # Nor does it matter how many words are looked up at a time.
    monkeypatch.setattr(module, "_BLOCK_WORDS", 3)
    again = extend_by_vectors(spelt, texts, vectors)
    np.testing.assert_allclose(again.scorer.word_embeddings, here.scorer.word_embeddings, rtol=1e-5, atol=1e-7)


@settings(max_examples=10)
@given(st.lists(st.text(max_size=30), max_size=5))
def test_no_text_breaks_it(spelt: TextModel, vectors: str, texts: list[str]) -> None:
    larger = extend_by_vectors(spelt, [*texts, *(f"{STEMS[0]} {text}" for text in texts), "car"], vectors)
    assert np.isfinite(larger.scorer.word_embeddings).all()
    assert (larger.weighting.idf > 0).all()
    assert np.isfinite(larger.predict_proba([*texts, STEMS[0]])).all()
