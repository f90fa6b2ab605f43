"""X on disk has the rows of X in memory, and selections of it are those of a csr_array."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from wgcn.estimators.preparation import Preparation, Prepared
from wgcn.scale.corpus import Coding, Piece, choose_vocabulary, find_shards, tokenised
from wgcn.scale.documents import ShardedDocuments, store_documents
from wgcn.scale.store import open_work
from wgcn.scale.workers import Limits, LocalWorkers, Site
from wgcn.trust.scope import n_tokens

LEADS = 5, 20
Stored = tuple[Prepared, ShardedDocuments, list[Piece], Site, Coding]


@pytest.fixture(scope="module", params=[None, {"w1", "w2"}], ids=["all words", "stop words"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("stored")
    lengths = [0, 3, *rng.integers(1, 200, 40).tolist(), 0]
    texts = [" ".join(f"w{word}" for word in (60 ** rng.random(n)).astype(int)) for n in lengths]
    paths = [folder / "0.txt", folder / "1.txt"]
    for path, some in zip(paths, (texts[:20], texts[20:]), strict=True):
        path.write_text("\n".join(some) + "\n")
    preparation = Preparation(stop_words=request.param, n_jobs=1)
    prepared, shards = preparation.prepare(texts, with_graph=False, leads=LEADS), find_shards(paths)
    rules, inputs = preparation.vocabulary_rules(), [shard.identity() for shard in shards]
    with open_work(folder / "work", {}, inputs) as work:
        site = Site(work, LocalWorkers(2), Limits(partition_tokens=(500, 500)), inputs)
        pieces = tokenised(shards, site)
        words, coding = choose_vocabulary(pieces, site, ngram_range=(1, 2), rules=rules)
        assert words == prepared.vocabulary
        how = {"leads": LEADS, "stop_words": frozenset(request.param or ())}
        found = store_documents(pieces, site, coding, prepared.weighting, **how)
    return prepared, found, pieces, site, coding


def same(found: csr_array, expected: csr_array) -> bool:
    arrays = ("data", "indices", "indptr")
    return found.shape == expected.shape and all(
        np.array_equal(getattr(found, name), getattr(expected, name)) for name in arrays
    )


def test_rows_counts_and_lengths_are_those_in_memory(stored: Stored) -> None:
    prepared, found, *_ = stored
    assert len(found.partitions) > 3
    assert same(found.csr, prepared.document_terms)
    assert same(found.counts(), prepared.term_counts)
    assert found.shape == prepared.document_terms.shape
    assert found.nnz == prepared.document_terms.nnz
    stop_words = prepared.preparation.stop_words or ()
    expected = n_tokens(prepared.tokens, np.arange(found.shape[0]), (1, 2), stop_words)
    assert found.lengths().tolist() == expected.tolist()


@pytest.mark.parametrize("lead", LEADS)
def test_rows_with_a_lead_are_those_in_memory(stored: Stored, lead: int) -> None:
    prepared, found, *_ = stored
    assert same(replace(found, lead=lead).csr, prepared.with_lead(lead).document_terms)


def test_selections_are_those_of_a_matrix(stored: Stored) -> None:
    prepared, found, *_ = stored
    matrix, rng = prepared.document_terms, np.random.default_rng(1)
    mask, rows = rng.random(found.shape[0]) < 0.5, rng.permutation(found.shape[0])[:9]
    for key in (mask, rows, slice(3, 30), np.array([7, 7, 0])):
        assert same(found[key].csr, csr_array(matrix[key]))
    assert same(found[mask][1:4].joined(found[rows]).csr, csr_array(matrix[[*np.flatnonzero(mask)[1:4], *rows]]))
    assert np.array_equal(found[rows][:, [2, 5]].toarray(), matrix[rows][:, [2, 5]].toarray())
    table = rng.random((found.n_words, 2)).astype(np.float32)
    np.testing.assert_array_equal(found[rows] @ table, matrix[rows] @ table)
    assert found[rows[:0]].csr.shape == (0, found.n_words)


def test_what_is_stored_is_not_stored_again(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, found, pieces, site, coding = stored
    monkeypatch.setattr(Coding, "encode", None)  # which it would need
    how = {"leads": LEADS, "stop_words": frozenset(prepared.preparation.stop_words or ())}
    again = store_documents(pieces, replace(site, workers=LocalWorkers(1)), coding, prepared.weighting, **how)
    assert again.partitions == found.partitions
