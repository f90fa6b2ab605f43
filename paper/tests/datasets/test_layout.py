"""The benchmark sets as they lie in a data folder: what is found, what is read, and what damage does."""

import gzip
import io
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, save_npz

from wgcn.base.errors import InputError
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import VocabularyRules
from wgcn_paper.datasets import DATASETS, Dataset, dataset_names, docs_corpus, layout, load_dataset, stop_words


@pytest.fixture
def folder(cache, layout_folder, monkeypatch):
    monkeypatch.setenv("WGCN_DATA", str(layout_folder))
    return layout_folder


# What is there


def test_text_set_is_training_then_test(folder):
    found = load_dataset("r8")
    assert found.name == "r8"
    assert found.texts == ("It  purrs, café.", "It howls.", "It barks.")
    assert found.labels.tolist() == ["cat", "dog", "dog"]
    assert (found.train.tolist(), found.test.tolist()) == ([0, 1], [2])
    assert found.features is found.document_graph is found.names is found.validation is None


def test_citation_set_has_features_a_graph_and_validation(folder, citation_set):
    found = load_dataset("cora")
    assert isinstance(found.features, csr_array)
    assert isinstance(found.document_graph, csr_array)
    assert found.features.dtype == found.document_graph.dtype == np.float32
    assert found.labels.dtype == np.int64
    assert found.labels.tolist() == [0, 1, 0, 1, 0, -1, 1]
    assert found.classes.tolist() == [0, 1]
    assert (found.train.tolist(), found.validation.tolist(), found.test.tolist()) == ([0], [1], [4, 6])
    assert found.texts is found.names is None
    assert layout.citation_digest(found) == layout.citation_digest(citation_set)


def test_docs_is_the_docs_corpus(monkeypatch):
    monkeypatch.setattr(layout, "docs_corpus", lambda: "the docs corpus")
    assert docs_corpus is not layout.docs_corpus
    assert load_dataset("docs") == "the docs corpus"


def test_the_own_folder_comes_before_the_cache(folder, cache):
    prepared = cache / "data/text/r8"
    prepared.mkdir(parents=True)
    for part in ("train", "test"):
        (prepared / f"{part}.tsv.gz").write_bytes(gzip.compress(b"cow\tIt moos.\n"))
    assert load_dataset("r8").texts[0] == "It  purrs, café."
    (folder / "text/r8/test.tsv.gz").unlink()
    assert load_dataset("r8").texts == ("It moos.", "It moos.")


def test_digests_do_not_depend_on_spaces_or_compression(text_set):
    spaced = [f" {text} ".replace(" ", "\xa0 ") for text in text_set.texts]
    assert layout.text_digest(text_set.labels, spaced) == layout.text_digest(text_set.labels, text_set.texts)
    assert layout.text_digest(["a"], ["b c"]) != layout.text_digest(["a"], ["bc"])


def test_the_same_documents_give_the_same_bytes(folder, text_set, tmp_path):
    layout.write_text_set(tmp_path, text_set)
    for file in ("train.tsv.gz", "test.tsv.gz"):
        assert (tmp_path / file).read_bytes() == (folder / "text/r8" / file).read_bytes()


# What is not there


def test_one_message_says_where_it_looked_and_how_to_get_a_set(cache, tmp_path, monkeypatch):
    with pytest.raises(InputError) as error:
        load_dataset("r8")
    assert str(cache / "data/text/r8") in str(error.value)
    assert "wgcn-paper data prepare r8" in str(error.value)
    assert "WGCN_DATA" in str(error.value)
    monkeypatch.setenv("WGCN_DATA", str(tmp_path / "mine"))
    (tmp_path / "mine/citation/cora").mkdir(parents=True)
    with pytest.raises(InputError) as error:
        load_dataset("cora")
    assert f"{tmp_path / 'mine/citation/cora'} (lacks features.npz" in str(error.value)
    assert str(cache / "data/citation/cora") in str(error.value)
    assert "\n" not in str(error.value)


def test_the_same_for_the_stop_words(cache):
    with pytest.raises(InputError, match=r"stopwords_english\.txt.*wgcn-paper data prepare stopwords.*WGCN_DATA"):
        stop_words()


def test_without_a_home_folder_there_is_still_one_message(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("WGCN_DATA", raising=False)
    monkeypatch.setattr(layout, "cache_folder", nowhere)
    with pytest.raises(InputError, match=r"no home folder.*wgcn-paper data prepare r8"):
        load_dataset("r8")


@pytest.mark.parametrize("name", ["R8", "", "../r8", "/etc", "x" * 1000, "text/r8"])
def test_unknown_names_list_the_known_ones(name):
    with pytest.raises(InputError, match=r"There is no data set.*20ng, r8, r52.*docs\."):
        load_dataset(name)


def test_loading_needs_no_network_code_and_no_torch():
    script = "import sys, wgcn_paper.datasets; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(result.stdout.split()) & {
        "urllib.request",
        "http.client",
        "scipy",
        "sklearn",
        "torch",
        "pickletools",
    }


# Damage


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def sparse(matrix):
    buffer = io.BytesIO()
    save_npz(buffer, matrix)
    return buffer.getvalue()


def parts(indptr, indices, data, shape=(7, 3), kind=b"csr"):
    return npz(indptr=indptr, indices=indices, data=data, shape=np.array(shape), format=np.array(kind))


OBJECTS = np.array([{"any": "thing"}], dtype=object)
SPLIT = {"train_idx": np.array([0]), "val_idx": np.array([1]), "test_idx": np.array([4, 6])}
ONES = np.ones(1, np.float32)


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("text/r8/train.tsv.gz", b""),
        ("text/r8/train.tsv.gz", gzip.compress(b"", mtime=0)),
        ("text/r8/train.tsv.gz", b"cat\tnot compressed\n"),
        ("text/r8/train.tsv.gz", gzip.compress(b"cat\tIt purrs.\n" * 1000, mtime=0)[:-20]),
        ("text/r8/train.tsv.gz", gzip.compress(b"no tab\n", mtime=0)),
        ("text/r8/test.tsv.gz", gzip.compress(b"cat\tIt purrs.\nno tab\n", mtime=0)),
        ("text/r8/test.tsv.gz", gzip.compress(b"cat\tIt purrs.\n\tno label\n", mtime=0)),
        ("text/r8/test.tsv.gz", gzip.compress(b"\0\0\0\t\0", mtime=0)),
        ("citation/cora/labels.npy", b""),
        ("citation/cora/labels.npy", b"\x93NUMPY"),
        ("citation/cora/labels.npy", npy(np.arange(7))[:-1]),
        ("citation/cora/labels.npy", npy(OBJECTS, allow_pickle=True)),
        ("citation/cora/labels.npy", npy(np.zeros((7, 1), np.int64))),
        ("citation/cora/labels.npy", npy(np.zeros(7))),
        ("citation/cora/labels.npy", npy(np.array(list("abcdefg")))),
        ("citation/cora/labels.npy", npy(np.full(7, -2))),
        ("citation/cora/labels.npy", npz(labels=np.zeros(7, np.int64))),
        ("citation/cora/features.npz", b"PK\x03\x04"),
        ("citation/cora/features.npz", npy(np.zeros((7, 3)))),
        ("citation/cora/features.npz", npz(data=np.zeros((7, 3)))),
        ("citation/cora/features.npz", npz(format=np.array(b"csr"), data=OBJECTS)),
        ("citation/cora/features.npz", sparse(csr_array((6, 3)))),
        ("citation/cora/features.npz", sparse(csr_array((7, 3), dtype=complex))),
        ("citation/cora/features.npz", sparse(coo_array((7, 3)))),
        ("citation/cora/features.npz", sparse(csr_array(np.full((7, 3), np.inf)))),
        ("citation/cora/features.npz", parts(np.array([0] * 7 + [1]), np.array([3]), ONES)),
        ("citation/cora/features.npz", parts(np.array([0] * 7 + [1]), np.array([-1]), ONES)),
        ("citation/cora/features.npz", parts(np.array([0] * 7 + [2]), np.array([0]), ONES)),
        ("citation/cora/features.npz", parts(np.array([0] * 7 + [-1]), np.array([0]), ONES)),
        ("citation/cora/features.npz", parts(np.array([0, 1, 0, 0, 0, 0, 0, 0]), np.array([99]), ONES)),
        ("citation/cora/features.npz", parts(np.array([0] * 7 + [1]), np.array([0]), ONES, (10**15, 3))),
        ("citation/cora/features.npz", parts(np.array([0] * 7 + [1]), np.array([0]), ONES, (7, 3, 3))),
        ("citation/cora/features.npz", parts(np.array([0] * 7 + [1]), np.array([0]), ONES, kind=b"evil")),
        ("citation/cora/adjacency.npz", sparse(csr_array((7, 6)))),
        ("citation/cora/adjacency.npz", sparse(csr_array((6, 6)))),
        ("citation/cora/split.npz", npz(train_idx=np.array([0]))),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": OBJECTS})),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": np.array([7])})),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": np.array([-1])})),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": np.array([0])})),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": np.array([4])})),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": np.array([1, 1])})),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": np.array([5])})),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": np.array([1.0])})),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": np.array([True])})),
        ("citation/cora/split.npz", npz(**SPLIT | {"val_idx": np.zeros((1, 1), int)})),
    ],
)
def test_damaged_and_hostile_files_are_one_error_that_names_them(folder, file, data):
    (folder / file).write_bytes(data)
    with pytest.raises(InputError) as error:
        load_dataset(file.split("/")[1])
    assert str(folder / file) in str(error.value)


def test_objects_are_never_unpickled(folder, tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "marker",))

    evil = np.array([Evil()], dtype=object)
    (folder / "citation/cora/labels.npy").write_bytes(npy(evil, allow_pickle=True))
    with pytest.raises(InputError, match=r"labels\.npy"):
        load_dataset("cora")
    (folder / "citation/cora/split.npz").write_bytes(npz(train_idx=evil))
    with pytest.raises(InputError):
        load_dataset("cora")
    assert not (tmp_path / "marker").exists()


def test_arrays_that_claim_to_be_large_are_refused(folder, monkeypatch):
    monkeypatch.setattr(layout, "MAX_ARRAY_BYTES", 10**6)
    with zipfile.ZipFile(folder / "citation/cora/features.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", npy(np.zeros(10**6)))
    with pytest.raises(InputError, match=r"features\.npz holds more than 1,000,000 bytes"):
        load_dataset("cora")
    (folder / "citation/cora/labels.npy").write_bytes(npy(np.zeros(10**6)))
    with pytest.raises(InputError, match=r"labels\.npy holds more than 1,000,000 bytes"):
        load_dataset("cora")


def test_texts_that_unpack_to_too_much_are_refused(folder, monkeypatch):
    monkeypatch.setattr(layout, "MAX_CHARACTERS", 1000)
    (folder / "text/r8/train.tsv.gz").write_bytes(gzip.compress(b"cat\tIt purrs.\n" * 1000))
    with pytest.raises(InputError, match=r"train\.tsv\.gz holds more than 1,000 characters"):
        load_dataset("r8")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["features.npz", "adjacency.npz", "labels.npy", "split.npz"]),
    st.integers(0, 10**6),
    st.binary(min_size=1, max_size=4),
)
def test_any_damage_is_an_input_error_or_no_damage(folder, file, place, garbage):
    path = folder / "citation/cora" / file
    whole = path.read_bytes()
    data = bytearray(whole)
    place %= len(data)
    data[place : place + len(garbage)] = garbage
    path.write_bytes(data)
    with suppress(InputError):
        load_dataset("cora")
    path.write_bytes(whole)


# Stop words


def test_stop_words_are_those_of_the_published_cleaning(folder, monkeypatch):
    with pytest.raises(InputError, match=r"has 3 words that are not the 179 stop words.*Other versions"):
        stop_words()
    monkeypatch.setattr(layout, "STOP_WORDS_DIGEST", layout.words_digest(["of", "it", "the"]))
    assert stop_words() == {"of", "it", "the"}


def test_stop_words_that_are_no_text(folder):
    (folder / "stopwords_english.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"stopwords_english\.txt cannot be read"):
        stop_words()
    (folder / "stopwords_english.txt").write_bytes(b"a" * (2**20 + 1))
    with pytest.raises(InputError, match="larger than 1,048,576 bytes"):
        stop_words()


# The real sets


@pytest.fixture
def real(data_folder, monkeypatch):
    monkeypatch.setenv("WGCN_DATA", str(data_folder))


@pytest.mark.parametrize("name", list(DATASETS))
def test_real_sets_have_the_published_content(real, name):
    found, known = load_dataset(name), DATASETS[name]
    layout.check_content(found, name)
    assert len(found) == known.documents
    assert (len(found.train), len(found.test), len(found.classes)) == (known.train, known.test, known.classes)


@pytest.mark.parametrize("name", ["citeseer", "pubmed", "cora"])
def test_real_networks_have_the_published_sizes(real, name):
    found, known = load_dataset(name), DATASETS[name]
    graph = found.document_graph
    loops = int(graph.diagonal().sum())
    assert found.features.shape == (known.documents, known.features)
    assert len(found.validation) == known.validation
    assert (graph.nnz - loops) // 2 + loops == known.edges
    assert (graph != graph.T).nnz == 0
    assert set(graph.data) == {1.0}


@pytest.mark.parametrize("name", [name for name, known in DATASETS.items() if known.kind == "text"])
def test_real_texts_have_the_published_statistics(real, name):
    found, known = load_dataset(name), DATASETS[name]
    rules = VocabularyRules(min_count=1) if name == "mr" else VocabularyRules(min_count=5, stop_words=stop_words())
    corpus = Corpus.from_texts(found.texts, tokenizer="text_gcn", rules=rules)
    assert len(corpus.vocabulary) == known.words
    assert corpus.n_tokens / len(found) == pytest.approx(known.mean_length, abs=0.006)


def test_there_are_179_real_stop_words(real):
    assert len(stop_words()) == 179
    assert {"the", "couldn't"} <= stop_words()


def test_every_name_has_a_set():
    assert dataset_names() == (*DATASETS, "docs")


# Validation documents and fillers


def made(**changes):
    values = {"labels": np.array([0, 1, -1, 1]), "train": np.array([0]), "test": np.array([1])} | changes
    return Dataset("made", tuple("abcd"), None, **values)


def test_validation_is_last_and_optional():
    assert made().validation is None
    assert made(validation=np.array([3])).validation.tolist() == [3]
    assert list(Dataset.__dataclass_fields__)[-1] == "validation"


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        (np.array([0]), "in both train and validation"),
        (np.array([1]), "in both test and validation"),
        (np.array([4]), "'validation' of 'made' goes from 4 to 4"),
        (np.array([-1]), "'validation'"),
        (np.array([3, 3]), "more than once"),
        (np.array([3.0]), "flat int64"),
        (np.array([[3]]), "flat int64"),
    ],
)
def test_validation_is_checked_like_the_others(validation, message):
    with pytest.raises(InputError, match=message):
        made(validation=validation)


def test_fillers_are_no_class_but_a_word_may_be_minus_one():
    assert made().classes.tolist() == [0, 1]
    assert made(labels=np.array(["-1", "a", "-1", "b"])).classes.tolist() == ["-1", "a", "b"]
    assert made(labels=np.array([-1.0, 1.0, 1.0, 1.0])).classes.tolist() == [-1.0, 1.0]
