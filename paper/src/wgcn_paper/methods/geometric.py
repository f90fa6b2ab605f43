"""The layers of PyTorch Geometric that methods here use."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # at its import it uses what torch calls deprecated
    from torch_geometric.nn import ChebConv, GCNConv, GINConv, SGConv

__all__ = ["ChebConv", "GCNConv", "GINConv", "SGConv"]
