"""`{$PARAMETER: name}` in a suite, filled in from the config or from the suite's own defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEY = "$PARAMETER"


class MissingParameter(LookupError):
    """A parameter without a value."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class LeftOut(Exception):
    """The parameter's value is null: the rule is off until the config gives one."""


def fill(value: Any, parameters: Mapping[str, Any]) -> Any:
    """The value with every `{$PARAMETER: name}` in it replaced.

    >>> fill({"max_value": {"$PARAMETER": "most"}}, {"most": 10})
    {'max_value': 10}

    Raises:
        MissingParameter: a name has no value.
        LeftOut: a name's value is None.
    """
    if isinstance(value, dict):
        if set(value) == {KEY}:
            name = str(value[KEY])
            if name not in parameters:
                raise MissingParameter(name)
            if parameters[name] is None:
                raise LeftOut(name)
            return parameters[name]
        return {key: fill(inner, parameters) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, parameters) for inner in value]
    return value


def names_in(value: Any) -> set[str]:
    """The names of all parameters used anywhere in the value.

    >>> sorted(names_in([{"a": {"$PARAMETER": "x"}}, {"b": [{"$PARAMETER": "y"}]}]))
    ['x', 'y']
    """
    if isinstance(value, dict):
        if set(value) == {KEY}:
            return {str(value[KEY])}
        return set().union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()
