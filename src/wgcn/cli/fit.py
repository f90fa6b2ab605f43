"""wgcn fit: train a text classifier and save it."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import Progress

from wgcn.cli.console import say, steps, working
from wgcn.cli.options import (
    Header,
    LabelColumn,
    LabelSeparator,
    StopWords,
    TextColumn,
    read_class_shares,
    read_stop_words,
)
from wgcn.errors import InputError, interrupts_raised

if TYPE_CHECKING:
    from wgcn.inference.model import TextModel
    from wgcn.linear.tuning import Trial

__all__ = ["fit", "read_labelled"]

_MODEL, _NETWORK = "Model", "The paper's network"  # parts of the help


def fit(
    train: Annotated[
        Path, typer.Argument(metavar="TRAIN", help="Labelled texts: .csv, .tsv, .jsonl, .parquet, or .gz.")
    ],
    model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR", help="Folder to write the model to.")],
    *,
    unlabeled: Annotated[
        list[Path] | None,
        typer.Option("--unlabeled", metavar="FILE", help="More texts, without labels, to learn from. Repeatable."),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = "label",
    label_separator: LabelSeparator = None,
    header: Header = True,
    tokenizer: Annotated[
        Literal["words", "text_gcn"], typer.Option(help="'words' for any language; 'text_gcn' as in the literature.")
    ] = "words",
    stop_words: StopWords = None,
    ngrams: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Longest word n-gram. Default: 2; 1 with --network.")
    ] = None,
    min_count: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Keep words and n-grams that occur at least so often.")
    ] = None,
    window: Annotated[
        int, typer.Option(min=2, metavar="TOKENS", help="Window of the word graph.", rich_help_panel=_MODEL)
    ] = 20,
    alpha: Annotated[
        float, typer.Option(min=0.0, help="Weight of the word graph; 0: no graph.", rich_help_panel=_MODEL)
    ] = 0.5,
    c: Annotated[
        float, typer.Option("--C", help="Larger fits the training texts closer.", rich_help_panel=_MODEL)
    ] = 0.5,
    tune: Annotated[
        bool,
        typer.Option("--tune", help="Choose such settings by cross-validation, in 2 minutes.", rich_help_panel=_MODEL),
    ] = False,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Give every class the same weight.", rich_help_panel=_MODEL)
    ] = False,
    class_prior: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=SHARE",
            help="Share of a class among the texts to be predicted. Repeat it for each class, or say 'uniform' once.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    network: Annotated[
        bool,
        typer.Option("--network", help="Train the paper's network, with torch, instead.", rich_help_panel=_NETWORK),
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most epochs. Default: 800.", rich_help_panel=_NETWORK)
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the state of the training in this file, and go on from it if it is there.",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
) -> None:
    """Train a classifier on labelled texts.

    A text with an empty label counts as unlabelled. Example: wgcn fit train.csv --text-column body --model my-model
    """
    from wgcn.inference.folder import check_target
    from wgcn.text.read import read_texts

    text_settings = {
        "tokenizer": tokenizer,
        "stop_words": read_stop_words(stop_words) or None,
        "min_count": min_count,
        "window": window,
    }
    model_settings = {
        "class_weight": "balanced" if balanced else None,
        "class_prior": read_class_shares(class_prior),
    }
    # Everything that can be found wrong is found before the texts are read.
    trainer: _LinearTrainer | _NetworkTrainer
    if network:
        if tune:
            raise InputError("--tune is for the linear model: leave out --tune or --network.")
        trainer = _NetworkTrainer(
            {**text_settings, "ngram_range": (1, ngrams or 1)}, model_settings, epochs or 800, checkpoint
        )
    else:
        if epochs is not None or checkpoint is not None:
            raise InputError("--epochs and --checkpoint are for the paper's network: give --network too.")
        settings = {**text_settings, **model_settings, "ngram_range": (1, ngrams or 2), "alpha": alpha, "C": c}
        trainer = _LinearTrainer(settings, tune)
    check_target(model, "model")
    more = [read_texts(path, text_column=text_column, header=header) for path in unlabeled or []]
    texts, labels = [], []
    for text, label in read_labelled(train, text_column, label_column, header, label_separator):
        texts.append(text)
        labels.append(label)
    say(f"Read {len(texts):,} texts, {sum(label is not None for label in labels):,} of them labelled.")
    try:
        with interrupts_raised():
            fitted = trainer.fit(texts, labels, chain.from_iterable(more))
    except KeyboardInterrupt:
        say(f"Interrupted. Nothing was written to {model}.{trainer.resume_advice()}")
        raise
    fitted.save(model)
    _print_report(fitted)
    say(f"The model is in {model}. Use it: wgcn predict {model} FILE")


class _LinearTrainer:
    """Fits `WGCNTextClassifier`, and shows trials of tuning."""

    def __init__(self, settings: dict[str, Any], tune: bool) -> None:
        from wgcn.estimators.text import WGCNTextClassifier

        self._estimator, self._tune = WGCNTextClassifier(**settings, tune=tune), tune
        self._estimator.check_parameters()

    def fit(self, texts: list[str], labels: list[Any], unlabeled: Iterator[str]) -> "TextModel":
        with self._progress() as callbacks:
            if self._tune:
                from wgcn.linear.tuning import Tuning

                self._estimator.set_params(tune=Tuning(callbacks=callbacks))
            self._estimator.fit(texts, labels, unlabeled=unlabeled)
        return self._estimator.model_

    def resume_advice(self) -> str:
        return ""

    @contextmanager
    def _progress(self) -> Iterator[list[Any]]:
        if self._tune:
            with steps() as bars:
                yield [_Trials(bars)]
        else:
            with working("Fitting"):
                yield []


class _NetworkTrainer:
    """Fits `WGCNNetworkClassifier`, and shows its epochs."""

    def __init__(
        self, text_settings: dict[str, Any], settings: dict[str, Any], epochs: int, checkpoint: Path | None
    ) -> None:
        from wgcn.estimators.network import WGCNNetworkClassifier
        from wgcn.estimators.preparation import Preparation

        self._preparation, self._epochs, self._checkpoint = Preparation(**text_settings), epochs, checkpoint
        self._settings = {**text_settings, "model": "network", "max_epochs": epochs}
        self._classifier = WGCNNetworkClassifier(
            **settings, max_epochs=epochs, refit=True, checkpoint=checkpoint, resume=checkpoint is not None
        )
        self._classifier.check_parameters()

    def fit(self, texts: list[str], labels: list[Any], unlabeled: Iterator[str]) -> "TextModel":
        from wgcn.network.callbacks import ProgressBar

        with working("Counting words"):
            prepared = self._preparation.prepare(chain(texts, unlabeled))
        with ProgressBar(self._epochs) as bar:
            self._classifier.fit(
                prepared.document_terms[: len(texts)], labels, word_graph=prepared.word_graph, callbacks=[bar]
            )
        seconds = sum(record["seconds"] for record in self._classifier.history_)
        return prepared.text_model(self._classifier, self._settings, seconds)

    def resume_advice(self) -> str:
        if self._checkpoint is not None and self._checkpoint.exists():
            return f" The same command goes on from {self._checkpoint}."
        return " To be able to go on after an interruption, give --checkpoint FILE."


class _Trials:
    """A bar that counts the trials of --tune."""

    def __init__(self, bars: Progress) -> None:
        self._bars, self._task = bars, bars.add_task("Fitting", total=None, note="")

    def on_trial(self, trial: "Trial") -> None:
        """Show how many trials there were, and the best accuracy so far."""
        note = f"{trial.number} of at most {trial.n_trials} trials, best {trial.best_accuracy:.2%}"
        self._bars.update(
            self._task, description="Choosing settings", completed=trial.number, total=trial.n_trials, note=note
        )


def _print_report(model: "TextModel") -> None:
    """Print what was fitted, one figure per line."""
    report, n_ngrams = model.report, int(model.vocabulary.are_ngrams.sum())
    typer.echo(f"classes   {len(model.classes):,}")
    typer.echo(f"words     {len(model.vocabulary) - n_ngrams:,}")
    if n_ngrams:
        typer.echo(f"n-grams   {n_ngrams:,}")
    typer.echo(f"edges     {report['n_edges']:,}")
    tuned = report.get("tuned")
    if tuned is not None and tuned["accuracy"] is not None:
        chosen = ", ".join(f"{name} {value:g}" for name, value in sorted(tuned["settings"].items()))
        typer.echo(f"settings  {chosen}")
        typer.echo(
            f"chosen    {tuned['accuracy']:.2%} in cross-validation, {tuned['default_accuracy']:.2%} by default; "
            f"{tuned['n_trials']} trials, {tuned['seconds']:.1f} s"
        )
    if report["held_out_accuracy"] is not None:
        typer.echo(f"accuracy  {report['held_out_accuracy']:.2%} of {report['n_held_out']:,} held-out texts")
    typer.echo(f"seconds   {report['seconds']:.1f}")


def read_labelled(
    path: Path, text_column: str | None, label_column: str, header: bool, separator: str | None
) -> Iterator[tuple[str, Any]]:
    """Read texts with their labels: a str, a list of str if there is a separator, or None for an empty label."""
    from wgcn.text.read import read_rows

    rows = read_rows(path, [label_column, text_column or "text"], header=header)
    for label, text in rows:
        if not label or not label.strip():
            yield text or "", None
        elif separator is not None:
            yield text or "", [part.strip() for part in label.split(separator) if part.strip()]
        else:
            yield text or "", label
