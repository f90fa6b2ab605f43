"""Pictures are written whole or not at all, in every format that is asked for."""

from pathlib import Path

import pytest

from wgcn.errors import InputError
from wgcn.graph.pictures import figure, panels

SIZE = (4.0, 2.0)
MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def draw(paths: list[Path], n: int = 2) -> None:
    with panels(paths, SIZE, n) as axes:
        assert len(axes) == n
        for i, one in enumerate(axes):
            one.plot([0, 1], [0, i])
            one.set_title(f"panel {i}")


def test_one_drawing_is_written_in_several_formats(tmp_path: Path) -> None:
    paths = [tmp_path / f"curves{ending}" for ending in MAGIC]
    draw(paths)
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    for path in paths:
        assert path.read_bytes().startswith(MAGIC[path.suffix])
    svg = paths[1].read_text()
    assert svg.index("panel 0") < svg.index("panel 1")


def test_the_same_drawing_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = ([tmp_path / folder / f"x{ending}" for ending in MAGIC] for folder in ("first", "second"))
    for paths in (first, second):
        draw(paths)
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert b"<dc:date>" not in one.read_bytes()


def test_a_figure_is_a_drawing_of_one_panel(tmp_path: Path) -> None:
    with figure(tmp_path / "one.SVG", SIZE) as axes:
        axes.plot([0, 1], [0, 0])
        axes.set_title("panel 0")
    draw([tmp_path / "panels.svg"], 1)
    assert (tmp_path / "one.SVG").read_bytes() == (tmp_path / "panels.svg").read_bytes()


@pytest.mark.parametrize("names", [["x.bmp"], ["x.png", "x.bmp"], ["x"], ["x.svg", "x.svg.gz"]])
def test_another_ending_is_refused_before_anything_is_drawn(tmp_path: Path, names: list[str]) -> None:
    with (
        pytest.raises(InputError, match=r"ends in \.png, \.svg, \.pdf, got 'x"),
        panels([tmp_path / name for name in names], SIZE, 1),
    ):
        pytest.fail("it was drawn on")
    assert list(tmp_path.iterdir()) == []


def test_a_drawing_that_fails_leaves_the_old_pictures(tmp_path: Path) -> None:
    paths = [tmp_path / "x.png", tmp_path / "x.svg"]
    paths[0].write_text("old")
    with pytest.raises(ZeroDivisionError), panels(paths, SIZE, 2) as axes:
        axes[0].plot([0, 1], [0, 1 / 0])
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]
    assert paths[0].read_text() == "old"


def test_a_picture_that_cannot_be_rendered_is_not_left_half_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Pars"), panels([tmp_path / "x.svg", tmp_path / "x.png"], SIZE, 1) as axes:
        axes[0].set_title(r"$\bad{$")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.png").mkdir()
    with pytest.raises(InputError, match=r"x\.png is a folder"):
        draw([tmp_path / "x.svg", tmp_path / "x.png"])
    # Each picture is whole: the one that could be written is there.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.png", "x.svg"]
    assert (tmp_path / "x.svg").read_text().rstrip().endswith("</svg>")
