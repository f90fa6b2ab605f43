"""The paper's network (eq. 5 to 7) in torch: the module, its training, and checkpoints."""
