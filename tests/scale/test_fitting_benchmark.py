"""A small size of the measurement of fits out of core."""

from pathlib import Path

import pytest
from benchmarks import scale_fitting


def test_many_short_documents_are_fitted_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_fitting, "PER_FILE", 700)
    monkeypatch.setattr(scale_fitting, "TEST", 300)
    monkeypatch.setattr(scale_fitting, "CLASSES", 4)
    monkeypatch.setattr(scale_fitting, "WORDS", 2000)
    monkeypatch.setattr(scale_fitting, "run_cell", lambda _, function, **given: function(**given))
    section = scale_fitting.measure_fitting((2000,), str(tmp_path), "2GB")
    (cell,) = section.cells
    assert cell["accuracy"] > 0.6  # by chance 0.25
    assert cell["peak_mb"] < 6000
    assert "| 2,000 " in str(section)
