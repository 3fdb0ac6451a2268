"""Rules judged for several windows at once: the window is a group of the counts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from monitor.core.results import Result, Status
from monitor.engines.duckdb import Engine
from monitor.metrics.history import WINDOW
from monitor.rules.engines.base import Outcome, RuleEngine
from monitor.rules.ready import Asked, asked_of
from monitor.rules.rule import LoadedRule
from monitor.rules.tables import OWN, make_tables
from monitor.rules.verdict import not_judged, verdict, with_evidence
from monitor.window.tables import WindowTables

_TABLES: Final = ("exposures", "requests", "arrivals")
"""Those whose rows belong to one window each; a day's pairs are judged again by each window of the day."""
_PART: Final = f"{OWN}window"


def judge_together(
    rule_engine: RuleEngine,
    engine: Engine,
    rules: Sequence[LoadedRule],
    tables: WindowTables,
    windows: int,
    *,
    rows: int = 20,
    salt: str | None = None,
    seconds: dict[str, float],
) -> list[dict[str, Result]]:
    """The results of each window, by the name of the rule; of those rules that can be judged so.

    Args:
        rule_engine, engine: GX and Ibis on the same tables.
        rules: those of the recommender.
        tables: of all windows, with the key `WINDOW`; what is made of them is added to their `made`.
        windows: how many there are.
        rows: the most evidence rows of one rule in a window.
        salt: user ids in evidence are hashed with it; None shows them as they are.
        seconds: takes what each part cost for one window.

    Raises:
        duckdb.InterruptException: the run was interrupted.
    """
    started = time.perf_counter()
    mine = [rule for rule in rules if rule.table in _TABLES]
    made = make_tables(engine, mine, tables, WINDOW)
    seconds["rule tables"] = (time.perf_counter() - started) / windows
    found: list[dict[str, Result]] = [{} for _ in range(windows)]
    for table in dict.fromkeys(rule.table for rule in mine):
        if table not in made.names:
            continue  # it could not be made of all windows; it may be of one
        started = time.perf_counter()
        asked = asked_of(table, mine, rule_engine, made)
        for results in found:
            results |= {rule.name: not_judged(rule, why) for rule, why in asked.not_judged}
        if asked.ready and asked.table is not None:
            expectations = [one.expectation for one in asked.ready]
            counted = rule_engine.judge_groups(asked.table, expectations, WINDOW, range(windows))
            for number, results in enumerate(found):
                results.update(
                    _of_window(rule_engine, engine, asked, counted[number], number, tables, rows, salt)
                )
        seconds[f"rules on {table}"] = (time.perf_counter() - started) / windows
    return found


def _of_window(
    rule_engine: RuleEngine,
    engine: Engine,
    asked: Asked,
    outcomes: dict[int, Outcome],
    number: int,
    tables: WindowTables,
    rows: int,
    salt: str | None,
) -> dict[str, Result]:
    """The results of one window from its counts; a view of its rows gives the evidence."""
    results = {one: verdict(asked.ready[one].rule, outcome) for one, outcome in outcomes.items()}
    violated = [one for one, result in results.items() if result.status is Status.VIOLATED]
    if violated and asked.table is not None:
        tables.made.append(_PART)
        engine.view_of_group(_PART, asked.table, WINDOW, number)
        present = {name: kind for name, kind in asked.present.items() if name != WINDOW}
        for one in violated:
            results[one] = with_evidence(
                rule_engine, _PART, present, asked.ready[one], results[one], rows, salt
            )
    return {asked.ready[one].rule.name: result for one, result in results.items()}
