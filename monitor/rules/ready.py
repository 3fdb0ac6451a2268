"""What a rule needs before it can be judged in a window: its tables, its columns, its list file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from great_expectations.expectations.expectation import Expectation

from monitor.core.columns import ITEM_ID
from monitor.core.results import Status
from monitor.rules.engines.base import RuleEngine
from monitor.rules.list_files import FILES, ListFileError
from monitor.rules.list_tables import LIST_COLUMNS
from monitor.rules.rule import LoadedRule

_OF_EXPOSURES = ("exposures", "requests", "user_items_day", "arrivals")


@dataclass(slots=True)
class RuleTables:
    """The tables that rules may look at in one window.

    Attributes:
        names: the physical name of each table.
        missing: why a table is missing.
        known: the columns of the exposures log in any window, not in this one alone.
        has_files: False if the exposures log has no file left, as after a stop that was longer than its files
            are kept.
    """

    names: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    has_files: bool = True


@dataclass(frozen=True, slots=True)
class Ready:
    """A rule with the expectation of this run: its list file read, its tables named."""

    rule: LoadedRule
    expectation: Expectation
    list_version: str | None = None


class NotJudged(Exception):
    """A rule cannot be judged in this window: the status of its result, and why in a sentence."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of one table.

    Attributes:
        table: its physical name; None if it is missing.
        present: its columns and their types.
        ready: the rules to judge.
        not_judged: the others, each with why.
    """

    table: str | None
    present: Mapping[str, str]
    ready: list[Ready]
    not_judged: list[tuple[LoadedRule, NotJudged]]


def asked_of(table: str, rules: Sequence[LoadedRule], rule_engine: RuleEngine, tables: RuleTables) -> Asked:
    """What these rules ask of a table, by its name in the suites."""
    physical = tables.names.get(table)
    present = rule_engine.columns(physical) if physical else {}
    asked = Asked(physical, present, [], [])
    for rule in rules:
        if rule.table != table:
            continue
        try:
            asked.ready.append(prepared(rule, present, tables))
        except NotJudged as why:
            asked.not_judged.append((rule, why))
    return asked


def prepared(rule: LoadedRule, present: Mapping[str, str], tables: RuleTables) -> Ready:
    """The rule's expectation on the tables of this run.

    Args:
        rule: the rule.
        present: the columns of the rule's table.
        tables: the tables of this run.

    Raises:
        NotJudged: the rule needs something that this window lacks.
    """
    expectation = rule.expectation
    for name in (rule.table, getattr(expectation, "catalog_table", rule.table)):
        if name not in tables.names:
            missing = tables.missing.get(name, "there is none")
            raise NotJudged(Status.ERROR, f"needs the table {name}: {missing}")
    for column in rule.columns:
        if column not in present:
            _check_missing(column, rule, tables)
    changes: dict[str, object] = {}
    version = None
    path = rule.kwargs.get("list_path")
    if isinstance(path, str):
        try:
            version = FILES.read(
                path,
                getattr(expectation, "list_column", ITEM_ID),
                allow_empty=getattr(expectation, "allow_empty", False),
            ).version
        except ListFileError as error:
            raise NotJudged(Status.ERROR, str(error)) from error
        changes["list_version"] = version
    if hasattr(expectation, "catalog_table"):
        changes["catalog_table"] = tables.names[expectation.catalog_table]
    return Ready(rule, expectation.copy(update=changes), version)


def _check_missing(column: str, rule: LoadedRule, tables: RuleTables) -> None:
    if not tables.has_files and rule.table in _OF_EXPOSURES:
        raise NotJudged(Status.NO_DATA, "nothing to judge: the exposures log has no file that can be read")
    if rule.expectation.expectation_type == "expect_column_to_exist":
        return
    needs = LIST_COLUMNS.get(column, ()) if rule.table == "requests" else ()
    sources = needs or ((f"exposures.{column}",) if rule.table == "exposures" else ())
    of_exposures = [name.removeprefix("exposures.") for name in sources if name.startswith("exposures.")]
    unknown = [name for name in of_exposures if name not in tables.known]
    if unknown and column in rule.assumed:
        columns = " and no column ".join(unknown)
        raise NotJudged(Status.UNDEFINED, f"not applicable: the exposures log has no column {columns}")
    because = f", which needs {' and '.join(needs)}" if needs else ""
    raise NotJudged(Status.ERROR, f"the table {rule.table} has no column {column}{because}")
