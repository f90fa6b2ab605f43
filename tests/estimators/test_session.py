"""A fitted estimator goes on in another process as if it had never been saved, and so do its copies."""

import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.mutations import sign
from joblib import dump, load
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array, identity
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier
from wgcn.base.errors import InputError, StoreError
from wgcn.estimators import preparation
from wgcn.linear import task
from wgcn.linear.task import Thresholds
from wgcn.text.tokenize import words

TOPICS = ("art", "law", "sea")
FIRST = Path(__file__).parent / "session-1"  # what version 1 of the format saved: see `made_by_version_1`


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1, "blas"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=60, beside_teacher=60))
        yield


def corpus(n: int, length: int = 9, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts, a third of whose words are of a topic and first, and the topics."""
    rng = np.random.default_rng(seed)
    labels = [TOPICS[i] for i in rng.integers(0, 3, n)]
    return [
        " ".join(
            [f"{label}{i}" for i in rng.integers(0, 30, length // 3)]
            + [f"common{i}" for i in rng.integers(0, 40, length - length // 3)]
        )
        for label in labels
    ], labels


TEXTS, LABELS = corpus(160)
NEW, NEW_LABELS = corpus(12, seed=1)
NUMBERS = [TOPICS.index(label) for label in LABELS]


def few() -> WGCNTextClassifier:
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS[:40], LABELS[:40], unlabeled=TEXTS[40:120], background=TEXTS[120:])


def many() -> WGCNTextClassifier:
    texts, labels = corpus(120, 150)
    fitted = WGCNTextClassifier(n_jobs=1).fit(texts, labels, unlabeled=TEXTS[:40])
    assert fitted.tuned_ is not None
    return fitted


def numbers() -> WGCNTextClassifier:
    weight = np.arange(160) % 5
    options = {"class_weight": {0: 2.0, np.int64(1): 1, 2: 1}, "class_prior": {0: 0.5, 1: 0.3, 2: 0.2}}
    model = WGCNTextClassifier(stop_words={"common2", "common1"}, min_count=1, n_jobs=1, **options)
    return model.fit(TEXTS, [*NUMBERS[:80], *[-1] * 80], weight)


def seeded() -> WGCNTextClassifier:
    known = {word for text in TEXTS[:120] for word in text.split()}
    seeds = {name: [*sorted(word for word in known if name in word)[:8], "-common3"] for name in TOPICS[:2]}
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS[:120], seeds=seeds, classes=["sea"])


def several() -> WGCNTextClassifier:
    labels = [[label, "old"] if i % 3 else [label] for i, label in enumerate(LABELS[:60])]
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS[:70], [*labels, *[None] * 10])


def two() -> WGCNTextClassifier:
    labels = ["sea" if name == "sea" else "land" for name in LABELS[:100]]
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS[:100], labels, unlabeled=TEXTS[100:110])


def cited() -> WGCNTextClassifier:
    links = csr_array(identity(60, np.float32)) + csr_array(np.eye(60, k=1, dtype=np.float32))
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS[:60], [*LABELS[:30], *[None] * 30], document_graph=csr_array(links))


def with_vectors() -> WGCNTextClassifier:
    rng = np.random.default_rng(0)
    vectors = {f"{name}{i}": rng.normal(size=4) + 3 * k for k, name in enumerate(TOPICS) for i in range(30)}
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS[:30], LABELS[:30], unlabeled=TEXTS[30:100], vectors=vectors)


def updated() -> WGCNTextClassifier:
    return few().update([*TEXTS[40:60], *NEW[:6]], [*LABELS[40:60], *NEW_LABELS[:6]])


KINDS = (few, many, numbers, seeded, several, two, cited, with_vectors, updated)


def outcome(model: WGCNTextClassifier) -> list[Any]:
    """Return what a session says, in bits, before and after it goes on: with known texts, then with new ones."""
    found: list[Any] = []

    def note() -> None:
        found.append([part.tobytes() for part in (model.predict_proba(NEW), model.transform(NEW), model.suggest(4))])
        found.append((model.review(), model.score(TEXTS[:20], truth(20)), model.history_, model.tuned_))
        found.append((getattr(model, "seed_words_", None), model.explain(NEW[:1])[0].contributions.tobytes()))

    def truth(n: int) -> list[Any]:
        names = NUMBERS[:n] if model.classes_.dtype.kind == "i" else LABELS[:n]
        names = ["sea" if name == "sea" else "land" for name in names] if "land" in model.classes_ else names
        return [[name] for name in names] if model.model_.scorer.multilabel else names

    note()
    found.append(model.top_words(model.classes_[0]))
    found.append(model.learning_curve(TEXTS[:40], truth(40), sizes=[20]))
    model.update(TEXTS[:15], truth(15))
    note()
    if model.session_.fixed:
        with pytest.raises(InputError, match="are new, and the last fit had"):
            model.update(NEW, truth(12))
    else:
        model.update(NEW, truth(12))
        note()
    return found


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
@pytest.mark.filterwarnings("ignore::wgcn.base.errors.WGCNWarning")
def test_what_was_saved_copied_or_pickled_goes_on_as_what_was_not(
    kind: Callable[[], WGCNTextClassifier], tmp_path: Path
) -> None:
    model = kind()
    digest = model.save(tmp_path / "model", session=True)
    loaded = WGCNTextClassifier.load(tmp_path / "model")
    assert loaded.save(tmp_path / "again", session=True) == digest
    dump(model, tmp_path / "dumped")
    copies = [loaded, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), load(tmp_path / "dumped")]
    copies.append(pickle.loads(pickle.dumps(WGCNTextClassifier.load(tmp_path / "model"))))
    expected = outcome(model)
    for other in copies:
        assert outcome(other) == expected
    parameters = {**kind().get_params(), "stop_words": kind().stop_words and sorted(kind().stop_words)}
    assert WGCNTextClassifier.load(tmp_path / "model").get_params() == parameters
    assert not hasattr(clone(loaded), "session_")


@pytest.mark.filterwarnings("ignore::wgcn.base.errors.WGCNWarning")
def test_a_graph_that_waits_for_new_texts_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "LEAST_DOCUMENTS", 0)
    monkeypatch.setattr(preparation, "LEAST_TOKENS", 0)
    model = few().update(["a novel thing of art1 art2"], ["art"])
    prepared = model.session_.prepared
    assert prepared.n_in_graph < len(prepared.tokens.offsets) - 1
    model.save(tmp_path / "model", session=True)
    assert outcome(WGCNTextClassifier.load(tmp_path / "model")) == outcome(model)


def test_another_process_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    model = few()
    model.save(tmp_path / "model", session=True)
    script = (
        "import sys\n"
        "from wgcn import WGCNTextClassifier\n"
        "model = WGCNTextClassifier.load(sys.argv[1])\n"
        "suggested = model.suggest(5).tobytes().hex()\n"
        "model.update(sys.argv[2:], ['art'] * len(sys.argv[2:]))\n"
        "print(suggested, model.predict_proba(sys.argv[2:]).tobytes().hex(), repr(model.review(3)))\n"
    )
    texts = [*TEXTS[40:44], "a new text about art1"]
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model"), *texts],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "7"},
    )
    suggested = model.suggest(5).tobytes().hex()
    model.update(texts, ["art"] * 5)
    assert done.stdout.strip() == f"{suggested} {model.predict_proba(texts).tobytes().hex()} {model.review(3)!r}"


def test_without_a_session_it_predicts_and_says_what_the_rest_needs(tmp_path: Path) -> None:
    model = WGCNTextClassifier(stop_words=["common1"], ngram_range=(1, 1)).fit(TEXTS[:60], LABELS[:60])
    model.save(tmp_path / "model")
    loaded = WGCNTextClassifier.load(tmp_path / "model")
    assert (loaded.stop_words, loaded.ngram_range) == (["common1"], (1, 1))
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        assert np.array_equal(getattr(loaded, method)(NEW), getattr(model, method)(NEW))
    assert np.array_equal(loaded.explain(NEW[:1])[0].contributions, model.explain(NEW[:1])[0].contributions)
    assert loaded.predict_set(NEW, 0.5) == model.predict_set(NEW, 0.5)
    assert len(loaded.extend(["seaweed sea1 sea2", "seaweed sea3"]).model_.extensions) == 1
    for use in (
        loaded.suggest,
        loaded.review,
        lambda: loaded.update(NEW, NEW_LABELS),
        lambda: loaded.save(tmp_path / "other", session=True),
        model.extend(TEXTS[:5]).review,
    ):
        with pytest.raises(InputError, match=r"no training texts, which update.*save\(folder, session=True\)"):
            use()
    assert not (tmp_path / "other").exists()
    assert loaded.save(tmp_path / "again") == model.save(tmp_path / "model")


def test_a_plain_save_leaves_no_session(tmp_path: Path) -> None:
    model = few()
    plain = model.save(tmp_path / "plain")
    model.save(tmp_path / "model", session=True)
    assert len(list((tmp_path / "model").glob("session.*"))) == 2
    assert model.model_.save(tmp_path / "model") == plain
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == sorted(
        path.name for path in (tmp_path / "plain").iterdir()
    )
    (tmp_path / "model" / "session.json").write_text("mine")
    with pytest.raises(InputError, match=r"session\.json was not written by wgcn"):
        model.save(tmp_path / "model", session=True)
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "session.json").read_text() == "mine"


def test_a_session_has_words_and_labels_and_a_model_alone_has_not(tmp_path: Path) -> None:
    model = WGCNTextClassifier(min_count=2).fit([*TEXTS[:60], "the secretname of art1"], [*LABELS[:60], "art"])
    for session in (False, True):
        model.save(tmp_path / "model", session=session)
        held = b"".join(path.read_bytes() for path in (tmp_path / "model").iterdir())
        assert (b"secretname" in held) is (b"hold the words of the training texts" in held) is session


def test_what_no_file_can_hold_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    own = WGCNTextClassifier(tokenizer=words, n_jobs=1).fit(TEXTS[:40], LABELS[:40])
    for model, message in (
        (own, "tokenizer of your own cannot be saved"),
        (few().set_params(class_weight={("art", "law"): 1.0}), "'class_weight' is not what a session has"),
        (few().set_params(class_weight={"art": -1.0}), "weights in class_weight must be"),
        (few().set_params(window=5), "were changed after the last fit"),
        (WGCNTextClassifier(), "not fitted"),
    ):
        with pytest.raises((InputError, NotFittedError), match=message):
            model.save(tmp_path / "model", session=True)
        assert not (tmp_path / "model").exists()


def changed(folder: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], object]) -> None:
    """Change a session as an attacker would: with digests that fit."""
    config, tensors = json.loads((folder / "session.json").read_text()), load_file(folder / "session.safetensors")
    change(config, tensors)
    (folder / "session.json").write_text(json.dumps(config))
    save_file(tensors, folder / "session.safetensors")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    sign("session", files)
    (folder / "config.json").write_bytes(files["config.json"])


HOSTILE: dict[str, Callable[[dict[str, Any], dict[str, np.ndarray]], object]] = {
    "version 2, but this wgcn reads version 1": lambda config, _: config.update(version=2),
    "version True": lambda config, _: config.update(version=True),
    "version None": lambda config, _: config.pop("version"),
    "unknown keys": lambda config, _: config.update(code="x"),
    "'seconds' in session.json": lambda config, _: config.update(seconds="1"),
    "'C' in the parameters": lambda config, _: config["parameters"].update(C=None),
    "'tokenizer' in the parameters": lambda config, _: config["parameters"].update(tokenizer=None),
    "Unknown tokenizer": lambda config, _: config["parameters"].update(tokenizer="os.system"),
    "alpha must be": lambda config, _: config["parameters"].update(alpha=-1),
    "'n_jobs'": lambda config, _: config["parameters"].update(n_jobs=10**9),
    "'class_weight'": lambda config, _: config["parameters"].update(class_weight=[["art"]]),
    "'tokens.words'": lambda _, tensors: tensors["tokens.words"].sort(),
    "'tokens.ids'": lambda _, tensors: tensors["tokens.ids"].__imul__(1000),
    "'tokens.offsets'": lambda _, tensors: tensors["tokens.offsets"].__setitem__(1, 400),
    "'digests'": lambda _, tensors: tensors.update(digests=tensors["digests"][:3]),
    "'counts' is not a sparse matrix": lambda _, tensors: tensors["counts.indices"].__setitem__(0, -1),
    "'adjacency'": lambda _, tensors: tensors["adjacency.data"].__imul__(1000),
    "'targets'": lambda _, tensors: tensors["targets"].__setitem__(0, 3),
    "'weight'": lambda _, tensors: tensors["weight"].__setitem__(0, np.nan),
    "'labelled'": lambda _, tensors: tensors.pop("labelled"),
    "'dual.0'": lambda _, tensors: tensors["dual.0"].__setitem__((0, 0), np.inf),
    "'dual.1'": lambda _, tensors: tensors.update({"dual.1": tensors["dual.1"][:, :1].copy()}),
    "'held_out.rows'": lambda _, tensors: tensors["held_out.rows"].__setitem__(0, 40),
    "'teacher.order'": lambda _, tensors: tensors["teacher.order"].__setitem__(0, tensors["teacher.order"][1]),
    "'teacher.graph'": lambda _, tensors: tensors["teacher.graph.data"].fill(1),
    "'space'": lambda config, _: config["space"][0].__setitem__(1, 10**6),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("session") / "model"
    few().save(folder, session=True)
    return folder


@pytest.mark.parametrize("message", HOSTILE)
def test_a_signed_session_that_no_fit_leaves_is_one_error(saved: Path, tmp_path: Path, message: str) -> None:
    shutil.copytree(saved, tmp_path / "model")
    changed(tmp_path / "model", HOSTILE[message])
    with pytest.raises(StoreError, match=message):
        WGCNTextClassifier.load(tmp_path / "model")
    TextModel.load(tmp_path / "model").predict(NEW)  # which reads no session


@pytest.mark.parametrize("name", ["session.json", "session.safetensors"])
def test_damage_of_a_session_is_noticed(saved: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(saved, tmp_path / "model")
    content = (saved / name).read_bytes()
    for place in range(0, len(content), len(content) // 20):
        (tmp_path / "model" / name).write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(StoreError, match="do not match their digests"):
            WGCNTextClassifier.load(tmp_path / "model")
    (tmp_path / "model" / name).unlink()
    with pytest.raises(StoreError, match=name):
        WGCNTextClassifier.load(tmp_path / "model")


def made_by_version_1() -> WGCNTextClassifier:
    """Return what was saved as `session-1`; a later version of the format gets a folder of its own beside it."""
    texts = [
        "red wine",
        "white wine",
        "a glass of red wine",
        "fast car",
        "slow car",
        "a fast red car",
        "dry white wine",
    ]
    labels = ["drink", "drink", None, "drive", "drive", None, None]
    return WGCNTextClassifier(n_jobs=1).fit(texts, labels)


def test_a_session_of_an_earlier_release_is_read_or_refused_in_one_sentence() -> None:
    assert sum(path.stat().st_size for path in FIRST.iterdir()) < 100_000
    try:
        model = WGCNTextClassifier.load(FIRST)
    except StoreError as error:
        assert "version 1, but this wgcn reads version" in str(error)  # noqa: PT017
        return
    assert model.predict(["a glass of wine", "a slow car"]).tolist() == ["drink", "drive"]
    np.testing.assert_allclose(model.model_.scores(["wine", "car"]), [[0.6, -0.6], [-0.6, 0.6]], atol=0.6)
    assert set(model.suggest(3).tolist()) == {2, 5, 6}
    assert [doubt.label for doubt in model.review()].count("drink") == 2
    model.update(["dry white wine", "a boat with sails"], ["drink", "sail"])
    assert model.predict(["sails of a boat", "white wine"]).tolist() == ["sail", "drink"]


def test_the_matrix_estimator_is_copied_whole() -> None:
    rows = few().session_.prepared.document_terms
    model = WGCNClassifier(n_jobs=1).fit(rows, [*LABELS[:40], *[None] * 80])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict_proba(rows), model.predict_proba(rows))
        assert [dual.tobytes() for dual in other.trained_.duals] == [dual.tobytes() for dual in model.trained_.duals]
        assert np.array_equal(other.trained_.teacher.place(rows), model.trained_.teacher.place(rows))
