"""Why the API refuses a request, in words that help to ask again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from monitor.core.text import encodable

MOST_NAMES: Final = 100
"""A refusal names at most so many things that exist."""


class Refusal(Exception):
    """A request that cannot be answered. See `ProblemAnswer` for the fields."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        parameter: str | None = None,
        expected: str | None = None,
        exists: Iterable[str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.parameter = parameter
        self.expected = expected
        self.exists = None if exists is None else [encodable(name) for name in exists][:MOST_NAMES]


def wrong_parameter(name: str, detail: str, expected: str) -> Refusal:
    """A refusal of one parameter's value."""
    return Refusal(400, detail, parameter=name, expected=expected)
