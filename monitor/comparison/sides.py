"""One side of a comparison: a recommender, a part of its rows, and a span."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from monitor.comparison.compare import Key, key_of
from monitor.core.columns import EXPOSURES
from monitor.core.errors import ExpectedError
from monitor.core.results import Result, ResultKind
from monitor.core.text import quoted
from monitor.metrics.catalogue import SPECS
from monitor.settings.recommender import USER_GROUP, RecommenderSettings, SliceSettings, sliced_column
from monitor.statistics.random_groups import cautious_correlation
from monitor.window.slices import NONE

_HOW: Final = "write it as NAME, NAME:COLUMN=VALUE or NAME@2026-11-01/2026-11-08"
_MOST_VALUES: Final = 200
_DIMENSION, _VALUE = "dimension", "value"


class SideError(ExpectedError):
    """A side that cannot be read, or that has nothing to compare."""


@dataclass(frozen=True, slots=True)
class Side:
    """A recommender, the value of a column that its rows have, and its span if it has one of its own.

    The column may be any that the metrics can be sliced by.
    """

    text: str
    recommender: str
    column: str = ""
    value: str = ""
    start: str = ""
    end: str = ""

    @classmethod
    def parse(cls, text: str) -> Side:
        """Read a side as it is given on the command line.

        >>> Side.parse("shop:model=m7@2026-11-01/2026-11-08") == Side(
        ...     "shop:model=m7@2026-11-01/2026-11-08", "shop", "model", "m7", "2026-11-01", "2026-11-08"
        ... )
        True

        Raises SideError.
        """
        rest, at, span = text.partition("@")
        name, colon, rows = rest.partition(":")
        start, _, end = span.partition("/")
        if not name or (at and not (start and end)):
            raise SideError(f"{quoted(text)} is no side; {_HOW}")
        column, _, value = rows.partition("=")
        if colon and not (column and value):
            raise SideError(f"{quoted(text)}: {quoted(rows)} is not COLUMN=VALUE; {_HOW}")
        return cls(text, name, column, value, start, end)

    def for_metrics(
        self, settings: RecommenderSettings, *, slices: bool = False, metrics: Collection[str] = ()
    ) -> RecommenderSettings:
        """The settings under which the metrics of this side are measured.

        Of a part of the rows they are slices: an action must find its list among all lists. A whole is also
        measured by random groups of users, and by its own slices if `slices` is set.

        Args:
            settings: of the recommender.
            slices: whether its own slices are measured.
            metrics: the only metrics that the groups are needed for; none: all.
        """
        if self.column:
            return _plain(settings, rules=(), slices=SliceSettings(by=(self.column,), budget=_MOST_VALUES))
        by_group = SliceSettings(by=(USER_GROUP,), metrics=tuple(name for name in metrics if name in SPECS))
        if slices:
            by_group = settings.slices.model_copy(update={"by": (*settings.slices.by, USER_GROUP)})
        return _plain(settings, rules=(), slices=by_group)

    def for_rules(self, settings: RecommenderSettings) -> RecommenderSettings | None:
        """The settings under which the rules judge only its rows; None if no column of the exposures does.

        Raises SideError where the config leaves these rows out already.
        """
        logs = settings.logs
        if not self.column or logs.exposures is None:
            return _plain(settings, metrics=_none(settings))
        if (sliced_column(self.column) or ("", ""))[0] != EXPOSURES:
            return None
        only = logs.exposures.only
        if only.get(self.column, self.value) != self.value:
            raise SideError(
                f"{quoted(self.text)}: logs.{EXPOSURES}.only of {quoted(self.recommender)} already chooses "
                f"rows by {quoted(self.column)}"
            )
        exposures = logs.exposures.model_copy(update={"only": {**only, self.column: self.value}})
        return _plain(
            settings, metrics=_none(settings), logs=logs.model_copy(update={"exposures": exposures})
        )

    def own(self, results: Iterable[Result]) -> list[Result]:
        """The rules and metrics of this side, without the labels of its slice and without groups of users."""
        if not self.column:
            return [one for one in results if one.labels.get(_DIMENSION) != USER_GROUP]
        here = {_DIMENSION: self.column, _VALUE: self.value}.items()
        return [
            replace(one, labels={key: value for key, value in one.labels.items() if (key, value) not in here})
            for one in results
            if one.kind is ResultKind.RULE or here <= one.labels.items()
        ]


def by_group(results: Iterable[Result]) -> dict[Key, dict[str, float]]:
    """The metrics of the random groups of users: what is measured -> group -> value, if it has one."""
    found: dict[Key, dict[str, float]] = {}
    for one in results:
        if one.labels.get(_DIMENSION) == USER_GROUP and one.value is not None:
            labels = {key: value for key, value in one.labels.items() if key not in (_DIMENSION, _VALUE)}
            found.setdefault(key_of(replace(one, labels=labels)), {})[one.labels[_VALUE]] = one.value
    return found


def correlations(one: Iterable[Result], other: Iterable[Result]) -> dict[Key, float]:
    """How the values of two whole sides vary together, where they clearly do."""
    groups, others = by_group(one), by_group(other)
    found = {
        key: cautious_correlation([a[name] for name in both], [b[name] for name in both])
        for key, a in groups.items()
        for b in [others.get(key, {})]
        for both in [sorted(a.keys() & b.keys() - {NONE})]
    }
    return {key: value for key, value in found.items() if value}


def _plain(settings: RecommenderSettings, **update: object) -> RecommenderSettings:
    """The settings without all that is neither a rule nor a metric of what was shown."""
    logs = settings.logs.model_copy(update={"samples": None})
    plain = {"logs": logs, "slices": SliceSettings(), "experiments": (), "health": None, "objectives": ()}
    return settings.model_copy(update=plain | update)


def _none(settings: RecommenderSettings) -> object:
    return settings.metrics.model_copy(update={"disable": tuple(SPECS)})
