"""Any config file gives a config or a ConfigError, and never another error."""

from __future__ import annotations

import copy

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.config.problems import ConfigError
from monitor.rules.packs import pack_names
from monitor.settings.config import Config

_WORDS = sorted(
    {
        "recommenders", "name", "logs", "exposures", "path", "shop", "rules", "pack", "parameters", "metric",
        "coverage", "labels", "by", "min", "1h", "0s", "s3://a:b@c/*", "${HOME}", "${X}", "${", "no", "\0",
        *Config.model_fields, *pack_names(),
    }
)  # fmt: skip
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.dates(),
    st.binary(max_size=4), st.sampled_from(_WORDS),
)  # fmt: skip
_KEYS = st.one_of(st.sampled_from(_WORDS), st.text(max_size=6), st.integers(), st.booleans(), st.none())
_JUNK = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=15,
)
_SOUND = {
    "state": "state",
    "history": {"url": "sqlite:///h.sqlite", "retention": "90d"},
    "server": {"listen": "127.0.0.1:0", "series_limit": 1000},
    "log": {"format": "plain", "level": "info"},
    "engine": {"threads": 1, "memory": "1GiB"},
    "recommenders": [
        {
            "name": "shop",
            "logs": {
                "exposures": {
                    "path": "x.csv",
                    "columns": {"item_id": "sku"},
                    "storage_options": {"key": "k"},
                },
                "catalog": {"path": ["a.csv", "b.csv"]},
            },
            "window": "1h",
            "rules": [{"pack": "lists", "parameters": {"max_length": 5}, "disable": ["duplicate_item"]}],
            "metrics": {"score_range": [0, 1], "disable": ["gini"], "novelty": ["category"]},
            "slices": {"by": ["scene"], "budget": 5},
            "objectives": [{"metric": "coverage", "labels": {"by": "pv"}, "min": 0.9}],
            "evidence": {"rows": 5, "hash_users": True},
        }
    ],
}


def places(value, place=()):
    """Every place of a nested value."""
    yield place
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*place, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from places(one, (*place, number))


_PLACES = list(places(_SOUND))[1:]


def judged(tmp_path, content: bytes) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    problems: tuple[object, ...] = ("none",)
    try:
        check_config(load_config(path), tmp_path)
    except ConfigError as exc:
        problems = exc.problems
    assert problems


_relaxed = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@given(_JUNK)
@_relaxed
def test_any_yaml_value_gives_problems_and_no_crash(tmp_path, junk):
    judged(tmp_path, yaml.dump(junk, allow_unicode=True).encode("utf-8", "surrogatepass"))


@given(st.sampled_from(_PLACES), _JUNK)
@settings(_relaxed, max_examples=300)
def test_junk_at_any_place_gives_problems_and_no_crash(tmp_path, place, junk):
    broken = copy.deepcopy(_SOUND)
    inner = broken
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = junk
    judged(tmp_path, yaml.dump(broken, allow_unicode=True).encode("utf-8", "surrogatepass"))


@given(
    st.binary(max_size=60) | st.text(alphabet="[]{}:-,&*!|>'\"%@`# \t\nab1<?", max_size=60).map(str.encode)
)
@_relaxed
def test_any_bytes_give_problems_and_no_crash(tmp_path, content):
    judged(tmp_path, content)


@pytest.mark.parametrize("place", [place for place in _PLACES if isinstance(place[-1], str)])
def test_a_misspelt_key_at_any_place_is_reported(tmp_path, place):
    if place[-2:-1] in (("columns",), ("storage_options",), ("labels",)):
        pytest.skip("this mapping takes any key")
    broken = copy.deepcopy(_SOUND)
    inner = broken
    for part in place[:-1]:
        inner = inner[part]
    inner[f"{place[-1]}_x"] = 1
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(broken))
    try:
        problems = [p for one in check_config(load_config(path), tmp_path) for p in one.problems]
    except ConfigError as exc:
        problems = list(exc.problems)
    assert [one.place for one in problems if one.place.endswith(f"{place[-1]}_x")]


def test_the_config_without_junk_is_valid(tmp_path):
    path = tmp_path / "config.yaml"
    sound = copy.deepcopy(_SOUND)
    sound["recommenders"][0]["metrics"]["disable"] = ["personalization"]
    path.write_text(yaml.safe_dump(sound))
    assert [one.problems for one in check_config(load_config(path), tmp_path)] == [()]
