"""Servers: a model for other programs (`wgcn serve`), and what every server of the package shares (`web`)."""
