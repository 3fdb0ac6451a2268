"""The check of the rules: every loaded rule judged on a window's tables by Great Expectations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import duckdb
import ibis.expr.operations as ops
import ibis.expr.types as ir

from monitor.core.columns import EXPOSURES
from monitor.core.results import Result, ResultKind, Status
from monitor.engines.duckdb import Engine
from monitor.rules.engines.base import Outcome, RuleEngine
from monitor.rules.evidence import columns_of, order_of, readable_rows
from monitor.rules.gx.messages import shorten
from monitor.rules.list_tables import LIST_COLUMNS, arrivals, with_list_columns
from monitor.rules.ready import NotJudged, Ready, RuleTables, prepared
from monitor.rules.rule import LoadedRule
from monitor.statistics.intervals import wilson
from monitor.window.check import Check, Recommender, WindowJob
from monitor.window.tables import WindowTables

NAME = "rules"
METRIC = "rule"
_OWN = "rule_"


class RuleCheck(Check[WindowJob]):
    """Every rule of the recommender's suites, in their order."""

    name = NAME
    part = EXPOSURES

    def __init__(self, rules: Sequence[LoadedRule], rows: int, salt: str | None) -> None:
        self._rules = tuple(rules)
        self._rows = rows
        self._salt = salt

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        evidence = recommender.settings.evidence
        salt = recommender.salt if evidence.hash_users else None
        return [cls(recommender.rules, evidence.rows, salt)]

    def run(self, job: WindowJob) -> list[Result]:
        return check_rules(
            job.rule_engine, job.engine, self._rules, job.tables(),
            rows=self._rows, salt=self._salt, seconds=job.costs,
        )  # fmt: skip

    def failed(self, why: str) -> list[Result]:
        return [_error(rule, why) for rule in self._rules]


def check_rules(
    rule_engine: RuleEngine,
    engine: Engine,
    rules: Sequence[LoadedRule],
    tables: WindowTables,
    *,
    rows: int = 20,
    salt: str | None = None,
    seconds: dict[str, float] | None = None,
) -> list[Result]:
    """Judge every rule on one window, in the order given.

    Args:
        rule_engine, engine: GX and Ibis on the same tables.
        rules: what monitor.rules.suites.load_rules gave.
        tables: the window's tables; what is made of them is added to their `made`.
        rows: the most evidence rows of one rule.
        salt: user ids in evidence are hashed with it; None shows them as they are.
        seconds: takes what each part cost.

    A rule that cannot run is an `error` and stops no other.

    Raises:
        duckdb.InterruptException: the run was interrupted.
    """
    seconds = {} if seconds is None else seconds
    started = time.perf_counter()
    made = make_tables(engine, rules, tables)
    seconds["rule tables"] = time.perf_counter() - started
    try:
        return judge(rule_engine, rules, made, rows=rows, salt=salt, seconds=seconds)
    finally:
        rule_engine.release()
        own = [name for name in tables.made if name.startswith(_OWN)]
        engine.drop(*own)  # now: a day's pairs are large, and the metrics need the memory
        tables.made[:] = [name for name in tables.made if name not in own]


def make_tables(engine: Engine, rules: Sequence[LoadedRule], tables: WindowTables) -> RuleTables:
    """Make the tables that the loaded rules look at, and no others."""
    columns = tables.shared.exposures.columns
    known = frozenset(columns) if tables.known is None else tables.known
    result = RuleTables(known=known, has_files=tables.has_files)
    asked = {rule.table for rule in rules} | {str(rule.kwargs.get("catalog_table", "")) for rule in rules}
    shared = tables.shared

    def lists() -> ir.Table:
        wanted = [name for name in LIST_COLUMNS if any(one.mentions(name) for one in on_lists)]
        return shared.once(f"{_OWN}requests", None, lambda: with_list_columns(shared, wanted))

    on_lists = [rule for rule in rules if rule.table == "requests"]
    if any(getattr(rule.expectation, "catalog_table", None) == "catalog" for rule in rules):
        asked.add("catalog")
    if "catalog" in asked and tables.catalog is None:
        result.missing["catalog"] = "this recommender has no catalog, or it could not be read"
    elif "catalog" in asked and tables.catalog is not None and _is_empty(tables.catalog):
        # With an empty catalog no item is off the shelf, so every rule on it would be ok.
        result.missing["catalog"] = "the catalog is empty: its files hold no item"
    if "feedback" in asked and tables.feedback is None:
        result.missing["feedback"] = "this recommender has no feedback log"
    builders: dict[str, Callable[[], Any]] = {
        "exposures": lambda: shared.exposures,
        "requests": lists,
        "user_items_day": tables.user_items_day,
        "arrivals": lambda: arrivals(shared.exposures, tables.future),
        "catalog": lambda: tables.catalog,
        "feedback": lambda: tables.feedback,
    }
    for name, build in builders.items():
        if name not in asked or name in result.missing:
            continue
        try:
            result.names[name] = _named(engine, f"{_OWN}{name}", build(), tables.made)
        except duckdb.InterruptException:
            raise
        except Exception as error:
            result.missing[name] = f"the table could not be made: {shorten(str(error))}"
    return result


def _is_empty(table: ir.Table) -> bool:
    return not table.limit(1).count().to_pyarrow().as_py()


def _named(engine: Engine, name: str, table: ir.Table, made: list[str]) -> str:
    """The name under which GX finds the table: its own if it is stored, else a new one."""
    operation = table.op()
    if isinstance(operation, ops.DatabaseTable):
        return str(operation.name)
    made.append(name)
    if name == "rule_user_items_day":
        engine.create(name, table)  # an aggregate: as a view, each query of GX would compute it again
    else:
        engine.view(name, table)
    return name


def judge(
    rule_engine: RuleEngine,
    rules: Sequence[LoadedRule],
    tables: RuleTables,
    *,
    rows: int = 20,
    salt: str | None = None,
    seconds: dict[str, float] | None = None,
) -> list[Result]:
    """Judge the rules on finished tables: all rules of one table in one validation."""
    results: dict[str, Result] = {}
    for table in dict.fromkeys(rule.table for rule in rules):
        started = time.perf_counter()
        mine = [rule for rule in rules if rule.table == table]
        physical = tables.names.get(table)
        present = rule_engine.columns(physical) if physical else {}
        ready: list[Ready] = []
        for rule in mine:
            try:
                ready.append(prepared(rule, present, tables))
            except NotJudged as why:
                samples = 0 if why.status is Status.NO_DATA else None
                results[rule.name] = _result(rule, why.status, detail=str(why), samples=samples)
        if ready and physical is not None:
            outcomes = rule_engine.judge(physical, [one.expectation for one in ready])
            for one, outcome in zip(ready, outcomes, strict=True):
                result = verdict(one.rule, outcome)
                if result.status is Status.VIOLATED and not outcome.whole:
                    result = _with_evidence(rule_engine, physical, present, one, result, rows, salt)
                results[one.rule.name] = result
        if seconds is not None:
            seconds[f"rules on {table}"] = time.perf_counter() - started
    for pack in {rule.pack for rule in rules if rule.assumed}:
        mine = [rule for rule in rules if rule.pack == pack]
        if all(results[rule.name].status is Status.UNDEFINED for rule in mine):
            # The config asks for this pack. Without an error the team would not notice that it does nothing.
            for rule in mine:
                detail = f"no rule of the pack {pack} can be judged; {results[rule.name].detail}"
                results[rule.name] = _error(rule, detail)
    return [results[rule.name] for rule in rules]


def verdict(rule: LoadedRule, outcome: Outcome) -> Result:
    """The result of a rule from its counts.

    One row violates a hard rule. A rule that allows a share of violations is violated only if Wilson's lower
    bound of the share is above it, so that a few rows alone never page anybody.
    """
    if outcome.error is not None:
        return _error(rule, outcome.error)
    if outcome.samples == 0:
        judged = " and ".join(rule.columns)
        what = f"no row of {rule.table} has a value in {judged}" if judged else f"{rule.table} has no rows"
        return _result(rule, Status.NO_DATA, detail=f"nothing to judge: {what}", samples=0)
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
        detail = f"{outcome.violations:,} of {outcome.samples:,} violate the rule ({ratio:.3g})"
        if rule.with_confidence:
            detail += f"; {rule.threshold:.3g} is allowed"
    return _result(
        rule,
        Status.VIOLATED if broken else Status.OK,
        detail=detail,
        value=ratio,
        samples=outcome.samples,
        violations=outcome.violations,
        lower=interval.lower if interval is not None else None,
        upper=interval.upper if interval is not None else None,
    )


def _with_evidence(
    rule_engine: RuleEngine,
    table: str,
    present: Mapping[str, str],
    ready: Ready,
    result: Result,
    rows: int,
    salt: str | None,
) -> Result:
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


def _error(rule: LoadedRule, why: str) -> Result:
    return _result(rule, Status.ERROR, detail=why)


def _result(rule: LoadedRule, status: Status, **more: Any) -> Result:
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
