"""The work of `forecast`: study the past days, forecast a candidate, and say what came of older forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import typer

from monitor.cli.export import check_name, who_lacks
from monitor.cli.judge import load
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED, fail
from monitor.core.results import Status
from monitor.core.text import quoted
from monitor.forecast.candidate import Forecast, GivenValue, forecasts_of
from monitor.forecast.outcomes import newly_decided
from monitor.forecast.series import parse_values
from monitor.forecast.study import study
from monitor.history.store import Store
from monitor.report.forecast import ForecastReport
from monitor.settings.config import Config
from monitor.settings.history import parse_url
from monitor.settings.recommender import RecommenderSettings

Times = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command. `is_model`: whether the candidate is a model."""

    only: str | None
    times: Times
    candidate: str = ""
    is_model: bool = False
    given: Sequence[GivenValue] = ()

    @classmethod
    def of(
        cls, only: str | None, times: Times, candidate: str | None, model: str | None, at: Sequence[str]
    ) -> Self:
        """Checked options of the command line. Raises a usage error."""
        if candidate is not None and model is not None:
            raise typer.BadParameter("give --candidate or --model, not both", param_hint="--candidate")
        for name, option in ((candidate, "--candidate"), (model, "--model")):
            if name is not None and not name.strip():
                raise typer.BadParameter("is empty", param_hint=option)
        try:
            given = parse_values(tuple(at))
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--at") from None
        return cls(only, times, candidate or model or "", model is not None, given)

    @property
    def has_candidate(self) -> bool:
        return bool(self.candidate or self.given)


def forecasts(path: Path, asked: Asked) -> tuple[list[ForecastReport], int]:
    """A report for each recommender with a forecast, and the exit code.

    New forecasts are stored, but not those of a chosen span: their candidate may be online for long.
    """
    config, _ = load(path)
    chosen = _chosen(config, asked)
    with _opened(config) as store:
        reports = [_report(store, config, one, asked) for one in chosen]
    return reports, _code(reports)


def _opened(config: Config) -> Store:
    """The history of the config, to read it and to store forecasts; an error if there is none yet."""
    location = config.history.location(config.state)
    url = parse_url(location)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
        fail(f"there is no history at {url.database}; `recsys-monitor run` and `backfill` write one")
    return Store.open(location)


def _chosen(config: Config, asked: Asked) -> list[RecommenderSettings]:
    """The recommenders that are asked for; exactly one if there is a candidate."""
    if asked.only is not None:
        check_name(asked.only, config)
    if asked.candidate and not asked.is_model:
        check_name(asked.candidate, config, "--candidate")
    if asked.is_model and asked.candidate in [one.name for one in config.recommenders]:
        raise typer.BadParameter(
            f"{quoted(asked.candidate)} is a recommender of the config; name it with --candidate",
            param_hint="--model",
        )
    named = [one for one in config.recommenders if asked.only in (None, one.name)]
    chosen = [one for one in named if one.forecast is not None]
    if not chosen:
        fail(f"{who_lacks(asked.only)} a `forecast`; docs/forecast.md says how to write one")
    if asked.has_candidate and len(chosen) > 1:
        names = ", ".join(one.name for one in chosen)
        raise typer.BadParameter(
            f"whose past should the forecast rest on? Name one of {names}", param_hint="--recommender"
        )
    if asked.candidate == chosen[0].name and not asked.is_model:
        raise typer.BadParameter(
            "the forecast rests on the past of this recommender; name another one, or a --model",
            param_hint="--candidate",
        )
    return chosen


def _report(store: Store, config: Config, settings: RecommenderSettings, asked: Asked) -> ForecastReport:
    now = datetime.now(UTC).replace(microsecond=0)
    since, until = asked.times
    everybody = config.recommenders
    if decided := newly_decided(store, study(store, settings), everybody, now):
        store.decide_forecasts(decided)
    found = study(store, settings, until, since)
    made: list[Forecast] = []
    if asked.has_candidate:
        made = forecasts_of(store, found, asked.candidate, everybody=everybody, given=asked.given)
        for one in made:
            if one.can_come_true and (since, until) == (None, None):
                store.put_forecast(one.stored(now))
    return ForecastReport(found, made, store.forecasts(recommenders=[settings.name]))


def _code(reports: Sequence[ForecastReport]) -> int:
    pairs = [pair for one in reports for pair in one.study.pairs]
    if any(one.is_used and one.status is Status.VIOLATED for one in pairs):
        return VIOLATED
    made = [one.status for report in reports for one in report.forecasts]
    asked = made or [one.status for one in pairs]
    return OK if Status.OK in asked else NOT_JUDGED
