"""`wgcn serve`: models for other programs, over HTTP."""
