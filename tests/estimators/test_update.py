"""Adding texts and labels to a fitted model: what a fit to everything gives, up to the tolerance."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array, identity
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from wgcn import WGCNTextClassifier
from wgcn.base.errors import InputError
from wgcn.estimators import preparation
from wgcn.estimators.preparation import Preparation
from wgcn.linear import task, training
from wgcn.linear.task import Thresholds
from wgcn.semi import teacher
from wgcn.text import corpus as tokens

TOPICS = ("art", "law", "sea")


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1, "blas"):
        yield


def corpus(n: int, seed: int = 0, topics: tuple[str, ...] = TOPICS) -> tuple[list[str], list[str]]:
    """Return texts of three words of a topic, out of 30, and six that all topics use, out of 40; and the topics."""
    rng = np.random.default_rng(seed)
    labels = [topics[i] for i in rng.integers(0, len(topics), n)]
    texts = [
        " ".join([f"{label}{i}" for i in rng.integers(0, 30, 3)] + [f"common{i}" for i in rng.integers(0, 40, 6)])
        for label in labels
    ]
    return texts, labels


def assert_same_preparation(updated: WGCNTextClassifier, fitted: WGCNTextClassifier) -> None:
    one, other = updated.session_.prepared, fitted.session_.prepared
    assert one.vocabulary == other.vocabulary
    assert np.array_equal(one.vocabulary.counts, other.vocabulary.counts)
    assert np.array_equal(one.vocabulary.document_counts, other.vocabulary.document_counts)
    assert np.array_equal(one.weighting.idf, other.weighting.idf)
    for mine, theirs in (
        (one.document_terms, other.document_terms),
        (updated.word_graph_.adjacency, fitted.word_graph_.adjacency),
    ):
        for part in ("data", "indices", "indptr"):
            assert np.array_equal(getattr(mine, part), getattr(theirs, part))


def assert_same_scores(updated: WGCNTextClassifier, fitted: WGCNTextClassifier, texts: list[str]) -> None:
    assert updated.classes_.tolist() == fitted.classes_.tolist()
    one, other = updated.decision_function(texts), fitted.decision_function(texts)
    assert np.abs(one - other).max() < 0.15
    assert np.sqrt(np.mean(np.square(one - other))) < 0.03
    assert np.mean(updated.predict(texts) == fitted.predict(texts)) > 0.97


def test_new_texts_give_what_a_fit_to_all_gives() -> None:
    texts, labels = corpus(330)
    updated = WGCNTextClassifier().fit(texts[:250], labels[:250])
    assert updated.update(texts[250:300], labels[250:300]) is updated
    fitted = WGCNTextClassifier().fit(texts[:300], labels[:300])
    assert_same_preparation(updated, fitted)
    assert_same_scores(updated, fitted, texts)
    assert updated.model_.report["n_documents"] == 300
    assert updated.model_.report["n_labelled"] == 300
    without = WGCNTextClassifier().fit(texts[:250], labels[:250])
    scores = [model.decision_function(texts[250:300]) for model in (without, updated, fitted)]
    assert np.abs(scores[0] - scores[2]).max() > 3 * np.abs(scores[1] - scores[2]).max()


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=9).map(" ".join), min_size=2), st.data())
def test_preparing_in_two_parts_is_preparing_at_once(texts: list[str], data: st.DataObject) -> None:
    begin = data.draw(st.integers(1, len(texts) - 1))
    assume("".join(texts[:begin]))
    whole, first = Preparation().prepare(texts), Preparation().prepare(texts[:begin])
    both = Preparation().prepare(texts[begin:], earlier=first)
    assert whole.word_graph is not None
    assert both.word_graph is not None
    assert (both.vocabulary, both.n_in_graph) == (whole.vocabulary, len(texts))
    assert np.array_equal(both.weighting.idf, whole.weighting.idf)
    for one, other in (
        (both.document_terms, whole.document_terms),
        (both.term_counts, whole.term_counts),
        (both.word_graph.adjacency, whole.word_graph.adjacency),
    ):
        assert np.array_equal(one.toarray(), other.toarray())


def test_few_new_texts_wait_for_their_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "LEAST_DOCUMENTS", 0)
    monkeypatch.setattr(preparation, "LEAST_TOKENS", 0)
    texts, labels = corpus(400)
    texts[280:282] = [f"{text} novel words" for text in texts[280:282]]
    model = WGCNTextClassifier().fit(texts[:270], labels[:270])
    before, scale = model.word_graph_, model.classifier_.trained_.scale
    model.update(texts[270:300], labels[270:300])
    fitted = WGCNTextClassifier().fit(texts[:300], labels[:300])
    one, other = model.session_.prepared, fitted.session_.prepared
    assert one.vocabulary == other.vocabulary
    assert np.array_equal(one.weighting.idf, other.weighting.idf)
    assert np.array_equal(one.document_terms.toarray(), other.document_terms.toarray())
    assert model.classifier_.trained_.scale == scale
    assert not model.word_graph_.neighbours("novel", min_count=0)
    assert fitted.word_graph_.neighbours("novel", min_count=0)
    near = [[edge.word for edge in graph.neighbours("sea1", 99, min_count=0)] for graph in (before, model.word_graph_)]
    assert sorted(near[0]) == sorted(near[1])
    assert np.mean(model.predict(texts[300:]) == fitted.predict(texts[300:])) > 0.95
    model.update(texts[300:320], labels[300:320])
    assert_same_preparation(model, WGCNTextClassifier().fit(texts[:320], labels[:320]))


def test_docs_corpus_in_three_parts(docs: Any) -> None:
    texts, labels = list(docs.texts[:600]), list(docs.labels[:600])
    updated = WGCNTextClassifier(ngram_range=(1, 3)).fit(texts[:400], labels[:400])
    for part in (slice(400, 500), slice(500, 600)):
        updated.update(texts[part], labels[part])
    fitted = WGCNTextClassifier(ngram_range=(1, 3)).fit(texts, labels)
    assert_same_preparation(updated, fitted)
    more = list(docs.texts[600:900])
    assert np.mean(updated.predict(more) == fitted.predict(more)) >= 0.98


def test_new_classes_from_two_to_four() -> None:
    texts, labels = corpus(160, topics=("art", "sea", "law", "war"))
    few = [i for i, label in enumerate(labels) if label in ("art", "sea")]
    rest = [i for i in range(len(labels)) if i not in set(few)]
    order = few + rest
    updated = WGCNTextClassifier().fit([texts[i] for i in few], [labels[i] for i in few])
    updated.update([texts[i] for i in rest], [labels[i] for i in rest])
    fitted = WGCNTextClassifier().fit([texts[i] for i in order], [labels[i] for i in order])
    assert updated.classes_.tolist() == ["art", "law", "sea", "war"]
    assert_same_preparation(updated, fitted)
    assert_same_scores(updated, fitted, texts)


def test_labels_of_known_texts_prepare_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = corpus(240)
    known = [label if i < 12 else None for i, label in enumerate(labels)]
    updated = WGCNTextClassifier().fit(texts[:200], known[:200], unlabeled=texts[200:])
    before = updated.session_.prepared
    with monkeypatch.context() as patched:
        patched.setattr(tokens, "encode_new", None)
        patched.setattr(teacher, "nearest_documents", None)
        updated.update(texts[198:222], labels[198:222])
        updated.update(texts[30:40], labels[30:40])
    assert updated.session_.prepared is before
    everything = [label if i < 12 or 30 <= i < 40 or 198 <= i < 222 else None for i, label in enumerate(labels)]
    fitted = WGCNTextClassifier().fit(texts, everything)
    assert updated.model_.report["n_labelled"] == 46
    assert_same_preparation(updated, fitted)
    assert_same_scores(updated, fitted, texts)


def test_unlabelled_new_texts_and_the_teacher() -> None:
    texts, labels = corpus(240)
    known = [label if i < 20 else None for i, label in enumerate(labels)]
    updated = WGCNTextClassifier().fit(texts[:150], known[:150]).update(texts[150:], [None] * 80 + labels[230:])
    fitted = WGCNTextClassifier().fit(texts, [*known[:230], *labels[230:]])
    assert_same_preparation(updated, fitted)
    assert_same_scores(updated, fitted, texts)


def test_a_label_replaces_another_and_none_leaves_it() -> None:
    texts, labels = corpus(60)
    model = WGCNTextClassifier().fit(texts, labels)
    other = next(topic for topic in TOPICS if topic != labels[3])
    model.update([texts[3], texts[4]], [other, None])
    found = model.session_.labels
    now = found.classes[found.targets.codes].tolist()
    assert now == [*labels[:3], other, *labels[4:]]
    assert_same_scores(model, WGCNTextClassifier().fit(texts, now), texts)


def test_one_corrected_label_among_many_is_learnt() -> None:
    texts, labels = corpus(700)
    model = WGCNTextClassifier().fit(texts, labels)
    column = model.classes_.tolist().index("law")
    place = labels.index("sea")
    before = model.decision_function([texts[place]])[0, column]
    after = model.update([texts[place]], ["law"]).decision_function([texts[place]])[0, column]
    labels[place] = "law"
    wanted = WGCNTextClassifier().fit(texts, labels).decision_function([texts[place]])[0, column]
    assert abs(after - wanted) < 0.3 * abs(wanted - before)


def test_each_copy_of_a_known_text_gets_the_label_and_a_new_text_is_added_as_often_as_it_comes() -> None:
    texts, labels = corpus(20)
    model = WGCNTextClassifier().fit([*texts, texts[0]], [*labels, None])
    model.update([texts[0], "a new text", "a new text"], ["law", "law", "sea"])
    found = model.session_.labels
    now = found.classes[found.targets.codes].tolist()
    assert now == ["law", *labels[1:], "law", "law", "sea"]


def test_background_and_weights_stay() -> None:
    texts, labels = corpus(120)
    weight = np.linspace(0.2, 2, 80)
    updated = WGCNTextClassifier().fit(texts[:80], labels[:80], weight, background=texts[100:])
    updated.update(texts[80:100], labels[80:100])
    everything = np.append(weight, np.ones(20))
    fitted = WGCNTextClassifier().fit(texts[:100], labels[:100], everything, background=texts[100:])
    assert_same_preparation(updated, fitted)
    assert_same_scores(updated, fitted, texts)


def test_documents_of_weight_zero() -> None:
    texts, labels = corpus(120)
    weight = np.tile([0.0, 1.0], 50)
    updated = WGCNTextClassifier().fit(texts[:100], labels[:100], weight).update(texts[100:], labels[100:])
    fitted = WGCNTextClassifier().fit(texts, labels, np.append(weight, np.ones(20)))
    assert_same_scores(updated, fitted, texts)


def test_several_labels_per_text() -> None:
    texts, labels = corpus(120)
    both = [[label, "short"] if len(text) < 70 else [label] for text, label in zip(texts, labels, strict=True)]
    updated = WGCNTextClassifier().fit(texts[:100], both[:100]).update(texts[100:], both[100:])
    fitted = WGCNTextClassifier().fit(texts, both)
    assert np.abs(updated.decision_function(texts) - fitted.decision_function(texts)).max() < 0.15
    matrix = fitted.session_.labels.targets.toarray()
    from_matrix = WGCNTextClassifier().fit(texts[:100], matrix[:100]).update(texts[100:], matrix[100:])
    assert np.array_equal(from_matrix.session_.labels.targets.toarray(), matrix)


def test_new_texts_are_held_out_before_they_are_learnt() -> None:
    texts, labels = corpus(400)
    model = WGCNTextClassifier().fit(texts[:300], labels[:300])
    scored = model.decision_function(texts[300:])
    earlier = model.classifier_.trained_.held_out
    assert earlier is not None
    held_out = model.update(texts[300:], labels[300:]).classifier_.trained_.held_out
    assert held_out is not None
    assert held_out.rows.tolist() == list(range(300, 400))
    assert np.abs(held_out.scores - scored).max() < 1e-4
    assert model.classifier_.held_out_accuracy_ == np.mean(model.classes_[scored.argmax(axis=1)] == labels[300:])
    held_out = model.update(["x y z"], ["law"]).classifier_.trained_.held_out
    assert held_out is not None
    assert held_out.rows.tolist() == list(range(361, 401))


def test_too_few_held_out_scores_are_found_anew() -> None:
    texts, labels = corpus(400)
    model = WGCNTextClassifier().fit(texts[:100], labels[:100]).update(texts[:1], labels[:1])
    assert model.classifier_.n_held_out_ == 10
    known = [*labels[:101], *[None] * 299]
    model = WGCNTextClassifier(alpha=0).fit(texts, known)
    assert Thresholds().beside_teacher > 400
    assert model.update(texts, labels).classifier_.n_held_out_ == 40


def test_what_tune_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = corpus(80)
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=50, hold_out=50))
    model = WGCNTextClassifier().fit(texts[:70], labels[:70])
    tuned = model.tuned_
    assert tuned is not None
    monkeypatch.setattr(training, "tune", None)
    assert model.update(texts[70:], labels[70:]).tuned_ is tuned


def test_update_is_deterministic() -> None:
    texts, labels = corpus(90)
    models = [WGCNTextClassifier().fit(texts[:80], labels[:80]).update(texts[80:], labels[80:]) for _ in range(2)]
    assert models[0].word_embeddings_.tobytes() == models[1].word_embeddings_.tobytes()


def test_what_cannot_be_updated_is_explained() -> None:
    texts, labels = corpus(30)
    model = WGCNTextClassifier()
    with pytest.raises(NotFittedError):
        model.update(texts, labels)
    model.fit(texts, labels)
    with pytest.raises(InputError, match="1 texts but 2 labels"):
        model.update(texts[:1], labels[:2])
    with pytest.raises(InputError, match="all strings or all numbers"):
        model.update(texts[:1], [7])
    with pytest.raises(InputError, match="fit again"):
        model.extend(texts).update(texts[:1], labels[:1])
    linked = WGCNTextClassifier().fit(texts, labels, document_graph=csr_array(identity(30, np.float32)))
    linked.update(texts[:1], ["law"])
    with pytest.raises(InputError, match="1 of the texts are new, and the last fit had document_graph"):
        linked.update(["a new text"], ["law"])
    model.window = 5
    with pytest.raises(InputError, match="were changed after the last fit"):
        model.update(texts[:1], labels[:1])
