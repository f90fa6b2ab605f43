"""WGCN for linked documents (eq. 4 and 6) under the interface of all methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import block_array, csr_array, diags_array
from sklearn.preprocessing import normalize

from wgcn.errors import interrupts_raised
from wgcn.estimators.network import WGCNNetworkClassifier
from wgcn.graph import WordGraph
from wgcn.graph.citations import attach_citations
from wgcn.text.vocabulary import Vocabulary
from wgcn_paper.methods.baseline import Baseline, Fit, array_digest
from wgcn_paper.methods.preparation import Kept
from wgcn_paper.methods.wgcn import network_fit

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task

__all__ = ["CitationMethod"]

_NETWORK = (
    "hidden",
    "word_activation",
    "residual",
    "word_dropout",
    "document_dropout",
    "centred",
    "learning_rate",
    "weight_decay",
    "max_epochs",
    "n_models",
)

# Word graphs depend on neither labels nor seed, so consecutive cells share them.
_graphs: Kept[WordGraph] = Kept(most=4)


class CitationMethod(Baseline):
    """The network on a word graph made from citations.

    The validation documents of a data set are in the graph, but their labels are not used in training.
    """

    name = "wgcn-citations"
    defaults: ClassVar = {
        "power": 1.0,
        "norm": "l2",
        "citation_order": 1,
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
    }

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
            **self._pick(_NETWORK),
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
        between = query.document_graph
        links = block_array([[None, between], [between.T, self._links]], format="csr")
        rows = attach_citations(self._weighted(query.features), csr_array(links), self._documents, hops=hops)
        return self._classifier.predict(rows)

    def _weighted(self, features: csr_array) -> csr_array:
        terms = csr_array(features, dtype=np.float32)
        terms.data = terms.data ** np.float32(self.settings["power"])
        norm = self.settings["norm"]
        return terms if norm == "none" else csr_array(normalize(terms, norm))

    def _graph(self, task: Task) -> WordGraph:
        def make() -> WordGraph:
            vocabulary = Vocabulary([f"x{i}" for i in range(self._documents.shape[1])])
            order = self.settings["citation_order"]
            return WordGraph.from_citations(self._documents, self._links, vocabulary, order=order)

        return _graphs.find([task.digest, self._pick(("power", "norm", "citation_order"))], make)
