import os

import pytest

from wgcn.base import threads as cores
from wgcn.base.errors import InputError
from wgcn.base.threads import n_threads


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 6), (-1, 6), (-2, 5), (-6, 1), (-20, 1), (1, 1), (9, 9)])
def test_negative_numbers_count_back_from_the_cores(
    n_jobs: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "available_cores", lambda: 6)
    assert n_threads(n_jobs) == expected


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
def test_other_numbers_of_threads_are_refused(n_jobs: object) -> None:
    with pytest.raises(InputError, match=r"n_jobs must be .*, got"):
        n_threads(n_jobs)  # type: ignore[arg-type]


def test_there_is_at_least_one_core() -> None:
    assert 1 <= cores.available_cores() <= (os.cpu_count() or 1)
