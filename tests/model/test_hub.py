"""A model folder as a repository of the Hugging Face hub."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from wgcn import TextModel, WGCNTextClassifier

TEXTS = ["red wine", "white wine", "fast car", "slow car"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m"
    WGCNTextClassifier().fit(TEXTS, ["drink", "drink", "drive", "drive"]).save(path)
    return path


def test_a_downloaded_snapshot_is_loaded(folder: Path, tmp_path: Path) -> None:
    """As the cache of the hub has it: names are links to contents, and there are files of git."""
    repository = tmp_path / "models--someone--wine"
    snapshot = repository / "snapshots" / "0123456789abcdef0123456789abcdef01234567"
    for place in (snapshot, repository / "blobs", repository / "refs"):
        place.mkdir(parents=True)
    (repository / "refs" / "main").write_text(snapshot.name)
    contents = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    contents[".gitattributes"] = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
    for name, content in contents.items():
        digest = hashlib.sha256(content).hexdigest()
        (repository / "blobs" / digest).write_bytes(content)
        (snapshot / name).symlink_to(Path("..", "..", "blobs", digest))
    loaded = TextModel.load(snapshot)
    assert np.array_equal(loaded.scores(TEXTS), TextModel.load(folder).scores(TEXTS))


def test_a_download_into_a_folder_is_loaded(folder: Path, tmp_path: Path) -> None:
    """As the hub's tools write it into a folder of the user's choice: plain files, and notes of theirs beside them."""
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    notes = tmp_path / ".cache" / "huggingface" / "download"
    notes.mkdir(parents=True)
    (notes / "config.json.metadata").write_text("0123\n4567\n1700000000.0\n")
    (tmp_path / ".cache" / "huggingface" / ".gitignore").write_text("*")
    assert TextModel.load(tmp_path).predict(TEXTS).tolist() == ["drink", "drink", "drive", "drive"]
