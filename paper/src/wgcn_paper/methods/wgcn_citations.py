"""WGCN for linked documents (eq. 3, 4 and 6) under the interface of all methods.

The sets of Yang et al. (2016) list every link in both directions, so they do not keep who cites whom, and (m, n) of
eq. 3 is the same as k = m + n of eq. 4. To tell them apart, `directed` gives links a made direction: from the document
that comes later in the task to the one that comes earlier. The training documents of these sets are the first, so this
is the order of the data set itself under every protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import block_array, csr_array, diags_array, eye_array, tril

from wgcn.base.errors import InputError, interrupts_raised
from wgcn.estimators.network import WGCNNetworkClassifier
from wgcn.graph import WordGraph
from wgcn.graph.citations import attach_citations
from wgcn.text.vocabulary import Vocabulary
from wgcn_paper.methods.baseline import Baseline, Fit, array_digest
from wgcn_paper.methods.linearised_wgcn import feature_rows
from wgcn_paper.methods.preparation import Kept
from wgcn_paper.methods.wgcn import network_fit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wgcn_paper.protocol import Query, Task


_GRAPH = ("power", "norm", "citation_order", "directed", "normalized")
_PREDICTION = ("hops", "alone")

# Word graphs depend on neither labels nor seed, so consecutive cells share them.
_graphs: Kept[WordGraph] = Kept(most=4)


class CitationMethod(Baseline):
    """The network on a word graph made from citations.

    The validation documents of a data set are in the graph, but their labels are not used in training.

    Settings of the graph: `citation_order` is k (eq. 4) or a list [m, n] (eq. 3); `directed` gives links the direction
    that the module describes. A word graph is the mean of both directions, so [m, n] and [n, m] are the same. Without
    `normalized`, A_vv is X^T A_dd^k X as in eq. 6, not divided by the degrees of words.

    Settings of prediction: `hops` is the length of the citation paths by which a new document is averaged with others.
    New documents are in one graph, where two of them that cite the same document get words of each other with two hops
    or more; with `alone`, each is attached as if it were the only new one. Documents that are in the task are in its
    graph either way.
    """

    name = "wgcn-citations"
    defaults: ClassVar = {
        "power": 1.0,
        "norm": "l2",
        "citation_order": 1,
        "directed": False,
        "normalized": True,
        "hidden": 200,
        "word_activation": False,
        "residual": 0.0,
        "word_dropout": 0.0,
        "document_dropout": 0.5,
        "centred": False,
        "learning_rate": 0.018,
        "weight_decay": 0.0,
        "max_epochs": 1000,
        "n_models": 1,
        "hops": 0,
        "alone": False,
    }

    def __init__(self, settings: Mapping[str, Any] | None = None, seed: int = 0, device: str = "auto") -> None:
        super().__init__(settings, seed, device)
        order = self.settings["citation_order"]
        if not isinstance(order, int) and not (isinstance(order, list) and [type(part) for part in order] == [int] * 2):
            raise InputError(f"citation_order must be a whole number k or a list of two, [m, n]; got {order!r}.")
        if self.settings["centred"] and not self.settings["normalized"]:
            raise InputError("centred needs a normalised graph. Leave normalized true, or centred false.")

    def fit(self, task: Task) -> Fit:
        """Fit on features and citations, without citations of a document to itself."""
        assert task.features is not None
        assert task.document_graph is not None
        self._documents = self._weighted(task.features)
        loops = diags_array(task.document_graph.diagonal())
        self._links = csr_array(task.document_graph - loops)
        labels = np.array([-1 if label is None else int(label) for label in task.labels])
        labels[task.validation] = -1
        classifier = WGCNNetworkClassifier(
            **self._pick(name for name in self.defaults if name not in (*_GRAPH, *_PREDICTION)),
            validation_fraction=0,
            random_state=self.seed * self.settings["n_models"],
            device=self.device,
        )
        with interrupts_raised():  # a training that was interrupted is not a result
            self._classifier = classifier.fit(self._documents, labels, word_graph=self._graph(task))
        scorer = classifier.scorer_
        digest = array_digest(scorer.word_embeddings, scorer.class_weights, scorer.bias)
        return network_fit(classifier)._replace(digest=digest)

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return one label per document: from its own words, with `hops` also from those of the documents it cites."""
        assert query.features is not None
        hops = self.settings["hops"]
        if not hops:
            return self._classifier.predict(self._weighted(query.features))
        if query.places is not None:
            return self._classifier.predict(attach_citations(self._documents, self._links, hops=hops)[query.places])
        assert query.document_graph is not None
        new, between = self._weighted(query.features), query.document_graph
        if self.settings["alone"]:
            return self._classifier.predict(attach_alone(new, between, self._documents, self._links, hops=hops))
        links = block_array([[None, between], [between.T, self._links]], format="csr")
        rows = attach_citations(new, csr_array(links), self._documents, hops=hops)
        return self._classifier.predict(rows)

    def _weighted(self, features: csr_array) -> csr_array:
        terms = csr_array(features, dtype=np.float32)
        terms.data = terms.data ** np.float32(self.settings["power"])
        return feature_rows(terms, self.settings["norm"])

    def _graph(self, task: Task) -> WordGraph:
        def make() -> WordGraph:
            vocabulary = Vocabulary([f"x{i}" for i in range(self._documents.shape[1])])
            order, directed = self.settings["citation_order"], self.settings["directed"]
            return WordGraph.from_citations(
                self._documents,
                _later_to_earlier(self._links) if directed else self._links,
                vocabulary,
                order=tuple(order) if isinstance(order, list) else order,
                directed=directed,
                normalized=self.settings["normalized"],
            )

        return _graphs.find([task.digest, self._pick(_GRAPH)], make)


def attach_alone(
    document_terms: csr_array, citations: csr_array, documents: csr_array, links: csr_array, *, hops: int
) -> csr_array:
    """Attach new documents one at a time: each row is as `attach_citations` gives it for that document alone.

    A new document v has the row v of A_v^hops [x_v; documents], where A_v is normalised for the known documents and v.
    Only the degrees of the documents that v cites differ from those of the known graph, so all new documents are
    computed at once, with products of sparse matrices. X_dv of the documents is (new, words) and (known, words); in
    `citations` (new, known) an entry is positive if two documents are linked, in `links` (known, known) one counts both
    ways.
    """
    cited = csr_array(citations, dtype=np.float64)
    known = csr_array(links, dtype=np.float64)
    known = csr_array(known.maximum(known.T) + eye_array(known.shape[0], format="csr"))
    degrees = known.sum(axis=1)
    scale = 1 / np.sqrt(degrees)
    own_scale = 1 / np.sqrt(1 + cited.sum(axis=1))  # (new,)
    # What the scale of a known document changes by where a new one cites it, (new, known)
    changed = cited.copy()
    changed.data = 1 / np.sqrt(degrees[cited.indices] + cited.data) - scale[cited.indices]

    own = np.ones(cited.shape[0])  # weight of each new document in its own row, (new,)
    others = csr_array(cited.shape)  # weights of the known documents, (new, known)
    for _ in range(hops):
        own, others = own * own_scale, _scaled(others, scale, changed)
        from_known = others.multiply(cited).sum(axis=1)
        others = _scaled(csr_array(others @ known + cited.multiply(own[:, None])), scale, changed)
        own = (own + from_known) * own_scale
    rows = csr_array(diags_array(own) @ document_terms + others @ documents, dtype=document_terms.dtype)
    rows.sort_indices()
    return rows


def _scaled(weights: csr_array, scale: npt.NDArray[np.float64], changed: csr_array) -> csr_array:
    """Multiply columns by a scale that differs in some entries."""
    return csr_array(weights.multiply(scale) + weights.multiply(changed))


def _later_to_earlier(links: csr_array) -> csr_array:
    """Return each link in one direction: entry [i, j], from i to j, only for i after j."""
    return csr_array(tril(links.maximum(links.T), -1))
