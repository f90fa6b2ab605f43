"""WGCN as a method: every setting takes effect, and nothing that is kept from one fit gets into another."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from wgcn.base.errors import InputError, InterruptWarning
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.preparation import Preparation
from wgcn.estimators.text import WGCNTextClassifier
from wgcn.graph import WordGraph
from wgcn.linear.task import Thresholds
from wgcn.model.text_model import TextModel
from wgcn_paper.datasets import Dataset
from wgcn_paper.methods import wgcn
from wgcn_paper.methods.wgcn import LinearMethod, NetworkMethod
from wgcn_paper.protocol import Query, Task

TEXTS = ("red wine", "white wine and red wine", "fast car", "slow car and fast car") * 5
LABELS = np.array(["drink", "drink", "drive", "drive"] * 5, object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
TINY = {"stop_words": False, "min_count": 1, "hidden": 4, "max_epochs": 3}

# Another value for each setting.
TEXT = {
    "tokenizer": "text_gcn",
    "ngrams": 3,
    "stop_words": True,
    "min_count": 7,
    "sublinear": False,
    "norm": "l1",
    "window": 7,
    "weight": "npmi",
    "threshold": 0.7,
    "min_pairs": 7,
    "top_k": 7,
}
NETWORK = {
    "hidden": 7,
    "order": 3,
    "word_activation": True,
    "residual": 0.7,
    "word_dropout": 0.7,
    "document_dropout": 0.7,
    "centred": True,
    "learning_rate": 0.7,
    "weight_decay": 0.7,
    "max_epochs": 7,
    "patience": 7,
    "stopping": "mean",
    "label_smoothing": 0.7,
    "refit": True,
    "n_models": 7,
    "validation_fraction": 0.7,
}
LINEAR = {
    "alpha": 0.7,
    "subwords": 0.7,
    "naive_bayes": 0.7,
    "teacher": 0.7,
    "self_training": 0.7,
    "C": 0.7,
    "class_prior": "uniform",
    "tune": False,
}
# Settings that 0.2 no longer has, with a value that earlier runs have.
RETIRED = {
    "learn_alpha": "word",
    "order": 2,
    "loss": "softmax",
    "average": True,
    "smoothing": 0.75,
    "window": [5, 50],
}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    wgcn._prepared.clear()
    monkeypatch.setattr(wgcn, "stop_words", lambda: frozenset({"and"}))


def preparation(settings: dict[str, Any]) -> dict[str, Any]:
    """Return how texts are prepared, under the names of the settings."""
    found = vars(LinearMethod(settings)._preparation()) | {}
    found["ngrams"] = found.pop("ngram_range")[1]
    return {name: value for name, value in found.items() if name not in ("rules", "vocabulary_rules")}


def test_every_setting_of_text_and_graph_is_used() -> None:
    before = preparation({})
    for name, value in TEXT.items():
        found = preparation({name: value})
        assert found[name] == (frozenset({"and"}) if name == "stop_words" else value)
        assert {other for other in found if found[other] != before[other]} == {name}


def test_the_network_has_edges_of_ngrams_and_stop_words_of_the_paper() -> None:
    assert NetworkMethod()._preparation() == Preparation(
        "text_gcn", (1, 1), 5, frozenset({"and"}), sublinear=False, norm="l1", min_pairs=1, ngram_edges=True
    )
    assert LinearMethod({"ngram_edges": True})._preparation() == Preparation(ngram_edges=True)


def test_zero_means_no_limit() -> None:
    found = preparation({"min_count": 0, "top_k": 0})
    assert (found["min_count"], found["top_k"], found["stop_words"]) == (None, None, None)


def test_every_setting_of_the_network_is_used() -> None:
    assert set(NetworkMethod.defaults) == {*TEXT, "smoothing", *NETWORK}
    before = NetworkMethod()._classifier().get_params()
    for name, value in NETWORK.items():
        found = NetworkMethod({name: value})._classifier().get_params()
        assert found[name] == value
        assert {other for other in found if found[other] != before[other]} == {name}
        assert before[name] == NetworkMethod.defaults[name]
    found = NetworkMethod(seed=5, device="cpu")._classifier().get_params()
    assert (found["random_state"], found["device"]) == (5, "cpu")


def test_no_two_fits_of_several_networks_share_a_seed() -> None:
    seeds = [NetworkMethod({"n_models": 5}, seed=seed)._classifier().random_state for seed in range(4)]
    used = [seed + i for seed in seeds for i in range(5)]
    assert len(set(used)) == len(used)


def test_every_setting_of_the_linear_model_is_used() -> None:
    others = {"ngram_edges", "background", "vectors", "graph", "extend"}
    assert set(LinearMethod.defaults) == {*TEXT, *LINEAR, *RETIRED, *others}
    before = LinearMethod()._classifier().get_params()
    for name, value in LINEAR.items():
        found = LinearMethod({name: value})._classifier().get_params()
        assert found[name] == value
        assert {other for other in found if found[other] != before[other]} == {name}


@pytest.mark.parametrize("name", RETIRED)
def test_a_setting_that_was_removed_is_explained(name: str) -> None:
    method = LinearMethod({name: RETIRED[name]})  # a committed run of it can be shown
    with pytest.raises(InputError, match=r"removed from wgcn in 0\.2\.0"):
        method.fit(TASK)


def test_the_linear_model_can_be_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=50, hold_out=50))
    rng = np.random.default_rng(0)
    texts = tuple(f"{'wine' if i % 2 else 'car'} {' '.join(map(str, rng.integers(0, 40, 4)))}" for i in range(60))
    task = replace(TASK, texts=texts, labels=np.array(["drink" if i % 2 else "drive" for i in range(60)], object))
    method, fixed = LinearMethod({"C": 1e-4}), LinearMethod({"C": 1e-4, "tune": False})
    for each in (method, fixed):
        each.fit(task)
    assert method.model.report["tuned"]["n_held_out"] > 0
    assert "tuned" not in fixed.model.report
    assert method.model.weighting.lead == fixed.model.weighting.lead == 0  # such short texts have none


def test_a_lead_is_chosen_for_long_texts_as_the_library_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=100))
    rng, topics = np.random.default_rng(0), ("art", "law")
    labels = [topics[i % 2] for i in range(200)]
    texts = []
    for label in labels:  # what a text is about is said in its first words alone
        words = [f"{label}{i}" if i < 8 else f"other{i}" for i in rng.integers(0, 20, 15)]
        texts.append(" ".join([*words, *(f"{topics[i % 2]}{i // 2}" for i in rng.integers(0, 40, 110))]))
    task = replace(TASK, texts=tuple(texts), labels=np.array(labels, object))
    method, fixed = LinearMethod(), LinearMethod({"tune": False})
    for each in (method, fixed):
        each.fit(task)
    lead = method.model.weighting.lead
    assert lead == method.model.report["tuned"]["settings"]["lead"] > 0
    assert fixed.model.weighting.lead == 0
    expected = WGCNTextClassifier().fit(texts, labels).model_
    assert expected.weighting.lead == lead
    assert np.array_equal(method.model.scores(texts), expected.scores(texts))
    # What is kept for other fits has no lead yet.
    assert [each.weighting.lead for each in wgcn._prepared.values()] == [0, 0]


def test_training_texts_of_other_sets_are_background(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("old red merlot", "a fast merlot", "never seen", "old old car")
    cellar = Dataset("cellar", texts, None, np.array(["a", "b"] * 2), np.array([0, 1, 3]), np.array([2]))
    monkeypatch.setattr(
        wgcn,
        "load_dataset",
        {"cellar": cellar, "bare": replace(cellar, texts=None, features=csr_array((4, 1)))}.__getitem__,
    )
    plain, method = LinearMethod(), LinearMethod({"background": ["cellar"]})
    assert plain.fit(TASK).digest != method.fit(TASK).digest
    expected = WGCNTextClassifier().fit(TEXTS, LABELS, background=[texts[i] for i in cellar.train]).model_
    assert np.array_equal(method.model.scorer.word_embeddings, expected.scorer.word_embeddings)
    assert set(expected.vocabulary) - set(plain.model.vocabulary) == {"old", "merlot", "a"}
    assert method.model.report["n_background"] == 3
    assert LinearMethod().fit(TASK).digest == plain.fit(TASK).digest
    with pytest.raises(InputError, match="bare has no texts"):
        LinearMethod({"background": ["bare"]}).fit(TASK)


def test_new_words_are_added_as_the_setting_says() -> None:
    task = replace(TASK, pool=("merlot wine merlot", "red merlot", "turbo car turbo", "fast turbo"))
    query = Query(("merlot", "turbo", "winery wines", "zzz"), None, None)
    plain = LinearMethod()
    plain.fit(task)
    found = {}
    for extend in ("", "graph", "fit", "drop"):
        method = LinearMethod({"extend": extend})
        method.fit(task)
        added = set(method.model.vocabulary.words) - set(plain.model.vocabulary.words)
        found[extend] = ({"merlot", "turbo"} <= added, method.predict(query).tolist()[:2])
        assert method.predict(query)[3] == plain.predict(query)[3]
        if extend == "graph":
            expected = plain.model.extend(task.pool)
            assert np.array_equal(method.model.scorer.word_embeddings, expected.scorer.word_embeddings)
    assert {extend: known for extend, (known, _) in found.items()} == {
        "": False, "graph": True, "fit": True, "drop": False
    }  # fmt: skip
    assert all(guesses == ["drink", "drive"] for known, guesses in found.values() if known)
    fitted = WGCNTextClassifier().fit(TEXTS, LABELS, unlabeled=task.pool).model_
    method = LinearMethod({"extend": "fit"})
    method.fit(task)
    assert np.array_equal(method.model.scorer.word_embeddings, fitted.scorer.word_embeddings)


def test_unseen_words_do_not_count_where_they_are_dropped() -> None:
    spelt, dropped = LinearMethod(), LinearMethod({"extend": "drop"})
    for method in (spelt, dropped):
        method.fit(TASK)
    assert dropped.model.spelling is None
    assert np.array_equal(dropped.model.scorer.word_embeddings, spelt.model.scorer.word_embeddings)
    texts, more = ["red", "slow", ""], ["red winery", "slow winery carss", "winery"]
    assert np.array_equal(dropped.model.predict_proba(more), dropped.model.predict_proba(texts))
    assert not np.isclose(spelt.model.predict_proba(more), spelt.model.predict_proba(texts)).any()
    assert np.array_equal(dropped.model.predict_proba(texts), spelt.model.predict_proba(texts))


def test_digest_is_of_the_spelling_too(monkeypatch: pytest.MonkeyPatch) -> None:
    own = LinearMethod().fit(TASK).digest
    assert LinearMethod({"extend": "drop"}).fit(TASK).digest != own
    assert LinearMethod({"subwords": 0.0}).fit(TASK).digest != own
    made = TextModel.__init__
    for part in ("hashes", "rows"):

        def changed(model: TextModel, *args: Any, part: str = part, **given: Any) -> None:
            made(model, *args, **given)
            spelling = model.spelling
            assert spelling is not None
            values = getattr(spelling, part).copy()
            values[-1] += 1
            object.__setattr__(model, "spelling", replace(spelling, **{part: values}))

        with monkeypatch.context() as patch:
            patch.setattr(TextModel, "__init__", changed)
            assert LinearMethod().fit(TASK).digest != own
    assert LinearMethod().fit(TASK).digest == own


def test_without_the_graph_every_word_is_its_own_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[WordGraph] = []
    fit = WGCNClassifier.fit

    def recorded(model: WGCNClassifier, *args: Any, word_graph: WordGraph, **given: Any) -> WGCNClassifier:
        graphs.append(word_graph)
        return fit(model, *args, word_graph=word_graph, **given)

    monkeypatch.setattr(WGCNClassifier, "fit", recorded)
    labels = LABELS.copy()
    labels[4:] = None
    task = replace(TASK, labels=labels)
    plain, without = LinearMethod(), LinearMethod({"graph": "none"})
    assert plain.fit(task).digest != without.fit(task).digest
    texts = ["old wine", "my car", "red and white"]
    assert not np.allclose(plain.model.predict_proba(texts), without.model.predict_proba(texts))
    own, none = (graph.adjacency for graph in graphs)
    has_edges = np.diff(own.indptr) > 0
    assert 0 < has_edges.sum() < len(has_edges)  # pairs of words have none
    assert np.array_equal(none.toarray(), np.diag(has_edges))
    assert without._classifier().alpha == 0
    assert [len(graph.vocabulary) for graph in graphs] == [len(has_edges)] * 2


def test_without_the_graph_there_is_still_a_teacher() -> None:
    labels = LABELS.copy()
    labels[4:] = None
    task = replace(TASK, labels=labels)
    settings = {"graph": "none", "self_training": 0.0}
    taught, alone = LinearMethod(settings), LinearMethod({**settings, "teacher": 0.0})
    assert taught.fit(task).digest != alone.fit(task).digest


@pytest.mark.parametrize("graph", ["own", "NONE", None])
def test_an_unknown_graph_is_explained(graph: Any) -> None:
    with pytest.raises(InputError, match=r"graph must be '' or 'none'\."):
        LinearMethod({"graph": graph})


@pytest.mark.parametrize("extend", ["", "drop"])
def test_a_text_is_answered_alike_in_every_company(extend: str) -> None:
    method = LinearMethod({"extend": extend})
    method.fit(replace(TASK, texts=tuple(f"{text}s {text}" for text in TEXTS)))
    texts = ("wining", "", "slowly", "fasts", "zzz", "carss")
    together = method.predict(Query(texts, None, None)).tolist()
    assert [method.predict(Query((text,), None, None))[0] for text in texts] == together


@pytest.mark.parametrize("extend", ["magic", "spelling", "both"])
def test_an_unknown_way_to_add_words_is_explained(extend: str) -> None:
    with pytest.raises(InputError, match=r"extend must be one of '', 'graph', 'fit', 'drop'\."):
        LinearMethod({"extend": extend})


def test_the_linear_model_is_the_default_of_the_estimators() -> None:
    method, estimator = LinearMethod(), WGCNTextClassifier().fit(TEXTS, LABELS)
    method.fit(TASK)
    expected = estimator.classifier_.get_params()
    assert method._preparation() == Preparation()
    assert method._classifier().get_params() == expected
    assert np.array_equal(method.model.scorer.word_embeddings, estimator.word_embeddings_)


def test_seed_of_the_linear_model_draws_only_what_is_held_out() -> None:
    assert LinearMethod.seeded
    assert LinearMethod(seed=0).fit(TASK).digest == LinearMethod(seed=9).fit(TASK).digest
    # From 100 documents on some are held out, and the final fit begins where the fit without them ended.
    many = replace(TASK, texts=TEXTS * 6, labels=np.tile(LABELS, 6))
    methods = [LinearMethod(seed=seed) for seed in (0, 9)]
    assert [method.fit(many).validation_accuracy for method in methods] == [1.0, 1.0]
    guesses = [method.predict(Query(TEXTS, None, None)).tolist() for method in methods]
    assert guesses == [LABELS.tolist()] * 2


def test_a_setting_changes_the_model() -> None:
    digests = [
        NetworkMethod(TINY | more, device="cpu").fit(TASK).digest
        for more in ({}, {"hidden": 5}, {"order": 0}, {"weight": "npmi"}, {"norm": "l2"}, {"max_epochs": 2})
    ]
    assert len(set(digests)) == len(digests)
    assert NetworkMethod(TINY, seed=1, device="cpu").fit(TASK).digest not in digests
    assert NetworkMethod(TINY, device="cpu").fit(TASK).digest == digests[0]


def test_network_tells_of_its_training() -> None:
    fit = NetworkMethod(TINY, device="cpu").fit(TASK)
    assert fit.epochs == 3
    assert fit.seconds_per_epoch is not None
    assert fit.seconds_per_epoch > 0
    assert fit.validation_accuracy is not None
    assert 0 <= fit.validation_accuracy <= 1
    alone = NetworkMethod(TINY | {"validation_fraction": 0.0}, device="cpu").fit(TASK)
    assert alone.validation_accuracy is None


def test_what_is_learnt_is_predicted() -> None:
    for method in (
        LinearMethod(),
        NetworkMethod(TINY | {"max_epochs": 40, "learning_rate": 0.05, "document_dropout": 0.0}, device="cpu"),
    ):
        method.fit(TASK)
        assert method.predict(Query(("old wine", "my car"), None, None)).tolist() == ["drink", "drive"]


# What is kept between fits

OTHERS = [
    (replace(TASK, texts=("new wine", *TEXTS[1:])), {}),
    (replace(TASK, texts=TEXTS[:-1], labels=LABELS[:-1]), {}),
    (TASK, {"norm": "l1"}),
    (TASK, {"window": 2}),
    (TASK, {"min_pairs": 6}),
    (TASK, {"top_k": 1}),
    (TASK, {"sublinear": False}),
    (TASK, {"ngrams": 1}),
    (TASK, {"ngrams": 3}),
    (TASK, {"stop_words": True}),
    (TASK, {"min_count": 6}),
    (TASK, {"weight": "count"}),
    (TASK, {"threshold": 1.0}),
    (TASK, {"ngram_edges": True}),
    (TASK, {"tokenizer": "text_gcn"}),
]


@pytest.mark.parametrize("tune", [False, True])
def test_preparation_is_shared_by_labels_and_seeds(tune: bool) -> None:
    settings = {"ngrams": 1, "tune": tune}
    LinearMethod(settings).fit(TASK)
    [kept] = wgcn._prepared.values()
    LinearMethod({**settings, "C": 3.0, "alpha": 0.0}, seed=1).fit(replace(TASK, labels=LABELS[::-1].copy()))
    assert [*wgcn._prepared.values()] == [kept]


def test_preparation_is_shared_by_models_where_there_is_no_lead_to_choose() -> None:
    same = {name: LinearMethod.defaults[name] for name in TEXT} | {"ngrams": 1}
    network = NetworkMethod(same | {"hidden": 4, "max_epochs": 2}, device="cpu")
    LinearMethod({"ngrams": 1, "tune": False}).fit(TASK)
    [kept] = wgcn._prepared.values()
    network.fit(TASK)
    assert [*wgcn._prepared.values()] == [kept]
    LinearMethod({"ngrams": 1}).fit(TASK)
    assert len(wgcn._prepared) == 2


def test_preparation_with_ngrams_is_not_shared_by_models() -> None:
    same = {name: LinearMethod.defaults[name] for name in TEXT} | {"hidden": 4, "max_epochs": 2}
    alone = NetworkMethod(same, device="cpu").fit(TASK).digest
    wgcn._prepared.clear()
    LinearMethod().fit(TASK)
    assert NetworkMethod(same, device="cpu").fit(TASK).digest == alone
    assert len(wgcn._prepared) == 2


def test_preparation_never_mixes_tasks_or_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = []
    for task, settings in OTHERS:
        wgcn._prepared.clear()
        alone.append(LinearMethod(settings).fit(task).digest)
    wgcn._prepared.clear()
    monkeypatch.setattr(wgcn._prepared, "most", len(OTHERS) + 1)
    plain = LinearMethod().fit(TASK).digest
    assert [LinearMethod(settings).fit(task).digest for task, settings in OTHERS] == alone
    assert len(wgcn._prepared) == len(OTHERS) + 1
    assert LinearMethod().fit(TASK).digest == plain


def test_only_a_few_preparations_are_kept() -> None:
    for window in range(2, 9):
        LinearMethod({"window": window}).fit(TASK)
    assert len(wgcn._prepared) == wgcn._prepared.most == 3
    LinearMethod({"window": 6}).fit(TASK)
    LinearMethod({"window": 9}).fit(TASK)
    assert [key for key in wgcn._prepared if '"window": 7' in key] == []
    assert [key for key in wgcn._prepared if '"window": 6' in key] != []


@pytest.mark.parametrize("kind", [NetworkMethod, LinearMethod])
def test_unknown_setting_is_one_error(kind: type[NetworkMethod | LinearMethod]) -> None:
    with pytest.raises(InputError, match=f"^{kind.name} has no setting colour. It has: "):
        kind({"colour": "red"})


def test_an_interrupted_training_is_not_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        warnings.warn("Ctrl-C ended the training.", InterruptWarning, stacklevel=2)

    monkeypatch.setattr("wgcn.estimators.network.WGCNNetworkClassifier.fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        NetworkMethod(device="cpu").fit(TASK)
