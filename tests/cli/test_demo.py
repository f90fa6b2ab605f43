from collections.abc import Callable
from pathlib import Path

import pytest

from wgcn import TextModel, WordGraph


def test_demo_trains_compares_and_says_where_things_are(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    code, out, err = run("demo", "Draw samples from a normal distribution.", "--output", tmp_path / "demo")
    assert code == 0
    rows = [line.split() for line in out.splitlines() if (line.endswith("%") and "label" in line) or "See Also" in line]
    svm, ours = ([float(row[place].rstrip("%")) for row in rows] for place in (-2, -1))
    assert len(rows) == 3
    assert all(mine > theirs for mine, theirs in zip(ours, svm, strict=True))
    assert "eigenvectors" in out
    assert "Draw samples" in out
    assert "classes" in err
    assert str(tmp_path / "demo" / "model") in out
    assert len(TextModel.load(tmp_path / "demo" / "model").classes) >= 12
    assert WordGraph.load(tmp_path / "demo" / "graph").info().nodes > 1000
    for picture in ("eigenvalues.png", "confusion.png"):
        assert (tmp_path / "demo" / picture).read_bytes().startswith(b"\x89PNG")
