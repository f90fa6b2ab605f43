"""The files of the text sets: a list and a text a line."""

import pytest

from wgcn.base.errors import InputError
from wgcn_paper.datasets import text_gcn


def convert(listing, corpus):
    return text_gcn.convert("r8", listing, corpus, "the copy")


def test_training_comes_first_and_the_order_stays():
    found = convert(b"0\ttest\ta\n1\ttrain\tb\n2\ttest\tc\n3\ttrain\td\n", b"w\nx\ny\nz\n")
    assert found.texts == ("x", "z", "w", "y")
    assert found.labels.tolist() == ["b", "d", "a", "c"]
    assert (found.train.tolist(), found.test.tolist()) == ([0, 1], [2, 3])
    assert found.names is None
    assert found.validation is None


def test_every_spelling_of_the_split_is_known():
    listing = b"data/20ng/20news-bydate-test/a/1\t20news-bydate-test\ta\ndata/o/training/b/2\ttraining\tb"
    assert convert(listing, b"x\ny").texts == ("y", "x")


def test_the_id_does_not_say_the_split():
    assert convert(b"data/train/1\ttest\ta\ndata/test/1\ttrain\tb", b"x\ny").texts == ("y", "x")


def test_latin_1_and_utf_8():
    assert convert(b"0\ttrain\ta\n1\ttest\tb", "café\nx".encode("latin-1")).texts == ("café", "x")
    assert convert(b"0\ttrain\ta\n1\ttest\tb", "café\nx".encode()).texts == ("café", "x")


def test_breaks_inside_a_text_become_spaces():
    corpus = "a\tb\x0bc\x0cd\x1ce\x85f\u2028g\rh\xa0i  j \n"
    assert convert(b"0\ttrain\ta", corpus.encode()).texts == ("a b c d e f g h\xa0i  j",)


def test_empty_texts_stay():
    assert convert(b"0\ttrain\ta\n1\ttrain\tb\n2\ttest\tb", b"\n\nx").texts == ("", "", "x")


@pytest.mark.parametrize(
    ("listing", "corpus", "message"),
    [
        (b"0\ttrain\ta\n", b"x\ny\n", "lists 1 documents of 'r8' and has 2 texts"),
        (b"", b"x\n", "lists 0 documents"),
        (b"0\ttrain\ta\n1\tdev\ta\n", b"x\ny\n", "line 2 of the list"),
        (b"0\ttrain\n", b"x\n", "line 1 of the list"),
        (b"0\ttrain\t\n", b"x\n", "line 1 of the list"),
        (b"0\ttrain\ta\tb\n", b"x\n", "line 1 of the list"),
    ],
)
def test_files_that_do_not_fit_are_one_error(listing, corpus, message):
    with pytest.raises(InputError, match=f"the copy.*{message}"):
        convert(listing, corpus)
