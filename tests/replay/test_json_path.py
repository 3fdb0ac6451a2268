"""The short way of simple JSON paths finds what the library finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonpath_ng.ext.parser import parse

from monitor.replay.json_path import JsonPath, _walk

FIELDS = ["items", "id", "a b", "0"]
contents = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["id", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=15,
)
steps = st.lists(
    st.sampled_from([".items", ".id", "['a b']", "['0']", "[*]", "[0]", "[1:]", ".*", "..id"]), max_size=4
)


@given(steps.map(lambda parts: "$" + "".join(parts)), contents)
def test_any_path_finds_what_the_library_finds(text, content):
    assert JsonPath(text).find(content) == [one.value for one in parse(text).find(content)]


@pytest.mark.parametrize("text", ["$", "$.items[*].id", "$.items", "$[*]", "$.a.b['c d'].e[*].f"])
def test_simple_paths_go_the_short_way(text):
    path = JsonPath(text)
    assert path._steps is not None
    content = {"items": [{"id": 1}], "a": {"b": {"c d": {"e": [{"f": 1}]}}}}
    if text != "$[*]":
        assert _walk(path._steps, content) is not None


@pytest.mark.parametrize("text", ["$.items[0].id", "$..id", "$.items[?(@.a > 1)].id", "items", "$.a,b"])
def test_all_others_are_left_to_the_library(text):
    assert JsonPath(text)._steps is None
