"""The loop of labelling: labels out of files, predictions into files, and how far to trust them."""
