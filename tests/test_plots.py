"""Pictures are written whole or not at all, and the same drawing gives the same bytes."""

from pathlib import Path

import pytest

from wgcn import Corpus, WordGraph
from wgcn.base.errors import InputError
from wgcn.plots import drawing, plot_neighbourhood

SIZE = (4.0, 2.0)
MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def graph() -> WordGraph:
    texts = ["red wine and bread", "white wine and bread", "red rose", "white rose", "lonely"] * 3
    return WordGraph.from_corpus(Corpus.from_texts(texts), window=2, weight="pmi")


def draw(paths: list[Path]) -> None:
    with drawing(SIZE, *paths) as figure:
        figure.subplots().set_title("a title")


def test_the_same_drawing_gives_the_same_bytes_in_every_format(tmp_path: Path) -> None:
    first, second = ([tmp_path / folder / f"x{suffix}" for suffix in MAGIC] for folder in ("first", "second"))
    for paths in (first, second):
        draw(paths)
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert one.read_bytes().startswith(MAGIC[one.suffix])
        assert b"<dc:date>" not in one.read_bytes()
    assert "a title" in first[1].read_text()


@pytest.mark.parametrize("names", [["x.bmp"], ["x.png", "x.bmp"], ["x"], ["x.svg", "x.svg.gz"]])
def test_another_suffix_is_refused_before_anything_is_drawn(tmp_path: Path, names: list[str]) -> None:
    with (
        pytest.raises(InputError, match=r"ends in \.png, \.svg, \.pdf, got 'x"),
        drawing(SIZE, *(tmp_path / name for name in names)),
    ):
        pytest.fail("it was drawn on")
    assert list(tmp_path.iterdir()) == []


def test_a_drawing_that_fails_leaves_the_old_pictures(tmp_path: Path) -> None:
    paths = [tmp_path / "x.png", tmp_path / "x.svg"]
    paths[0].write_text("old")
    with pytest.raises(ZeroDivisionError), drawing(SIZE, *paths) as figure:
        figure.subplots().plot([0, 1], [0, 1 / 0])
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]
    assert paths[0].read_text() == "old"


def test_a_picture_that_cannot_be_rendered_is_not_left_half_written(tmp_path: Path) -> None:
    paths = [tmp_path / "x.svg", tmp_path / "x.png"]
    with pytest.raises(ValueError, match="Pars"), drawing(SIZE, *paths) as figure:
        figure.subplots().set_title(r"$\bad{$")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.png").mkdir()
    with pytest.raises(InputError, match=r"x\.png is a folder"):
        draw(paths)
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]  # places are checked before anything is drawn


def test_the_picture_of_a_word_names_its_neighbours_and_is_the_same_every_time(
    graph: WordGraph, tmp_path: Path
) -> None:
    for name in ("a.SVG", "b.svg"):
        plot_neighbourhood(graph, "wine", tmp_path / name)
    picture = (tmp_path / "a.SVG").read_text()
    assert picture == (tmp_path / "b.svg").read_text()
    for neighbour in graph.neighbours("wine"):
        assert f">{neighbour.word}<" in picture


def test_a_word_with_markup_is_drawn_as_it_is(tmp_path: Path) -> None:
    corpus = Corpus.from_texts(["x"], tokenizer=lambda text: ["$\\bad{", "<b>", "100%"])
    plot_neighbourhood(WordGraph.from_corpus(corpus), "$\\bad{", tmp_path / "x.svg")
    assert "&lt;b&gt;" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize(
    ("word", "name", "message"),
    [("wine", "wine.bmp", r"ends in \.png"), ("lonely", "l.png", "no neighbours"), ("nothing", "n.png", "not among")],
)
def test_a_picture_that_cannot_be_drawn_leaves_no_file(
    graph: WordGraph, tmp_path: Path, word: str, name: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        plot_neighbourhood(graph, word, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
