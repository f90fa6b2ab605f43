"""Measure speed and memory on this machine and print the tables: ``python -m benchmarks --help``.

Times are never a reason to fail; a wrong result is.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import fit, graph, growth, model, sets, start, text
from benchmarks.measure import Section, machine, machine_lines

# The order of the report. A part takes nothing and measures its cells one after another.
PARTS: dict[str, Callable[[], Section]] = {
    "graph": graph.measure_sets,
    "windows": graph.measure_windows,
    "dictionary": graph.measure_dictionary,
    "growth": graph.measure_growth,
    "tokenise": text.measure_tokenising,
    "fit": fit.measure_fit,
    "fit-growth": growth.measure_fit_growth,
    "crossval": fit.measure_crossval,
    "start": start.measure_start,
    "model": model.measure_models,
}


def main() -> int:
    options = parse_arguments()
    this_machine = machine()
    print("\n".join(["# Benchmarks", "", *machine_lines(this_machine)]), flush=True)
    if not sets.available():
        print(f"\n{sets.ABSENT}", flush=True)
        sets.prepare_docs()
    sections = {}
    for name in options.only:
        part = partial(growth.measure_fit_growth, options.sizes) if name == "fit-growth" else PARTS[name]
        sections[name] = part()
        print(f"\n{sections[name]}", flush=True)
    if options.output:
        parts = {name: section.as_json() for name, section in sections.items()}
        from wgcn.base.files import write_file

        text = json.dumps({"machine": this_machine, "parts": parts}, indent=2) + "\n"
        write_file(options.output, lambda file: file.write(text.encode()))
    errors = [error for section in sections.values() for error in section.errors]
    for error in errors:
        print(f"Error: {error}", file=sys.stderr)
    return 1 if errors else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed and memory.")
    parser.add_argument("--output", type=output_file, metavar="FILE", help="also write all results to FILE as JSON")
    parser.add_argument(
        "--only",
        type=part_names,
        default=list(PARTS),
        metavar="PARTS",
        help=f"comma-separated parts to measure, of {', '.join(PARTS)} (default: all)",
    )
    parser.add_argument(
        "--sizes",
        type=text_numbers,
        default=growth.SIZES,
        metavar="N,...",
        help="comma-separated numbers of texts for fit-growth (default: %(default)s)",
    )
    return parser.parse_args()


def part_names(value: str) -> list[str]:
    asked = [name.strip() for name in value.split(",")]
    if unknown := [name for name in asked if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part {', '.join(map(repr, unknown))}: use any of {', '.join(PARTS)}")
    return [name for name in PARTS if name in asked]


def text_numbers(value: str) -> tuple[int, ...]:
    sizes = tuple(int(number) for number in value.split(","))
    if min(sizes) < 1:
        raise argparse.ArgumentTypeError("a corpus has at least one text")
    return sizes


def output_file(value: str) -> Path:
    # Found out now rather than when minutes of measuring are to be written.
    path = Path(value)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(f"{value} is not a file in an existing folder")
    return path


if __name__ == "__main__":
    sys.exit(main())
