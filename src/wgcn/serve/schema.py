"""What requests may ask for and what answers hold, as types; pydantic makes /openapi.json of them, and /docs shows it.

Options are checked by pydantic. Texts are checked here, because pydantic refuses halves of surrogate pairs, which JSON
may have and the library reads; that takes no longer (1,000 texts: 0.05 ms here, 0.03 ms there). Answers are not checked
on their way out: a test calls every path and compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from copy import deepcopy
from html import escape
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic takes no other one before Python 3.12

from wgcn import __version__
from wgcn.base.errors import InputError

Schema = dict[str, Any]


class Limits(NamedTuple):
    """How much a server takes at a time."""

    body: int = 8_000_000  # bytes of a request
    texts: int = 1_000  # texts of a request
    characters: int = 1_000_000  # characters of a text
    requests: int = 128  # requests that are worked on or wait; more are sent away
    explained: int = 100  # texts of a request to explain, which takes longer
    explained_characters: int = 100_000
    answer: int = 32_000_000  # bytes of an answer

    def of_texts(self, options: type[Options]) -> tuple[int, int]:
        """Return how many texts a request may have, and how many characters a text."""
        if options is ExplainOptions:
            return min(self.texts, self.explained), min(self.characters, self.explained_characters)
        return self.texts, self.characters


# Requests


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value  # 3.0 is a whole number in JSON


Count = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_whole)]
Share = Annotated[float, Field(gt=0, lt=1)]


class Options(BaseModel):
    """What is asked for beside the texts; the same for all texts of a request."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PredictOptions(Options):
    """What is asked for beside the label."""

    top: Count = Field(1, description="Also give the likeliest labels, so many of them.")
    probabilities: bool = Field(False, description="Also give the probability of every class.")
    abstain: Share | None = Field(None, description="Give no label where it is less likely, or the text out of scope.")
    coverage: Share | None = Field(None, description="Also give a set of labels that holds the right one this often.")
    scope: bool = Field(False, description="Also give how strange a text is.")


class ExplainOptions(Options):
    """Which class is explained, and by how many words."""

    label: str | int | None = Field(None, description="The class to explain. Default: the one with the highest score.")
    n: Count = Field(10, description="Words for the class and against it, so many of each.")


Asked = TypeVar("Asked", bound=Options)


def read_request(content: dict[str, Any], kind: type[Asked], limits: Limits) -> tuple[list[str], bool, Asked]:
    """Return the texts of a request, whether it is a single one, and the options. What is wrong is an InputError."""
    if ("text" in content) == ("texts" in content):
        raise InputError("Give either 'text', one text, or 'texts', a list of them.")
    single = "text" in content
    texts = [content["text"]] if single else content["texts"]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError("'text' must be a string, and 'texts' a list of strings.")
    most, longest = limits.of_texts(kind)
    if len(texts) > most:
        raise InputError(f"{len(texts):,} texts are too many: {most:,} is the limit. Send several requests.")
    if texts and (length := max(map(len, texts))) > longest:
        raise InputError(f"A text of {length:,} characters is too long: {longest:,} is the limit. Split it.")
    given = {name: value for name, value in content.items() if name not in ("text", "texts") and value is not None}
    try:
        return texts, single, kind(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name, problem = first["loc"][0], first["msg"].removeprefix("Input ")
        if first["type"] == "extra_forbidden":
            names = ", ".join(["text", "texts", *kind.model_fields])
            raise InputError(f"There is no option {name!r:.80}. There are: {names}.") from None
        raise InputError(f"{name!r} {problem}, got {first['input']!r:.80}.") from None


# Answers


class _Versioned(TypedDict):
    """The model that has answered; of several texts it is told once, in `Several`."""

    model: NotRequired[str]
    digest: NotRequired[str]


class Ranked(TypedDict):
    """A likely label."""

    label: str
    confidence: float


class Prediction(_Versioned):
    """The label of a text: null if the model abstains, a list if a text may have several."""

    label: str | list[str] | None
    confidence: float | list[float]
    top: NotRequired[list[Ranked]]
    probabilities: NotRequired[dict[str, float]]
    set: NotRequired[list[str]]
    out_of_scope: NotRequired[float]


class Neighbour(TypedDict):
    """A word that a part of a contribution comes from."""

    word: str
    contribution: float


class Term(TypedDict):
    """A term and what it adds to the score."""

    term: str
    contribution: float
    neighbours: NotRequired[list[Neighbour]]


_Terms = TypedDict("_Terms", {"for": list[Term], "against": list[Term]})


class Explained(_Versioned, _Terms):
    """Why a text gets its score for a class."""

    label: str | list[str]
    explained: str
    probability: float
    score: float
    bias: float
    unknown: list[str]
    n_unknown: int


class Several(TypedDict):
    """The answers to 'texts'."""

    model: str
    digest: str
    predictions: NotRequired[list[Prediction]]
    explanations: NotRequired[list[Explained]]


class Card(TypedDict):
    """What a model is and how it was fitted."""

    name: str
    digest: str
    loaded: str
    classes: list[str | int]
    multilabel: bool
    summary: dict[str, Any]
    settings: dict[str, Any]
    report: dict[str, Any]


class ModelHealth(TypedDict):
    """The version of a model that is served, and why a later one is not."""

    digest: str
    loaded: str
    error: NotRequired[str]


class Health(TypedDict):
    """Whether requests are answered."""

    status: Literal["ok", "degraded"]
    live: bool
    ready: bool
    version: str
    models: dict[str, ModelHealth]


class Problem(TypedDict):
    """Why a request was not answered; `id` is also in the log."""

    status: int
    message: str
    id: NotRequired[str]


# The description


OPEN_PATHS = ("/health", "/docs")  # without the token: for whoever watches over the process, and for browsers
_LABELS: Schema = {"summary": "Label one text, or several.", "answer": Prediction | Several, "request": PredictOptions}
_REASONS: Schema = {
    "summary": "Say why a text gets its label.",
    "answer": Explained | Several,
    "request": ExplainOptions,
}
_OPERATIONS: dict[str, Schema] = {
    "/v1/models/{name}/predict": _LABELS,
    "/v1/models/{name}/explain": _REASONS,
    "/v1/predict": _LABELS | {"summary": "Label one text, or several, where there is one model."},
    "/v1/explain": _REASONS | {"summary": "Say why a text gets its label, where there is one model."},
    "/v1/models": {"summary": "The models, each with its model card.", "answer": dict[str, list[Card]]},
    "/v1/models/{name}": {"summary": "The model card of a model.", "answer": Card},
    "/health": {"summary": "Whether requests are answered.", "answer": Health},
    "/metrics": {"summary": "Metrics in the text format of Prometheus.", "answer": str, "media": "text/plain"},
    "/openapi.json": {"summary": "This description.", "answer": dict[str, Any]},
    "/docs": {"summary": "This description as a page.", "answer": str, "media": "text/html"},
}
_REFUSALS = {
    "400": "The request is not valid.",
    "401": "The token is missing or wrong.",
    "403": "The host name is not allowed, or the request comes from a page of another site.",
    "404": "There is no such model.",
    "408": "The body took too long.",
    "413": "The body is too long.",
    "415": "The body is compressed, or has another Content-Encoding.",
    "500": "Something went wrong; the log has the details under the id.",
    "503": "There are too many requests, or answers: try again after the seconds of Retry-After.",
}


def describe(limits: Limits, *, has_token: bool) -> Schema:
    """Return the OpenAPI description of a server with these limits."""
    answers = {path: operation["answer"] for path, operation in _OPERATIONS.items()} | {"": dict[str, Problem]}
    adapters: Any = [(path, "validation", TypeAdapter(answer)) for path, answer in answers.items()]
    schemas, shared = TypeAdapter.json_schemas(adapters, ref_template="#/components/schemas/{model}")
    described: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "wgcn serve", "version": __version__, "description": "Text classification with wgcn models."},
        "paths": {},
        "components": {"schemas": shared["$defs"]},
    }
    if has_token:
        described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
    for path, operation in _OPERATIONS.items():
        left_out = set[str]() if has_token and path not in OPEN_PATHS else {"401"}
        left_out |= set() if "request" in operation else {"408", "413", "415"}
        left_out |= set() if "request" in operation or "{name}" in path else {"404"}
        responses = {"200": (operation["summary"], operation.get("media", "application/json"), path)}
        responses |= {key: (text, "application/json", "") for key, text in _REFUSALS.items() if key not in left_out}
        shown: Schema = {
            "summary": operation["summary"],
            "responses": {
                status: {"description": text, "content": {media: {"schema": schemas[answer, "validation"]}}}
                for status, (text, media, answer) in responses.items()
            },
        }
        if path in OPEN_PATHS:
            shown["security"] = []
        if "{name}" in path:
            name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
            shown["parameters"] = [{**name, "description": "Name of the model."}]
        if "request" in operation:
            body = {"schema": _request_schema(operation["request"], limits), "example": {"text": "A text."}}
            shown["requestBody"] = {"required": True, "content": {"application/json": body}}
        described["paths"][path] = {"post" if "request" in operation else "get": shown}
    return described


def _request_schema(kind: type[Options], limits: Limits) -> Schema:
    """Return the schema of a body: one text or several, and options, each of which may be null."""
    most, longest = limits.of_texts(kind)
    schema, text = kind.model_json_schema(), {"type": "string", "maxLength": longest}
    for name, option in schema["properties"].items():
        if {"type": "null"} not in option.get("anyOf", ()):
            about = {key: option.pop(key) for key in ("description", "default", "title")}
            schema["properties"][name] = {"anyOf": [option, {"type": "null"}], **about}
    texts = {"text": text, "texts": {"type": "array", "items": text, "maxItems": most}}
    one_of = [{"required": [name]} for name in texts]
    return {**schema, "properties": {**texts, **schema["properties"]}, "oneOf": one_of}


PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_STYLE = "body { font: 1rem/1.5 sans-serif; max-width: 55rem; margin: auto; padding: 1rem } td, th { text-align: left }"


def docs_page(description: Schema) -> str:
    """Return a description as a page of HTML, which fetches nothing."""
    info, parts, rows = description["info"], list[str](), list[tuple[str, ...]]()
    for path, item in description["paths"].items():
        ((method, operation),) = item.items()
        parts.append(f"<h2>{method.upper()} <code>{escape(path)}</code></h2><p>{escape(operation['summary'])}</p>")
        if "requestBody" in operation:
            options = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]
            rows = [(name, each.pop("description", ""), json.dumps(each)) for name, each in deepcopy(options).items()]
            parts.append(_table(("option", "meaning", "values"), rows))
        rows = [(status, response["description"]) for status, response in operation["responses"].items()]
        parts.append(_table(("status", "meaning"), rows))
    schemas = escape(json.dumps(description["components"]["schemas"], indent=2))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{info["title"]}</title><style>{_STYLE}</style>'
        f"<h1>{info['title']} {info['version']}</h1><p>{info['description']} For programs: /openapi.json</p>"
        f"{''.join(parts)}<h2>Answers</h2><pre>{schemas}</pre></html>"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return f"<table><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>{''.join(lines)}</table>"
