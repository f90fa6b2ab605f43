"""WGCNNetworkClassifier: the paper's network under scikit-learn's interface, for document-term matrices."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.errors import InputError, InterruptWarning, needs
from wgcn.base.threads import find_device
from wgcn.estimators.matrix import ClassPrior, ClassWeight, MatrixClassifier
from wgcn.graph import WordGraph
from wgcn.network.settings import Callback, NetworkSettings, TrainingSettings
from wgcn.scoring.scorer import Scorer
from wgcn.store.folder import check_target


@dataclass(kw_only=True, eq=False, repr=False)
class WGCNNetworkClassifier(MatrixClassifier):
    """The paper's word grounded graph convolutional network (eq. 5 to 7). Needs torch.

    Parameters
    ----------
    hidden, order, word_activation, residual, word_dropout, document_dropout, centred
        Options of the network: see `wgcn.network.settings.NetworkSettings`.
    learning_rate, weight_decay, max_epochs, patience, stopping, label_smoothing, validation_fraction, refit, n_models
        Options of the training: see `wgcn.network.settings.TrainingSettings`.
    top_k, class_weight, class_prior
        As in `WGCNClassifier`.
    checkpoint : path or None, default=None
        File in which the state of the training is kept.
    resume : bool, default=False
        Whether to resume from that file; the result has the same bytes as without an interruption.
    device : str, default="auto"
        "cpu", "cuda", or "auto" for a GPU where there is one.
    random_state : int, default=0
        Seed of the split, the initial weights and the dropout.

    Attributes
    ----------
    classes_, word_graph_, n_iter_, n_features_in_
        As in `WGCNClassifier`.
    word_embeddings_ : array of shape (n_features, hidden)
        H_vm of eq. 5.
    history_ : list of dict
        One record per epoch.
    held_out_accuracy_ : float or None
        Share of the validation documents that the weights which were kept got right.
    interrupted_ : bool
        Whether Ctrl-C ended the training; what was learnt until then is kept.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]])
    >>> model = WGCNNetworkClassifier(hidden=4, max_epochs=60).fit(X, ["drink", "drink", "drive", "drive"])
    >>> model.predict([[0, 1, 0, 0]]).tolist()
    ['drink']
    """

    hidden: int = 250
    order: int = 1
    word_activation: bool = False
    residual: float = 0.0
    word_dropout: float = 0.6
    document_dropout: float = 0.6
    centred: bool = False
    learning_rate: float = 0.018
    weight_decay: float = 0.0
    max_epochs: int = 800
    patience: int = 10
    stopping: Literal["best", "mean"] = "best"
    label_smoothing: float = 0.0
    validation_fraction: float = 0.1
    refit: bool = False
    n_models: int = 1
    top_k: int | None = 100
    class_weight: ClassWeight = None
    class_prior: ClassPrior = None
    checkpoint: str | Path | None = None
    resume: bool = False
    device: str = "auto"
    random_state: int = 0

    def fit(
        self,
        X: Any,
        y: object,
        sample_weight: npt.ArrayLike | None = None,
        *,
        word_graph: WordGraph | None = None,
        document_graph: csr_array | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> WGCNNetworkClassifier:
        """Train the network; arguments as in `WGCNClassifier.fit`, and callbacks that are called after every epoch.

        Unlabelled documents only shape a graph that is made from X.
        """
        task = self.task(X, y, sample_weight, word_graph=word_graph, document_graph=document_graph)
        with needs("The network"):
            from wgcn.network.training import Training
        targets = task.targets.toarray() if task.multilabel else task.codes
        training = Training(task.adjacency, task.terms, targets, task.weight, *self._settings())
        trained = training.train(callbacks, self.checkpoint, self.resume)
        prior = task.targets.shares(task.weight).astype(np.float32)
        scorer = Scorer(trained.word_table, trained.class_weights, trained.bias, prior, multilabel=task.multilabel)
        self.scorer_ = scorer if task.class_prior is None else scorer.with_prior(task.class_prior)
        self.history_, self.interrupted_ = [record._asdict() for record in trained.records], trained.interrupted
        if self.interrupted_:
            advice = "Give a checkpoint, and later resume=True, to be able to go on from there."
            if self.checkpoint is not None:
                advice = f"Fit again with resume=True to go on from {self.checkpoint}."
            warnings.warn(
                f"The training of the network was interrupted after {len(self.history_):,} epochs; the best network so "
                f"far is kept. {advice}",
                InterruptWarning,
                stacklevel=2,
            )
        validated = [record for record in self.history_ if record["validation_loss"] is not None]
        if self.stopping == "mean":
            validated = validated[-1:]  # the last weights are kept
        best = min(validated, key=lambda record: float(record["validation_loss"]), default=None)
        self.held_out_accuracy_ = None if best is None else best["validation_accuracy"]
        self.n_held_out_ = trained.n_held_out
        return self

    def _check_settings(self) -> None:
        self._settings()
        find_device(self.device)
        if self.checkpoint is not None:
            check_target(self.checkpoint)
        elif self.resume:
            raise InputError("resume needs a checkpoint: give the file to go on from.")

    def _settings(self) -> tuple[NetworkSettings, TrainingSettings]:
        own = {**self.get_params(deep=False), "seed": self.random_state}
        network, training = (
            {field.name: own[field.name] for field in fields(kind)} for kind in (NetworkSettings, TrainingSettings)
        )
        return NetworkSettings(**network), TrainingSettings(**training)
