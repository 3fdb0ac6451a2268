"""docs/api.md: its examples run against a real server, and its table has every address and parameter."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from monitor.service.web.api.endpoints import ENDPOINTS
from monitor.service.web.api.parameters import DEFAULT_ROWS, MOST_ROWS
from monitor.service.web.api.series import DEFAULT_SPAN
from tests.conftest import ROOT, need
from tests.service.web.api.judged_shop import JudgedShop

TEXT = (ROOT / "docs" / "api.md").read_text("utf-8")
SHOWN_AT = "http://127.0.0.1:9108"
CURL = re.compile(r"^ +(curl -s [^\n]*)$(?:\n\n```json\n(.*?)```)?", re.MULTILINE | re.DOTALL)
EXAMPLES = [(match[1], match[2]) for match in CURL.finditer(TEXT)]


@pytest.fixture(scope="module")
def server(judged_shop: JudgedShop) -> Iterator[httpx.Client]:
    with judged_shop.serving(external_url="https://monitor.example.org") as client:
        yield client


def holds(shown: Any, answered: Any) -> None:
    """Everything that is shown is in the answer; the answer may have more keys."""
    if isinstance(shown, dict):
        assert shown.keys() <= answered.keys()
        for key, value in shown.items():
            holds(value, answered[key])
    elif isinstance(shown, list):
        assert len(shown) == len(answered)
        for one, other in zip(shown, answered, strict=True):
            holds(one, other)
    else:
        assert shown == answered


def run(command: str, base: str) -> str:
    words = shlex.split(command.replace(SHOWN_AT, base))
    need("curl", "curl")
    return subprocess.run([*words, "--fail-with-body"], capture_output=True, text=True, timeout=60).stdout


def test_the_page_has_examples_with_and_without_their_answer() -> None:
    assert len(EXAMPLES) >= 9
    assert len([shown for _, shown in EXAMPLES if shown]) == TEXT.count("```json") >= 4


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_a_curl_example_answers_what_the_page_shows(
    server: httpx.Client, command: str, shown: str | None
) -> None:
    answer = run(command, str(server.base_url).rstrip("/"))
    if command.endswith("badge.svg"):
        assert answer.startswith("<svg ")
        return
    content = json.loads(answer)
    assert ("data" in content and content["data"] != []) or "status" in content
    if shown is not None:
        holds(json.loads(shown), content)


def test_a_wrong_example_would_be_noticed(server: httpx.Client) -> None:
    content = server.get("/api/v1/recommenders/shop/status").json()
    for wrong in ({"violated": -1}, {"more": 1}, {"last_window": {"start": "2026-03-03T14:00:00Z"}}):
        with pytest.raises(AssertionError):
            holds(wrong, content)


def test_the_python_example_finds_the_hours_out_of_their_band(
    server: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace(SHOWN_AT, str(server.base_url).rstrip("/")), names)
    assert len(names["failure"]) == 40
    assert list(names["out"]["window_start"]) == [
        "2026-03-03T13:00:00Z",
        "2026-03-03T14:00:00Z",
        "2026-03-03T15:00:00Z",
    ]
    assert "2026-03-03T15:00:00Z" in capsys.readouterr().out
    assert {row["labels"]["rule"] for row in names["rows"]("series/rule", label="rule=blacklist")} == {
        "blacklist"
    }


def test_the_table_has_every_address_with_its_parameters() -> None:
    table = {
        address: set(re.findall(r"`(\w+)`", parameters))
        for address, parameters in re.findall(r"^\| `(/[^`]*)` \|.*\|([^|]*)\|$", TEXT, re.MULTILINE)
    }
    assert table == {
        one.path: {field.alias or name for name, field in one.query.model_fields.items()} for one in ENDPOINTS
    }


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    assert f"`limit` is {DEFAULT_ROWS} by default and {MOST_ROWS} at most" in TEXT
    assert f"the last {DEFAULT_SPAN.days} days" in TEXT
    assert "(docs/api.md)" in (ROOT / "README.md").read_text("utf-8")


def test_every_example_is_of_an_address_that_exists() -> None:
    paths = [re.sub(r"\\{\w+\\}", "[^/]+", re.escape(one.path)) for one in ENDPOINTS]
    for command, _ in EXAMPLES:
        path = urlsplit(shlex.split(command)[-1]).path.removeprefix("/api/v1")
        assert any(re.fullmatch(one, path) for one in paths), path
