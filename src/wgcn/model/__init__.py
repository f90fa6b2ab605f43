"""Fitted models: what people save, load and call. Needs numpy alone."""
