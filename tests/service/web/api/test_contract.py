"""Every address of the OpenAPI document, fetched from a real server over a real history."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from openapi_spec_validator import validate as validate_document

from monitor.core.results import Status
from monitor.service.web.api.endpoints import ENDPOINTS
from monitor.service.web.api.openapi import openapi
from tests.service.web.api.judged_shop import MODEL, JudgedShop

ROOT = "/api/v1"
NAMES = {
    "recommender": ["shop", "news"],
    "metric": ["failure", "expected", "volume"],
    "cause": ["lists_empty", "traffic_lost"],
    "rule": ["blacklist", "positions"],
    "experiment": ["ranking"],
    "model": ["ranker-v7"],
}
DOCUMENT = openapi()
QUERIES = {
    "limit": "1",
    "status": "violated",
    "standing": "violated",
    "metric": "rule",
    "label": "by=pv",
    "check": "rules",
    "kind": "rule",
    "from": "2026-03-02T10:00:00Z",
    "to": "2026-03-03T10:00:00Z",
    "state": "open",
    "rule": "blacklist",
    "model": "ranker-v7",
    "window_start": "2026-03-03T10:00:00Z",
    "sliced": "false",
}


def schema_of(path: str, status: str = "200") -> tuple[str, dict[str, Any]]:
    """The media type and the schema of an answer, with the schemas that it refers to."""
    (media, content), *_ = DOCUMENT["paths"][path]["get"]["responses"][status]["content"].items()
    return media, {**content["schema"], "components": DOCUMENT["components"]}


def filled(path: str) -> Iterator[str]:
    """The path with every combination of names that exists."""
    names = [name for name in NAMES if f"{{{name}}}" in path]
    if not names:
        yield path
        return
    first, *_ = names
    for value in NAMES[first]:
        if first == "recommender" and value == "news" and len(names) > 1:
            continue
        yield from filled(path.replace(f"{{{first}}}", quote(value, safe="")))


def strict(text: str) -> Any:
    """JSON as the standard has it: no NaN and no infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def check(answer: httpx.Response, path: str) -> Any:
    """The content of an answer, which fits the document."""
    media, schema = schema_of(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].split(";")[0] == media
    if media == "image/svg+xml":
        return answer.text
    content = strict(answer.text)
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(content)
    return content


def test_the_document_is_openapi_and_is_what_the_server_answers(api: httpx.Client) -> None:
    validate_document(DOCUMENT)
    answer = api.get(f"{ROOT}/openapi.json")
    assert check(answer, f"{ROOT}/openapi.json") == DOCUMENT
    assert DOCUMENT["openapi"].startswith("3.1")


def test_the_document_has_every_address_and_a_name_for_each() -> None:
    assert set(DOCUMENT["paths"]) == {ROOT + one.path for one in ENDPOINTS} | {f"{ROOT}/openapi.json"}
    names = [one["get"]["operationId"] for one in DOCUMENT["paths"].values()]
    assert len(names) == len(set(names))
    for path, one in DOCUMENT["paths"].items():
        assert one["get"]["summary"].endswith("."), path
        for parameter in one["get"].get("parameters", []):
            assert parameter["description"], (path, parameter)


def test_a_key_that_the_document_lacks_or_a_wrong_type_would_be_noticed() -> None:
    _, schema = schema_of(f"{ROOT}/recommenders/{{recommender}}/status")
    good = {
        "name": "shop", "status": "ok", "since": None, "text": "", "violated": 0, "unjudged": 0,
        "health": None, "last_window": None, "in_maintenance": False, "page_url": "",
    }  # fmt: skip
    validator = validator_for({"$schema": "https://json-schema.org/draft/2020-12/schema"})(schema)
    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "more": 1})
    assert not validator.is_valid({**good, "violated": "none"})
    assert not validator.is_valid({name: one for name, one in good.items() if name != "since"})
    assert not validator.is_valid({**good, "status": "fine"})


@pytest.mark.parametrize("path", list(DOCUMENT["paths"]))
def test_every_address_answers_as_the_document_says(api: httpx.Client, path: str) -> None:
    more = [path.format(recommender="shop", metric="rule")] if "/series/" in path else []
    for address in (*filled(path), *more):
        content = check(api.get(address), path)
        if isinstance(content, dict) and "data" in content and "/news" not in address:
            assert content["data"], address  # so that the rows have been compared too


@pytest.mark.parametrize("path", list(DOCUMENT["paths"]))
def test_every_parameter_of_every_address_is_taken(api: httpx.Client, path: str) -> None:
    address = next(filled(path))
    for parameter in DOCUMENT["paths"][path]["get"].get("parameters", []):
        name = parameter["name"]
        if parameter["in"] == "path" or name in ("cursor", "window_end"):
            continue
        value = {("kind", "changes"): "model", ("check", "{metric}"): "exposure"}.get(
            (name, path.rsplit("/", 1)[1]), QUERIES[name]
        )
        content = check(api.get(address, params={name: value}), path)
        if name == "limit":
            assert len(content["data"]) == 1
    media, _ = schema_of(path, "400") if path != f"{ROOT}/openapi.json" else ("application/problem+json", {})
    refused = api.get(address, params={"nonsense": "1"})
    assert (refused.status_code, refused.headers["content-type"]) == (400, media)


def problem(answer: httpx.Response) -> dict[str, Any]:
    """A refusal that fits the document."""
    assert answer.headers["content-type"] == "application/problem+json"
    _, schema = schema_of(f"{ROOT}/monitor", "404")
    content = strict(answer.text)
    Draft202012Validator(schema).validate(content)
    assert content["status"] == answer.status_code
    return content


def test_an_address_or_a_name_that_does_not_exist_is_answered_by_those_that_do(api: httpx.Client) -> None:
    unknown = problem(api.get(f"{ROOT}/nothing"))
    assert (unknown["status"], f"{ROOT}/recommenders/{{recommender}}/violations" in unknown["exists"]) == (
        404,
        True,
    )
    for address, exists in {
        "/recommenders/nobody": ["news", "shop"],
        "/recommenders/nobody/windows": ["news", "shop"],
        "/recommenders/shop/rules/none": ["blacklist", "positions"],
        "/recommenders/shop/experiments/none": ["ranking"],
        "/recommenders/shop/models/none": ["ranker-v7"],
        "/metrics/none": None,
        "/recommenders/shop/series/none": None,
        "/recommenders/shop/anomalies/none": None,
    }.items():
        refused = problem(api.get(ROOT + address))
        assert refused["status"] == 404
        assert "none" in refused["detail"] or "nobody" in refused["detail"]
        assert refused["exists"] == exists if exists else len(refused["exists"]) > 3


def test_labels_that_no_series_has_are_answered_by_those_that_exist(api: httpx.Client) -> None:
    refused = problem(api.get(f"{ROOT}/recommenders/shop/series/failure", params={"label": "by=nobody"}))
    assert refused["status"] == 404
    assert "label=by=pv" in refused["exists"]


def test_a_window_that_was_not_judged_is_answered_by_those_beside_it(api: httpx.Client) -> None:
    refused = problem(
        api.get(f"{ROOT}/recommenders/shop/results", params={"window_start": "2026-03-02T10:30:00Z"})
    )
    assert refused["status"] == 404
    assert refused["exists"] == [
        "2026-03-02T10:00:00Z to 2026-03-02T11:00:00Z",
        "2026-03-02T11:00:00Z to 2026-03-02T12:00:00Z",
    ]


@pytest.mark.parametrize(
    ("address", "query", "parameter", "expected"),
    [
        ("/recommenders", "limit=0", "limit", "a whole number from 1 to 1000"),
        ("/recommenders", "limit=1001", "limit", "a whole number from 1 to 1000"),
        ("/recommenders", "limit=many", "limit", "a whole number from 1 to 1000"),
        ("/recommenders", "status=bad", "status", "one of ok, violated, no_data"),
        ("/recommenders", "limit=1&limit=2", "limit", "a whole number"),
        ("/recommenders", "cursor=%00", "cursor", "the `next_cursor` of a page"),
        ("/recommenders", "cursor=WzEsMl0", "cursor", "the `next_cursor` of a page"),
        ("/recommenders/shop/windows", "cursor=WyJhIl0", "cursor", "the `next_cursor` of a page"),
        ("/recommenders/shop/windows", "from=yesterday", "from", "a time in ISO 8601"),
        ("/recommenders/shop/windows", "to=0001-01-01", "to", "a time in ISO 8601"),
        ("/recommenders/shop/windows", "from=2026-03-03&to=2026-03-02", "to", "it is after `from`"),
        ("/recommenders/shop/violations", "state=new", "state", "one of open, resolved, gone"),
        ("/recommenders/shop/changes", "kind=new", "kind", "one of declared"),
        ("/recommenders/shop/series", "label=pv", "label", "name=value"),
        ("/recommenders/shop/series", "sliced=perhaps", "sliced", "true or false"),
        ("/recommenders/shop/series/failure", "label=pv", "label", "name=value"),
        ("/recommenders/shop/results", "window_end=2026-03-02T10:00:00Z", "window_start", "the start"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_expected(
    api: httpx.Client, address: str, query: str, parameter: str, expected: str
) -> None:
    refused = problem(api.get(f"{ROOT}{address}?{query}"))
    assert (refused["status"], refused["parameter"]) == (400, parameter)
    assert expected in refused["expected"]


def test_an_unknown_parameter_is_refused_with_those_that_exist(api: httpx.Client) -> None:
    refused = problem(api.get(f"{ROOT}/recommenders/shop/windows", params={"since": "1"}))
    assert (refused["status"], refused["parameter"]) == (400, "since")
    assert refused["exists"] == ["cursor", "from", "limit", "to"]


@pytest.mark.parametrize(
    "cursor", ["WzkyMjMzNzIwMzY4NTQ3NzU4MDcsIDFd", "Wy0yLCAtMV0", "WzQ2MDAwMDAwMDAwMDAwMDAwMCwgMV0"]
)
def test_a_cursor_of_times_that_no_window_has_is_refused_and_breaks_nothing(
    api: httpx.Client, cursor: str
) -> None:
    answer = api.get(f"{ROOT}/recommenders/shop/windows", params={"cursor": cursor})
    assert problem(answer)["parameter"] == "cursor"


def test_a_cursor_with_half_a_character_is_refused(api: httpx.Client) -> None:
    key = json.dumps([1, 1, "\ud800", 1]).encode()
    cursor = base64.urlsafe_b64encode(key).decode().rstrip("=")
    answer = api.get(f"{ROOT}/recommenders/shop/series/failure", params={"cursor": cursor})
    assert problem(answer)["parameter"] == "cursor"


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00"])
def test_a_time_beyond_the_calendar_is_refused(api: httpx.Client, time: str) -> None:
    answer = api.get(f"{ROOT}/recommenders/shop/windows", params={"from": time})
    assert problem(answer)["parameter"] == "from"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", list(DOCUMENT["paths"]))
def test_nothing_can_be_written(api: httpx.Client, method: str, path: str) -> None:
    answer = api.request(method, next(filled(path)))
    assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert "read-only" in problem(answer)["detail"]


def test_a_head_has_the_headers_and_no_body(api: httpx.Client) -> None:
    address = f"{ROOT}/recommenders/shop/status"
    head, answer = api.head(address), api.get(address)
    assert (head.status_code, head.text) == (200, "")
    assert head.headers["etag"] == answer.headers["etag"]


def test_a_tag_that_the_client_has_is_answered_304_without_a_body(api: httpx.Client) -> None:
    for path in DOCUMENT["paths"]:
        address = next(filled(path))
        first = api.get(address)
        tag = first.headers["etag"]
        assert "private, no-cache" in first.headers["cache-control"]
        for given in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
            again = api.get(address, headers={"If-None-Match": given})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), address
        assert api.get(address, headers={"If-None-Match": '"other"'}).status_code == 200


def test_answers_hold_no_character_that_could_harm_a_terminal(api: httpx.Client) -> None:
    answer = api.get(f"{ROOT}/recommenders/shop/results", params={"limit": 1000})
    assert "pwned" in answer.text
    assert answer.content.isascii()
    assert not any(byte < 0x20 or byte == 0x7F for byte in answer.content)


def test_infinity_in_evidence_is_a_word_and_a_bound_that_is_infinite_is_null(api: httpx.Client) -> None:
    asked = {"metric": "rule", "label": "rule=blacklist"}
    (result,) = api.get(f"{ROOT}/recommenders/shop/results", params=asked).json()["data"]
    assert {row["item_id"] for row in result["evidence"]} == {"banned"}
    assert {row["score"] for row in result["evidence"]} == {"Infinity"}
    metric = api.get(f"{ROOT}/metrics/volume").json()
    assert (metric["minimum"], metric["maximum"]) != (-math.inf, math.inf)
    assert metric["maximum"] is None


def test_names_of_models_may_be_anything(api: httpx.Client, judged_shop: JudgedShop) -> None:
    series = f"{ROOT}/recommenders/shop/series/volume"
    names = {
        row["labels"]["value"]
        for row in api.get(series, params={"label": "dimension=model", "limit": 1000}).json()["data"]
    }
    assert MODEL in names
    for name in names:
        asked = [("label", "dimension=model"), ("label", f"value={name}")]
        rows = api.get(series, params=asked).json()["data"]
        assert {row["labels"]["value"] for row in rows} == {name}
    for name in ("a/b", "..%2F", "x\ny", "", "<b>", "ä", "a?b#c&d=e+f"):
        address = f"{ROOT}/recommenders/shop/models/{quote(name, safe='')}"
        refused = problem(api.get(address))
        assert (refused["status"], refused["exists"]) == (404, ["ranker-v7"])
        assert refused["detail"] == f"There is no model {name!r}."


def test_states_are_never_mixed(api: httpx.Client) -> None:
    known = {row["name"]: row["status"] for row in api.get(f"{ROOT}/recommenders").json()["data"]}
    assert known == {"shop": "violated", "news": "error"}
    for status in Status:
        rows = api.get(f"{ROOT}/recommenders", params={"status": status.value}).json()["data"]
        assert [row["name"] for row in rows] == [name for name, own in known.items() if own == status.value]
