"""wgcn serve: models for other programs."""

from typing import Annotated, Any

import typer

from wgcn.base.errors import needs
from wgcn.cli.console import say


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

    asked: dict[str, Any] = {"token": token, "allow_hosts": allow_host or ()}
    asked |= {"body": max_body * 1_000_000, "texts": max_texts, "requests": queue, "answer": max_answer * 1_000_000}
    serve_models(models, host, port, ready=lambda url: say(f"The models are at {url}. Ctrl-C stops."), **asked)
