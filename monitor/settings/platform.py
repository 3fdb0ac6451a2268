"""The settings of a platform: its totals, the systems around the recommender, and what is zero-sum."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator
from sqlalchemy import URL

from monitor.core.settings import Duration, Name, PositiveDuration, Settings, TimeZone
from monitor.settings.access import HttpServer
from monitor.settings.database import database_url
from monitor.settings.logs import LogSettings

OWN: Final = "recommender"
ALL: Final = "platform"
OTHERS: Final = "others"
DEMAND: Final = "demand"
RESERVED: Final = (OWN, ALL, OTHERS, DEMAND)
"""The results use these names: the recommender, the platform, all but the recommender, how many came."""
_DAY: Final = timedelta(days=1)
_HINT: Final = "write it as postgresql://user:password@host:5432/database or sqlite:///folder/file.sqlite"


def parse_sql_url(text: str) -> URL:
    """The URL of a database with the driver that is shipped. An error never repeats the URL.

    >>> parse_sql_url("postgresql://me@db/shop").drivername
    'postgresql+psycopg'
    """
    return database_url(text, hint=_HINT, in_memory="a database in memory is empty")


def _checked_url(value: SecretStr) -> SecretStr:
    parse_sql_url(value.get_secret_value())
    return value


def _whole_days(value: timedelta) -> timedelta:
    if value % _DAY or value < _DAY:
        raise ValueError("must be whole days, as 7d")
    return value


Days = Annotated[Duration, AfterValidator(_whole_days)]


class TotalSettings(Settings):
    """How rows of a log become a total of a day."""

    event: str | None = Field(
        None, min_length=1, max_length=200, description="only rows with this event; default: every row"
    )
    add: Literal["rows", "value"] = Field("rows", description="count the rows, or add up their `value`")


class SqlSystem(Settings):
    """A query that gives the totals of each day."""

    url: Annotated[SecretStr, AfterValidator(_checked_url)] = Field(
        description="the database, sqlite or postgresql; its password is never shown"
    )
    query: str = Field(
        min_length=1,
        max_length=20_000,
        description="gives one row a day: `day` and a column for each total. It may use :first and :last, "
        "the first day that is needed and the day after the last one",
    )
    totals: tuple[str, ...] = Field(
        (), max_length=10, description="the totals that the query gives; default: all of the platform"
    )


class PrometheusSystem(HttpServer):
    """Queries to a Prometheus, or to anything with its HTTP API, that give the totals of each day."""

    queries: dict[str, Annotated[str, Field(min_length=1, max_length=10_000)]] = Field(
        min_length=1,
        max_length=10,
        description="the total: a PromQL expression of one series, evaluated at the end of each day, such as "
        "sum(increase(search_orders_total[1d]))",
    )


class PlatformLog(LogSettings):
    """A log of what a system did: ts, and event, value and user_id where totals or experiments need them."""

    totals: dict[str, TotalSettings] = Field(
        default_factory=dict,
        max_length=10,
        description="how this log gives a total, if its events have other names than those of the platform",
    )


class Measured(Settings):
    """Where the totals of a system come from: exactly one of log, sql and prometheus."""

    log: PlatformLog | None = None
    sql: SqlSystem | None = None
    prometheus: PrometheusSystem | None = None

    @model_validator(mode="after")
    def _is_measured_in_one_way(self) -> Measured:
        if sum(one is not None for one in (self.log, self.sql, self.prometheus)) != 1:
            raise ValueError("has exactly one of log, sql and prometheus")
        return self


class SystemSettings(Measured):
    """A system of the platform beside the recommender: search, ads, another recommender."""

    name: Name
    whole: bool = Field(
        False,
        description="true: these are the totals of the whole platform, with the recommender; at most one "
        "system. Without one, the platform is the recommender and its neighbours added up",
    )


class DemandSettings(Measured):
    """How many came: visits, sessions, users. A query gives it as `demand`."""

    event: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="of a log: only rows with this event; default: every row",
    )
    add: Literal["rows", "value"] = Field(
        "rows", description="of a log: count the rows, or add up their `value`"
    )


class PlatformSettings(Settings):
    """The platform around a recommender, see docs/platform.md."""

    totals: dict[Name, TotalSettings] = Field(
        min_length=1,
        max_length=10,
        description="what is added up for each day: orders, gmv, dwell; each with the event that counts",
    )
    own: Measured | None = Field(
        None, description="where the recommender's own totals come from; default: its feedback"
    )
    systems: tuple[SystemSettings, ...] = Field(min_length=1, max_length=10)
    demand: DemandSettings | None = Field(
        None,
        description="how many came on each day, for example visits. Systems are then compared at equal "
        "demand, which shows far smaller shifts. It must not depend on the recommender. Default: absolute "
        "totals",
    )
    timezone: TimeZone | None = Field(
        None, description="the zone whose days are added up; default: that of `bands`, else UTC"
    )
    recent: Days = Field(timedelta(days=7), description="the days that are judged together")
    before: Days = Field(timedelta(days=28), description="the days before them, which they are compared with")
    least_gain: float = Field(
        0.5,
        gt=0,
        le=1,
        description="zero-sum: the platform surely gains less than this part of what the recommender gains",
    )
    confidence: float = Field(
        0.95, ge=0.8, le=0.9999, description="of each interval here, and so of each verdict"
    )
    wait: Duration = Field(
        timedelta(hours=6),
        description="how long after its end a day may wait for late systems before it is judged without them",
    )
    timeout: PositiveDuration = Field(
        timedelta(seconds=30), description="a query that takes longer is given up; an hour at most"
    )

    def totals_of(self, measured: Measured | None) -> dict[str, TotalSettings]:
        """How rows of a log become each total."""
        if isinstance(measured, DemandSettings):
            return {DEMAND: TotalSettings(event=measured.event, add=measured.add)}
        own = measured.log.totals if measured is not None and measured.log is not None else {}
        return {total: own.get(total, settings) for total, settings in self.totals.items()}

    @property
    def measured(self) -> dict[str, Measured | None]:
        """Everything that is measured, by name; None: the recommender's own feedback."""
        found: dict[str, Measured | None] = {OWN: self.own, **{one.name: one for one in self.systems}}
        return found | ({DEMAND: self.demand} if self.demand is not None else {})

    def given_by(self, measured: Measured | None) -> tuple[str, ...]:
        """The totals that a system gives, in the order of the platform."""
        if isinstance(measured, DemandSettings):
            return (DEMAND,)
        if measured is not None and measured.sql is not None and measured.sql.totals:
            return tuple(one for one in self.totals if one in measured.sql.totals)
        if measured is not None and measured.prometheus is not None:
            return tuple(one for one in self.totals if one in measured.prometheus.queries)
        return tuple(self.totals)

    @property
    def whole(self) -> SystemSettings | None:
        """The system that is the whole platform, if one is."""
        return next((one for one in self.systems if one.whole), None)

    @property
    def neighbours(self) -> tuple[SystemSettings, ...]:
        return tuple(one for one in self.systems if not one.whole)
