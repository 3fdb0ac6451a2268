"""Does a well-formed config make sense? The checks that need more than one setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fsspec import available_protocols

from monitor.config.checks.bands import check_bands
from monitor.config.checks.engine import check_engine
from monitor.config.checks.experiments import check_experiments
from monitor.config.checks.forecast import check_forecast
from monitor.config.checks.gate import check_gate
from monitor.config.checks.health import check_health
from monitor.config.checks.models import check_models, check_without_exposures
from monitor.config.checks.objectives import check_objectives, unknown_metric
from monitor.config.checks.platform import check_platform
from monitor.config.checks.replay import check_replay
from monitor.config.checks.rollups import check_rollups
from monitor.config.checks.slices import check_slices
from monitor.config.checks.survey import check_survey
from monitor.config.problems import Problem, nearest
from monitor.core.columns import CATALOG, FEEDBACK, REQUESTS, REQUIRED, TYPES
from monitor.core.settings import show_duration
from monitor.core.text import NAME_LENGTH, quoted
from monitor.logs.lake.table import EXTRA
from monitor.metrics.catalogue import SPECS
from monitor.metrics.exposure.update_rate import UPDATE_RATE
from monitor.rules.rule import LoadedRule, SuiteErrors
from monitor.rules.suites import load_rules
from monitor.settings.config import Config
from monitor.settings.logs import LogSettings
from monitor.settings.recommender import RecommenderSettings

TODO = "TODO"
"""What `init` writes in place of a column that it did not find."""
_PACKAGES: Final = {"delta": "deltalake", "iceberg": "pyiceberg"}
_MOST_WINDOWS = 400
_MOST_CATCH_UP = 10_000
_LONGEST_CATCH_UP = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Checked:
    """A recommender with its rules, or with the problems that keep it from running."""

    settings: RecommenderSettings
    rules: tuple[LoadedRule, ...] = ()
    problems: tuple[Problem, ...] = ()


def check_config(config: Config, folder: Path) -> list[Checked]:
    """Each recommender of the config with its rules loaded, or with every problem found."""
    return [_check(config, place, folder) for place in range(len(config.recommenders))]


def _check(config: Config, place: int, folder: Path) -> Checked:
    settings = config.recommenders[place]
    where = f"recommenders[{place}]"
    problems = [
        *_names(where, place, [one.name for one in config.recommenders]),
        *_times(where, settings, config.history.retention),
        *_logs(where, settings),
        *check_engine(where, config.engine, settings.logs),
        *_metrics(where, settings),
        *check_slices(f"{where}.slices", settings),
        *check_rollups(where, settings),
        *check_objectives(f"{where}.objectives", settings),
        *check_health(f"{where}.health", settings),
        *check_bands(f"{where}.bands", settings, config.history.retention),
        *check_experiments(f"{where}.experiments", settings),
        *check_models(f"{where}.models", settings),
        *check_forecast(f"{where}.forecast", settings, config.history.retention),
        *check_gate(f"{where}.gate", settings, config.recommenders),
        *check_replay(f"{where}.replay", settings),
        *check_platform(f"{where}.platform", settings, config.history.retention),
        *check_survey(f"{where}.survey", settings),
        *check_without_exposures(where, settings),
    ]
    rules: tuple[LoadedRule, ...] = ()
    try:
        rules = load_rules(settings.rules, folder, f"{where}.rules", dialect=config.engine.kind)
    except SuiteErrors as exc:
        problems += [
            Problem(one.source or f"{where}.rules", one.message if one.place == one.source else str(one))
            for one in exc.problems
        ]
    problems += _days(where, settings, rules)
    return Checked(settings, rules, tuple(dict.fromkeys(problems)))


def _names(where: str, place: int, names: Sequence[str]) -> Iterator[Problem]:
    name = names[place]
    if name in names[:place]:
        first = names.index(name)
        yield Problem(
            f"{where}.name",
            f"{name!r} is already the name of recommenders[{first}]; the history is stored by name",
        )


def _times(where: str, settings: RecommenderSettings, retention: timedelta) -> Iterator[Problem]:
    if settings.window < timedelta(seconds=1):
        yield Problem(f"{where}.window", "must be at least 1s")
        return
    if settings.every < timedelta(seconds=1):
        yield Problem(f"{where}.every", "must be at least 1s")
    for name, log in settings.logs.named().items():
        if log.stalled_after is not None and log.stalled_after < 2 * settings.every:
            yield Problem(
                f"{where}.logs.{name}.stalled_after",
                f"must be at least twice `every` ({show_duration(settings.every)}): the monitor sees new "
                "rows only when it looks at the log",
            )
    if settings.deadline < timedelta(seconds=1):
        yield Problem(f"{where}.deadline", "must be at least 1s")
    if settings.max_wait < settings.lateness:
        if "max_wait" in settings.model_fields_set:
            shorter = f"is shorter than lateness ({show_duration(settings.lateness)})"
            yield Problem(f"{where}.max_wait", f"{shorter}, so every window would be late")
        else:
            default = f"is longer than max_wait (by default {show_duration(settings.max_wait)})"
            yield Problem(f"{where}.lateness", f"{default}, so every window would be late; set max_wait too")
    yield from _reaches(where, settings, retention)
    too_far = settings.metrics.attribution > _MOST_WINDOWS * settings.window
    if too_far and settings.logs.feedback is not None:
        yield Problem(
            f"{where}.metrics.attribution",
            f"covers more than {_MOST_WINDOWS} windows of {show_duration(settings.window)}, and every window "
            "would read all of them again; make the window longer",
        )


def _reaches(where: str, settings: RecommenderSettings, retention: timedelta) -> Iterator[Problem]:
    """Settings that the window is too long for. A problem names a key that was written, never a default."""
    too_long = settings.window > retention
    if too_long:
        yield Problem(f"{where}.window", f"is longer than history.retention ({show_duration(retention)})")
    if settings.catch_up > _MOST_CATCH_UP:
        yield Problem(
            f"{where}.catch_up", f"must be at most {_MOST_CATCH_UP}; `backfill` judges longer spans"
        )
    elif settings.catch_up * settings.window > _LONGEST_CATCH_UP:
        back = f"reaches back {show_duration(settings.catch_up * settings.window)}; at most 10 years"
        if "catch_up" in settings.model_fields_set:
            yield Problem(f"{where}.catch_up", back)
        elif not too_long:
            default = f"catch_up (by default {settings.catch_up} windows) {back}"
            yield Problem(f"{where}.window", f"is so long that {default}; set catch_up lower")
    if settings.metrics.history < settings.window:
        if "history" in settings.metrics.model_fields_set:
            shorter = f"is shorter than the window ({show_duration(settings.window)})"
            yield Problem(f"{where}.metrics.history", f"{shorter}; it remembers whole windows")
        elif not too_long:
            default = f"is longer than metrics.history (by default {show_duration(settings.metrics.history)})"
            needed = f"set metrics.history to at least {show_duration(settings.window)}"
            yield Problem(f"{where}.window", f"{default}, which remembers whole windows; {needed}")


def _logs(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """Paths of an unknown protocol, columns that are still TODO, and wrong names of our columns."""
    places = [(f"{where}.logs.{name}", name, log) for name, log in settings.logs.named().items()]
    if settings.replay is not None and settings.replay.requests is not None:
        places.append((f"{where}.replay.{REQUESTS}", REQUESTS, settings.replay.requests))
    for place, name, log in places:
        if (package := _PACKAGES.get(log.format)) is not None and find_spec(package) is None:
            yield Problem(f"{place}.format", f"{log.format} needs the extra: {EXTRA}")
        for path in log.paths:
            yield from _protocol(f"{place}.path", path)
        yield from _renamed_only(place, name, log)
        for ours, theirs in log.columns.items():
            if theirs == TODO:
                rest = "; it is required" if ours in REQUIRED[name] else ", or delete the line"
                text = f"is still {TODO}; write the log's own name of this column{rest}"
                yield Problem(f"{place}.columns.{ours}", text)
            meant = nearest(ours, REQUIRED[name], cutoff=0.8)
            if meant is not None and meant != ours and meant not in log.columns:
                yield Problem(
                    f"{place}.columns.{ours}", f"the monitor has no such column; did you mean {meant}?"
                )


def _renamed_only(place: str, name: str, log: LogSettings) -> Iterator[Problem]:
    """The keys of `only` that are the file's name of a column which `columns` renames."""
    for asked in log.only:
        ours = next((one for one, theirs in log.columns.items() if theirs.lower() == asked.lower()), None)
        if ours is not None and asked not in log.columns and asked not in TYPES[name]:
            text = f"logs.{name}.columns gives this column the name {ours!r}; use that"
            yield Problem(f"{place}.only.{asked}", text)


def _protocol(place: str, path: str) -> Iterator[Problem]:
    protocol, colon, _ = path.partition("://")
    if colon and protocol not in (known := available_protocols()):
        close = nearest(protocol, known, cutoff=0.5)
        hint = f"did you mean {close}://?" if close else "such as s3://, gs:// and abfs://"
        yield Problem(place, f"{quoted(protocol, NAME_LENGTH)} is not a known file protocol; {hint}")


def _metrics(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    metrics, logs = settings.metrics, settings.logs.named()
    if metrics.similarity is not None and CATALOG not in logs:
        yield Problem(f"{where}.metrics.similarity", "needs logs.catalog, which is not given")
    if FEEDBACK not in logs:
        if metrics.popularity == "actions":
            yield Problem(f"{where}.metrics.popularity", "`actions` needs logs.feedback, which is not given")
        if metrics.action_events is not None:
            yield Problem(f"{where}.metrics.action_events", "needs logs.feedback, which is not given")
    if metrics.action_events == ():
        yield Problem(f"{where}.metrics.action_events", "is empty; leave it out to count every event")
    for number, name in enumerate(metrics.disable):
        if name not in SPECS:
            yield unknown_metric(f"{where}.metrics.disable[{number}]", name)


def _days(where: str, settings: RecommenderSettings, rules: Sequence[LoadedRule]) -> Iterator[Problem]:
    """Counts by day add up whole windows, so no window may lie in two days."""
    if settings.divides_a_day:
        return
    by_day = [f"rule {one.name}" for one in rules if one.table == "user_items_day"]
    by_day += [
        f"the objective on {one.metric} by day"
        for one in settings.objectives
        if one.metric == UPDATE_RATE.name and one.labels.get("by") == "day"
    ]
    if by_day and settings.window >= timedelta(seconds=1):
        yield Problem(
            f"{where}.window",
            f"{by_day[0]} counts by day, and windows of {show_duration(settings.window)} do not add up to a "
            "day; write 15m, 1h, 6h or 1d",
        )
