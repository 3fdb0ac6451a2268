"""What a rule needs before it can be judged in a window: its tables, its columns, its list file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from great_expectations.expectations.expectation import Expectation

from monitor.rules.list_files import FILES, ListFileError
from monitor.rules.list_tables import LIST_COLUMNS
from monitor.rules.suites import LoadedRule

_OF_EXPOSURES = ("exposures", "requests", "user_items_day", "arrivals")


@dataclass(slots=True)
class RuleTables:
    """The physical name of each table that rules may look at, and why one of them is missing.

    `known` are the columns of the exposures log in any window, not in this one alone. `has_files` is False
    where no file of it is left, as after a stop of the log that was longer than its files are kept.
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


class DoesNotApply(Exception):
    """Which column, that a pack looks at and nobody has named, the log does not have."""


class NothingThere(Exception):
    """Why there is nothing to judge, and no word on whether the rule could be."""


class CannotRun(Exception):
    """Why a rule cannot be judged in this window, in a sentence."""


def prepared(rule: LoadedRule, present: Mapping[str, str], tables: RuleTables) -> Ready:
    """The rule's expectation on the tables of this run.

    `present` are the columns of the rule's table. Raises DoesNotApply, NothingThere or CannotRun.
    """
    for name in (rule.table, getattr(rule.expectation, "catalog_table", rule.table)):
        if name not in tables.names:
            raise CannotRun(f"needs the table {name}: {tables.missing.get(name, 'there is none')}")
    for column in rule.columns:
        if column not in present and not tables.has_files and rule.table in _OF_EXPOSURES:
            raise NothingThere("nothing to judge: the exposures log has no file that can be read")
        if column not in present and rule.expectation.expectation_type != "expect_column_to_exist":
            needs = LIST_COLUMNS.get(column, ()) if rule.table == "requests" else ()
            asked = needs or ((f"exposures.{column}",) if rule.table == "exposures" else ())
            never = [one.removeprefix("exposures.") for one in asked if one.startswith("exposures.")]
            never = [one for one in never if one not in tables.known]
            if never and column in rule.assumed:
                raise DoesNotApply(f"the exposures log has no column {' and no column '.join(never)}")
            because = f", which needs {' and '.join(needs)}" if needs else ""
            raise CannotRun(f"the table {rule.table} has no column {column}{because}")
    changes: dict[str, object] = {}
    version = None
    path = rule.kwargs.get("list_path")
    if isinstance(path, str):
        try:
            version = FILES.read(
                path,
                getattr(rule.expectation, "list_column", "item_id"),
                allow_empty=getattr(rule.expectation, "allow_empty", False),
            ).version
        except ListFileError as error:
            raise CannotRun(str(error)) from error
        changes["list_version"] = version
    if hasattr(rule.expectation, "catalog_table"):
        changes["catalog_table"] = tables.names[rule.expectation.catalog_table]
    return Ready(rule, rule.expectation.copy(update=changes), version)
