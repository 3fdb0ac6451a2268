"""The check of the rules: every loaded rule judged on a window's tables by Great Expectations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

from monitor.core.columns import EXPOSURES
from monitor.core.results import Result, Status
from monitor.engines.duckdb import Engine
from monitor.rules.engines.base import RuleEngine
from monitor.rules.ready import RuleTables, asked_of
from monitor.rules.rule import LoadedRule
from monitor.rules.tables import OWN, make_tables
from monitor.rules.together import judge_together
from monitor.rules.verdict import error_of, not_judged, verdict, with_evidence
from monitor.window.check import Check, Recommender, WindowJob
from monitor.window.tables import WindowTables

NAME = "rules"


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
        once = job.together
        results = check_rules(
            job.rule_engine, job.engine, self._rules, job.tables, rows=self._rows, salt=self._salt,
            seconds=job.costs, known=None if once is None else once.rules,
        )  # fmt: skip
        if once is not None:
            for name, seconds in once.rule_seconds.items():
                job.costs[name] = job.costs.get(name, 0.0) + seconds
        return results

    def together(
        self,
        rule_engine: RuleEngine,
        engine: Engine,
        tables: WindowTables,
        windows: int,
        seconds: dict[str, float],
        *,
        arrivals: bool,
    ) -> list[dict[str, Result]]:
        """The results of several windows at once; see `judge_together`. Those of `arrivals` only if asked."""
        mine = [rule for rule in self._rules if arrivals or rule.table != "arrivals"]
        return judge_together(
            rule_engine, engine, mine, tables, windows, rows=self._rows, salt=self._salt, seconds=seconds
        )

    def failed(self, why: str) -> list[Result]:
        return [error_of(rule, why) for rule in self._rules]


def check_rules(
    rule_engine: RuleEngine,
    engine: Engine,
    rules: Sequence[LoadedRule],
    tables: Callable[[], WindowTables],
    *,
    rows: int = 20,
    salt: str | None = None,
    seconds: dict[str, float] | None = None,
    known: Mapping[str, Result] | None = None,
) -> list[Result]:
    """Judge every rule on one window, in the order given.

    Args:
        rule_engine, engine: GX and Ibis on the same tables.
        rules: what monitor.rules.suites.load_rules gave.
        tables: gives the window's tables; what is made of them is added to their `made`.
        rows: the most evidence rows of one rule.
        salt: user ids in evidence are hashed with it; None shows them as they are.
        seconds: takes what each part cost.
        known: the results of rules that were judged before, by name. If all were, no table is made.

    A rule that cannot run is an `error` and stops no other.

    Raises:
        duckdb.InterruptException: the run was interrupted.
    """
    results = dict(known or {})
    seconds = {} if seconds is None else seconds
    left = [rule for rule in rules if rule.name not in results]
    if left:
        found = _judge_window(rule_engine, engine, left, tables(), rows, salt, seconds)
        results |= {rule.name: result for rule, result in zip(left, found, strict=True)}
    for pack in {rule.pack for rule in rules if rule.assumed}:
        mine = [rule for rule in rules if rule.pack == pack]
        if all(results[rule.name].status is Status.UNDEFINED for rule in mine):
            # The config asks for this pack. Without an error the team would not notice that it does nothing.
            for rule in mine:
                detail = f"no rule of the pack {pack} can be judged; {results[rule.name].detail}"
                results[rule.name] = error_of(rule, detail)
    return [results[rule.name] for rule in rules]


def _judge_window(
    rule_engine: RuleEngine,
    engine: Engine,
    rules: Sequence[LoadedRule],
    tables: WindowTables,
    rows: int,
    salt: str | None,
    seconds: dict[str, float],
) -> list[Result]:
    started = time.perf_counter()
    made = make_tables(engine, rules, tables)
    seconds["rule tables"] = time.perf_counter() - started
    try:
        return judge(rule_engine, rules, made, rows=rows, salt=salt, seconds=seconds)
    finally:
        rule_engine.release()
        own = [name for name in tables.made if name.startswith(OWN)]
        engine.drop(*own)  # now: a day's pairs are large, and the metrics need the memory
        tables.made[:] = [name for name in tables.made if name not in own]


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
        asked = asked_of(table, rules, rule_engine, tables)
        results |= {rule.name: not_judged(rule, why) for rule, why in asked.not_judged}
        if asked.ready and asked.table is not None:
            outcomes = rule_engine.judge(asked.table, [one.expectation for one in asked.ready])
            for one, outcome in zip(asked.ready, outcomes, strict=True):
                result = verdict(one.rule, outcome)
                if result.status is Status.VIOLATED and not outcome.whole:
                    result = with_evidence(rule_engine, asked.table, asked.present, one, result, rows, salt)
                results[one.rule.name] = result
        if seconds is not None:
            seconds[f"rules on {table}"] = time.perf_counter() - started
    return [results[rule.name] for rule in rules]
