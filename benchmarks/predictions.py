"""Do two versions of the library predict the same? ``python -m benchmarks.predictions --help``.

``save FILE`` with each version, then ``compare FILE FILE``. To save with another version, check it out elsewhere and
run this file with its ``src`` in PYTHONPATH. A fit has all labels and the defaults. "objective": that of the last fit.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import sets

Saved = dict[str, dict[str, Any]]


def save(names: list[str]) -> Saved:
    from wgcn import WGCNTextClassifier
    from wgcn.io.read import read_rows

    saved: Saved = {}
    for name in names:
        texts, labels, test_texts = sets.split(name)
        test_labels = [row[0] for row in read_rows(sets.files(name)[1], [0], header=False)]
        model = WGCNTextClassifier().fit(texts, labels)
        predicted = model.predict(test_texts).tolist()
        right = sum(one == other for one, other in zip(predicted, test_labels, strict=True))
        saved[name] = {
            "labels": predicted,
            "accuracy": right / len(predicted),
            "objective": model.history_[-1]["loss"],
        }
        print(f"{name}: accuracy {right / len(predicted):.4f}, objective {saved[name]['objective']:.1f}", flush=True)
    return saved


def compare(before: Saved, after: Saved) -> list[str]:
    """Return a table of what both have."""
    lines = ["| set | objective | objective | accuracy | accuracy | same labels |", "|---|---:|---:|---:|---:|---:|"]
    for name in before.keys() & after.keys():
        pair = before[name], after[name]
        same = [one == other for one, other in zip(*(each["labels"] for each in pair), strict=True)]
        objectives = " | ".join(f"{each['objective']:.1f}" for each in pair)
        accuracies = " | ".join(f"{100 * each['accuracy']:.2f}" for each in pair)
        lines.append(f"| {name} | {objectives} | {accuracies} | {100 * sum(same) / len(same):.2f} % |")
    return [*lines[:2], *sorted(lines[2:])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predictions", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    saving, comparing = commands.add_parser("save"), commands.add_parser("compare")
    saving.add_argument("file", type=Path)
    saving.add_argument("--sets", default=",".join(sets.SETS), help="comma-separated (default: all)")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "save":
        options.file.write_text(json.dumps(save(options.sets.split(","))))
    else:
        print("\n".join(compare(*(json.loads(path.read_text()) for path in (options.before, options.after)))))


if __name__ == "__main__":
    main()
