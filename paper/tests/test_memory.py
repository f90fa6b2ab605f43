"""Peak memory: bytes on every system, or None."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from wgcn_paper import memory
from wgcn_paper.memory import peak_memory


def test_it_is_in_bytes_here() -> None:
    peak = peak_memory()
    assert peak is not None
    assert 10e6 < peak < 1e12


@pytest.mark.parametrize(("platform", "expected"), [("linux", 5000 * 1024), ("darwin", 5000)])
def test_the_unit_is_that_of_the_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, expected: int
) -> None:
    told = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(ru_maxrss=5000))
    monkeypatch.setitem(sys.modules, "resource", told)
    monkeypatch.setattr(memory, "sys", SimpleNamespace(platform=platform))
    assert peak_memory(tmp_path / "none") == expected


def test_it_is_unknown_on_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory(tmp_path / "none") is None


@pytest.mark.parametrize("module", ["wgcn_paper.experiments.cells", "benchmarks.measure"])
def test_what_measures_can_be_imported_on_windows(module: str) -> None:
    script = f"import sys; sys.modules['resource'] = None; import {module}"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[2])
