"""The OpenAPI document, written from the table of addresses and the models of questions and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from monitor import __version__
from monitor.service.web.api.answers import ProblemAnswer
from monitor.service.web.api.endpoints import ENDPOINTS, OPENAPI, Endpoint
from monitor.service.web.api.links import ROOT
from monitor.service.web.api.parameters import Query

_PLACE: Final = "#/components/schemas/{model}"
_PROBLEM: Final = "application/problem+json"
_NAMES: Final = {
    "recommender": "the name of a recommender of the config",
    "metric": "the name of a metric of the catalogue; below `series` also `rule`",
    "cause": "the name of a cause: traffic_lost",
    "rule": "the name of a rule",
    "experiment": "the name of an experiment",
    "model": "the name of a model",
}
_TAG: Final = {
    "ETag": {"description": "changes with the content", "schema": {"type": "string"}},
    "Cache-Control": {"schema": {"type": "string"}},
}
_ABOUT: Final = (
    "What the pages show, as JSON. Read-only. Times are ISO 8601 in UTC. A number that is not finite is "
    "null; in a cell of evidence it is one of the words NaN, Infinity and -Infinity. Names in a path are "
    "percent-encoded UTF-8. Send the ETag of an answer as If-None-Match: 304 means that nothing has changed."
)


def openapi() -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    answers: dict[type[BaseModel], None] = {one.answer: None for one in ENDPOINTS if one.answer is not None}
    models: list[type[BaseModel]] = [*answers, ProblemAnswer]
    places, schemas = models_json_schema([(one, "serialization") for one in models], ref_template=_PLACE)
    problem = {_PROBLEM: {"schema": places[ProblemAnswer, "serialization"]}}
    paths: dict[str, Any] = {}
    for one in ENDPOINTS:
        schema = None if one.answer is None else places[one.answer, "serialization"]
        paths[ROOT + one.path] = {"get": _operation(one, schema, problem)}
    paths[ROOT + OPENAPI] = {
        "get": {
            "operationId": "openapi",
            "summary": "This document.",
            "responses": _responses({"application/json": {"schema": {"type": "object"}}}, problem),
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "recsys-monitor", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "only if server.web_config names users",
                }
            },
        },
        "security": [{}, {"basic": []}],
    }


def _operation(
    endpoint: Endpoint, schema: Mapping[str, Any] | None, problem: Mapping[str, Any]
) -> dict[str, Any]:
    content = (
        {"image/svg+xml": {"schema": {"type": "string"}}}
        if schema is None
        else {"application/json": {"schema": schema}}
    )
    return {
        "operationId": endpoint.handler.__name__.strip("_"),
        "summary": endpoint.summary,
        "parameters": [*_in_path(endpoint.names), *_in_query(endpoint.query)],
        "responses": _responses(content, problem),
    }


def _in_path(names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _NAMES[name],
            "schema": {"type": "string"},
        }
        for name in names
    ]


def _in_query(query: type[Query]) -> list[dict[str, Any]]:
    found = []
    for name, given in query.model_json_schema(ref_template=_PLACE).get("properties", {}).items():
        schema = {key: value for key, value in given.items() if key not in ("title", "description")}
        found.append(
            {"name": name, "in": "query", "description": given.get("description", ""), "schema": schema}
        )
    return found


def _responses(content: Mapping[str, Any], problem: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "200": {"description": "the answer", "headers": _TAG, "content": content},
        "304": {"description": "nothing has changed since the ETag of If-None-Match", "headers": _TAG},
        "400": {"description": "a parameter is wrong: which one, and what is expected", "content": problem},
        "401": {"description": "the name or the password is wrong, or missing"},
        "404": {"description": "there is no such thing: what exists instead", "content": problem},
        "405": {"description": "the API is read-only", "content": problem},
        "503": {"description": "the history cannot be read now", "content": problem},
    }
