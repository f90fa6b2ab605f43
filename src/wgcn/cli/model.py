"""wgcn predict, evaluate, explain, words, extend, export, serve and info: what is done with a model."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from wgcn.base.errors import InputError, needs
from wgcn.base.progress import stage
from wgcn.cli import options
from wgcn.cli.console import say, show, stages, warn
from wgcn.cli.options import Given, ModelFolder, Overwrite, to_file
from wgcn.cli.predict import predict_texts


@options.grouped
def predict(
    folder: ModelFolder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE...|-]", help="Texts to classify. Default: standard input, one per line."),
    ] = None,
    output: Annotated[
        Path | None, to_file(metavar="FILE", help=".csv, .tsv, .jsonl or .parquet; .txt for labels only.")
    ] = None,
    output_format: Annotated[
        str | None, typer.Option(metavar="NAME", help="csv, tsv, jsonl, parquet or txt. Default: by the name.")
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Also print the label's probability, and the share of unknown words.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, metavar="K", help="Also give the next labels, K in all.")] = 1,
    proba: Annotated[bool, typer.Option("--proba", help="Also give every probability, as probability_CLASS.")] = False,
    abstain: Annotated[
        float | None,
        typer.Option(metavar="P", help="Give no label if it is less likely than this, or if the text is out of scope."),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Also give a set of labels that has the right one for this share of texts."),
    ] = None,
    scope: Annotated[
        bool,
        typer.Option("--scope", help="Also give how strange a text is: 0.99 is stranger than 99 % of held-out texts."),
    ] = False,
    label_separator: Annotated[
        str | None, typer.Option(metavar="CHAR", help="Separator between several labels of a text. Default: ;")
    ] = None,
    overwrite: Overwrite = False,
    *,
    reading: Given,
) -> None:
    """Classify texts. They are read and answered in batches, so a file may be larger than memory.

    Prints one label per text, or tab-separated columns with a header if more is asked for. A table of --output keeps
    the columns of the file and adds label, confidence and unknown_words. With several files, --output is a folder.

    Example: wgcn predict my-model new.csv --abstain 0.8 --coverage 0.9 --output labels.csv
    """
    added: Given = {"confidence": confidence, "top": top, "proba": proba, "abstain": abstain, "coverage": coverage}
    added |= {"scope": scope, "label_separator": label_separator, "overwrite": overwrite}
    if texts and len(texts) > 1:
        from wgcn.scale.prediction import predict_files

        if output is None:
            raise InputError("The predictions of several files go to a folder: name it with --output DIR.")
        predict_files(folder, texts, output, output_format=output_format, reading=reading, **added)
        say(f"The predictions of {len(texts):,} files are in {output}.")
        return
    predict_texts(folder, texts[0] if texts else "-", output=output, output_format=output_format, **added, **reading)


@options.grouped
def evaluate(
    folder: ModelFolder,
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Labelled texts not in training; - is standard input.")],
    *,
    labels: Given,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the confusion matrix: .png, .svg or .pdf.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Training texts, to warn of copies among the test texts.")
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out texts whose label the model does not know.")
    ] = False,
    overwrite: Overwrite = False,
    reading: Given,
) -> None:
    """Measure a model on labelled texts: accuracy with a 95 % interval, macro F1, and a table of the classes.

    Example: wgcn evaluate my-model test.csv --text-column body --picture confusion.png
    """
    from wgcn.active.notices import shared_texts
    from wgcn.model.text_model import TextModel
    from wgcn.plots import plot_confusion
    from wgcn.trust.accuracy import measure

    options.check_output(picture, "picture", overwrite=overwrite, inputs=[test, train])
    model = TextModel.load(folder)
    if picture is not None and model.scorer.multilabel:
        raise InputError("A confusion matrix is for models that give one label per text. Leave out --picture.")
    if labels["label_separator"] is not None and not model.scorer.multilabel:
        raise InputError("The model gives one label per text: leave out --label-separator.")
    found = measure(model, options.read_labelled_rows(test, labels, reading), skip_unknown)
    if found.n_left_out:
        say(f"Left out {found.n_left_out:,} texts whose label is not in the model.")
    if train is not None and (notice := shared_texts(options.read_files([train], reading), found.texts)):
        warn(notice)
    show(found.figures)
    typer.echo(f"\n{found.table}")
    if picture is not None:
        plot_confusion(found.truth, found.guess, found.names, picture)
        say(f"The confusion matrix is in {picture}.")


def explain(
    folder: ModelFolder,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Texts to explain, in quotes.")],
    label: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Class to explain. Default: the one with the highest score.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page instead.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Show which words of a text speak for a class and against it, and what their neighbours in the graph contribute.

    Example: wgcn explain my-model "The match ended in a draw." --html why.html
    """
    from wgcn.base.files import write_file
    from wgcn.explain.render import as_html, as_text
    from wgcn.model.text_model import TextModel

    options.check_output(html, overwrite=overwrite)
    explanations = TextModel.load(folder).explain(texts)
    if html is not None:
        write_file(html, lambda file: file.write(as_html(explanations, label).encode()))
        say(f"The explanations are in {html}.")
        return
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    typer.echo("\n\n".join(as_text(each, label, colour=colour) for each in explanations).encode(), nl=False)


def words(
    folder: ModelFolder,
    label: Annotated[str | None, typer.Option(metavar="CLASS", help="Only the words of this class.")] = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Words per class.")] = 20,
) -> None:
    """Show the strongest words of each class.

    Example: wgcn words my-model --top 10
    """
    from wgcn.explain.render import harmless
    from wgcn.model.text_model import TextModel

    model = TextModel.load(folder)
    rows = {str(name): model.top_words(name, top) for name in (model.classes.tolist() if label is None else [label])}
    show({harmless(name): harmless(", ".join(word for word, _ in found)) for name, found in rows.items()})


@options.grouped
def extend(
    folder: ModelFolder,
    texts: options.TextFiles,
    *,
    output: Annotated[Path, to_file(metavar="DIR", help="Folder to write the new model to.")],
    min_count: Annotated[int, typer.Option(min=1, help="Add words that occur at least this often in the texts.")] = 2,
    overwrite: Overwrite = False,
    reading: Given,
) -> None:
    """Add unknown words to a model, without training.

    Example: wgcn extend my-model more.csv --text-column body --output larger-model
    """
    from wgcn.model.card import words_added
    from wgcn.model.text_model import TextModel

    options.check_output(output, "model", overwrite=overwrite, inputs=[folder, *texts])
    model = TextModel.load(folder)
    more = options.read_files(texts, reading)
    with stages(), stage("Adding words"):
        larger = model.extend(more, min_count)
    larger.save(output)
    show({"words added": words_added(model, larger)})
    say(f"The model is in {output}. Use it: wgcn predict {output} FILE")


def export(
    folder: ModelFolder,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one page with the model in it.")] = None,
    js: Annotated[Path | None, typer.Option(metavar="DIR", help="Write a package of JavaScript, for npm.")] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the page.")] = "Classify texts",
    overwrite: Overwrite = False,
) -> None:
    """Write a model as a page or a package for the browser, with the same labels and without a server.

    Example: wgcn export my-model --html classify.html
    """
    from wgcn.browser.export import export_model

    for line in export_model(folder, html, js, title, overwrite=overwrite):
        say(line)


def serve(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders of models: DIR, or NAME=DIR.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Require this token. Better: WGCN_TOKEN in the environment.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Also answer under this host name. Repeatable.")
    ] = None,
    queue: Annotated[int, typer.Option(min=1, metavar="N", help="Requests at a time; further ones get 503.")] = 128,
    max_body: Annotated[int, typer.Option(min=1, metavar="MB", help="Largest request.")] = 8,
    max_texts: Annotated[int, typer.Option(min=1, metavar="N", help="Most texts per request.")] = 1000,
    max_answer: Annotated[int, typer.Option(min=1, metavar="MB", help="Largest answer.")] = 32,
) -> None:
    """Answer requests over HTTP: predictions, explanations, the models and their cards.

    A folder that changes is loaded again. Example: wgcn serve my-model --port 8000, then
    curl localhost:8000/v1/predict --data '{"text": "A text."}'
    """
    with needs("wgcn serve", "serve"):
        from wgcn.serve.app import serve as serve_models

    limits = {"body": max_body * 1_000_000, "texts": max_texts, "requests": queue, "answer": max_answer * 1_000_000}
    asked: Given = {"token": token, "allow_hosts": allow_host or (), **limits}
    serve_models(models, host, port, ready=lambda url: say(f"The models are at {url}. Ctrl-C stops."), **asked)


def info(folder: ModelFolder) -> None:
    """Show the card of a model: classes, settings, held-out accuracy.

    Example: wgcn info my-model
    """
    from wgcn.model.card import model_card
    from wgcn.model.text_model import TextModel

    typer.echo(model_card(TextModel.load(folder)), nl=False)
