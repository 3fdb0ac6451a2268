"""One side of a comparison: a recommender, a part of its rows, and a span."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import ibis.expr.types as ir

from monitor.comparison.compare import Key, OfUsers, key_of
from monitor.core.columns import EXPOSURES, POSITION, REQUEST_ID
from monitor.core.errors import ExpectedError
from monitor.core.results import Result, ResultKind
from monitor.core.text import quoted
from monitor.metrics.catalogue import SPECS
from monitor.settings.recommender import (
    USER_GROUP,
    RecommenderSettings,
    SliceSettings,
    is_user_group,
    sliced_column,
    user_group_within,
)
from monitor.statistics.intervals import CONFIDENCE, quantile
from monitor.statistics.random_groups import cautious_correlation, error_by_groups
from monitor.window.slices import NONE, text_of

_HOW: Final = "write it as NAME, NAME:COLUMN=VALUE or NAME@2026-11-01/2026-11-08"
_MOST_VALUES: Final = 200
_DIMENSION, _VALUE = "dimension", "value"


class SideError(ExpectedError):
    """A side that cannot be read, or that has nothing to compare."""


@dataclass(frozen=True, slots=True)
class Side:
    """A recommender, the value of a column that its rows have, and its span if it has one of its own.

    The column may be any that the metrics can be sliced by. If its rows are a log of their own, one of
    several runs of a replay, `run` names the logs that have the column.
    """

    text: str
    recommender: str
    column: str = ""
    value: str = ""
    start: str = ""
    end: str = ""
    run: tuple[str, ...] = ()

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

    @property
    def is_part(self) -> bool:
        """Whether its rows are a part of a log whose other rows belong to it too."""
        return bool(self.column) and not self.run

    def as_run(self, logs: Iterable[str]) -> Side:
        """The same rows as a log of its own; `logs` are those that have the column."""
        return replace(self, run=tuple(logs))

    def rows(self, settings: RecommenderSettings) -> RecommenderSettings:
        """The settings whose logs hold only its rows, if it is a run; else the same settings.

        Raises SideError where the config leaves these rows out already.
        """
        return self._only(settings, self.run)

    def for_whole(
        self, settings: RecommenderSettings, *, slices: bool = False, metrics: Collection[str] = ()
    ) -> RecommenderSettings:
        """The settings under which the rules and metrics of a whole or of a run are judged.

        Args:
            settings: of the recommender.
            slices: whether its own slices are measured.
            metrics: the only metrics that groups of users are needed for; none: all.
        """
        by = SliceSettings(by=(USER_GROUP,), metrics=_known(metrics))
        if slices:
            by = settings.slices.model_copy(update={"by": (*settings.slices.by, USER_GROUP)})
        return _plain(self.rows(settings), slices=by)

    def for_metrics(
        self, settings: RecommenderSettings, *, metrics: Collection[str] = ()
    ) -> RecommenderSettings:
        """The settings under which the metrics of a part are measured.

        They are slices: an action must find its list among all lists.
        """
        by = (self.column, user_group_within(self.column, self.value))
        slices = SliceSettings(by=by, budget=_MOST_VALUES, metrics=_known(metrics))
        return _plain(settings, rules=(), slices=slices)

    def for_rules(self, settings: RecommenderSettings) -> RecommenderSettings | None:
        """The settings under which the rules judge only the rows of a part.

        None if no column of the exposures chooses them. Raises SideError as `rows` does.
        """
        if self.log != EXPOSURES:
            return None
        metrics = settings.metrics.model_copy(update={"disable": tuple(SPECS)})
        return _plain(self._only(settings, (EXPOSURES,)), metrics=metrics)

    @property
    def log(self) -> str | None:
        """The log whose column chooses the rows; None for a slice that is no column, and for a whole."""
        found = sliced_column(self.column) if self.column else None
        return None if found is None else found[0]

    def _only(self, settings: RecommenderSettings, logs: Iterable[str]) -> RecommenderSettings:
        update = {}
        for name in logs:
            log = getattr(settings.logs, name)
            if log.only.get(self.column, self.value) != self.value:
                raise SideError(
                    f"{quoted(self.text)}: logs.{name}.only of {quoted(self.recommender)} already chooses "
                    f"rows by {quoted(self.column)}"
                )
            update[name] = log.model_copy(update={"only": {**log.only, self.column: self.value}})
        return settings.model_copy(update={"logs": settings.logs.model_copy(update=update)})

    def own(self, results: Iterable[Result]) -> list[Result]:
        """The rules and metrics of this side, without the labels of its slice and without groups of users."""
        if not self.is_part:
            return [one for one in results if not is_of_group(one)]
        here = {_DIMENSION: self.column, _VALUE: self.value}.items()
        return [
            replace(one, labels={key: value for key, value in one.labels.items() if (key, value) not in here})
            for one in results
            if one.kind is ResultKind.RULE or here <= one.labels.items()
        ]


def requests_of_part(rows: ir.Table, column: str, value: str) -> tuple[int, int]:
    """How many requests a part of the rows has, and how many of them other rows answer too: another run.

    With positions it counts places of lists: a list that is blended from two sources has no place twice.

    Args:
        rows: exposures.
        column, value: the part.
    """
    rows = rows.filter(rows[REQUEST_ID].notnull())
    inside = (text_of(rows[column]) == value).fill_null(False)
    places = [REQUEST_ID, *([POSITION] if POSITION in rows.columns else [])]
    found = rows.aggregate(by=places, inside=inside.any(), outside=(~inside).any())
    counts = found.aggregate(
        inside=found.inside.cast("int64").sum(), both=(found.inside & found.outside).cast("int64").sum()
    )
    (row,) = counts.to_pyarrow().to_pylist()
    return int(row["inside"] or 0), int(row["both"] or 0)


def is_of_group(result: Result) -> bool:
    """Whether a result is of a random group of users, or of the rows without one."""
    return is_user_group(result.labels.get(_DIMENSION, ""))


def of_users(one: Sequence[Result], other: Sequence[Result]) -> dict[Key, OfUsers]:
    """What the random groups of users say of each metric of both sides.

    Args:
        one, other: the results of A and B, with those of the groups.
    """
    groups, others = _groups(one), _groups(other)
    wider, wider_other = _wider(one, groups), _wider(other, others)
    return {
        key: OfUsers(_correlation(groups.get(key, {}), others.get(key, {})), wider[key], wider_other[key])
        for key in wider.keys() & wider_other.keys()
    }


def _groups(results: Iterable[Result]) -> dict[Key, dict[str, Result]]:
    """What is measured -> group of users -> result, if it has a value."""
    found: dict[Key, dict[str, Result]] = {}
    for one in results:
        if is_of_group(one) and one.value is not None and one.labels[_VALUE] != NONE:
            labels = {key: value for key, value in one.labels.items() if key not in (_DIMENSION, _VALUE)}
            found.setdefault(key_of(replace(one, labels=labels)), {})[one.labels[_VALUE]] = one
    return found


def _correlation(one: Mapping[str, Result], other: Mapping[str, Result]) -> float:
    both = sorted(one.keys() & other.keys())
    a, b = ([float(side[group].value or 0.0) for group in both] for side in (one, other))
    return cautious_correlation(a, b)


def _wider(results: Iterable[Result], groups: Mapping[Key, Mapping[str, Result]]) -> dict[Key, float]:
    """How many times wider each metric's interval is by its groups of users than its own; 1 or more."""
    found = {}
    for one in results:
        key = key_of(one)
        if key not in groups or is_of_group(one) or one.lower is None or one.upper is None:
            continue
        own = groups[key].values()
        error = error_by_groups([of.value or 0.0 for of in own], [float(of.samples or 0) for of in own])
        half = (one.upper - one.lower) / 2
        found[key] = max(1.0, quantile(CONFIDENCE) * error / half) if error is not None and half > 0 else 1.0
    return found


def _plain(settings: RecommenderSettings, **update: object) -> RecommenderSettings:
    """The settings without all that is neither a rule nor a metric of what was shown."""
    logs = settings.logs.model_copy(update={"samples": None})
    plain = {"logs": logs, "slices": SliceSettings(), "experiments": (), "health": None, "objectives": ()}
    return settings.model_copy(update=plain | update)


def _known(metrics: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in metrics if name in SPECS)
