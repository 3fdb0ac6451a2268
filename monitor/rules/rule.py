"""A rule as the checks see it, and the mistakes that a suite may have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from great_expectations.expectations.expectation import Expectation

from monitor.core.results import Kind
from monitor.rules.queries import query_of

TABLES = ("exposures", "requests", "user_items_day", "arrivals", "catalog", "feedback")
"""The tables that a rule may look at, by `meta.table`."""


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """A mistake in a suite: `source` is its place in the config, `place` its place in the suite file."""

    source: str
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class SuiteErrors(ValueError):
    """All mistakes in the suites of one recommender."""

    def __init__(self, problems: Sequence[RuleProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRule:
    """One rule, ready to be judged.

    Attributes:
        threshold: the share of violations that is allowed: 0, or 1 - mostly.
        definition: changes with everything that affects the count; results of different definitions are
            never compared.
        assumed: the columns that a pack names and the config does not, so the log may lack them.
    """

    name: str
    kind: Kind
    table: str
    severity: str
    threshold: float
    definition: str
    expectation: Expectation
    kwargs: Mapping[str, Any]
    owner: str = ""
    runbook: str = ""
    description: str = ""
    source: str = ""
    pack: str = ""
    assumed: frozenset[str] = frozenset()

    @property
    def with_confidence(self) -> bool:
        """Whether the verdict waits for the interval: soft rules, and numeric ones that give `mostly`."""
        return self.threshold > 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its own table that the expectation names."""
        return columns_in(self.kwargs)

    @property
    def speaks_a_dialect(self) -> bool:
        """Whether each engine reads its SQL, regular expression or type of a column in its own way, or one of
        them cannot judge it, such as a JSON schema.
        """
        words = self.expectation.expectation_type.split("_")
        return not {"regex", "type", "schema"}.isdisjoint(words) or query_of(self.expectation) is not None

    def mentions(self, column: str) -> bool:
        """Whether the arguments name this column anywhere, row conditions and queries included."""
        name = re.escape(json.dumps(column, ensure_ascii=False)[1:-1])
        arguments = json.dumps(self.kwargs, default=str, ensure_ascii=False)
        return re.search(rf"(?<!\w){name}(?!\w)", arguments) is not None


def columns_in(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns that an expectation's arguments name.

    >>> columns_in({"column_list": ["price", "boost"], "mostly": 0.9})
    ('price', 'boost')
    """
    named: list[str] = []
    for key in ("column", "column_A", "column_B", "column_list", "time_column"):
        value = kwargs.get(key)
        named.extend([value] if isinstance(value, str) else value or [])
    return tuple(dict.fromkeys(map(str, named)))
