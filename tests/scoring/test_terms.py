"""From texts to weighted terms, by every path: compiled, with a table of n-grams, and in plain Python."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wgcn import TextModel, WGCNClassifier
from wgcn.estimators.preparation import Preparation
from wgcn.model.text_model import Scorer
from wgcn.scoring import scorer as sums
from wgcn.scoring import terms
from wgcn.text.ngrams import ngrams
from wgcn.text.tokenize import Tokenizer, resolve_tokenizer, term_code
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting

RANGES = [(1, 1), (1, 2), (1, 3), (2, 2), (2, 4), (3, 3), (1, 5), (4, 5)]
# Whether there is compiled code, and from how many characters on a table is made without it.
PATHS = {"compiled": (True, 0), "table": (False, -1), "plain": (False, 1 << 60)}

words = st.sampled_from(["a", "b", "it's", "é", "हिन", "'s", "(", "今天", "天気", "👍🏽"])
entries = st.lists(st.lists(words, min_size=1, max_size=6).map(" ".join), unique=True, max_size=40)
documents = st.lists(
    st.one_of(
        st.text(alphabet="ab é'’s(,\n", max_size=30),
        st.text(alphabet="今天気a👍🏽\u200d。", max_size=12),
        st.lists(words, max_size=12).map(" ".join),
        st.text(max_size=10),
    )
)


def model_of(
    vocabulary: list[str],
    ngram_range: tuple[int, int],
    tokenizer: str | Tokenizer = "words",
    stop_words: tuple[str, ...] = (),
) -> TextModel:
    n_words, n_classes = len(vocabulary), 3
    embeddings = np.random.default_rng(0).standard_normal((n_words, n_classes)).astype(np.float32)
    scorer = Scorer(embeddings, None, np.zeros(n_classes, np.float32), np.full(n_classes, 1 / 3, np.float32))
    weighting = TermWeighting(np.ones(n_words, np.float32))
    classes = np.arange(n_classes)
    return TextModel(tokenizer, ngram_range, Vocabulary(vocabulary), weighting, scorer, classes, stop_words=stop_words)


def take(path: str, patch: pytest.MonkeyPatch) -> None:
    compiled, worth_a_table = PATHS[path]
    patch.setattr("wgcn.text.tokenize.term_code.is_compiled", compiled)
    patch.setattr("wgcn.scoring.terms._WORTH_A_TABLE", worth_a_table)


def encoded(model: TextModel, texts: list[str], path: str) -> tuple[np.ndarray, np.ndarray]:
    with pytest.MonkeyPatch.context() as patch:
        take(path, patch)
        return model._encode(texts)[:2]


def assert_ids_are_those_of_the_tokens(model: TextModel, texts: list[str], path: str) -> None:
    function, index = resolve_tokenizer(model.tokenizer), model.vocabulary.index
    tokens = [ngrams(function(text), model.ngram_range) for text in texts]
    ids, offsets = encoded(model, texts, path)
    assert ids.tolist() == [index.get(token, -1) for document in tokens for token in document]
    assert offsets.tolist() == np.cumsum([0, *map(len, tokens)]).tolist()
    assert (ids.dtype, offsets.dtype) == (np.int32, np.int64)


@pytest.mark.parametrize("tokenizer", ["words", "text_gcn", "characters"])
@given(vocabulary=entries, ngram_range=st.sampled_from(RANGES), texts=documents)
@example(vocabulary=["a b it's"], ngram_range=(1, 3), texts=["a b it's", "", "a", "b", "a zzz it's"])
@example(vocabulary=["今天 天気", "👍🏽"], ngram_range=(1, 2), texts=["今天気👍🏽", "今天 天気"])
@example(vocabulary=["a"], ngram_range=(1, 2), texts=[])
@example(vocabulary=[], ngram_range=(1, 2), texts=["a b"])
def test_every_path_gives_the_ids_of_the_joined_tokens(
    tokenizer: str, vocabulary: list[str], ngram_range: tuple[int, int], texts: list[str]
) -> None:
    for path in PATHS:
        assert_ids_are_those_of_the_tokens(model_of(vocabulary, ngram_range, tokenizer), texts, path)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 3)])
def test_tokens_may_have_spaces_in_them(path: str, ngram_range: tuple[int, int]) -> None:
    vocabulary = ["new york", "new york city", "city", "york city", "city hall new york", "hall"]
    model = model_of(vocabulary, ngram_range, lambda text: [token for token in text.split("|") if token])
    texts = ["new york|city", "new|york city|hall", "", "city hall|new york", "new|york|city"]
    assert_ids_are_those_of_the_tokens(model, texts, path)


def known_ids_and_sizes(model: TextModel, texts: list[str], path: str) -> list[tuple[list[int], int]]:
    """Return for each text the n-grams that the model knows, and how many n-grams it has."""
    ids, offsets = encoded(model, texts, path)
    assert offsets[-1] == len(ids)
    parts = [ids[begin:end].tolist() for begin, end in pairwise(offsets)]
    return [([i for i in part if i >= 0], len(part)) for part in parts]


@given(
    tokenizer=st.sampled_from(["words", "text_gcn", "characters", str.split]),
    vocabulary=entries,
    ngram_range=st.sampled_from([span for span in RANGES if span != (1, 1)]),
    stop_words=st.lists(st.one_of(words, st.just("never")), unique=True).map(tuple),
    texts=documents,
)
@example(
    tokenizer="words",
    vocabulary=["a b", "a", "b"],
    ngram_range=(1, 2),
    stop_words=("é",),
    texts=["a é b", "é", "", "é a é é b é"],
)
@example(tokenizer="words", vocabulary=["a b", "a", "b"], ngram_range=(1, 2), stop_words=("a", "b"), texts=["a b", "b"])
@example(tokenizer="words", vocabulary=["a b"], ngram_range=(2, 2), stop_words=("é",), texts=["a", "é b", "a é", "b"])
def test_stop_words_are_gone_before_ngrams_are_formed(
    tokenizer: str | Tokenizer,
    vocabulary: list[str],
    ngram_range: tuple[int, int],
    stop_words: tuple[str, ...],
    texts: list[str],
) -> None:
    model = model_of(vocabulary, ngram_range, tokenizer, stop_words)
    function, index = resolve_tokenizer(tokenizer), model.vocabulary.index
    expected = []
    for tokens in map(function, texts):
        kept = [token for token in tokens if token not in stop_words]
        found = ngrams(kept, ngram_range)
        n_stopped = len(tokens) - len(kept) if ngram_range[0] == 1 else 0
        expected.append(([index[ngram] for ngram in found if ngram in index], len(found) + n_stopped))
    for path in PATHS:
        assert known_ids_and_sizes(model, texts, path) == expected


@pytest.mark.parametrize("path", PATHS)
def test_a_stop_word_is_a_word_that_is_not_looked_for(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    take(path, monkeypatch)
    texts = ["king of spain"]
    for ngram_range, counts in {(1, 1): (3, 0), (1, 2): (3, 0), (2, 2): (3, 0)}.items():
        vocabulary = ngrams(["king", "spain"], ngram_range)
        terms = model_of(vocabulary, ngram_range, stop_words=("of",)).terms(texts)
        assert (terms.n_words, terms.n_new) == counts
        assert terms.words.tolist() == list(range(len(vocabulary)))


KINGS = [
    "the king of spain",
    "King of the Spain of old: a king!",
    "spain and its king",
    "of the",
    "",
    "the queen of spain",
    "queen king",
    "a queen of the king of spain",
    "old spain, old king",
    "The old queen of spain",
]


@pytest.mark.parametrize("tokenizer", ["words", "text_gcn", str.split])
def test_with_stop_words_a_text_has_the_row_that_training_gave_it(tmp_path: Path, tokenizer: str | Tokenizer) -> None:
    preparation = Preparation(
        tokenizer=tokenizer, ngram_range=(1, 2), min_count=1, stop_words=["the", "of", "a", "of", "unseen"]
    )
    prepared = preparation.prepare(KINGS)
    assert "king spain" in prepared.vocabulary
    assert "queen king" in prepared.vocabulary
    rows = prepared.document_terms
    model = prepared.text_model(WGCNClassifier().fit(rows, [0, 1] * 5, word_graph=prepared.word_graph), {})
    assert model.stop_words == ("a", "of", "the", "unseen")
    models = [model, pickle.loads(pickle.dumps(model))]
    if isinstance(tokenizer, str):
        model.save(tmp_path / "model")
        models.append(TextModel.load(tmp_path / "model"))
    for one, path in product(models, PATHS):
        assert one.stop_words == model.stop_words
        with pytest.MonkeyPatch.context() as patch:
            take(path, patch)
            terms = one.terms(KINGS)
            assert terms.offsets.tolist() == rows.indptr.tolist()
            assert terms.words.tolist() == rows.indices.tolist()
            assert terms.weights.tobytes() == rows.data.tobytes()
            # A stop word that training did not see joins its neighbours as well.
            assert one.terms(["king unseen spain"]).words.tolist() == one.terms(["king spain"]).words.tolist()


@given(vocabulary=entries.filter(bool), ngram_range=st.sampled_from(RANGES), texts=documents.filter(bool))
def test_scores_of_ngrams_are_equal_with_and_without_compiled_code(
    vocabulary: list[str], ngram_range: tuple[int, int], texts: list[str]
) -> None:
    model = model_of(vocabulary, ngram_range)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgcn.text.tokenize.term_code.is_compiled", True)
        terms, compiled = model.terms(texts), model.scores(texts)
        patch.setattr("wgcn.text.tokenize.term_code.is_compiled", False)
        for compiled_part, part in zip(terms[5:], model.terms(texts)[5:], strict=True):
            assert np.array_equal(compiled_part, part)
        assert np.array_equal(model.scores(texts), compiled)


def test_many_texts_without_numba_use_the_table_of_ngrams_and_few_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.text.tokenize.term_code.is_compiled", False)
    model = model_of(["a", "b", "a b"], (1, 2))
    assert model._encode(["a b"])[0].tolist() == [0, 2, 1]
    assert "_ngrams" not in vars(model)
    ids = model._encode(["a b"] * 100_000)[0]
    assert "_ngrams" in vars(model)
    assert np.array_equal(ids, np.tile([0, 2, 1], 100_000))


@pytest.mark.parametrize(("installed", "on_disk", "calls"), [(True, True, 3), (True, False, 5), (False, False, 0)])
def test_compiled_code_is_loaded_once_so_many_texts_were_read_that_it_pays(
    monkeypatch: pytest.MonkeyPatch, installed: bool, on_disk: bool, calls: int
) -> None:
    loaded: list[bool] = []

    def load() -> None:
        loaded.append(True)
        term_code.is_compiled = True

    for name, value in {
        "_WORTH_LOADING": 30,
        "_WORTH_COMPILING": 50,
        "_is_on_disk": lambda: on_disk,
        "find_spec": lambda _: installed or None,
        "load_compiled": load,
    }.items():
        monkeypatch.setattr(f"wgcn.scoring.terms.{name}", value)
    monkeypatch.setattr("wgcn.text.tokenize.term_code.is_compiled", False)
    model = model_of(["a", "b", "a b"], (1, 2))
    expected = model_of(["a", "b", "a b"], (1, 2)).predict(["a b", "b a", "zzzz"]).tolist()
    n_loaded = []
    for _ in range(7):  # of ten characters each, some as a generator
        assert model.predict(iter(["a b", "b a", "zzzz"])).tolist() == expected
        n_loaded.append(len(loaded))
    assert n_loaded == [int(bool(calls) and call >= calls) for call in range(1, 8)]


def test_one_large_input_is_read_ahead_and_a_stream_without_numba_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    seen: list[int] = []

    def stream() -> Iterator[str]:
        for i in range(100):
            taken.append(i)
            yield "a b"

    def rows(*terms: object) -> np.ndarray:
        seen.append(len(taken))
        return np.zeros((1, 1))

    monkeypatch.setattr("wgcn.scoring.terms.BATCH_CHARACTERS", 1)
    monkeypatch.setattr("wgcn.scoring.terms._WORTH_LOADING", 30)
    monkeypatch.setattr("wgcn.text.tokenize.term_code.is_compiled", False)
    monkeypatch.setattr("wgcn.scoring.terms.find_spec", lambda _: None)
    model = model_of(["a", "b", "a b"], (1, 2))
    model._rows(rows, stream(), 1)
    assert seen == [max(10, n) for n in range(1, 101)]


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_compiled_code_is_found_where_numba_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(terms, "__file__", str(tmp_path / "wgcn" / "inference" / "terms.py"))
    assert not terms._is_on_disk()
    monkeypatch.setenv(variable, str(tmp_path / "kept"))
    folder = tmp_path / "kept" / ("" if variable == "NUMBA_CACHE_DIR" else "numba") / "text_0123"
    folder.mkdir(parents=True)
    assert not terms._is_on_disk()
    (folder / "kernels.add_rows-1.py311.nbi").touch()
    assert terms._is_on_disk()


@pytest.mark.parametrize("home", ["home", "file/none"])
def test_compiled_code_is_kept_for_the_user_where_the_package_is_read_only(tmp_path: Path, home: str) -> None:
    package = tmp_path / "site" / "wgcn"
    shutil.copytree(Path(terms.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()  # no folder can be made there
    (tmp_path / "file").touch()
    names = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= {"HOME": str(tmp_path / home), "PYTHONPATH": str(package.parent)}
    script = (
        "from wgcn.scoring import terms; from wgcn.text.kernels import count_terms; import numpy as np\n"
        "count_terms(np.zeros(2, np.int32), np.array([0, 2]), 1, 0)\n"
        "print(terms.__file__, count_terms.stats.cache_path)"
    )
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    file, kept = result.stdout.split()
    assert Path(file).is_relative_to(package)
    assert list(Path(kept).glob("kernels.count_terms-*.nbi")) if home == "home" else kept == "None"


def test_a_pickled_model_knows_its_words_in_another_process() -> None:
    models = [model_of(["red", "wine", "red wine"], ngram_range) for ngram_range in ((1, 1), (1, 2))]
    expected = [encoded(model, ["red wine"], "compiled")[0].tolist() for model in models]
    script = (
        "import pickle, sys\n"
        "from wgcn.scoring.terms import load_compiled\n"
        "load_compiled()\n"
        "models = pickle.load(sys.stdin.buffer)\n"
        "print([model._encode(['red wine'])[0].tolist() for model in models])"
    )
    result = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(models), capture_output=True, check=True)
    assert json.loads(result.stdout) == expected


@given(seed=st.integers(0, 1000), n_columns=st.integers(1, 3), lengths=st.lists(st.integers(0, 30), min_size=1))
@example(seed=0, n_columns=1, lengths=[400, 0, 3])  # few long texts
@example(seed=0, n_columns=1, lengths=[20, 0, 1] * 60)  # many short ones
@example(seed=0, n_columns=2, lengths=[0, 0])
def test_rows_are_added_one_after_the_other(seed: int, n_columns: int, lengths: list[int]) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((sum(lengths), n_columns)) * 10.0 ** rng.integers(-3, 4, (sum(lengths), 1))
    offsets = np.cumsum([0, *lengths])
    expected = np.zeros((len(lengths), n_columns))
    for group, (begin, end) in enumerate(pairwise(offsets)):
        for row in rows[begin:end]:
            expected[group] += row
    assert sums._sums_in_order(rows, offsets).tobytes() == expected.tobytes()
