"""Rows for new words by spelling and by word vectors: where they come from, and what they leave as it was."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn import TextModel, WGCNTextClassifier
from wgcn.errors import WGCNWarning
from wgcn_paper.methods import extension as module
from wgcn_paper.methods.extension import extend_by_like_words

SIDES = ("drink", "drive")
KNOWN = {side: [f"{side}{i}" for i in range(8)] for side in SIDES}
NEW = {side: [f"neu{side[-2:]}{i}" for i in range(6)] for side in SIDES}


def made(n: int, seed: int, *, new: bool) -> tuple[list[str], list[str]]:
    """Write texts of words of their class and of others, with new words of the class or without."""
    rng = np.random.default_rng(seed)
    labels = [SIDES[i % 2] for i in range(n)]
    texts = []
    for label in labels:
        own = [*rng.choice(KNOWN[label], 3), *(rng.choice(NEW[label], 3) if new else ())]
        texts.append(" ".join(rng.permutation([*own, *(f"word{i}" for i in rng.integers(0, 20, 3))])))
    return texts, labels


TEXTS, LABELS = made(40, 0, new=False)
POOL, _ = made(60, 1, new=True)


@pytest.fixture(scope="module")
def model() -> TextModel:
    return WGCNTextClassifier().fit(TEXTS, LABELS).model_


def row(model: TextModel, word: str) -> np.ndarray:
    return model.scorer.word_embeddings[model.vocabulary.id_of(word)]


# Each stem stands in one text, with an ending; stems[i] is of class i % 2.
STEMS = ["".join(np.random.default_rng(i).permutation(list("abcdefghijklmnop"))[:9]) for i in range(30)]
ENDED = [f"{stem} {stem}s" for stem in STEMS]


@pytest.fixture(scope="module")
def spelt() -> TextModel:
    return WGCNTextClassifier(ngram_range=(1, 1)).fit(ENDED, list(SIDES) * 15).model_


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write vectors of known and new words, each near those of its class, all far from the origin."""
    rng = np.random.default_rng(0)
    sides = [[*KNOWN[side], *NEW[side], *(f"{stem}{end}" for stem in STEMS[i::2] for end in ("", "s", "ing"))]
             for i, side in enumerate(SIDES)]  # fmt: skip
    groups = [*sides, [f"word{i}" for i in range(20)]]
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    write_vectors(path, {word: 3 + 2 * (np.arange(6) == i) + rng.normal(0, 0.5, 6) for i, group in enumerate(groups)
                         for word in group})  # fmt: skip
    return path


def write_vectors(path: Path, vectors: dict[str, Any]) -> None:
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in vectors.items()))


def test_words_that_are_spelt_alike_say_the_same(spelt: TextModel) -> None:
    new = [f"{stem}ing" for stem in STEMS]
    larger = extend_by_like_words(spelt, [" ".join(new), "zzzz"], "spelling")
    assert larger.predict(new).tolist() == list(SIDES) * 15
    assert "zzzz" not in larger.vocabulary
    assert larger.weighting.idf[-1] == pytest.approx(spelt.weighting.idf.max() / 2)


def test_rows_by_spelling_are_those_of_a_plain_reference(spelt: TextModel) -> None:
    learnt = [word for word in spelt.vocabulary.words if " " not in word]
    table = np.array([row(spelt, word) for word in learnt], float)
    counts = np.array([spelt.vocabulary.document_counts[spelt.vocabulary.id_of(word)] for word in learnt])
    weights = np.sqrt(1.0 + counts)
    mean = weights @ table / weights.sum()
    table -= mean

    def groups(word: str) -> set[str]:
        marked = f" {word} "
        return {marked[i : i + n] for n in (3, 4, 5) for i in range(len(marked) - n + 1)}

    have = {group: sum(group in groups(word) for word in learnt) for word in learnt for group in groups(word)}

    def weight(group: str) -> float:
        return float(np.log((1 + len(learnt)) / (1 + have.get(group, 0))))

    def cosine(one: str, other: str) -> float:
        length = [np.sqrt(sum(weight(group) ** 2 for group in groups(word))) for word in (one, other)]
        shared = sum(weight(group) ** 2 for group in groups(one) & groups(other))
        return float(shared / (length[0] * length[1]))

    def nearby(word: str) -> np.ndarray | None:
        near = np.array([0 if other == word else cosine(word, other) for other in learnt])
        near[near < 0.4] = 0
        return near @ table / near.sum() if near.any() else None

    found = [(i, near) for i, word in enumerate(learnt) if (near := nearby(word)) is not None]
    places, rows = np.array([i for i, _ in found]), np.array([near for _, near in found])
    middle = weights[places] @ rows / weights[places].sum()
    lengths = [(weights[places] @ np.square(part)).sum() for part in (table[places], rows - middle)]
    new = [f"{stem}ing" for stem in STEMS[:5]]
    larger = extend_by_like_words(spelt, [" ".join(new)], "spelling")
    for word in new:
        near = nearby(word)
        assert near is not None
        own = np.sqrt(lengths[0] / lengths[1]) * (near - middle)
        own *= min(1, np.linalg.norm(table[places], axis=1).max() / np.linalg.norm(own))
        np.testing.assert_allclose(row(larger, word), 2 * (mean + own), rtol=1e-4, atol=1e-6)


@given(
    st.lists(st.lists(st.sampled_from([STEMS[0], f"{STEMS[0]}er", f"{STEMS[1]}ing", "zzz"]), max_size=4), max_size=4)
)
def test_spelling_depends_on_the_word_alone(spelt: TextModel, documents: list[list[str]]) -> None:
    new = f"{STEMS[0]}ing"
    alone = extend_by_like_words(spelt, [new], "spelling")
    larger = extend_by_like_words(spelt, [new, *map(" ".join, documents)], "spelling")
    assert np.array_equal(row(larger, new), row(alone, new))
    text = f"{new} {STEMS[1]}"
    assert np.array_equal(larger.predict_proba([text]), alone.predict_proba([text]))


def test_words_whose_vectors_are_near_say_the_same(model: TextModel, vectors: Path) -> None:
    larger = extend_by_like_words(
        model, [" ".join(NEW["drink"]), " ".join(NEW["drive"]), "zzzz"], "vectors", str(vectors)
    )
    for side in SIDES:
        assert larger.predict(NEW[side]).tolist() == [side] * 6
    assert "zzzz" not in larger.vocabulary
    assert larger.weighting.idf[-1] == pytest.approx(model.weighting.idf.max() / 2)
    assert np.array_equal(larger.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert larger.extensions == [{"how": "vectors", "words": 12, "texts": 3}]


@pytest.mark.parametrize("nearest", [3, 10, 1000])
def test_rows_by_vectors_are_those_of_a_plain_reference(
    model: TextModel, nearest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_NEAREST", nearest)
    rng = np.random.default_rng(1)
    learnt = [word for word in model.vocabulary.words if " " not in word]
    new = [f"neu{i}" for i in range(20)]
    given = {word: rng.normal(2, 1, 4) for word in [*learnt[3:], *new[2:]]}
    write_vectors(tmp_path / "vectors.txt", given)
    table = np.array([row(model, word) for word in learnt], float)
    weights = np.sqrt(
        1.0 + np.array([model.vocabulary.document_counts[model.vocabulary.id_of(word)] for word in learnt])
    )
    mean = weights @ table / weights.sum()
    table -= mean
    middle_vector = np.mean([given[word] for word in learnt[3:]], axis=0)

    def cosine(one: str, other: str) -> float:
        if one not in given or other not in given or one == other:
            return 0.0
        a, b = given[one] - middle_vector, given[other] - middle_vector
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    def nearby(word: str) -> np.ndarray | None:
        near = sorted(((cosine(word, other), i) for i, other in enumerate(learnt)), reverse=True)[:nearest]
        near = [(value, i) for value, i in near if value >= 0.1]
        return sum(v * table[i] for v, i in near) / sum(v for v, _ in near) if near else None  # type: ignore[return-value]

    found = [(i, near) for i, word in enumerate(learnt) if (near := nearby(word)) is not None]
    places, rows = np.array([i for i, _ in found]), np.array([near for _, near in found])
    middle = weights[places] @ rows / weights[places].sum()
    lengths = [(weights[places] @ np.square(part)).sum() for part in (table[places], rows - middle)]
    expected = {word: near for word in new if (near := nearby(word)) is not None}
    larger = extend_by_like_words(model, [" ".join(new)], "vectors", str(tmp_path / "vectors.txt"))
    assert set(larger.vocabulary.words[len(model.vocabulary) :]) == set(expected)
    assert len(expected) == 18
    for word, near in expected.items():
        own = np.sqrt(lengths[0] / lengths[1]) * (near - middle)
        own *= min(1, np.linalg.norm(table[places], axis=1).max() / np.linalg.norm(own))
        np.testing.assert_allclose(row(larger, word), 2 * (mean + own), rtol=1e-3, atol=1e-5)


def test_no_order_decides_among_words_that_are_equally_near(
    model: TextModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = {"drink": [1, 0, 0], "drive": [0, 1, 0], "word": [0, 0, 1]}
    write_vectors(tmp_path / "vectors.txt", {"new": [1, 0, 0], **{
        word: vector for word in model.vocabulary.words for side, vector in sides.items() if word.startswith(side)
    }})  # fmt: skip
    all_of_them = extend_by_like_words(model, ["new"], "vectors", str(tmp_path / "vectors.txt"))
    monkeypatch.setattr(module, "_NEAREST", 1)
    some = extend_by_like_words(model, ["new"], "vectors", str(tmp_path / "vectors.txt"))
    np.testing.assert_allclose(row(some, "new"), row(all_of_them, "new"), rtol=1e-5)


@given(st.lists(st.lists(st.sampled_from(["drink0", *NEW["drink"][1:], *NEW["drive"], "zzz"]), max_size=4), max_size=4))
def test_a_row_by_vectors_depends_on_the_word_alone(
    model: TextModel, vectors: Path, documents: list[list[str]]
) -> None:
    new = NEW["drink"][0]
    alone = extend_by_like_words(model, [new], "vectors", str(vectors))
    larger = extend_by_like_words(model, [new, *map(" ".join, documents)], "vectors", str(vectors))
    np.testing.assert_allclose(row(larger, new), row(alone, new), rtol=1e-3, atol=1e-5)


def test_distilled_vectors_come_from_the_encoder(model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []

    def encode(words: Any, kind: str) -> np.ndarray:
        assert kind == "words"
        encoded.extend(words)
        return np.array([[word.startswith(("drink", "neunk")), word.startswith(("drive", "neuve"))] for word in words],
                        np.float32)  # fmt: skip

    monkeypatch.setattr("wgcn_paper.vectors.encoder.encode_cached", encode)
    larger = extend_by_like_words(model, POOL, "vectors", "distilled")
    assert set(encoded) == {word for word in larger.vocabulary.words if " " not in word}
    assert len(encoded) == len(set(encoded))
    assert larger.predict([" ".join(NEW[side]) for side in SIDES]).tolist() == list(SIDES)


@pytest.mark.parametrize(
    "made",
    [
        lambda word: [0, 0],
        lambda word: [1, 1],
        lambda word: [3e38, -3e38] if word.startswith("d") else [-3e38, 3e38],
        lambda word: [1e-45, 0] if word.startswith("d") else [0, 1e-45],
        lambda word: [0, 0] if word.startswith("neu") else [1, len(word)],
        lambda word: [0, 0] if word.startswith("d") else [1, len(word)],
    ],
)
def test_odd_vectors_do_no_harm(model: TextModel, made: Any, tmp_path: Path) -> None:
    known = [word for word in model.vocabulary.words if " " not in word]
    write_vectors(tmp_path / "vectors.txt", {word: made(word) for word in [*known, *NEW["drink"], *NEW["drive"]]})
    larger = extend_by_like_words(model, POOL, "vectors", str(tmp_path / "vectors.txt"))
    assert np.isfinite(larger.scorer.word_embeddings).all()
    assert np.isfinite(larger.predict_proba(POOL)).all()
    table = model.scorer.word_embeddings
    assert np.abs(larger.scorer.word_embeddings).max() < 5 * np.linalg.norm(table, axis=1).max()


@pytest.mark.parametrize("words", [["neunk0", "neuve0"], ["drink0", "drive0"], ["drink0", "neunk0"]])
def test_with_few_vectors_words_stay_unknown(model: TextModel, words: list[str], tmp_path: Path) -> None:
    write_vectors(tmp_path / "vectors.txt", {word: [i, 1] for i, word in enumerate(words)})
    assert extend_by_like_words(model, POOL, "vectors", str(tmp_path / "vectors.txt")) is model


def test_vectors_of_another_language_are_a_warning(model: TextModel, tmp_path: Path) -> None:
    write_vectors(tmp_path / "vectors.txt", {"Hund": [1, 2]})
    with pytest.warns(WGCNWarning, match=r"words is among the word vectors of vectors\.txt"):
        assert extend_by_like_words(model, POOL, "vectors", str(tmp_path / "vectors.txt")) is model


@pytest.mark.parametrize("how", ["spelling", "vectors"])
def test_the_size_of_blocks_does_not_matter(
    spelt: TextModel, vectors: Path, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{stem}s {stem}ing {stem}ing" for stem in STEMS]
    before = extend_by_like_words(spelt, texts, how, str(vectors))
    monkeypatch.setattr(module, "_BLOCK_WORDS", 3)
    after = extend_by_like_words(spelt, texts, how, str(vectors))
    assert before.vocabulary == after.vocabulary
    np.testing.assert_allclose(before.scorer.word_embeddings, after.scorer.word_embeddings, rtol=1e-5, atol=1e-7)


@given(st.lists(st.text(max_size=30), max_size=5), st.sampled_from(["spelling", "vectors"]))
def test_no_text_breaks_it(spelt: TextModel, vectors: Path, texts: list[str], how: Any) -> None:
    larger = extend_by_like_words(spelt, [*texts, *(f"{STEMS[0]} {text}" for text in texts)], how, str(vectors))
    assert np.isfinite(larger.scorer.word_embeddings).all()
    assert np.isfinite(larger.predict_proba([*texts, STEMS[0]])).all()


def test_a_long_word_is_a_word_too(spelt: TextModel) -> None:
    word = f"{STEMS[0]}{'s' * 300_000}"
    assert word in extend_by_like_words(spelt, [word], "spelling").vocabulary
