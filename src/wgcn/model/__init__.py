"""From the word graph to a classifier: the network, its training."""
