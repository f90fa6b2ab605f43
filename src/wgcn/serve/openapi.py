"""The OpenAPI description of the service, by hand. A test calls every path of it."""

from __future__ import annotations

from typing import Any

from wgcn import __version__
from wgcn.serve.answers import Limits

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_BOOLEAN: Schema = {"type": "boolean"}
_FLAG: Schema = {"type": ["boolean", "null"], "default": False}
_INTEGER: Schema = {"type": "integer"}
_OBJECT: Schema = {"type": "object"}
_LABEL: Schema = {
    "oneOf": [_STRING, {"type": "null"}, {"type": "array", "items": _STRING}],
    "description": "The label; null if the model abstains; a list if a text may have several.",
}
_CONFIDENCE: Schema = {"oneOf": [_NUMBER, {"type": "array", "items": _NUMBER}]}
_SHARE: Schema = {"type": ["number", "null"], "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_COUNT: Schema = {"type": ["integer", "null"], "minimum": 1, "maximum": 1000}


def describe(limits: Limits, *, has_token: bool) -> Schema:
    """Return the description of a server with these limits."""
    predict, explain = _predict_operation(limits), _explain_operation(limits)
    name = {"name": "name", "in": "path", "required": True, "schema": _STRING, "description": "Name of the model."}
    by_name = [name]
    missing = {"404": _refusal("There is no such model.")}
    paths: dict[str, Schema] = {
        "/v1/models/{name}/predict": {"parameters": by_name, "post": predict},
        "/v1/models/{name}/explain": {"parameters": by_name, "post": explain},
        "/v1/predict": {"post": {**predict, "summary": "The same, where there is one model."}},
        "/v1/explain": {"post": {**explain, "summary": "The same, where there is one model."}},
        "/v1/models": {"get": _get("The models, each with its model card.", _list("models", _ref("Card")))},
        "/v1/models/{name}": {"parameters": by_name, "get": _get("The model card of a model.", _ref("Card"), missing)},
        "/health": {"get": {**_get("Whether requests are answered.", _ref("Health")), "security": []}},
        "/metrics": {"get": _get("Metrics in the text format of Prometheus.", _STRING, kind="text/plain")},
        "/openapi.json": {"get": _get("This description.", _OBJECT)},
    }
    for path, operations in paths.items():
        for operation in (operations[method] for method in ("get", "post") if method in operations):
            operation["responses"] = {**_refusals(has_token=has_token and path != "/health"), **operation["responses"]}
    described: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "wgcn serve", "version": __version__, "description": "Text classification with wgcn models."},
        "paths": paths,
        "components": {"schemas": _schemas()},
    }
    if has_token:
        described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
    return described


def _predict_operation(limits: Limits) -> Schema:
    options = {
        "top": {**_COUNT, "default": 1, "description": "Also give the likeliest labels, so many of them."},
        "probabilities": {**_FLAG, "description": "Also give the probability of every class."},
        "abstain": {**_SHARE, "description": "Give no label where it is less likely, or the text out of scope."},
        "coverage": {**_SHARE, "description": "Also give a set of labels that holds the right one this often."},
        "scope": {**_FLAG, "description": "Also give how strange a text is."},
    }
    body = _texts(options, limits.texts, limits.characters)
    example = {"text": "A text to label."}
    return _post("Label one text, or several.", body, example, "Prediction", "predictions")


def _explain_operation(limits: Limits) -> Schema:
    options = {
        "label": {
            "type": ["string", "integer", "null"],
            "description": "The class to explain. Default: the one with the highest score.",
        },
        "n": {**_COUNT, "default": 10, "description": "Words for the class and against it, so many of each."},
    }
    most = min(limits.texts, limits.explained), min(limits.characters, limits.explained_characters)
    example = {"text": "A text to explain."}
    return _post("Say why a text gets its label.", _texts(options, *most), example, "Explanation", "explanations")


def _texts(options: dict[str, Schema], n_texts: int, n_characters: int) -> Schema:
    """Return the schema of a body: one text or several, and options."""
    text = {"type": "string", "maxLength": n_characters}
    return {
        "type": "object",
        "properties": {"text": text, "texts": {"type": "array", "items": text, "maxItems": n_texts}, **options},
        "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
        "additionalProperties": False,
    }


def _post(summary: str, body: Schema, example: Schema, single: str, several: str) -> Schema:
    one = {"allOf": [_ref("Version"), _ref(single)]}
    many = {"allOf": [_ref("Version"), _list(several, _ref(single))]}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body, "example": example}}},
        "responses": {
            "200": _content("The answer to 'text', or to 'texts'.", {"oneOf": [one, many]}),
            "400": _refusal("The request cannot be answered; the message says why."),
            "404": _refusal("There is no such model."),
            "408": _refusal("The body took too long."),
            "413": _refusal("The body is too long."),
            "415": _refusal("The body is compressed, or has another Content-Encoding."),
            "503": _refusal("There are too many requests, or answers: try again after the seconds of Retry-After."),
        },
    }


def _get(summary: str, schema: Schema, more: Schema | None = None, kind: str = "application/json") -> Schema:
    return {"summary": summary, "responses": {"200": _content(summary, schema, kind), **(more or {})}}


def _content(description: str, schema: Schema, kind: str = "application/json") -> Schema:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _refusal(description: str) -> Schema:
    return _content(description, _ref("Error"))


def _refusals(*, has_token: bool) -> Schema:
    """Return the refusals that every operation may answer with."""
    found = {
        "400": "The request is not valid HTTP.",
        "403": "The host name is not allowed, or the request comes from a page of another site.",
        "500": "Something went wrong; the log has the details under the id.",
        "503": "There are too many connections: try again after the seconds of Retry-After.",
    }
    if has_token:
        found["401"] = "The token is missing or wrong."
    return {status: _refusal(text) for status, text in found.items()}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str, items: Schema) -> Schema:
    return _object({name: {"type": "array", "items": items}})


def _object(properties: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": {**properties, **(optional or {})}, "required": list(properties)}


def _schemas() -> dict[str, Schema]:
    ranked = _object({"label": _STRING, "confidence": _NUMBER})
    neighbour = _object({"word": _STRING, "contribution": _NUMBER})
    term = _object({"term": _STRING, "contribution": _NUMBER}, {"neighbours": {"type": "array", "items": neighbour}})
    strings, terms = {"type": "array", "items": _STRING}, {"type": "array", "items": term}
    served = _object({"digest": _STRING, "loaded": _STRING}, {"error": _STRING})
    return {
        "Version": _object({"model": _STRING, "digest": _STRING}),
        "Prediction": _object(
            {"label": _LABEL, "confidence": _CONFIDENCE},
            {
                "top": {"type": "array", "items": ranked},
                "probabilities": {"type": "object", "additionalProperties": _NUMBER},
                "set": strings,
                "out_of_scope": _NUMBER,
            },
        ),
        "Explanation": _object(
            {
                "label": _LABEL,
                "explained": _STRING,
                **dict.fromkeys(("probability", "score", "bias"), _NUMBER),
                **dict.fromkeys(("for", "against"), terms),
                "unknown": strings,
                "n_unknown": _INTEGER,
            }
        ),
        "Card": _object(
            {
                **dict.fromkeys(("name", "digest", "loaded"), _STRING),
                "classes": {"type": "array", "items": {"type": ["string", "integer"]}},
                "multilabel": _BOOLEAN,
                **dict.fromkeys(("summary", "settings", "report"), _OBJECT),
            }
        ),
        "Health": _object(
            {
                "status": {"enum": ["ok", "degraded"]},
                **dict.fromkeys(("live", "ready"), _BOOLEAN),
                "version": _STRING,
                "models": {"type": "object", "additionalProperties": served},
            }
        ),
        "Error": _object({"error": _object({"status": _INTEGER, "message": _STRING}, {"id": _STRING})}),
    }
