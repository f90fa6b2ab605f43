"""wgcn fit: train a text classifier and save it."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wgcn.base.errors import InputError
from wgcn.cli import options
from wgcn.cli.console import EpochBar, counter, say, show, stages
from wgcn.cli.options import Given

if TYPE_CHECKING:
    from wgcn.model.text_model import TextModel

Read = Callable[[], tuple[list[str], list[Any]]]  # gives texts and their labels
_model = partial(typer.Option, rich_help_panel="Model")
_network = partial(typer.Option, rich_help_panel="The paper's network")


@options.grouped
def fit(
    train: Annotated[
        list[Path], typer.Argument(metavar="TRAIN...", help="File with labelled texts; - is standard input.")
    ],
    model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR", help="Folder to write the model to.")],
    *,
    unlabeled: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Unlabelled texts. Repeatable.")] = None,
    seed: options.Seed = None,
    seeds_file: options.SeedsFile = None,
    labels: Given,
    tokenizer: options.TokenizerName = "words",
    stop_words: options.StopWords = None,
    ngrams: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Longest n-gram, in words. Default: 2; 1 with --network.")
    ] = None,
    min_count: options.MinCount = None,
    window: options.Window = 20,
    alpha: Annotated[float, _model(min=0.0, metavar="X", help="Weight of the word graph; 0 for none.")] = 0.5,
    c: Annotated[float, _model("--C", metavar="X", help="Inverse of the regularisation strength.")] = 0.5,
    subwords: Annotated[float, _model(min=0.0, metavar="X", help="Weight of subwords; 0 for none.")] = 1.5,
    tune: Annotated[
        bool, _model("--tune/--no-tune", help="Compare other settings on held-out texts, from 1,000 labels on.")
    ] = True,
    balanced: Annotated[bool, _model("--balanced", help="Give every class the same weight in training.")] = False,
    class_prior: Annotated[
        list[str] | None,
        _model(metavar="LABEL=SHARE", help="Expected share of a class in new texts. Repeatable; or 'uniform'."),
    ] = None,
    network: Annotated[bool, _network("--network", help="Train the paper's neural network instead (torch).")] = False,
    epochs: Annotated[int | None, _network(min=1, metavar="N", help="Largest number of epochs. Default: 800.")] = None,
    checkpoint: Annotated[
        Path | None, _network(metavar="FILE", help="Save the training state here, and resume from it.")
    ] = None,
    overwrite: options.Overwrite = False,
    reading: Given,
    resources: Given,
) -> None:
    """Train a classifier on texts with labels, or with seed words for the classes.

    A text with an empty label counts as unlabelled. Example: wgcn fit train.csv --text-column body --model my-model

    Without labels: wgcn fit texts.csv --seed sport=game,team --seed politics=vote,party --model my-model

    Texts that do not fit into memory: wgcn fit shards/*.jsonl.gz --memory 4GB --model my-model
    """
    from wgcn.labels.reading import read_class_shares
    from wgcn.model.card import model_rows
    from wgcn.scale.build import Resources
    from wgcn.semi.seed_words import read_seed_options

    texts_as: Given = {
        "tokenizer": tokenizer,
        "stop_words": options.read_stop_words(stop_words) or None,
        "min_count": min_count,
        "window": window,
        "ngram_range": (1, ngrams or (1 if network else 2)),
    }
    classes_as = {"class_weight": "balanced" if balanced else None, "class_prior": read_class_shares(class_prior)}
    settings: Given = {**texts_as, **classes_as, "alpha": alpha, "subwords": subwords, "C": c, "tune": tune}
    training: Given = {
        **classes_as,
        "max_epochs": epochs or 800,
        "checkpoint": checkpoint,
        "resume": checkpoint is not None,
    }
    # Everything that can be found wrong is found before the texts are read.
    seeds, limits = read_seed_options(seed, seeds_file) or None, Resources.of(**resources)
    of_network = epochs is not None or checkpoint is not None
    _check_kind(network, seeds=bool(seeds), of_network=of_network, out_of_core=limits is not None, n_files=len(train))
    inputs = [*train, *(unlabeled or []), seeds_file, stop_words]
    options.check_output(model, "model", overwrite=overwrite, inputs=inputs)
    work = None if limits is None else limits.work_folder(model)
    read = partial(options.read_labelled_texts, train[0], labels, reading, optional=bool(seeds))
    more = [] if limits is not None or unlabeled is None else _more_texts(unlabeled, train[0], reading)
    with options.interrupts_told(partial(_advice, model, work, network, checkpoint)):
        if limits is not None:
            resources |= {"n_workers": resources.pop("workers"), "work": work, "reading": reading, **labels}
            fitted = _fit_files(train, unlabeled or [], resources | settings)
        elif network:
            fitted = _fit_network(texts_as, training, read, more)
        else:
            fitted = _fit_linear(settings, read, more, seeds)
    fitted.save(model)
    show(model_rows(fitted))
    say(f"The model is in {model}. Use it: wgcn predict {model} FILE")


def _more_texts(unlabeled: list[Path], train: Path, reading: Given) -> Iterator[str]:
    """Return the texts of more files; a format that is given for standard input is not theirs."""
    return options.read_files(unlabeled, reading | {"format": None} if str(train) == "-" else reading)


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


def _advice(model: Path, work: Path | None, network: bool, checkpoint: Path | None) -> str | None:
    """Say what an interrupted fit has left, and how to go on."""
    if work is not None:
        return options.advice_to_go_on(work)
    left = f"Nothing was written to {model}."
    if not network:
        return left
    if checkpoint is not None and checkpoint.exists():
        return f"{left} The same command goes on from {checkpoint}."
    return f"{left} To be able to go on after an interruption, give --checkpoint FILE."


def _fit_files(train: list[Path], unlabeled: list[Path], how: Given) -> "TextModel":
    from wgcn.scale.files import fit_files

    with stages() as bars:
        return fit_files(train, unlabeled=unlabeled, progress=counter(bars), **how)


def _fit_linear(settings: Given, read: Read, unlabeled: Iterable[str], seeds: Given | None) -> "TextModel":
    from wgcn.estimators.text import WGCNTextClassifier

    estimator = WGCNTextClassifier(**settings)
    estimator.check_parameters()
    texts, labels = read()
    with stages():
        return estimator.fit(texts, labels, unlabeled=unlabeled, seeds=seeds).model_


def _fit_network(texts_as: Given, settings: Given, read: Read, more: Iterable[str]) -> "TextModel":
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
