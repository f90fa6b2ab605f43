"""Speed and memory, measured: ``python -m benchmarks``."""
