"""What the tests of the experiments share: a sentence encoder that is small enough to train in a test."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def tiny_encoder(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The mean of one vector per word, in place of the encoder that SetFit trains."""
    import torch

    class TinyEncoder(torch.nn.Module):
        max_seq_length = 6

        def __init__(self) -> None:
            super().__init__()
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                self.table = torch.nn.Embedding(500, 384)
            self.dropout = torch.nn.Dropout(0.1)

        def tokenizer(self, texts: Sequence[str], max_length: int, **_: object) -> dict[str, torch.Tensor]:
            rows = [[1 + zlib.crc32(word.encode()) % 499 for word in text.split()] for text in texts]
            rows = [[1, *row][:max_length] for row in rows]  # every text begins with a mark, as for BERT
            longest = max(map(len, rows))
            ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
            return {"input_ids": ids, "attention_mask": (ids > 0).long()}

        def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            mask = features["attention_mask"][:, :, None].float()
            mean = (self.dropout(self.table(features["input_ids"])) * mask).sum(1) / mask.sum(1)
            return {"sentence_embedding": torch.nn.functional.normalize(mean, dim=1)}

        def encode(self, texts: Sequence[str], **_: object) -> np.ndarray:
            with torch.no_grad():
                return self(self.tokenizer(texts, self.max_seq_length))["sentence_embedding"].numpy()

    made = TinyEncoder().eval()
    monkeypatch.setattr("wgcn_paper.methods.setfit.load_encoder", lambda device: made)
    return made
