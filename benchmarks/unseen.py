"""How fast texts with unseen words are predicted, beside fastText: ``python -m benchmarks.unseen [SETS]``.

Every tenth word of the test texts is written backwards, which makes it a word that training did not see. One thread
each, compiled code warm, the best of five rounds in which the two take turns.
"""

from __future__ import annotations

import sys
import time

from benchmarks import sets
from benchmarks.model import fit_fasttext, fit_wgcn

ROUNDS = 5


def with_unseen_words(text: str) -> str:
    """Return a text with every tenth word written backwards."""
    words = text.split()
    words[9::10] = [word[::-1] for word in words[9::10]]
    return " ".join(words)


def measure(name: str) -> None:
    train, labels, test = sets.split(name)
    ours, theirs = fit_wgcn(train, labels)["wgcn, with numba"], fit_fasttext(train, labels)["fastText"]
    for what, texts in (("as they are", test), ("every tenth word unseen", [with_unseen_words(text) for text in test])):
        best = dict.fromkeys((ours, theirs), float("inf"))
        for _ in range(ROUNDS):
            for predict in best:
                begin = time.perf_counter()
                predict(texts)
                best[predict] = min(best[predict], time.perf_counter() - begin)
        speeds = [len(texts) / seconds for seconds in best.values()]
        print(
            f"{name}, {what}: wgcn {speeds[0]:,.0f} texts per second, fastText {speeds[1]:,.0f}: "
            f"{speeds[0] / speeds[1]:.2f} times",
            flush=True,
        )


if __name__ == "__main__":
    for each in sys.argv[1:] or ("mr", "r8", "20ng"):
        measure(each)
