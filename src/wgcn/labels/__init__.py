"""Labels in all forms, as matrices, and split into folds."""
