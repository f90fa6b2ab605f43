import sys
from pathlib import Path

import pytest

from wgcn import WordGraph
from wgcn.cli import main


def test_demo_shows_neighbours_and_says_where_things_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["wgcn", "demo", "--output", str(tmp_path / "demo")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    out, err = capsys.readouterr()
    assert "eigenvectors" in out
    assert str(tmp_path / "demo" / "graph") in out
    assert "classes" in err
    assert WordGraph.load(tmp_path / "demo" / "graph").info().nodes > 1000
    assert (tmp_path / "demo" / "eigenvalues.png").read_bytes().startswith(b"\x89PNG")
