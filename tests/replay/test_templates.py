"""Templates: values fill their place and never change what is around it."""

from __future__ import annotations

import json
from decimal import Decimal
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.replay.templates import RenderError, TemplateProblems, Templates, plain_value
from monitor.settings.replay import TargetSettings


def templates(**settings):
    return Templates(TargetSettings.model_validate({"name": "it", "url": "http://127.0.0.1/r"} | settings))


def body(template, **values):
    return json.loads(templates(body=template).render(values).body)


def test_an_expression_keeps_the_type_of_its_value():
    given_body = {"user": "{{ user_id }}", "n": 10, "at": "at {{ now }}", "tags": ["{{ tags }}", True, None]}
    assert body(given_body, user_id=7, now="2026-01-01T00:00:00Z", tags=["a", 1]) == {
        "user": 7, "n": 10, "at": "at 2026-01-01T00:00:00Z", "tags": [["a", 1], True, None],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ -score }}", -3),
        ("{{-score}}", 3),  # Jinja's sign for white space, not a minus
        ("{{- -score -}}", -3),
        ("{{+ score }}", 3),
        ("{{ +score }}", 3),
        ("{{ score - 1 }}", 2),
        ("{{- score -}}  ", 3),
        ("{# the user #}{{ score }}", 3),
        ("{{ score }}{#- {{ other }} -#}", 3),
        ("{# one #}{{ -score }}{# two #}\n", -3),
        ("{{ score, 1 }}", [3, 1]),
        ("{{ '}}' }}", "}}"),
        ("{{ {'a': {'b': score}} }}", {"a": {"b": 3}}),
        ("{{ '-' }}", "-"),
        ("{# nothing #}", ""),
    ],
)
def test_an_expression_is_what_is_between_the_braces(template, expected):
    assert body({"a": template}, score=3) == {"a": expected}


def test_null_stays_null_and_may_have_a_default():
    assert body({"a": "{{ scene }}", "b": "{{ scene or 'none' }}"}, scene=None) == {"a": None, "b": "none"}


@given(st.text(), st.integers() | st.none() | st.booleans() | st.text())
def test_no_value_changes_a_body(user, scene):
    wanted = {"user": user, "scene": scene}
    assert body({"user": "{{ user }}", "scene": "{{ scene }}"}, **wanted) == wanted
    assert body('{"user": {{ user }}, "scene": {{ scene | tojson }} }', **wanted) == wanted


@given(st.text(min_size=1).filter(lambda text: text not in (".", "..")))
def test_no_value_changes_a_url(user):
    url = (
        templates(url="http://127.0.0.1/r/{{ user }}/list?u={{ user }}&n=1").render({"user": user}).url
        if user.isascii() or not any(0xD800 <= ord(one) <= 0xDFFF for one in user)
        else None
    )
    if url is None:
        return
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("http", "127.0.0.1", "")
    assert [unquote(part) for part in parts.path.split("/")] == ["", "r", user, "list"]
    assert [unquote(part) for part in parts.query.split("&")] == [f"u={user}", "n=1"]


def test_a_url_may_have_blanks_and_letters_of_any_script_around_its_values():
    found = templates(url="http://127.0.0.1/a b/ü%2Fx?q=neue schuhe&u={{ user }}").render({"user": "ä b%"})
    assert found.url == "http://127.0.0.1/a%20b/%C3%BC%2Fx?q=neue%20schuhe&u=%C3%A4%20b%25"


@pytest.mark.parametrize("value", ["..", "."])
def test_a_value_cannot_leave_the_path(value):
    with pytest.raises(RenderError, match="up to another path"):
        templates(url="http://127.0.0.1/r/{{ user }}/x").render({"user": value})


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\0", "\x7f"])
def test_a_header_has_no_control_character(value):
    with pytest.raises(RenderError, match="the header X-User has a control character"):
        templates(headers={"X-User": "{{ user }}"}).render({"user": value})


@pytest.mark.parametrize(
    ("settings", "values", "message"),
    [
        ({"url": "http://127.0.0.1/{{ u }}"}, {}, "'u' is undefined"),
        ({"body": {"a": "{{ u }}"}}, {}, "'u' is undefined"),
        ({"body": {"a": "{{ u.b.c }}"}}, {"u": {}}, "has no attribute 'b'"),
        ({"url": "http://127.0.0.1/{{ u }}"}, {"u": None}, "is null; write a default"),
        ({"url": "http://127.0.0.1/{{ u }}"}, {"u": [1]}, "is a list or a record"),
        ({"body": {"a": "{{ 1 / u }}"}}, {"u": 0}, "division by zero"),
        ({"body": {"a": "{{ u }}"}}, {"u": float("inf")}, "infinite or not a number"),
        ({"body": '{"a": "{{ u }}"}'}, {"u": "x"}, "write {{ user_id }} without quotes"),
        ({"body": {"a": "{{ ''.__class__.__mro__ }}"}}, {}, "unsafe"),
        ({"body": {"a": "{{ u.__class__ }}"}}, {"u": "x"}, "unsafe"),
    ],
)
def test_a_request_that_cannot_be_written_says_why(settings, values, message):
    with pytest.raises(RenderError) as failed:
        templates(**settings).render(values)
    assert message in str(failed.value)


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"url": "http://127.0.0.1/{{ u"}, "url"),
        ({"headers": {"X-A": "{% if %}"}}, "headers.X-A"),
        ({"body": {"a": [{"b": "{{ u | nothing }}"}]}}, "body.a[0].b"),
        ({"body": "{{ u | random }}"}, "body"),
    ],
)
def test_a_wrong_template_has_its_place(settings, place):
    with pytest.raises(TemplateProblems) as failed:
        templates(**settings)
    ((where, message),) = failed.value.problems
    assert where == place
    assert message.startswith("is not a template: ")


def test_all_wrong_templates_are_reported_at_once():
    with pytest.raises(TemplateProblems) as failed:
        templates(url="http://127.0.0.1/{{ u", headers={"X-A": "{{"}, body=["{{ }}", "{{ u }}"])
    assert [place for place, _ in failed.value.problems] == ["url", "headers.X-A", "body[0]"]


def test_a_text_may_have_a_loop_and_still_gives_json():
    text = '{"ids": [{% for one in ids %}{{ one }}{% if not loop.last %}, {% endif %}{% endfor %}]}'
    assert body(text, ids=['a"', 1, None]) == {"ids": ['a"', 1, None]}


def test_the_variables_of_all_parts_are_known():
    found = templates(
        url="http://127.0.0.1/{{ a }}", headers={"X-B": "{{ b }}"}, body={"c": "{{ c }}", "d": ["{{ now }}"]}
    )
    assert found.variables == {"a", "b", "c", "now"}
    assert found.passes_now
    assert not templates(body={"ts": "{{ ts }}"}).passes_now


def test_a_body_is_json_unless_a_header_says_otherwise():
    assert templates(body={}).render({}).headers == {"Content-Type": "application/json"}
    own = {"content-type": "application/vnd.shop+json"}
    assert templates(body={}, headers=own).render({}).headers == own
    assert templates(method="GET").render({}) == type(templates().render({}))("http://127.0.0.1/r", {}, None)


@pytest.mark.parametrize(("text", "expected"), [("7.00", 7), ("-1", -1), ("0.25", 0.25), ("1e20", 10**20)])
def test_a_decimal_number_stays_a_number(text, expected):
    found = plain_value([Decimal(text)])
    assert found == [expected]
    assert type(found[0]) is type(expected)


def test_values_of_a_log_become_json():
    from datetime import date, datetime

    given_values = [
        float("nan"),
        datetime(2026, 1, 1),
        date(2026, 1, 2),
        {"a": [float("nan")]},
        None,
        "x",
        True,
    ]
    assert plain_value(given_values) == [
        None,
        "2026-01-01T00:00:00",
        "2026-01-02",
        {"a": [None]},
        None,
        "x",
        True,
    ]
