"""What a run says about where it was made."""

import subprocess
from pathlib import Path

import pytest

from wgcn_paper.experiments import environment as module
from wgcn_paper.experiments.environment import environment, off_lock


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a lock file and one commit."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/code.py").write_text("1")
    (tmp_path / "paper/src").mkdir(parents=True)
    pinned = "# pinned\nnumpy==2.4.6 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\nscipy==1.17.1\n"
    (tmp_path / "requirements.lock").write_text(pinned)
    (tmp_path / "requirements-torch.lock").write_text("torch==2.13.0\n")
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*name, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)
    monkeypatch.delenv("WGCN_COMMIT", raising=False)
    for cached in (module._commit, module._locked):
        cached.cache_clear()
    return tmp_path


@pytest.fixture(autouse=True)
def _forget() -> None:
    for cached in (module._commit, module._locked):
        cached.cache_clear()


def head(folder: Path) -> str:
    words = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_that_of_the_checkout_and_changed_code_shows(checkout: Path) -> None:
    assert environment(checkout)["commit"] == head(checkout)
    (checkout / "requirements.lock").write_text("other files may change")
    module._commit.cache_clear()
    assert environment(checkout)["commit"] == head(checkout)
    (checkout / "src/code.py").write_text("2")
    module._commit.cache_clear()
    assert environment(checkout)["commit"] == f"{head(checkout)}+changes"


def test_a_copy_without_a_repository_can_be_told_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WGCN_COMMIT", raising=False)
    assert "commit" not in environment(tmp_path)
    assert "off_lock" not in environment(tmp_path)
    monkeypatch.setenv("WGCN_COMMIT", "abc")
    module._commit.cache_clear()
    assert environment(tmp_path)["commit"] == "abc"


def test_versions_other_than_the_lock_are_named(checkout: Path) -> None:
    assert off_lock({"numpy": "2.4.6", "torch": "2.13.0+cpu", "python": "3.12"}, checkout) == ""
    assert off_lock({"numpy": "2.5.2", "torch": "2.11.0", "scipy": "1.17.1"}, checkout) == "numpy 2.5.2, torch 2.11.0"


def test_threads_are_those_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert environment()["threads"] == "3"
    monkeypatch.delitem(module.sys.modules, "torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert environment()["threads"] == "1"


def test_without_git_the_commit_is_not_recorded(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> str:
        raise FileNotFoundError("git")

    monkeypatch.setattr(module, "_git", missing)
    assert "commit" not in environment(checkout)


def test_a_gpu_is_part_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A Card")
    assert module._machine().endswith(", 1\u00d7 A Card")
