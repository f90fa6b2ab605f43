"""Where long texts say at their beginning what they are about, the beginning counts more: by every path alike."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier
from wgcn.estimators.preparation import Preparation, Prepared
from wgcn.labels.targets import Targets
from wgcn.linear import training as linear_training
from wgcn.linear.model import LinearSettings
from wgcn.linear.task import LinearTask, LinearTraining, Thresholds
from wgcn.linear.training import train_linear
from wgcn.linear.tuning import LEADS
from wgcn.text.weighting import LONG, TermWeighting, smooth_idf

TOPICS = ("art", "law", "sea")
# Whether there is compiled code, and from how many characters on a table is made without it.
PATHS = {"compiled": (True, 0), "table": (False, -1), "plain": (False, 1 << 60)}


@pytest.fixture(scope="module", autouse=True)
def _few_labels_are_enough() -> Iterator[None]:
    with threadpool_limits(1, "blas"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=100, beside_teacher=100))
        yield


def made(n: int, n_words: int = 150, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts of which only the first twelve words tell the topic, and the topics.

    Half of these words are of the topic. Of the others, three in ten are of any topic.
    """
    rng = np.random.default_rng(seed)
    labels, texts = [TOPICS[i] for i in rng.integers(0, 3, n)], []
    for label in labels:
        topics = [*np.where(rng.random(12) < 0.5, label, "common"), *rng.choice(TOPICS, n_words - 12)]
        topics[12:] = np.where(rng.random(n_words - 12) < 0.3, topics[12:], "common")
        texts.append(" ".join(f"{topic}{i}" for topic, i in zip(topics, rng.integers(0, 20, n_words), strict=True)))
    return texts, labels


def with_new_words(texts: list[str]) -> list[str]:
    """Return texts with words that training did not see: before, within and after what counts more, and alone."""
    edited = [f"seas artful {text} lawless" for text in texts[:5]]
    edited += [" ".join(f"{word} seaside" for word in text.split()) for text in texts[5:8]]
    return [*texts, *edited, "seas artful lawless", "zzzz", "", "seas " * 300, "art1 " * 700 + "sea1"]


def bits(rows: csr_array) -> tuple[bytes, ...]:
    return rows.data.tobytes(), *(part.astype(np.int64).tobytes() for part in (rows.indices, rows.indptr))


def take(path: str, patch: pytest.MonkeyPatch) -> None:
    compiled, worth_a_table = PATHS[path]
    patch.setattr("wgcn.text.tokenize.term_code.is_compiled", compiled)
    patch.setattr("wgcn.scoring.terms._WORTH_A_TABLE", worth_a_table)


TEXTS, LABELS = made(240)
MORE, TRUTH = made(200, seed=1)


@pytest.fixture(scope="module", params=[(1, 1), (1, 2)], ids=["words", "pairs"])
def fitted(request: pytest.FixtureRequest) -> WGCNTextClassifier:
    return WGCNTextClassifier(ngram_range=request.param, n_jobs=1).fit(TEXTS, LABELS)


def test_a_lead_is_chosen_where_it_helps(fitted: WGCNTextClassifier) -> None:
    assert fitted.tuned_ is not None
    assert fitted.tuned_.settings["lead"] == fitted.model_.weighting.lead in LEADS
    assert fitted.tuned_.accuracy > fitted.tuned_.default_accuracy
    plain = WGCNTextClassifier(ngram_range=fitted.ngram_range, tune=False, n_jobs=1).fit(TEXTS, LABELS)
    assert fitted.score(MORE, TRUTH) > plain.score(MORE, TRUTH) + 0.05


def test_without_tune_there_is_no_lead() -> None:
    fitted = WGCNTextClassifier(tune=False, n_jobs=1).fit(TEXTS, LABELS)
    assert fitted.tuned_ is None
    assert fitted.model_.weighting.lead == 0
    assert fitted.session_.prepared.leading == {}


def test_with_few_labels_there_is_no_lead() -> None:
    few = [label if i < 99 else None for i, label in enumerate(LABELS)]
    fitted = WGCNTextClassifier(n_jobs=1).fit(TEXTS, few)
    assert fitted.tuned_ is None
    assert fitted.model_.weighting.lead == 0
    assert fitted.session_.prepared.leading == {}


def test_short_texts_have_no_lead() -> None:
    texts, labels = made(240, n_words=LONG)
    fitted = WGCNTextClassifier(ngram_range=(1, 1), n_jobs=1).fit(texts, labels)
    assert fitted.tuned_ is not None
    assert fitted.tuned_.settings["lead"] == fitted.model_.weighting.lead == 0
    assert fitted.session_.prepared.leading == {}
    # Also in a model that has a lead, since others were long: all parts of a short text count alike.
    model = WGCNTextClassifier(ngram_range=(1, 1), n_jobs=1).fit(TEXTS, LABELS).model_
    assert model.weighting.lead > 0
    turned = [" ".join(reversed(text.split())) for text in texts]
    assert np.array_equal(model.scores(texts), model.scores(turned))
    longer = [f"{text} common1" for text in texts], [f"{text} common1" for text in turned]
    assert not np.isclose(model.scores(longer[0]), model.scores(longer[1])).all(axis=1).any()


def test_some_long_texts_among_short_ones_are_not_enough_for_a_lead() -> None:
    short = [text[:300] for text in TEXTS]
    prepare = Preparation(ngram_range=(1, 1)).prepare
    for n_long, leads in ((59, []), (60, [50, 200])):
        prepared = prepare([*TEXTS[:n_long], *short[n_long:]], leads=(50, 200))
        assert list(prepared.leading) == leads
    assert list(prepare(TEXTS).leading) == []
    assert list(prepare(TEXTS, leads=(0, 7)).leading) == [7]


def test_a_text_of_very_many_words_is_long() -> None:
    # As many as 256 and a few: their number, in a byte, would be small.
    texts = [" ".join(f"w{j}" for j in range(256 + 20 + i)) for i in range(4)]
    assert list(Preparation(ngram_range=(1, 1)).prepare(texts, leads=(3,)).leading) == [3]


def test_the_rows_of_training_are_those_of_the_texts(fitted: WGCNTextClassifier) -> None:
    prepared = fitted.session_.prepared
    assert prepared.weighting.lead == fitted.model_.weighting.lead
    for path in PATHS:
        with pytest.MonkeyPatch.context() as patch:
            take(path, patch)
            terms = replace(fitted.model_).terms(TEXTS)
            rows = csr_array((terms.weights, terms.words, terms.offsets), shape=prepared.document_terms.shape)
            assert bits(rows) == bits(prepared.document_terms)


def test_texts_matrix_folder_pickle_and_plain_code_give_the_same_bits(
    fitted: WGCNTextClassifier, tmp_path: Path
) -> None:
    texts = with_new_words(MORE)
    expected = fitted.predict_proba(texts)
    fitted.save(tmp_path / "model")
    document = json.loads((tmp_path / "model" / "config.json").read_text())
    assert document["config"]["lead"] == fitted.model_.weighting.lead > 0
    loaded = TextModel.load(tmp_path / "model")
    copies = (fitted, fitted.model_, loaded, pickle.loads(pickle.dumps(loaded)), pickle.loads(pickle.dumps(fitted)))
    for path in PATHS:
        with pytest.MonkeyPatch.context() as patch:
            take(path, patch)
            for model in copies:
                assert model.predict_proba(texts).tobytes() == expected.tobytes()
            one_by_one = np.vstack([replace(loaded).predict_proba([text]) for text in texts])
            assert one_by_one.tobytes() == expected.tobytes()
            for why, row in zip(loaded.explain(texts), loaded.scores(texts), strict=True):
                assert why.total().tobytes() == row.tobytes()
    rows = fitted.session_.prepared.document_terms
    of_rows = fitted.classifier_.predict_proba(rows)
    assert of_rows.tobytes() == fitted.predict_proba(TEXTS).tobytes()
    without = replace(loaded, weighting=replace(loaded.weighting, lead=0))
    assert not np.isclose(without.predict_proba(MORE), expected[: len(MORE)]).all(axis=1).any()


def test_new_words_are_not_among_the_terms_that_count_more(fitted: WGCNTextClassifier) -> None:
    model = replace(fitted.model_, ngram_range=(1, 1))
    texts = [f"seas artful {text}" for text in MORE]
    known, more = model.terms(MORE), model.terms(texts)
    is_new = more.words >= len(model.vocabulary)
    assert (is_new.sum(), more.new_words) == (2 * len(MORE), ["seas", "artful"])
    assert more.weights[~is_new].tobytes() == known.weights.tobytes()
    assert len(np.unique(more.weights[is_new].round(6))) > 1  # by the length of the text


def test_a_term_in_the_lead_counts_three_times(fitted: WGCNTextClassifier) -> None:
    prepared = fitted.session_.prepared
    lead = prepared.weighting.lead
    leading, counts = prepared.leading[lead], prepared.term_counts
    sums = np.add.reduceat(leading.astype(int), counts.indptr[:-1])
    assert sums.tolist() == [lead] * len(TEXTS)
    tf = counts.data + 2.0 * leading
    expected = (1 + np.log(tf)) * prepared.weighting.idf[counts.indices]
    lengths = np.sqrt(np.add.reduceat(expected**2, counts.indptr[:-1]))
    expected /= np.repeat(lengths, np.diff(counts.indptr))
    np.testing.assert_allclose(prepared.document_terms.data, expected, rtol=1e-5)


def test_rows_by_lead_are_those_of_each_lead() -> None:
    prepared = Preparation().prepare(TEXTS, leads=(5, 50))
    assert prepared.weighting.lead == 0
    assert prepared.with_lead(0) is prepared
    subwords = prepared.subwords
    by_lead = prepared.by_lead
    assert list(by_lead) == [5, 50]
    rows = [bits(prepared.document_terms), *map(bits, by_lead.values())]
    assert len(set(rows)) == 3
    for lead, each in by_lead.items():
        other = prepared.with_lead(lead)
        assert other.weighting.lead == lead
        assert bits(other.document_terms) == bits(each)
        assert bits(other.with_lead(0).document_terms) == rows[0]
        assert other.subwords is subwords
        assert np.array_equal(each.indices, prepared.document_terms.indices)
    assert (prepared.weighting.lead, bits(prepared.document_terms)) == (0, rows[0])


def test_background_has_no_part_in_the_lead() -> None:
    prepared, alone = (Preparation().prepare(TEXTS[:9], background=each, leads=(7,)) for each in (TEXTS[9:30], ()))
    assert prepared.n_background == 21
    assert len(prepared.leading[7]) == prepared.term_counts.nnz
    together = Preparation().prepare(TEXTS[:30], leads=(7,))
    assert bits(prepared.by_lead[7]) == bits(together.by_lead[7][:9])
    assert alone.leading[7].sum() == prepared.leading[7].sum() == 7 * 9


@pytest.mark.parametrize("new", [0, 40])
def test_an_update_keeps_the_lead(fitted: WGCNTextClassifier, new: int) -> None:
    model = WGCNTextClassifier(ngram_range=fitted.ngram_range, n_jobs=1).fit(
        TEXTS[:200], [None if i < 10 else label for i, label in enumerate(LABELS[:200])]
    )
    lead, tuned = model.model_.weighting.lead, model.tuned_
    assert lead > 0
    model.update([*TEXTS[:10], *TEXTS[200 : 200 + new]], [*LABELS[:10], *LABELS[200 : 200 + new]])
    assert model.model_.weighting.lead == model.session_.prepared.weighting.lead == lead
    assert model.tuned_ is tuned
    afresh = Preparation(ngram_range=fitted.ngram_range).prepare(TEXTS[: 200 + new], leads=(lead,)).with_lead(lead)
    assert bits(model.session_.prepared.document_terms) == bits(afresh.document_terms)
    by_rows = model.classifier_.predict_proba(afresh.document_terms)
    assert by_rows.tobytes() == model.predict_proba(TEXTS[: 200 + new]).tobytes()
    assert model.score(MORE, TRUTH) > 0.6


def test_an_update_of_a_model_without_a_lead_gives_it_none() -> None:
    model = WGCNTextClassifier(tune=False, n_jobs=1).fit(TEXTS[:150], LABELS[:150])
    model.update(TEXTS[150:], LABELS[150:])
    assert model.model_.weighting.lead == 0
    assert model.session_.prepared.leading == {}


def test_extended_models_have_the_lead_of_the_model(fitted: WGCNTextClassifier) -> None:
    larger = fitted.extend([f"{text} newest newest" for text in MORE[:20]])
    assert "newest" in larger.model_.vocabulary.index
    assert larger.model_.weighting.lead == fitted.model_.weighting.lead
    assert larger.predict_proba(MORE).tobytes() == fitted.predict_proba(MORE).tobytes()


def test_what_was_chosen_is_in_the_report_and_on_the_card(fitted: WGCNTextClassifier, tmp_path: Path) -> None:
    lead = fitted.model_.weighting.lead
    fitted.save(tmp_path / "model")
    model = TextModel.load(tmp_path / "model")
    assert model.settings["lead"] == model.report["tuned"]["settings"]["lead"] == lead
    assert f"lead {lead}" in (tmp_path / "model" / "README.md").read_text()


# By matrices alone


def prepared_with(leads: tuple[int, ...] = (50,)) -> Prepared:
    return Preparation(ngram_range=(1, 1)).prepare([*TEXTS, *MORE[:60]], leads=leads)


@pytest.mark.parametrize("n_unlabelled", [0, 60])
def test_a_matrix_of_a_lead_is_what_the_model_is_fitted_to(n_unlabelled: int) -> None:
    prepared, n = prepared_with(), len(TEXTS)
    rows, led = prepared.document_terms[: n + n_unlabelled], prepared.by_lead[50][: n + n_unlabelled]
    given = {"word_graph": prepared.word_graph, "subwords": prepared.subword_matrix()}
    # Labels of some documents are unknown, and others come after those of X.
    labels = [None if i % 40 == 0 else label for i, label in enumerate(LABELS)]
    fit = WGCNClassifier(n_jobs=1).fit(rows[:n], labels, unlabeled=rows[n:], leads={50: led}, **given)
    assert fit.tuned_ is not None
    assert fit.tuned_.settings["lead"] == 50
    same = WGCNClassifier(C=fit.tuned_.settings["C"], naive_bayes=fit.tuned_.settings["naive_bayes"], tune=False)
    scores = [
        same.fit(each[:n], labels, unlabeled=each[n:], **given).decision_function(prepared.by_lead[50])
        for each in (led, rows)
    ]
    found = fit.decision_function(prepared.by_lead[50])
    # The teacher knows the documents as they were before the choice; the fits are those of the rows with a lead.
    distances = [float(np.sqrt(np.mean(np.square(found - each)))) for each in scores]
    assert distances[0] < (0.1 if n_unlabelled else 0.05)
    assert distances[0] < distances[1] / 3


def test_without_tune_or_leads_a_matrix_is_taken_as_it_is() -> None:
    prepared, n = prepared_with(), len(TEXTS)
    rows, leads = prepared.document_terms[:n], {50: prepared.by_lead[50][:n]}
    off = [WGCNClassifier(tune=False, n_jobs=1).fit(rows, LABELS, leads=each) for each in (leads, None)]
    assert off[0].word_embeddings_.tobytes() == off[1].word_embeddings_.tobytes()
    tuned = WGCNClassifier(n_jobs=1).fit(rows, LABELS, leads={}).tuned_
    assert tuned is not None
    assert tuned.settings["lead"] == 0


def test_a_lead_that_does_not_help_is_not_chosen() -> None:
    prepared, n = prepared_with(), len(TEXTS)
    rows, led = prepared.document_terms[:n], prepared.by_lead[50][:n]
    # The other way round: what is given as the choice leaves out what helps.
    fit = WGCNClassifier(n_jobs=1).fit(led, LABELS, leads={50: rows})
    assert fit.tuned_ is not None
    assert fit.tuned_.settings["lead"] == 0


def test_documents_of_weight_0_are_left_out_of_the_rows_of_every_lead() -> None:
    prepared, n = prepared_with(), len(TEXTS)
    own, led = prepared.document_terms[:n], prepared.by_lead[50][:n]
    targets, weight = Targets.single([TOPICS.index(label) for label in LABELS], 3), np.ones(n)
    weight[::10] = 0
    none, used, graph = csr_array((0, own.shape[1]), dtype=np.float32), weight > 0, csr_array((own.shape[1],) * 2)
    training = LinearTraining(LinearSettings(), n_jobs=1)
    some = LinearTask(
        terms=own, targets=targets, weight=weight, unlabelled=none, adjacency=graph, leads={50: (led, none)}
    )
    fewer = replace(some, terms=own[used], targets=targets[used], weight=weight[used], leads={50: (led[used], none)})
    one, other = (train_linear(task, training) for task in (some, fewer))
    assert one.tuned is not None
    assert one.tuned == other.tuned
    assert one.tuned.settings["lead"] == 50
    assert one.scorer.word_embeddings.tobytes() == other.scorer.word_embeddings.tobytes()


def test_trials_of_a_lead_are_fitted_to_its_rows_and_judged_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, n = prepared_with((50, 5)), len(TEXTS)
    sums, fit_linear = list[float](), linear_training.fit_linear

    def watched(terms: csr_array, *given: object, **named: object) -> object:
        sums.append(float(terms.sum()) / terms.shape[0])
        return fit_linear(terms, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(linear_training, "fit_linear", watched)
    by_lead = prepared.by_lead.items()
    leads = {lead: rows[:n] * np.float32(size) for (lead, rows), size in zip(by_lead, (0.5, 0.25), strict=True)}
    fit = WGCNClassifier(n_jobs=1).fit(prepared.document_terms[:n], LABELS, leads=leads)
    assert fit.tuned_ is not None
    assert fit.tuned_.settings["lead"] == 50
    sizes = [int(np.log2(sums[0] / each).round()) for each in sums]
    # The default and each lead; the best one with another C; the default and it on the second part; the model twice.
    n_penalties = fit.tuned_.n_fits - 4
    assert n_penalties >= 2
    assert sizes == [0, 1, 2, *[1] * n_penalties, 0, 1, 1, 1]


def test_a_weighting_has_no_lead_unless_told() -> None:
    assert TermWeighting(np.ones(1, np.float32)).lead == 0
    assert TermWeighting(smooth_idf(np.ones(1, np.int64), 1)).lead == 0
