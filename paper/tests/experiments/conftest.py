"""What tests of reports share: made-up metrics of the experiments of the labelling loop."""

from collections.abc import Callable
from typing import Any

import pytest

from wgcn.semi.seed_words import SeedTrust
from wgcn_paper.experiments.cells import Cell

SETS = ("20ng", "mr", "ohsumed", "r52", "r8")
TIMES = ("first", "update", "fit", "review", "cleanlab")
OF_SEEDS = (*SeedTrust._fields, "warned")
EXAMPLE = {"label": "x", "score": 0.5, "bias": -0.1, "terms": [["a", 0.4], ["b", 0.2]]}


@pytest.fixture
def metrics_of() -> Callable[[Cell, float], dict[str, Any]]:
    """Return what gives a cell the metrics that its experiment measures, about as large as an accuracy."""

    def metrics(cell: Cell, accuracy: float) -> dict[str, Any]:
        settings = cell.settings
        seconds = {f"{name}_{kind}": 2.0 for name in TIMES for kind in ("cpu", "wall")}
        trust = ["covered", "size", "empty", "area", *(f"at {c}" for c in range(10, 101, 10))]
        found: dict[str, dict[str, Any]] = {
            "explanations": {"exact": 1.0, "decisive": accuracy, "deleted": 900, "drop": 0.5, "drop_random": 0.1},
            "seeds": {str(n): accuracy for n in settings.get("per_class", ())} or dict.fromkeys(OF_SEEDS, accuracy),
            "suggest": {str(n): accuracy for n in settings.get("sizes", ())},
            "review": dict.fromkeys(("wgcn", "cleanlab_confidence", "cleanlab_margin"), accuracy) | seconds,
            "abstain": dict.fromkeys(trust, accuracy)
            | {f"{kind} {name}": accuracy for kind in ("auroc", "auroc-probability") for name in SETS},
            "update": {"accuracy_fit": accuracy, "equal": accuracy} | seconds,
        }
        found["explanations"]["examples"] = [EXAMPLE] * (cell.seed == 0)
        found["small-text"] = found["suggest"]
        return found.get(cell.method, {})

    return metrics
