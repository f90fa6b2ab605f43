"""Figures from the paper's tables (Lu, Xie, Wang & Nie: Word Grounded Graph Convolutional Network), in percent."""

TITLES = {
    "20ng": "20NG",
    "20ng-coarse": "20NG, five groups",
    "mr": "MR",
    "mr-thinned": "MR, 10 : 90",
    "ohsumed": "Ohsumed",
    "r52": "R52",
    "r8": "R8",
    "citeseer": "Citeseer",
    "pubmed": "Pubmed",
    "cora": "Cora",
    "docs": "docs",
}

# "Test Accuracy on document classification task": mean and standard deviation of 10 runs.
ACCURACY: dict[str, dict[str, tuple[float, float]]] = {
    "CNN": {
        "20ng": (82.15, 0.52),
        "mr": (77.75, 0.07),
        "ohsumed": (58.44, 1.06),
        "r52": (87.59, 0.48),
        "r8": (95.71, 0.52),
    },
    "LSTM": {
        "20ng": (73.18, 1.85),
        "mr": (77.68, 0.86),
        "ohsumed": (49.27, 1.07),
        "r52": (90.54, 0.91),
        "r8": (96.31, 0.33),
    },
    "Graph-CNN": {
        "20ng": (81.42, 0.32),
        "mr": (77.22, 0.27),
        "ohsumed": (63.86, 0.53),
        "r52": (92.75, 0.23),
        "r8": (96.99, 0.12),
    },
    "Fast-GCN": {"mr": (75.10, 0.21), "ohsumed": (54.41, 0.81), "r52": (85.15, 0.45), "r8": (95.38, 0.36)},
    "Text-GCN": {
        "20ng": (86.34, 0.09),
        "mr": (76.74, 0.20),
        "ohsumed": (68.36, 0.56),
        "r52": (93.56, 0.18),
        "r8": (97.07, 0.10),
    },
    "Text-GNN": {"ohsumed": (69.40, 0.60), "r52": (94.60, 0.30), "r8": (97.80, 0.20)},
    "WGCN": {
        "20ng": (88.85, 0.12),
        "mr": (77.94, 0.10),
        "ohsumed": (69.62, 0.24),
        "r52": (94.86, 0.09),
        "r8": (97.90, 0.14),
    },
}

# "... using different order of A_vv", by order.
ORDERS: dict[str, tuple[float, ...]] = {"r52": (91.72, 94.86, 90.62, 75.58), "r8": (95.09, 97.85, 96.71, 89.95)}

# "Time cost (ms) and GPU memory space cost (MiB) on one epoch of training under CUDA", on a Tesla K40c.
EFFICIENCY: dict[str, dict[str, tuple[int, int]]] = {
    "Fast-GCN": {"mr": (9036, 8841), "ohsumed": (4016, 8841), "r52": (4826, 8585), "r8": (3602, 4489)},
    "Text-GCN": {"mr": (1060, 3995), "ohsumed": (4303, 2960), "r52": (2365, 2119), "r8": (1869, 1613)},
    "WGCN": {"20ng": (6435, 2556), "mr": (458, 567), "ohsumed": (1905, 959), "r52": (1020, 717), "r8": (812, 638)},
}

# "Test Accuracy (%) averaged over 10 runs on citation networks".
CITATIONS: dict[str, dict[str, tuple[float, float | None]]] = {
    "GCN": {"citeseer": (70.3, None), "pubmed": (79.0, None)},
    "Fast-GCN": {"citeseer": (68.8, 0.6), "pubmed": (77.4, 0.3)},
    "GIN": {"citeseer": (70.9, 0.1), "pubmed": (78.9, 0.1)},
    "SGC": {"citeseer": (71.9, 0.1), "pubmed": (78.9, 0.0)},
    "WGCN": {"citeseer": (72.2, 0.1), "pubmed": (79.6, 0.0)},
}

# "... using different order neighborhood information of A_dd", by order.
CITATION_ORDERS: dict[str, tuple[float, ...]] = {
    "citeseer": (70.5, 72.2, 67.2, 64.8),
    "pubmed": (78.0, 79.6, 78.9, 78.4),
}
