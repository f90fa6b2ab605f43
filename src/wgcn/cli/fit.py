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
    read_windows,
)
from wgcn.errors import InputError, interrupts_raised

if TYPE_CHECKING:
    from wgcn.linear.tuning import Trial

__all__ = ["fit", "read_labelled"]

_GRAPH, _LINEAR, _NETWORK = "Word graph", "Linear model", "Network"  # parts of the help


class _Default:
    """What an estimator has by default. It is loaded only when asked, which is when fitting or showing the help."""

    def __init__(self, name: str, *, several: bool = False) -> None:
        self.name, self.several = name, several

    def __call__(self) -> Any:
        from wgcn.estimators.matrix import WGCNClassifier
        from wgcn.estimators.text import WGCNTextClassifier

        value = {**WGCNClassifier().get_params(), **WGCNTextClassifier().get_params()}[self.name]
        return [value] if self.several else value

    def __str__(self) -> str:
        value = self()
        return ", ".join(map(str, value)) if self.several else str(value)


def fit(
    train: Annotated[
        Path, typer.Argument(metavar="TRAIN", help="Labelled texts: .csv, .tsv, .jsonl, .parquet, or .gz.")
    ],
    model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR", help="Folder to write the model to.")],
    *,
    unlabeled: Annotated[
        list[Path] | None,
        typer.Option(
            "--unlabeled",
            metavar="FILE",
            help="More texts, without labels: they shape the word graph and teach. Repeatable.",
        ),
    ] = None,
    background: Annotated[
        list[Path] | None,
        typer.Option(
            "--background",
            metavar="FILE",
            help="Texts from elsewhere, which need not be of the classes: they shape vocabulary and word graph alone. "
            "Repeatable.",
        ),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = "label",
    label_separator: LabelSeparator = None,
    header: Header = True,
    tokenizer: Annotated[
        Literal["words", "text_gcn"],
        typer.Option(
            default_factory=_Default("tokenizer"), help="'words' for any language; 'text_gcn' as in the literature."
        ),
    ],
    stop_words: StopWords = None,
    ngrams: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Longest word n-gram; 1: words alone. Default: 2, or 1 with --network."),
    ] = None,
    min_count: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep words and n-grams that occur at least this often. Default: 2 for n-grams; 1 for words, or 2 if "
            "these are more than 100,000.",
        ),
    ] = None,
    window: Annotated[
        list[int],
        typer.Option(
            metavar="TOKENS",
            default_factory=_Default("window", several=True),
            help="Tokens in a window of the word graph, at least 2. Repeatable: the graph is then the mean of those of "
            "each window, and one longer than every text has whole texts.",
            rich_help_panel=_GRAPH,
        ),
    ],
    weight: Annotated[
        Literal["pmi", "npmi", "count", "cosine", "product"],
        typer.Option(default_factory=_Default("weight"), help="Edge weight of the word graph.", rich_help_panel=_GRAPH),
    ],
    threshold: Annotated[
        float,
        typer.Option(
            default_factory=_Default("threshold"), help="Keep edges with a weight above this.", rich_help_panel=_GRAPH
        ),
    ],
    min_pairs: Annotated[
        int,
        typer.Option(
            min=1,
            default_factory=_Default("min_pairs"),
            help="Keep pairs that share at least so many windows.",
            rich_help_panel=_GRAPH,
        ),
    ],
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Keep only the k strongest edges a word.", rich_help_panel=_GRAPH)
    ] = None,
    smoothing: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            default_factory=_Default("smoothing"),
            help="Context smoothing of pmi and npmi: 1 none, 0.75 is usual elsewhere.",
            rich_help_panel=_GRAPH,
        ),
    ],
    ngram_edges: Annotated[
        bool | None,
        typer.Option(
            "--ngram-edges/--no-ngram-edges",
            help="Whether n-grams have edges as words have. Default: with --network alone.",
            rich_help_panel=_GRAPH,
        ),
    ] = None,
    alpha: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="WEIGHT",
            default_factory=_Default("alpha"),
            help="Weight of the graph beside the words; 0: no graph.",
            rich_help_panel=_LINEAR,
        ),
    ],
    learn_alpha: Annotated[
        Literal["shared", "word"] | None,
        typer.Option(
            help="Learn that weight, beginning at --alpha: one for all words, or one for each word.",
            rich_help_panel=_LINEAR,
        ),
    ] = None,
    naive_bayes: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            default_factory=_Default("naive_bayes"),
            help="How much freer words are that the classes use differently; 0: all alike.",
            rich_help_panel=_LINEAR,
        ),
    ],
    teacher: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="WEIGHT",
            default_factory=_Default("teacher"),
            help="Weight of what texts without a label teach; 0: no teacher.",
            rich_help_panel=_LINEAR,
        ),
    ],
    self_training: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="WEIGHT",
            default_factory=_Default("self_training"),
            help="Weight of a text without a label in a second fit, with the label that the first gave it; 0: no "
            "second fit.",
            rich_help_panel=_LINEAR,
        ),
    ],
    c: Annotated[
        float,
        typer.Option(
            "--C",
            metavar="WEIGHT",
            default_factory=_Default("C"),
            help="Larger fits the training texts closer.",
            rich_help_panel=_LINEAR,
        ),
    ],
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="encoder|FILE",
            help="Word vectors for the teacher, of use where few texts have a label: 'encoder' distils them from a "
            "sentence encoder (the extra 'vectors'); or a file as of GloVe. Prediction needs neither.",
            rich_help_panel=_LINEAR,
        ),
    ] = None,
    balanced: Annotated[bool, typer.Option("--balanced", help="Give every class the same weight.")] = False,
    class_prior: Annotated[
        list[str] | None,
        typer.Option(
            metavar="uniform|LABEL=SHARE",
            help="Shares of the classes among the texts to be predicted, if they are not those among the labels. "
            "Repeat it for each class, or say 'uniform' once.",
        ),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Choose --alpha, --naive-bayes, --C and, if there are texts without a label, --teacher by texts "
            "with a label that are held out in turn, beginning with the values given. Needs Optuna.",
            rich_help_panel=_LINEAR,
        ),
    ] = False,
    tune_seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            default_factory=_Default("tune_seconds"),
            help="Time for --tune.",
            rich_help_panel=_LINEAR,
        ),
    ],
    network: Annotated[
        bool,
        typer.Option(
            "--network",
            help="Train the paper's network, which needs torch, not the linear model. It has no use for --alpha, "
            "--learn-alpha, --naive-bayes, --teacher, --self-training and --C.",
            rich_help_panel=_NETWORK,
        ),
    ] = False,
    average: Annotated[
        bool,
        typer.Option(
            "--average",
            help="Train both the linear model and, on single words, the network, which needs torch; the mean of their "
            "scores counts. Takes longer, and the model is larger.",
            rich_help_panel=_NETWORK,
        ),
    ] = False,
    hidden: Annotated[int, typer.Option(min=1, help="Hidden size of the network.", rich_help_panel=_NETWORK)] = 250,
    epochs: Annotated[
        int,
        typer.Option(min=1, help="Most epochs of the network; it stops earlier by itself.", rich_help_panel=_NETWORK),
    ] = 800,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the network.", rich_help_panel=_NETWORK)] = 0,
    device: Annotated[
        str, typer.Option(help="'auto', 'cpu' or 'cuda', for the network.", rich_help_panel=_NETWORK)
    ] = "auto",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the state of the network's training in this file, also when Ctrl-C ends it.",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the checkpoint, to the same model as without a break.",
            rich_help_panel=_NETWORK,
        ),
    ] = False,
) -> None:
    """Train a classifier on labelled texts.

    A text with an empty label counts as unlabelled. Example: wgcn fit train.csv --text-column body --model my-model
    """
    from wgcn.estimators.matrix import WGCNClassifier
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.inference.folder import check_target
    from wgcn.network.settings import NetworkSettings, TrainingSettings
    from wgcn.text.read import read_texts

    if network and average:
        raise InputError("--network trains the network alone, --average both models: give one of the two.")
    kind: Literal["linear", "network", "average"] = "network" if network else "average" if average else "linear"
    words = read_stop_words(stop_words)
    if ngrams is None:
        ngrams = 1 if network else WGCNTextClassifier().ngram_range[1]
    windows = read_windows(window)
    estimator = WGCNTextClassifier(
        tokenizer=tokenizer,
        ngram_range=(1, ngrams),
        ngram_edges=ngram_edges,
        min_count=min_count,
        stop_words=words or None,
        window=windows,
        weight=weight,
        threshold=threshold,
        min_pairs=min_pairs,
        top_k=top_k,
        smoothing=smoothing,
        vectors=vectors,
        classifier=WGCNClassifier(
            model=kind,
            network=NetworkSettings(hidden=hidden),
            training=TrainingSettings(max_epochs=epochs, seed=seed, device=device, refit=True),
            checkpoint=checkpoint,
            resume=resume,
            alpha=alpha,
            learn_alpha=learn_alpha,
            naive_bayes=naive_bayes,
            teacher=teacher,
            self_training=self_training,
            C=c,
            class_weight="balanced" if balanced else None,
            class_prior=read_class_shares(class_prior),
            tune=tune,
            tune_seconds=tune_seconds,
        ),
    )
    # All that can be found wrong is found before the texts are read; what depends on the labels, before they are used.
    estimator.check_parameters()
    check_target(model, "model")
    more, elsewhere = (
        [read_texts(path, text_column=text_column, header=header) for path in paths or []]
        for paths in (unlabeled, background)
    )
    texts, labels = [], []
    for text, label in read_labelled(train, text_column, label_column, header, label_separator):
        texts.append(text)
        labels.append(label)
    say(f"Read {len(texts):,} texts, {sum(label is not None for label in labels):,} of them with a label.")
    try:
        with interrupts_raised(), _progress(kind, epochs, tune) as callbacks:
            estimator.fit(
                texts,
                labels,
                unlabeled=chain.from_iterable(more),
                background=chain.from_iterable(elsewhere),
                callbacks=callbacks,
            )
    except KeyboardInterrupt:
        advice = ""
        if kind != "linear":
            advice = " To be able to go on after an interruption, give --checkpoint FILE, and then --resume."
            if checkpoint is not None and checkpoint.exists():
                advice = f" The same command with --resume goes on from {checkpoint}."
        say(f"Interrupted. Nothing was written to {model}.{advice}")
        raise
    estimator.save(model)
    report = estimator.model_.report
    typer.echo(f"classes   {len(estimator.classes_):,}")
    n_ngrams = int(estimator.model_.vocabulary.are_ngrams.sum())
    typer.echo(f"words     {len(estimator.model_.vocabulary) - n_ngrams:,}")
    if n_ngrams:
        typer.echo(f"n-grams   {n_ngrams:,}")
    typer.echo(f"edges     {report['n_edges']:,}")
    if estimator.tuned_ is not None and estimator.tuned_.accuracy is not None:
        tuned = estimator.tuned_
        typer.echo("settings  " + ", ".join(f"{name} {value:g}" for name, value in sorted(tuned.settings.items())))
        typer.echo(
            f"chosen    {tuned.accuracy:.2%} in cross-validation, {tuned.default_accuracy:.2%} with those given at "
            f"first; {tuned.n_trials} trials, {tuned.seconds:.1f} s"
        )
    if report["held_out_accuracy"] is not None:
        held_out = f"{report['held_out_accuracy']:.2%} of {report['n_held_out']:,} texts that were held out"
        held_out += ", by the linear model alone" if average else ""
        typer.echo(f"accuracy  {held_out}")
    typer.echo(f"seconds   {report['seconds']:.1f}")
    say(f"The model is in {model}. Use it: wgcn predict {model} FILE")


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


@contextmanager
def _progress(kind: str, epochs: int, tune: bool) -> Iterator[list[Any]]:
    """Show trials while settings are chosen, or epochs for the network, and else only that work goes on."""
    if tune and kind != "network":
        with steps() as bars:
            yield [_Trials(bars)]
    elif kind != "linear":
        from wgcn.network.callbacks import ProgressBar

        with ProgressBar(epochs) as bar:
            yield [bar]
    else:
        with working("Fitting"):
            yield []


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
