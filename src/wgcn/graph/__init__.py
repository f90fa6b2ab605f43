"""From word ids to the word graph A_vv: window counts, edge weights, citation graphs."""

from wgcn.base.errors import needs

with needs("A word graph"):
    from wgcn.graph.association import EdgeRules
    from wgcn.graph.counts import WindowCounts
    from wgcn.graph.word_graph import GraphInfo, Neighbour, WordGraph

__all__ = ["EdgeRules", "GraphInfo", "Neighbour", "WindowCounts", "WordGraph"]
