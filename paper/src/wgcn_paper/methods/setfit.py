"""SetFit: a sentence encoder that is fine-tuned on pairs of labelled texts, and logistic regression.

L. Tunstall, N. Reimers, U. E. S. Jo, L. Bates, D. Korat, M. Wasserblat, O. Pereg: Efficient Few-Shot Learning Without
Prompts. arXiv:2209.11055, 2022.

1. R times, every labelled text x_i is put into two pairs: with a text of its class (y = 1; with itself if it is alone)
   and with a text of another class (y = 0). So there are 2 R pairs per labelled text.
2. The encoder e is trained for one epoch to minimise the mean of (cos(e(x), e(x')) - y)^2 over these pairs: AdamW,
   batches of 16 pairs, a rate that rises to 2e-5 in the first tenth of the steps and then falls to 0 linearly,
   gradients of length at most 1, and the encoder's own dropout.
3. P(c | x) = softmax(W e(x) + b)_c, with W and b that minimise |W|^2 / 2 - C sum_i log P(y_i | x_i) over the labelled
   texts.

SetFit as published, with R = 20, and with the defaults of the package setfit; but the training loop is our own, because
that package needs `datasets` and `evaluate`, and with them pyarrow, which not every machine with a GPU can install. The
encoder is that of `sentence_embedding`, rather than the larger ones of the paper; texts are cut off after 256 word
pieces. On a GPU the encoder is trained in bfloat16, with weights and loss in float32; there the order of sums may vary,
so that only runs on a CPU repeat to the bit.
"""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from wgcn_paper.methods.baseline import Baseline, Fit, array_digest, in_fixed_order
from wgcn_paper.packages import packages_for
from wgcn_paper.vectors.encoder import encode_with, load_encoder, without_surrogates

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

    from wgcn_paper.protocol import Query, Task


_MAX_NORM = 1.0  # of the gradients


class Pairs(NamedTuple):
    """Pairs of labelled texts, in the order of training."""

    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    alike: npt.NDArray[np.float32]  # 1 for two texts of one class, 0 for texts of two classes

    def take(self, places: npt.NDArray[np.int64]) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.left[places], self.right[places], self.alike[places])


class SetFitMethod(Baseline):
    """MiniLM-L6, fine-tuned on pairs, and LogisticRegression. Unlabelled texts are not used."""

    name = "setfit"
    defaults: ClassVar = {
        "iterations": 20,
        "batch_size": 16,
        "epochs": 1,
        "learning_rate": 2e-5,
        "warmup": 0.1,
        "weight_decay": 0.01,
        "C": 1.0,
    }

    def fit(self, task: Task) -> Fit:
        """Fine-tune on the labelled documents, then fit the head to them; validation documents only measure."""
        task, _ = in_fixed_order(task)
        assert task.texts is not None
        known = np.array([label is not None for label in task.labels])
        apart = task.validation[known[task.validation]]
        known[apart] = False
        labelled = np.flatnonzero(known)
        texts = [task.texts[i] for i in labelled]
        labels = np.array(task.labels[labelled].tolist())
        # A copy, since the encoder stays loaded for other fits.
        self._encoder = copy.deepcopy(load_encoder("cpu"))
        seconds = self._fine_tune(texts, np.unique(labels, return_inverse=True)[1])
        self._head = LogisticRegression(C=self.settings["C"], max_iter=2000).fit(self._vectors(texts), labels)
        accuracy = float(np.mean(self.predict(task.documents(apart)) == task.labels[apart])) if len(apart) else None
        weights = [values.detach().cpu().numpy() for values in self._encoder.parameters()]
        digest = array_digest(*weights, self._head.coef_, self._head.intercept_)
        return Fit(self.settings["epochs"], accuracy, seconds / self.settings["epochs"], digest)

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return one label per text."""
        assert query.texts is not None
        if not query.texts:
            return self._head.classes_[:0]  # type: ignore[no-any-return]
        guesses: npt.NDArray[Any] = self._head.predict(self._vectors(query.texts))
        return guesses

    def _vectors(self, texts: tuple[str, ...] | list[str]) -> npt.NDArray[np.float64]:
        return encode_with(self._encoder, texts).astype(np.float64)

    def _fine_tune(self, texts: list[str], codes: npt.NDArray[np.int64]) -> float:
        """Train the encoder on pairs, and return the time in seconds."""
        with packages_for("The method setfit"):
            import torch

            from wgcn.base.threads import find_device
        device = find_device(self.device)
        encoder = self._encoder.to(device).train()
        settings, started = self.settings, time.perf_counter()
        optimizer = torch.optim.AdamW(
            encoder.parameters(),
            lr=settings["learning_rate"],
            weight_decay=settings["weight_decay"],
            fused=device.type == "cuda",  # a step is so short there that starting its kernels takes longest
        )
        rng = np.random.default_rng(self.seed)
        pairs = draw_pairs(codes, settings["iterations"], rng)
        batches = [
            batch
            for _ in range(settings["epochs"])
            for batch in np.array_split(rng.permutation(len(pairs.left)), -(-len(pairs.left) // settings["batch_size"]))
        ]
        warm = max(round(len(batches) * settings["warmup"]), 1)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda i: min((i + 1) / warm, (len(batches) - i) / max(len(batches) - warm, 1))
        )
        inputs = _Inputs(encoder, texts, device)
        # The random numbers of dropout are those of this fit alone.
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(self.seed)
            for batch in batches:
                loss = _loss(encoder, inputs, pairs.take(batch))
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(encoder.parameters(), _MAX_NORM)
                optimizer.step()
                schedule.step()
        encoder.eval()
        return time.perf_counter() - started


def draw_pairs(codes: npt.NDArray[np.int64], iterations: int, rng: np.random.Generator) -> Pairs:
    """Draw a pair of one class and a pair of two classes for each text, `iterations` times; `codes` are the classes."""
    places = np.arange(len(codes))
    left, right, alike = [], [], []
    for i, code in enumerate(codes):
        own, others = places[(codes == code) & (places != i)], places[codes != code]
        for partners, value in ((own if len(own) else places[i : i + 1], 1.0), (others, 0.0)):
            if len(partners):  # there is no other class if all texts are of one
                left.append(np.full(iterations, i))
                right.append(rng.choice(partners, iterations))
                alike.append(np.full(iterations, value, np.float32))
    return Pairs(np.concatenate(left), np.concatenate(right), np.concatenate(alike))


class _Inputs:
    """Texts as word pieces on a device: read once, since every text is in many pairs."""

    def __init__(self, encoder: SentenceTransformer, texts: list[str], device: torch.device) -> None:
        found = encoder.tokenizer(
            [without_surrogates(text) for text in texts],
            padding=True,
            truncation=True,
            max_length=encoder.max_seq_length,
            return_tensors="pt",
        )
        self.ids, self.mask = found["input_ids"].to(device), found["attention_mask"].to(device)  # (texts, pieces)
        self._lengths = found["attention_mask"].sum(1).numpy()

    def take(self, places: npt.NDArray[np.int64]) -> dict[str, torch.Tensor]:
        """Return some texts as the encoder takes them, padded to the longest of these."""
        import torch

        rows = torch.from_numpy(places).to(self.ids.device)
        longest = int(self._lengths[places].max())
        return {"input_ids": self.ids[rows, :longest], "attention_mask": self.mask[rows, :longest]}


def _loss(encoder: SentenceTransformer, inputs: _Inputs, pairs: Pairs) -> torch.Tensor:
    """Return the mean squared difference of cosines and what they should be."""
    import torch

    device = inputs.ids.device
    both = inputs.take(np.concatenate([pairs.left, pairs.right]))
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        vectors = encoder(both)["sentence_embedding"]  # (2 * pairs, 384)
    left, right = vectors.float().chunk(2)
    wanted = torch.from_numpy(pairs.alike).to(device)
    return torch.nn.functional.mse_loss(torch.nn.functional.cosine_similarity(left, right), wanted)
