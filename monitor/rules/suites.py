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

import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.registry import list_registered_expectation_implementations

from monitor.core.digest import digest
from monitor.core.results import Kind
from monitor.core.settings import NAME_PATTERN
from monitor.core.yaml_text import YamlProblem, read_yaml
from monitor.rules.engines.base import build
from monitor.rules.gx.internals import pydantic
from monitor.rules.gx.messages import did_you_mean, shorten
from monitor.rules.packs import pack_names, pack_path
from monitor.rules.parameters import LeftOut, MissingParameter, fill, names_in
from monitor.rules.queries import NO_CONDITION, QUERY, REFUSED, REFUSED_ON, UnsafeQuery, check_query
from monitor.rules.rule import TABLES, LoadedRule, RuleProblem, SuiteErrors, columns_in
from monitor.settings.rules import RuleSettings

SEVERITIES = ("critical", "warning", "info")
_ENTRY_KEYS = {"type", "kwargs", "severity", "meta", "id", "notes", "description", "rendered_content"}
_SUITE_KEYS = {"name", "meta", "expectations", "id", "notes", "suite_parameters"}


class _SuiteReader:
    """Reads one suite and collects its mistakes; its queries are in the SQL of `dialect`."""

    def __init__(
        self,
        source: RuleSettings,
        base: Path,
        where: str,
        problems: list[RuleProblem],
        dialect: str,
    ) -> None:
        self.source, self.base, self.where, self.problems = source, base, where, problems
        self.dialect = dialect
        self.file = source.suite or f"{source.pack}.yaml"
        self.meta: dict[str, Any] = {}
        self.parameters: dict[str, Any] = {}

    def _wrong(self, place: str, message: str) -> None:
        """A mistake in the suite file."""
        self.problems.append(
            RuleProblem(self.where, f"{self.file}: {place}" if place else self.file, message)
        )

    def _wrong_setting(self, name: str, message: str) -> None:
        """A mistake in the config's entry for this suite."""
        place = f"{self.where}.{name}"
        self.problems.append(RuleProblem(place, place, message))

    def read(self) -> list[LoadedRule]:
        suite = self._suite()
        if suite is None:
            return []
        for key in sorted(map(str, set(suite) - _SUITE_KEYS)):
            self._wrong(key, f"unknown key{did_you_mean(key, _SUITE_KEYS)}")
        meta = suite.get("meta") or {}
        self.meta = meta if isinstance(meta, dict) else {}
        entries = suite.get("expectations")
        if not isinstance(entries, list):
            self._wrong("expectations", "must be a list of expectations")
            return []
        defaults = self.meta.get("parameters") or {}
        if not isinstance(defaults, dict):
            self._wrong("meta.parameters", "must be a mapping")
            defaults = {}
        defaults = {str(name): value for name, value in defaults.items()}  # a name may be a number
        self.parameters = {**defaults, **self.source.parameters}
        used = names_in(entries) | set(defaults)
        for name in sorted(set(self.source.parameters) - used):
            message = f"{self.file} has no such parameter{did_you_mean(name, used)}"
            self._wrong_setting(f"parameters.{name}", message)
        self._check_disabled(entries)
        rules = [self._rule(f"expectations[{number}]", entry) for number, entry in enumerate(entries)]
        return [rule for rule in rules if rule is not None]

    def _suite(self) -> dict[str, Any] | None:
        path = self.base / self.source.suite if self.source.suite else pack_path(self.source.pack or "")
        if path is None:
            names = pack_names()
            hint = did_you_mean(self.source.pack or "", names) or f"; there are {', '.join(names)}"
            self._wrong_setting("pack", f"there is no pack {self.source.pack!r}{hint}")
            return None
        try:
            suite = read_yaml(path)
        except YamlProblem as problem:
            self._wrong(problem.place, problem.message)
            return None
        if isinstance(suite, dict):
            return suite
        self._wrong("", "must be a mapping with `name` and `expectations`")
        return None

    def _check_disabled(self, entries: list[Any]) -> None:
        names = {str(_mapping(_mapping(entry).get("meta")).get("rule")) for entry in entries}
        for number, name in enumerate(self.source.disable):
            if name not in names:
                message = f"{self.file} has no rule {name!r}{did_you_mean(name, names)}"
                self._wrong_setting(f"disable[{number}]", message)

    def _rule(self, place: str, entry: Any) -> LoadedRule | None:
        before = len(self.problems)
        if not isinstance(entry, dict):
            self._wrong(place, "must be a mapping with `type`, `kwargs` and `meta`")
            return None
        for key in sorted(map(str, set(entry) - _ENTRY_KEYS)):
            self._wrong(f"{place}.{key}", f"unknown key{did_you_mean(key, _ENTRY_KEYS)}")
        meta = {**self.meta, **_mapping(entry.get("meta"))}
        name, kind, table, severity = self._words(place, entry, meta)
        if name in self.source.disable:
            del self.problems[before:]
            return None
        raw = entry.get("kwargs") or {}
        if not isinstance(raw, dict):
            self._wrong(f"{place}.kwargs", "must be a mapping")
            return None
        try:
            kwargs = self._kwargs(place, raw)
        except LeftOut:
            return None
        if len(kwargs) < len(raw):
            return None
        threshold = self._threshold(f"{place}.kwargs.mostly", kind, kwargs)
        located = self._located(kwargs)
        self._check_query(place, name, located)
        if len(self.problems) > before:
            return None
        expectation = self._expectation(place, entry.get("type"), located, severity)
        if len(self.problems) > before or expectation is None or kind is None:
            return None
        judged = {key: value for key, value in kwargs.items() if key != "mostly"}
        content = [entry["type"], judged, table, kind, threshold]
        return LoadedRule(
            name=name,
            kind=kind,
            table=table,
            severity=severity,
            threshold=threshold,
            definition=digest(json.dumps(content, sort_keys=True, default=str), 12),
            expectation=expectation,
            kwargs=located,
            owner=str(meta.get("owner") or ""),
            runbook=str(meta.get("runbook") or ""),
            description=str(meta.get("description") or ""),
            source=f"{self.file}: {place}",
            pack=self.source.pack or "",
            assumed=self._assumed(raw, located),
        )

    def _assumed(self, raw: dict[str, Any], filled: dict[str, Any]) -> frozenset[str]:
        """The columns that the pack names and the config does not."""
        if not self.source.pack:
            return frozenset()
        given = self.source.parameters.keys()
        own = {key: value for key, value in filled.items() if not names_in(raw.get(key)) & given}
        return frozenset(columns_in(own))

    def _words(
        self, place: str, entry: dict[str, Any], meta: dict[str, Any]
    ) -> tuple[str, Kind | None, str, str]:
        own = entry.get("meta")
        if not isinstance(own, dict):
            self._wrong(
                f"{place}.meta", "must say at least `rule` (its name) and `kind` (hard, soft, numeric)"
            )
            own = meta
        name = str(own.get("rule") or "")
        if not re.fullmatch(NAME_PATTERN, name):
            self._wrong(
                f"{place}.meta.rule",
                f"{name!r} is no name: lower-case letters, digits, - and _, 63 at most",
            )
        kind = next((one for one in Kind if one == meta.get("kind")), None)
        if kind is None:
            self._wrong(f"{place}.meta.kind", f"{meta.get('kind')!r} is not one of hard, soft, numeric")
        table = meta.get("table") or "exposures"
        if table not in TABLES:
            hint = did_you_mean(str(table), TABLES) or f"; there are {', '.join(TABLES)}"
            self._wrong(f"{place}.meta.table", f"there is no table {table!r}{hint}")
        severity = entry.get("severity") or "critical"
        if severity not in SEVERITIES:
            self._wrong(f"{place}.severity", f"{severity!r} is not one of {', '.join(SEVERITIES)}")
            severity = "critical"
        return name, kind, str(table), str(severity)

    def _kwargs(self, place: str, raw: dict[str, Any]) -> dict[str, Any]:
        kwargs: dict[str, Any] = {}
        for key, value in raw.items():
            try:
                kwargs[str(key)] = fill(value, self.parameters)
            except MissingParameter as missing:
                self._wrong(
                    f"{place}.kwargs.{key}",
                    f"needs the parameter {missing.name!r}; give it in "
                    f"{self.where}.parameters.{missing.name}",
                )
            else:
                if any(isinstance(one, float) and math.isnan(one) for one in _leaves(kwargs[str(key)])):
                    self._wrong(f"{place}.kwargs.{key}", "NaN is no bound: no value is above or below it")
        return kwargs

    def _threshold(self, place: str, kind: Kind | None, kwargs: dict[str, Any]) -> float:
        mostly = kwargs.get("mostly")
        if isinstance(mostly, bool) or (mostly is not None and not isinstance(mostly, int | float)):
            self._wrong(place, f"{mostly!r} is not a number")
            return 0.0
        if mostly is not None and not 0 <= mostly <= 1:
            self._wrong(place, f"{mostly!r} is not between 0 and 1")
            return 0.0
        if mostly == 0:
            self._wrong(place, "with 0 the rule can never be violated")
        if kind is Kind.HARD and mostly not in (None, 1):
            self._wrong(place, "a hard rule allows no violation; leave `mostly` out, or make its kind soft")
        if kind is Kind.SOFT and mostly in (None, 1):
            self._wrong(
                place, "a soft rule needs `mostly` below 1: the smallest share of rows that must hold"
            )
        return 0.0 if mostly is None else round(1 - mostly, 12)

    def _located(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        path = kwargs.get("list_path")
        return {**kwargs, "list_path": str(self.base / path)} if isinstance(path, str) else kwargs

    def _check_query(self, place: str, name: str, kwargs: dict[str, Any]) -> None:
        query = kwargs.get(QUERY)
        if isinstance(query, str):
            try:
                check_query(query, self.dialect)
            except UnsafeQuery as why:
                self._wrong(f"{place}.kwargs.{QUERY}", f"the query of the rule {name!r} {why}")

    def _expectation(
        self, place: str, kind: Any, kwargs: dict[str, Any], severity: str
    ) -> Expectation | None:
        known = list_registered_expectation_implementations()
        if kind not in known:
            self._wrong(f"{place}.type", f"there is no expectation {kind!r}{did_you_mean(str(kind), known)}")
            return None
        if why_not := (REFUSED | REFUSED_ON[self.dialect]).get(kind):
            self._wrong(f"{place}.type", f"{kind} is not supported: {why_not}")
            return None
        if kind in NO_CONDITION and kwargs.get("row_condition"):
            self._wrong(f"{place}.kwargs.row_condition", NO_CONDITION[kind])
            return None
        try:
            return build({"type": kind, "kwargs": kwargs, "meta": {}, "severity": severity})
        except pydantic.ValidationError as error:
            for one in error.errors():
                path = ".".join(str(part) for part in one["loc"] if part != "__root__")
                self._wrong(f"{place}.kwargs.{path}".rstrip("."), one["msg"])
        except UnsafeQuery as why:
            self._wrong(f"{place}.kwargs.row_condition", f"the row condition {why}")
        except Exception as error:
            self._wrong(f"{place}.kwargs", shorten(str(error)))
        return None


def _leaves(value: Any) -> Iterator[Any]:
    """The values in nested lists and mappings."""
    if isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)
    else:
        yield value


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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
    problems: list[RuleProblem] = []
    rules: list[LoadedRule] = []
    for number, source in enumerate(sources):
        rules += _SuiteReader(source, base, f"{where}[{number}]", problems, dialect).read()
    first: dict[str, LoadedRule] = {}
    for rule in rules:
        if first.setdefault(rule.name, rule) is not rule:
            message = f"the name {rule.name!r} is taken by {first[rule.name].source}"
            problems.append(RuleProblem("", f"{rule.source}.meta.rule", message))
    if problems:
        raise SuiteErrors(problems)
    return tuple(rules)
