"""Words that training did not see: where their rows come from, and what they leave as it was."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier
from wgcn.errors import InputError, WGCNWarning
from wgcn.inference import extend as module
from wgcn.network.settings import NetworkSettings, TrainingSettings
from wgcn.text.tokenize import words

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


def trained(kind: Literal["network", "average"], texts: list[str], labels: list[str]) -> TextModel:
    classifier = WGCNClassifier(
        model=kind, network=NetworkSettings(hidden=8), training=TrainingSettings(max_epochs=20, device="cpu")
    )
    return WGCNTextClassifier(ngram_range=(1, 1), classifier=classifier).fit(texts, labels).model_


@pytest.fixture(scope="module")
def network() -> TextModel:
    return trained("network", TEXTS, LABELS)


@pytest.fixture(scope="module")
def average() -> TextModel:
    return trained("average", TEXTS, LABELS)


def row(model: TextModel, word: str) -> np.ndarray:
    return model.scorer.word_embeddings[model.vocabulary.id_of(word)]


HOWS: tuple[Any, ...] = ("graph", "spelling", "vectors")


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


def extended(model: TextModel, texts: list[str], how: Any, vectors: Path, **given: Any) -> TextModel:
    return model.extend(texts, how, vectors=vectors if how == "vectors" else None, **given)


# By texts


@pytest.mark.parametrize("kind", ["model", "network", "average"])
def test_new_words_say_what_the_words_beside_them_say(kind: str, request: pytest.FixtureRequest) -> None:
    model: TextModel = request.getfixturevalue(kind)
    larger = model.extend(POOL)
    for side in SIDES:
        alone = NEW[side]
        np.testing.assert_allclose(model.predict_proba(alone), np.tile(model.scorer.prior, (6, 1)), rtol=1e-5)
        assert larger.predict(alone).tolist() == [side] * 6


def test_rows_by_the_graph_are_those_of_a_plain_reference(model: TextModel) -> None:
    texts = [*POOL, "drink0 neu1 word1", "neu1 neu2", "neu2", "never known neu3 neu3"]
    larger = model.extend(texts, min_count=1)
    known = set(model.vocabulary.words)
    documents = [words(text) for text in texts]
    vocabulary = sorted({word for document in documents for word in document})
    has = np.array([[word in document for word in vocabulary] for document in documents], float)
    counts = has.sum(axis=0)
    share = len(TEXTS) / len(texts)
    idf = np.array(
        [
            model.weighting.idf[model.vocabulary.index[word]]
            if word in known
            else np.log((1 + len(TEXTS)) / (1 + count * share)) + 1
            for word, count in zip(vocabulary, counts, strict=True)
        ]
    )
    frequency = np.array([[document.count(word) for word in vocabulary] for document in documents], float)
    x = np.where(frequency > 0, 1 + np.log(np.maximum(frequency, 1)), 0) * idf
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    is_known = np.array([word in known for word in vocabulary])
    table = np.array([row(model, word) if word in known else np.zeros(2) for word in vocabulary], float)
    weights = np.sqrt(counts) * is_known
    mean = weights @ table / weights.sum()
    table[is_known] -= mean
    said = x @ table
    near = np.zeros_like(table)
    for w in range(len(vocabulary)):
        others = [said[d] - x[d, w] * table[w] for d in np.flatnonzero(has[:, w])]
        near[w] = (np.mean(others, axis=0) - said.mean(axis=0)) * counts[w] / (counts[w] + 2)
    near -= weights @ near / weights.sum()
    scale = np.sqrt((weights @ np.square(table)).sum() / (weights @ np.square(near)).sum())
    longest = np.linalg.norm(table, axis=1).max()
    added = larger.vocabulary.words[len(model.vocabulary) :]
    # The others stand beside no known word.
    assert set(added) == {word for word in vocabulary if word not in known} - {"never", "known", "neu2", "neu3"}
    for word in added:
        w = vocabulary.index(word)
        own = scale * near[w]
        own *= min(1, longest / np.linalg.norm(own))
        np.testing.assert_allclose(row(larger, word), 2 * (mean + own), rtol=1e-4, atol=1e-6)
        assert larger.weighting.idf[larger.vocabulary.id_of(word)] == pytest.approx(idf[w] / 2, rel=1e-6)


def test_texts_from_elsewhere_count_among_those_of_training() -> None:
    for elsewhere in ([], ["drink0 of old", "drive0 of old"] * 20):
        model = WGCNTextClassifier().fit(TEXTS, LABELS, background=elsewhere).model_
        larger = model.extend(POOL, min_count=1)
        word = larger.vocabulary.words[len(model.vocabulary)]
        n_texts, count = len(TEXTS) + len(elsewhere), sum(word in words(text) for text in POOL)
        idf = np.log((1 + n_texts) / (1 + count * n_texts / len(POOL))) + 1
        assert larger.weighting.idf[larger.vocabulary.id_of(word)] == pytest.approx(idf / 2, rel=1e-6)


def test_what_was_known_stays_as_it_was(model: TextModel) -> None:
    larger = model.extend(POOL)
    n = len(model.vocabulary)
    assert larger.vocabulary.words[:n] == model.vocabulary.words
    added = larger.vocabulary
    order = [(-added.counts[i], added.words[i]) for i in range(n, len(added))]
    assert order == sorted(order)
    assert {word for side in SIDES for word in NEW[side]} == set(added.words[n:])
    assert np.array_equal(larger.weighting.idf[:n], model.weighting.idf)
    assert np.array_equal(larger.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert len(model.vocabulary) == n


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("texts", [[], [""], ["", " .", "!"], TEXTS[:3], ["word1 drink2"]])
def test_texts_without_a_new_word_change_nothing(model: TextModel, texts: list[str], how: Any, vectors: Path) -> None:
    same = extended(model, texts, how, vectors, min_count=1)
    assert same.vocabulary == model.vocabulary
    assert same.report == model.report
    assert np.array_equal(same.scorer.word_embeddings, model.scorer.word_embeddings)


def test_texts_without_a_known_word_teach_nothing(model: TextModel) -> None:
    assert model.extend(["alpha beta gamma", "alpha beta"]).vocabulary == model.vocabulary


def test_rare_words_stop_words_and_ngrams_are_left_out() -> None:
    model = WGCNTextClassifier(stop_words=["the"]).fit(TEXTS, LABELS).model_
    texts = ["the once drink1 twice", "the twice drink2", "the twice drink1"]
    for how, min_count, expected in (("graph", None, {"twice"}), ("graph", 4, set()), ("graph", 1, {"once", "twice"})):
        larger = model.extend(texts, how, min_count=min_count)  # type: ignore[arg-type]
        assert set(larger.vocabulary.words) - set(model.vocabulary.words) == expected


def test_a_model_that_was_extended_can_be_extended_again(model: TextModel) -> None:
    first = model.extend(POOL[:30])
    again = first.extend(["glug drink0 drink1", f"glug drink2 {NEW['drink'][0]}", *POOL[30:]])
    assert again.vocabulary.words[: len(first.vocabulary)] == first.vocabulary.words
    assert again.vocabulary.words[len(first.vocabulary) :] == ("glug",)
    assert again.predict(["glug", *NEW["drive"]]).tolist() == ["drink", *["drive"] * 6]
    assert [entry["words"] for entry in again.extensions] == [12, 1]
    assert again.extend(POOL).vocabulary == again.vocabulary


def test_added_words_have_no_say_in_how_long_rows_are(model: TextModel) -> None:
    texts = ["glug drink0 drink1", "glug drink2"]
    plain, after = model.extend(texts), model.extend(POOL).extend(texts)
    np.testing.assert_allclose(row(after, "glug"), row(plain, "glug"), rtol=1e-5)


@pytest.mark.parametrize("name", ["_BLOCK_VALUES", "_BLOCK_WORDS"])
def test_the_size_of_blocks_does_not_show(
    spelt: TextModel, vectors: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{stem}s {stem}ing {stem}ing" for stem in STEMS]
    before = [extended(spelt, texts, how, vectors) for how in HOWS]
    monkeypatch.setattr(module, name, 3)
    after = [extended(spelt, texts, how, vectors) for how in HOWS]
    for one, other in zip(before, after, strict=True):
        assert one.vocabulary == other.vocabulary
        np.testing.assert_allclose(one.scorer.word_embeddings, other.scorer.word_embeddings, rtol=1e-5, atol=1e-7)


# By spelling

# Each stem stands in one text, with an ending; stems[i] is of class i % 2.
STEMS = ["".join(np.random.default_rng(i).permutation(list("abcdefghijklmnop"))[:9]) for i in range(30)]
ENDED = [f"{stem} {stem}s" for stem in STEMS]


@pytest.fixture(scope="module")
def spelt() -> TextModel:
    return WGCNTextClassifier(ngram_range=(1, 1)).fit(ENDED, list(SIDES) * 15).model_


def test_words_that_are_spelt_alike_say_the_same(spelt: TextModel) -> None:
    new = [f"{stem}ing" for stem in STEMS]
    larger = spelt.extend([" ".join(new), "zzzz"], "spelling")
    assert larger.predict(new).tolist() == list(SIDES) * 15
    assert "zzzz" not in larger.vocabulary
    assert larger.weighting.idf[-1] == pytest.approx(spelt.weighting.idf.max() / 2)


@pytest.mark.parametrize("how", ["graph", "spelling"])
def test_the_halves_of_an_average_stay_in_step(how: Literal["graph", "spelling"]) -> None:
    model = trained("average", ENDED, list(SIDES) * 15)
    new = [f"{stem}ing" for stem in STEMS]
    larger = model.extend([f"{stem} {stem}ing {stem}ing" for stem in STEMS], how)
    assert larger.predict(new).tolist() == list(SIDES) * 15
    # The columns of the linear model are there twice, once with the other sign.
    table = larger.scorer.word_embeddings[len(model.vocabulary) :]
    assert table.shape == (30, 8 + 2 * 2)
    np.testing.assert_allclose(table[:, 8:10], -table[:, 10:], atol=1e-6)
    np.testing.assert_array_equal(larger.predict_proba(ENDED), model.predict_proba(ENDED))


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
    larger = spelt.extend([" ".join(new)], "spelling")
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
    alone = spelt.extend([new], "spelling")
    larger = spelt.extend([new, *map(" ".join, documents)], "spelling")
    assert np.array_equal(row(larger, new), row(alone, new))
    text = f"{new} {STEMS[1]}"
    assert np.array_equal(larger.predict_proba([text]), alone.predict_proba([text]))


# By vectors


@pytest.mark.parametrize("kind", ["model", "network"])
def test_words_whose_vectors_are_near_say_the_same(kind: str, vectors: Path, request: pytest.FixtureRequest) -> None:
    model: TextModel = request.getfixturevalue(kind)
    larger = model.extend([" ".join(NEW["drink"]), " ".join(NEW["drive"]), "zzzz"], "vectors", vectors=vectors)
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
    larger = model.extend([" ".join(new)], "vectors", vectors=str(tmp_path / "vectors.txt"))
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
    all_of_them = model.extend(["new"], "vectors", vectors=tmp_path / "vectors.txt")
    monkeypatch.setattr(module, "_NEAREST", 1)
    some = model.extend(["new"], "vectors", vectors=tmp_path / "vectors.txt")
    np.testing.assert_allclose(row(some, "new"), row(all_of_them, "new"), rtol=1e-5)


@given(st.lists(st.lists(st.sampled_from(["drink0", *NEW["drink"][1:], *NEW["drive"], "zzz"]), max_size=4), max_size=4))
def test_a_row_by_vectors_depends_on_the_word_alone(
    model: TextModel, vectors: Path, documents: list[list[str]]
) -> None:
    new = NEW["drink"][0]
    alone = model.extend([new], "vectors", vectors=vectors)
    larger = model.extend([new, *map(" ".join, documents)], "vectors", vectors=vectors)
    np.testing.assert_allclose(row(larger, new), row(alone, new), rtol=1e-3, atol=1e-5)


def test_distilled_vectors_come_from_the_encoder(model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []

    def encode(words: Any, kind: str) -> np.ndarray:
        assert kind == "words"
        encoded.extend(words)
        return np.array([[word.startswith(("drink", "neunk")), word.startswith(("drive", "neuve"))] for word in words],
                        np.float32)  # fmt: skip

    monkeypatch.setattr("wgcn_paper.vectors.encoder.encode_cached", encode)
    larger = model.extend(POOL, "vectors", vectors="distilled")
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
    larger = model.extend(POOL, "vectors", vectors=tmp_path / "vectors.txt")
    assert np.isfinite(larger.scorer.word_embeddings).all()
    assert np.isfinite(larger.predict_proba(POOL)).all()
    table = model.scorer.word_embeddings
    assert np.abs(larger.scorer.word_embeddings).max() < 5 * np.linalg.norm(table, axis=1).max()


@pytest.mark.parametrize("words", [["neunk0", "neuve0"], ["drink0", "drive0"], ["drink0", "neunk0"]])
def test_with_few_vectors_words_stay_unknown(model: TextModel, words: list[str], tmp_path: Path) -> None:
    write_vectors(tmp_path / "vectors.txt", {word: [i, 1] for i, word in enumerate(words)})
    assert model.extend(POOL, "vectors", vectors=tmp_path / "vectors.txt") is model


def test_vectors_of_another_language_are_a_warning(model: TextModel, tmp_path: Path) -> None:
    write_vectors(tmp_path / "vectors.txt", {"Hund": [1, 2]})
    with pytest.warns(WGCNWarning, match=r"words is among the word vectors of vectors\.txt"):
        assert model.extend(POOL, "vectors", vectors=tmp_path / "vectors.txt") is model


# All kinds of models and texts


@pytest.mark.parametrize("how", HOWS)
def test_a_loaded_model_is_extended_alike(spelt: TextModel, how: Any, vectors: Path, tmp_path: Path) -> None:
    spelt.save(tmp_path / "model")
    texts = [f"{stem}s {stem}ing {stem}ing" for stem in STEMS]
    here, there = (extended(each, texts, how, vectors) for each in (spelt, TextModel.load(tmp_path / "model")))
    assert here.save(tmp_path / "here") == there.save(tmp_path / "there")
    again = TextModel.load(tmp_path / "here")
    assert again.extensions == [{"how": how, "words": 30, "texts": 30}]
    assert np.array_equal(again.predict_proba(texts), here.predict_proba(texts))


def test_the_card_tells_what_was_added(spelt: TextModel, tmp_path: Path) -> None:
    texts = [f"new1 {text} new2 new1 new2" for text in ENDED]
    spelt.extend(texts).extend([f"{STEMS[0]}ing"], "spelling").save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "added by graph, without training | 2 from 30 texts |" in card
    assert "added by spelling, without training | 1 from 1 texts |" in card


def test_the_estimator_predicts_with_the_new_words(model: TextModel, tmp_path: Path) -> None:
    estimator = WGCNTextClassifier().fit(TEXTS, LABELS).extend(POOL)
    expected = model.extend(POOL)
    assert np.array_equal(estimator.predict_proba(POOL), expected.predict_proba(POOL))
    assert estimator.save(tmp_path / "one")
    assert TextModel.load(tmp_path / "one").vocabulary == expected.vocabulary
    with pytest.raises(InputError, match="not one text"):
        estimator.extend("one text")


def test_the_estimator_that_is_extended_stays_as_it_is(model: TextModel) -> None:
    estimator = WGCNTextClassifier(classifier=WGCNClassifier(C=0.4)).fit(TEXTS, LABELS)
    before, fitted, graph = estimator.predict_proba(POOL), estimator.model_, estimator.word_graph_
    larger = estimator.extend(POOL)
    assert larger is not estimator
    assert estimator.model_ is fitted
    assert estimator.word_graph_ is graph
    assert np.array_equal(estimator.predict_proba(POOL), before)
    assert not np.array_equal(larger.predict_proba(POOL), before)
    # The settings are not shared either.
    larger.set_params(classifier__C=0.9)
    assert estimator.get_params()["classifier__C"] == 0.4


def test_graph_and_table_of_an_extended_estimator_have_the_same_words() -> None:
    estimator = WGCNTextClassifier().fit(TEXTS, LABELS)
    larger = estimator.extend(POOL)
    n_old, n_words = len(estimator.word_embeddings_), len(larger.word_embeddings_)
    assert n_words > n_old
    assert larger.word_graph_.vocabulary == larger.model_.vocabulary
    assert larger.word_graph_.adjacency.shape == (n_words, n_words)
    assert (larger.word_graph_.adjacency[:n_old, :n_old] != estimator.word_graph_.adjacency).nnz == 0
    assert larger.word_graph_.adjacency[n_old:].nnz == 0
    again = larger.extend(["glug drink0 drink1", "glug drink2 drink0"])
    assert len(again.word_embeddings_) == again.word_graph_.adjacency.shape[0] == n_words + 1


def test_the_estimator_takes_vectors_too(model: TextModel, vectors: Path) -> None:
    estimator = WGCNTextClassifier().fit(TEXTS, LABELS).extend(POOL, "vectors", vectors=vectors)
    expected = model.extend(POOL, "vectors", vectors=vectors)
    assert len(expected.vocabulary) > len(model.vocabulary)
    assert np.array_equal(estimator.predict_proba(POOL), expected.predict_proba(POOL))


def test_models_of_several_labels_are_extended_too() -> None:
    labels = [[label] if i % 5 else list(SIDES) for i, label in enumerate(LABELS)]
    model = WGCNTextClassifier().fit(TEXTS, labels).model_
    guesses = model.extend(POOL).predict([" ".join(NEW["drink"]), " ".join(NEW["drive"])])
    assert guesses.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("tokenizer", ["text_gcn", str.split])
def test_other_tokenisers(tokenizer: Any) -> None:
    model = WGCNTextClassifier(tokenizer=tokenizer, ngram_range=(1, 1)).fit(TEXTS, LABELS).model_
    assert model.extend(POOL).predict(NEW["drive"]).tolist() == ["drive"] * 6


@given(st.lists(st.text(max_size=30), max_size=5), st.sampled_from(HOWS))
def test_no_text_breaks_it(spelt: TextModel, vectors: Path, texts: list[str], how: Any) -> None:
    larger = extended(spelt, [*texts, *(f"{STEMS[0]} {text}" for text in texts)], how, vectors, min_count=1)
    assert np.isfinite(larger.scorer.word_embeddings).all()
    assert np.isfinite(larger.weighting.idf).all()
    assert (larger.weighting.idf > 0).all()
    assert np.isfinite(larger.predict_proba([*texts, STEMS[0]])).all()


def test_long_and_broken_words_are_words_too(spelt: TextModel, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="not valid Unicode"):
        larger = spelt.extend([f"{STEMS[0]} {'winery' * 50_000}", f"{STEMS[0]} \ud800x"], min_count=1)
    larger.save(tmp_path / "model")
    assert TextModel.load(tmp_path / "model").vocabulary == larger.vocabulary
    assert f"{STEMS[0]}{'s' * 300_000}" in spelt.extend([f"{STEMS[0]}{'s' * 300_000}"], "spelling").vocabulary


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"texts": "one text"}, "not one text"),
        ({"texts": [1]}, "must be a str"),
        ({"how": "magic"}, "'graph', 'spelling' or 'vectors', got 'magic'"),
        ({"how": "vectors"}, "how='vectors' needs vectors: 'distilled', or the path of a file"),
        ({"vectors": "distilled"}, "vectors are for how='vectors', got how='graph'"),
        ({"how": "spelling", "vectors": "distilled"}, "vectors are for how='vectors', got how='spelling'"),
        ({"how": "vectors", "vectors": "nowhere.txt"}, r"There are no word vectors 'nowhere\.txt'"),
        ({"how": "vectors", "vectors": ""}, "There are no word vectors ''"),
        ({"min_count": 0}, "min_count must be at least 1"),
    ],
)
def test_what_cannot_be_used_is_explained(model: TextModel, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.extend(**{"texts": POOL, **given})


def test_a_model_without_single_words_takes_none() -> None:
    model = WGCNTextClassifier(ngram_range=(2, 2)).fit(TEXTS * 2, LABELS * 2).model_
    with pytest.raises(InputError, match="no single words"):
        model.extend(POOL)


def test_where_known_words_have_no_company_new_ones_get_rows_all_the_same(model: TextModel) -> None:
    texts = ["glug drink0 glug", "glug drink1", "vroom drive0 vroom", "vroom drive1"]
    larger = model.extend(texts)
    assert larger.predict(["glug", "vroom"]).tolist() == ["drink", "drive"]
    lengths = np.linalg.norm(larger.scorer.word_embeddings, axis=1)
    assert lengths[-2:].max() < 5 * lengths[:-2].max()


def test_a_model_that_learnt_nothing_has_nothing_to_give(model: TextModel) -> None:
    scorer = replace(model.scorer, word_embeddings=np.zeros_like(model.scorer.word_embeddings))
    larger = replace(model, scorer=scorer).extend(POOL)
    assert len(larger.vocabulary) == len(model.vocabulary) + 12
    assert not larger.scorer.word_embeddings.any()
