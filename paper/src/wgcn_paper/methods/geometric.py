"""The layers of PyTorch Geometric that methods use; methods import this module only when they make a network."""

import warnings

from torch import Tensor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # at its import it uses what torch calls deprecated
    from torch_geometric.nn import ChebConv, GCNConv, GINConv, SGConv

__all__ = ["ChebyshevFilters", "GCNConv", "GINConv", "SGConv"]


class ChebyshevFilters(ChebConv):  # type: ignore[misc]
    """Chebyshev filters of signals of shape (words, documents, 1).

    Gathering along the first axis copies whole rows, which is faster.
    """

    def __init__(self, filters: int, order: int) -> None:
        super().__init__(1, filters, order, node_dim=0)

    def message(self, x_j: Tensor, norm: Tensor) -> Tensor:
        """Scale the signals of the neighbours."""
        return norm.view(-1, 1, 1) * x_j
