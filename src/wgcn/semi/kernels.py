"""Compiled loops of the labelling loop."""
