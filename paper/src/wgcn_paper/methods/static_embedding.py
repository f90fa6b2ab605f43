"""Static embeddings of word pieces and multinomial logistic regression.

A text is e = m / |m|, where m is the mean of one fixed vector per word piece, whatever stands around it; a language
model gave the vectors but does not run. P(c | e) as in `sentence_embedding`. This is how model2vec and WordLlama
classify. No package brings the vectors of model2vec, so they are those of WordLlama (package wordllama): 256 values for
each of the 32,000 pieces of Llama 2, distilled from the input tables of large language models and trained on pairs of
sentences.

S. Tulkens, T. van Dongen: Model2Vec: Fast State-of-the-Art Static Embeddings. 2024.
D. L. Miller: WordLlama: Recycled Token Embeddings from Large Language Models. 2024.

As for `sentence_embedding`, the vectors come from much more text than any of the data sets.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from scipy.sparse import csr_array

from wgcn_paper.methods.sentence_embedding import SentenceEmbeddingMethod
from wgcn_paper.vectors.encoder import without_surrogates

if TYPE_CHECKING:
    from tokenizers import Tokenizer


_WEIGHTS, _PIECES = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"


class StaticEmbeddingMethod(SentenceEmbeddingMethod):
    """WordLlama's vectors and LogisticRegression; C is chosen by cross-validation unless it is given."""

    name = "static-embedding"
    batch = 1024  # texts that are read at once
    packages = ("wordllama", "tokenizers")
    # Means of many vectors are close to each other, so that some sets need larger weights than with a sentence encoder.
    choices: ClassVar = (0.1, 1.0, 10.0, 100.0, 1000.0)

    def _vectors(self, texts: tuple[str, ...] | list[str]) -> npt.NDArray[np.float64]:
        tokenizer, table = _model()
        parts = []
        for begin in range(0, len(texts), self.batch):
            clean = [without_surrogates(text) for text in texts[begin : begin + self.batch]]
            rows = [found.ids for found in tokenizer.encode_batch(clean, add_special_tokens=False)]
            ids = np.fromiter((piece for row in rows for piece in row), np.int32)
            starts = np.cumsum([0, *map(len, rows)])
            counts = csr_array((np.ones(len(ids)), ids, starts), shape=(len(rows), len(table)))
            parts.append(counts @ table)  # (texts, 256)
        sums = np.concatenate(parts)
        # A text without pieces is at the origin.
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        vectors: npt.NDArray[np.float64] = sums / np.where(lengths > 0, lengths, 1.0)
        return vectors


@lru_cache(maxsize=1)
def _model() -> tuple[Tokenizer, npt.NDArray[np.float64]]:
    """Return the tokeniser and the vectors of its pieces.

    The package's own loader looks for the tokeniser in a wrong folder and then downloads it, so the files are read
    here.
    """
    from tokenizers import Tokenizer

    found = find_spec("wordllama")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent
    tokenizer = Tokenizer.from_file(str(folder / _PIECES))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    [table] = load_file(folder / _WEIGHTS).values()
    return tokenizer, table.astype(np.float64)
