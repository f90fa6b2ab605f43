"""The labelling loop: what to label next, learning curves, labels that look wrong, notices."""
