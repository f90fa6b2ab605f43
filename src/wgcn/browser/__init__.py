"""`wgcn export`: models in the browser."""
