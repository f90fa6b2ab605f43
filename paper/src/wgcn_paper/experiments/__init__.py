"""The paper's tables and figures, and ours: one file each, all made of cells that are saved as they finish."""
