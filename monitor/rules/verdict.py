"""The result of a rule: the verdict on its counts, and the rows that violate it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import duckdb

from monitor.core.results import Result, ResultKind, Status
from monitor.core.text import fit
from monitor.rules.engines.base import Outcome, RuleEngine
from monitor.rules.evidence import columns_of, order_of, readable_rows
from monitor.rules.gx.messages import shorten
from monitor.rules.ready import NotJudged, Ready
from monitor.rules.rule import LoadedRule
from monitor.statistics.intervals import wilson

METRIC: Final = "rule"
_CONDITION_LENGTH: Final = 200  # characters of a row condition in a reason


def _nothing(rule: LoadedRule) -> str:
    """Why a rule has no row to judge."""
    judged, condition = " and ".join(rule.columns), rule.kwargs.get("row_condition")
    if not judged:
        return f"{rule.table} has no rows"
    if not condition:
        return f"no row of {rule.table} has a value in {judged}"
    text = condition if isinstance(condition, str) else json.dumps(condition, default=str)
    met = fit(text, _CONDITION_LENGTH, "…")
    return f"no row of {rule.table} meets the condition {met} and has a value in {judged}"


def verdict(rule: LoadedRule, outcome: Outcome) -> Result:
    """The result of a rule from its counts.

    One row violates a hard rule. A rule that allows a share of violations is violated only if Wilson's lower
    bound of the share is above it, so that a few rows alone never page anybody.
    """
    if outcome.error is not None:
        return error_of(rule, outcome.error)
    if outcome.samples == 0:
        return result_of(rule, Status.NO_DATA, detail=f"nothing to judge: {_nothing(rule)}", samples=0)
    ratio = outcome.violations / outcome.samples
    interval = None if outcome.whole else wilson(outcome.violations, outcome.samples)
    if rule.with_confidence:
        broken = (interval.lower if interval is not None else ratio) > rule.threshold
    else:
        broken = outcome.violations > 0
    detail = ""
    if broken and outcome.whole:
        detail = f"the table {rule.table} as a whole violates the rule"
    elif broken:
        verb = "violates" if outcome.violations == 1 else "violate"
        detail = f"{outcome.violations:,} of {outcome.samples:,} {verb} the rule ({ratio:.3g})"
        if rule.with_confidence:
            detail += f"; {rule.threshold:.3g} is allowed"
    return result_of(
        rule,
        Status.VIOLATED if broken else Status.OK,
        detail=detail,
        value=ratio,
        samples=outcome.samples,
        violations=outcome.violations,
        lower=interval.lower if interval is not None else None,
        upper=interval.upper if interval is not None else None,
    )


def with_evidence(
    rule_engine: RuleEngine,
    table: str,
    present: Mapping[str, str],
    ready: Ready,
    result: Result,
    rows: int,
    salt: str | None,
) -> Result:
    """The result with some rows that violate its rule, if they can be read.

    Args:
        rule_engine: reads them.
        table, present: the table that was judged, and its columns.
        ready: the rule.
        result: the verdict.
        rows: the most rows.
        salt: user ids are hashed with it; None shows them as they are.
    """
    try:
        violating = rule_engine.evidence(
            table, ready.expectation, columns_of(ready.rule, present), order_of(present), rows
        )
    except duckdb.InterruptException:
        raise
    except Exception as error:
        why = f"{result.detail}; the evidence could not be read: {shorten(str(error))}"
        return replace(result, detail=why)
    extra = {"list_version": ready.list_version} if ready.list_version else None
    return replace(result, evidence=readable_rows(violating, salt=salt, extra=extra))


def not_judged(rule: LoadedRule, why: NotJudged) -> Result:
    """The result of a rule that needs what its window lacks."""
    return result_of(rule, why.status, detail=str(why), samples=0 if why.status is Status.NO_DATA else None)


def error_of(rule: LoadedRule, why: str) -> Result:
    """The result of a rule that could not be judged."""
    return result_of(rule, Status.ERROR, detail=why)


def result_of(rule: LoadedRule, status: Status, **more: Any) -> Result:
    """A result with all that its rule says of it."""
    return Result(
        kind=ResultKind.RULE,
        metric=METRIC,
        status=status,
        definition=rule.definition,
        labels={"rule": rule.name, "kind": rule.kind.value},
        threshold=rule.threshold,
        severity=rule.severity,
        **more,
    )
