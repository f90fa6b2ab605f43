"""wgcn fit: train a text classifier and save it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wgcn.base.errors import InputError, interrupts_raised
from wgcn.cli import options
from wgcn.cli.console import EpochBar, counter, say, show, stages

if TYPE_CHECKING:
    from wgcn.model.text_model import TextModel
    from wgcn.scale.build import Resources

Read = Callable[[], tuple[list[str], list[Any]]]  # gives texts and their labels
_model = partial(typer.Option, rich_help_panel="Model")
_network = partial(typer.Option, rich_help_panel="The paper's network")

Unlabeled = Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Unlabelled texts. Repeatable.")]
Ngrams = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Longest n-gram, in words. Default: 2; 1 with --network.")
]
ClassPrior = Annotated[
    list[str] | None,
    _model(metavar="LABEL=SHARE", help="Expected share of a class in new texts. Repeatable; or 'uniform'."),
]
CheckpointFile = Annotated[
    Path | None, _network(metavar="FILE", help="Save the training state here, and resume from it.")
]


@options.uses_resources
@options.reads_files
def fit(
    resources: dict[str, Any],
    reading: dict[str, Any],
    train: Annotated[
        list[Path], typer.Argument(metavar="TRAIN...", help="File with labelled texts; - is standard input.")
    ],
    model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR", help="Folder to write the model to.")],
    *,
    unlabeled: Unlabeled = None,
    seed: options.Seed = None,
    seeds_file: options.SeedsFile = None,
    label_column: options.LabelColumn = "label",
    label_separator: options.LabelSeparator = None,
    missing: options.Missing = None,
    tokenizer: options.TokenizerName = "words",
    stop_words: options.StopWords = None,
    ngrams: Ngrams = None,
    min_count: options.MinCount = None,
    window: options.Window = 20,
    alpha: Annotated[float, _model(min=0.0, metavar="X", help="Weight of the word graph; 0 for none.")] = 0.5,
    c: Annotated[float, _model("--C", metavar="X", help="Inverse of the regularisation strength.")] = 0.5,
    subwords: Annotated[float, _model(min=0.0, metavar="X", help="Weight of subwords; 0 for none.")] = 1.5,
    tune: Annotated[
        bool, _model("--tune/--no-tune", help="Compare other settings on held-out texts, from 1,000 labels on.")
    ] = True,
    balanced: Annotated[bool, _model("--balanced", help="Give every class the same weight in training.")] = False,
    class_prior: ClassPrior = None,
    network: Annotated[bool, _network("--network", help="Train the paper's neural network instead (torch).")] = False,
    epochs: Annotated[int | None, _network(min=1, metavar="N", help="Largest number of epochs. Default: 800.")] = None,
    checkpoint: CheckpointFile = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Train a classifier on texts with labels, or with seed words for the classes.

    A text with an empty label counts as unlabelled. Example: wgcn fit train.csv --text-column body --model my-model

    Without labels: wgcn fit texts.csv --seed sport=game,team --seed politics=vote,party --model my-model

    Texts that do not fit into memory: wgcn fit shards/*.jsonl.gz --memory 4GB --model my-model
    """
    from wgcn.labels.reading import read_class_shares
    from wgcn.scale.build import Resources
    from wgcn.semi.seed_words import read_seed_options
    from wgcn.store.folder import check_target

    texts_as = {
        "tokenizer": tokenizer,
        "stop_words": options.read_stop_words(stop_words) or None,
        "min_count": min_count,
        "window": window,
        "ngram_range": (1, ngrams or (1 if network else 2)),
    }
    classes_as = {"class_weight": "balanced" if balanced else None, "class_prior": read_class_shares(class_prior)}
    # Everything that can be found wrong is found before the texts are read.
    seeds, limits = read_seed_options(seed, seeds_file) or None, Resources.of(**resources)
    of_network = epochs is not None or checkpoint is not None
    _check_kind(network, seeds=bool(seeds), of_network=of_network, out_of_core=limits is not None, n_files=len(train))
    inputs = [each for each in (*train, *(unlabeled or []), seeds_file, stop_words) if each is not None]
    check_target(model, "model", overwrite=overwrite, inputs=inputs)
    settings = {**texts_as, **classes_as, "alpha": alpha, "subwords": subwords, "C": c, "tune": tune}
    files: dict[str, Any] = {"unlabeled": unlabeled or [], "label_column": label_column}
    files |= {"label_separator": label_separator, "missing": missing}
    if limits is not None:
        _fit_files(train, model, limits, reading=reading, **files, **settings)
    elif network:
        training = {"max_epochs": epochs or 800, "checkpoint": checkpoint, "resume": checkpoint is not None}
        with _interrupts_named(model, partial(_advice_to_resume, checkpoint)):
            fitted = _fit_network(texts_as, {**classes_as, **training}, *_texts(train[0], reading, **files))
        _save(fitted, model)
    else:
        with _interrupts_named(model):
            fitted = _fit_linear(settings, *_texts(train[0], reading, **files, optional=bool(seeds)), seeds)
        _save(fitted, model)


def _check_kind(network: bool, *, seeds: bool, of_network: bool, out_of_core: bool, n_files: int) -> None:
    """Raise an InputError for options of the linear model, of the network and of work out of core that do not agree."""
    if not network and of_network:
        raise InputError("--epochs and --checkpoint are for the paper's network: give --network too.")
    if network and seeds:
        raise InputError("--seed and --seeds are for the linear model: leave out --network.")
    if out_of_core and (network or seeds):
        raise InputError("Out of core, models are fitted to labels, and not by the network: leave out --memory.")
    if n_files > 1 and not out_of_core:
        raise InputError("Several files are fitted out of core: give --memory, such as --memory 4GB.")


def _texts(
    train: Path,
    reading: dict[str, Any],
    *,
    unlabeled: list[Path],
    optional: bool = False,
    **labels_as: Any,
) -> tuple[Read, Iterator[str]]:
    """Return what reads the labelled texts, and more texts; labels may be missing where they are optional."""
    more = options.read_files(unlabeled, reading | {"format": None} if str(train) == "-" else reading)  # not of stdin
    return partial(options.read_labelled_texts, train, reading=reading, optional=optional, **labels_as), more


@contextmanager
def _interrupts_named(model: Path, advice: Callable[[], str] = str) -> Iterator[None]:
    """Say that nothing was written if the fit inside is interrupted, and what to do."""
    try:
        with interrupts_raised():
            yield
    except KeyboardInterrupt:
        say(f"Interrupted. Nothing was written to {model}.{advice()}")
        raise


def _save(fitted: Any, model: Path) -> None:
    from wgcn.model.card import model_rows

    fitted.save(model)
    show(model_rows(fitted))
    say(f"The model is in {model}. Use it: wgcn predict {model} FILE")


def _advice_to_resume(checkpoint: Path | None) -> str:
    if checkpoint is not None and checkpoint.exists():
        return f" The same command goes on from {checkpoint}."
    return " To be able to go on after an interruption, give --checkpoint FILE."


def _fit_files(train: list[Path], model: Path, limits: "Resources", **how: Any) -> None:
    from wgcn.scale.files import fit_files

    how |= {name: getattr(limits, name) for name in ("memory", "scheduler", "n_workers", "restart")}
    how["work"] = limits.work_folder(model)
    with options.resumable(how["work"]), interrupts_raised(), stages() as bars:
        fitted = fit_files(train, progress=counter(bars), **how)
    _save(fitted, model)


def _fit_linear(
    settings: dict[str, Any], read: Read, unlabeled: Iterator[str], seeds: dict[str, list[str]] | None
) -> "TextModel":
    from wgcn.estimators.text import WGCNTextClassifier

    estimator = WGCNTextClassifier(**settings)
    estimator.check_parameters()
    texts, labels = read()
    with stages():
        return estimator.fit(texts, labels, unlabeled=unlabeled, seeds=seeds).model_


def _fit_network(texts_as: dict[str, Any], settings: dict[str, Any], read: Read, more: Iterator[str]) -> "TextModel":
    from wgcn.estimators.network import WGCNNetworkClassifier
    from wgcn.estimators.preparation import Preparation

    preparation, epochs = Preparation(**texts_as), settings["max_epochs"]
    classifier = WGCNNetworkClassifier(**settings, refit=True)
    classifier.check_parameters()
    texts, labels = read()
    with stages() as bars:
        prepared = preparation.prepare(chain(texts, more))
        terms, graph = prepared.document_terms[: len(texts)], prepared.word_graph
        classifier.fit(terms, labels, word_graph=graph, callbacks=[EpochBar(bars, epochs)])
    report = {**texts_as, "model": "network", "max_epochs": epochs}
    return prepared.text_model(classifier, report, sum(record["seconds"] for record in classifier.history_))
