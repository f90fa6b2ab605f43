"""The lock file: every package has the hashes of its files, and torch, which cannot have them, is beside it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def lock() -> str:
    if not (ROOT / "requirements.lock").exists():
        pytest.skip("needs a checkout")
    return (ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_every_package_is_pinned_and_has_hashes(lock: str) -> None:
    lines = [line for line in lock.replace("\\\n", " ").splitlines() if not line.startswith("#")]
    assert len(lines) > 100
    odd = [
        line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+( ;[^#]*?)?( +--hash=sha256:[0-9a-f]{64})+", line)
    ]
    assert odd == []


def test_torch_has_a_file_of_its_own(lock: str) -> None:
    assert not re.search(r"^(torch|triton|nvidia[\w-]*)==", lock, re.MULTILINE)
    beside = (ROOT / "requirements-torch.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in beside if not line.startswith("#")] == ["torch==2.13.0"]


def test_no_place_to_install_from_is_named(lock: str) -> None:
    beside = (ROOT / "requirements-torch.lock").read_text(encoding="utf-8")
    assert not re.search(r"https?:|file:|index|find-links", lock + beside)
