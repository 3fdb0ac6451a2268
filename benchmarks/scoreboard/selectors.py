"""The series that the alert rules read, and how far back: only these samples must be written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import promql_parser as pq

_NOW: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class Selector:
    """One selector of an expression: its matchers, and how far back it reads."""

    name: str
    matchers: tuple[tuple[str, str, str], ...]  # label, one of = != =~ !~, value
    back: timedelta

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether it selects the series of its name with these labels; a label that is absent is empty."""
        return all(fits(labels.get(label, ""), kind, value) for label, kind, value in self.matchers)


def selectors(expressions: Iterable[str]) -> dict[str, list[Selector]]:
    """Name of a family -> every selector of it."""
    found: list[Selector] = []
    for expression in expressions:
        _walk(pq.parse(expression), _NOW, found)
    return {name: [one for one in found if one.name == name] for name in dict.fromkeys(s.name for s in found)}


def lookback(
    known: Mapping[str, Iterable[Selector]], name: str, labels: Mapping[str, str]
) -> timedelta | None:
    """How far back a series is read; None if no selector reads it."""
    return max((one.back for one in known.get(name, ()) if one.matches(labels)), default=None)


def fits(value: str, kind: str, asked: str) -> bool:
    """Whether a label's value fits a matcher of Prometheus or Alertmanager; `kind`: = != =~ or !~.

    >>> fits("abc", "=~", "a.c|x"), fits("abc", "!=", "abc"), fits("", "!~", "a.*")
    (True, False, True)
    """
    if kind in ("=", "!="):
        return (value == asked) is (kind == "=")
    return (re.fullmatch(asked, value) is not None) is (kind == "=~")


def _kind(matcher: pq.Matcher) -> str:
    kinds = ((pq.MatchOp.Equal, "="), (pq.MatchOp.NotEqual, "!="), (pq.MatchOp.Re, "=~"))
    return next((text for kind, text in kinds if matcher.op == kind), "!~")


def _walk(node: pq.Expr, back: timedelta, found: list[Selector]) -> None:
    match node:
        case pq.VectorSelector():
            matchers = tuple((one.name, _kind(one), one.value) for one in node.matchers.matchers)
            found.append(Selector(node.name or "", matchers, back + (node.offset or _NOW)))
        case pq.MatrixSelector():
            _walk(node.vector_selector, back + (node.range or _NOW), found)
        case pq.SubqueryExpr():
            _walk(node.expr, back + (node.range or _NOW) + (node.offset or _NOW), found)
        case pq.BinaryExpr():
            _walk(node.lhs, back, found)
            _walk(node.rhs, back, found)
        case pq.Call():
            for argument in node.args:
                _walk(argument, back, found)
        case pq.AggregateExpr() | pq.ParenExpr() | pq.UnaryExpr():
            _walk(node.expr, back, found)
        case _:
            pass  # a number or a text reads nothing
