"""The experiments of the labelling loop, one per file: explanations, seeds, suggestions, review, trust, updates."""
