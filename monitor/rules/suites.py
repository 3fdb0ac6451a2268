"""Suite files: Great Expectations' own serialised form in YAML, read into rules.

    name: our_rules
    meta: {owner: shop-search, parameters: {max_price: 1000}}
    expectations:
      - type: expect_column_values_to_be_between
        kwargs: {column: price, max_value: {$PARAMETER: max_price}, mostly: 0.999}
        severity: warning
        meta: {rule: price-too-high, kind: soft, table: exposures}

All mistakes of all suites are found in one go, each with its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from monitor.rules.rule import TABLES, LoadedRule, Problem, SuiteErrors
from monitor.rules.suite_reader import SuiteReader
from monitor.settings.rules import RuleSettings

__all__ = ["TABLES", "LoadedRule", "Problem", "SuiteErrors", "load_rules"]


def load_rules(
    sources: Sequence[RuleSettings], base: Path, where: str = "rules", *, dialect: str = "duckdb"
) -> tuple[LoadedRule, ...]:
    """Read every suite of one recommender.

    Args:
        sources: the config's `rules:`.
        base: the config file's folder; suite files and list files are relative to it.
        where: the place of `rules:` in the config, for messages.
        dialect: `duckdb` or `spark`: whose SQL the queries of rules are in.

    Raises:
        SuiteErrors: with every mistake of every suite.
    """
    problems: list[Problem] = []
    rules: list[LoadedRule] = []
    for number, source in enumerate(sources):
        rules += SuiteReader(source, base, f"{where}[{number}]", problems, dialect).read()
    seen: dict[str, LoadedRule] = {}
    for rule in rules:
        first = seen.setdefault(rule.name, rule)
        if first is not rule:
            problems.append(
                Problem("", f"{rule.source}.meta.rule", f"the name {rule.name!r} is taken by {first.source}")
            )
    if problems:
        raise SuiteErrors(problems)
    return tuple(rules)
