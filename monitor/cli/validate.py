"""The work of `validate`: checks the config, its rules, and a bounded part of its logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from monitor.cli.terminal import progress
from monitor.config.checks.check import Checked
from monitor.config.load import load_checked
from monitor.config.problems import ConfigError, Problem
from monitor.config.validate.findings import ConfigFinding, Level, Reporter
from monitor.config.validate.named_columns import rules_without_ground
from monitor.core.text import plural
from monitor.models.scorer import ScorerError, load_scorer
from monitor.service.web.web_config import WebConfigError, load_web_config
from monitor.settings.config import Config

_DAYS_AHEAD: Final = 366
_DAYS_SHOWN: Final = 4


def validate(path: Path, *, with_logs: bool) -> list[ConfigFinding]:
    """The findings on a config, its rules and its logs. Writes nothing.

    Raises:
        ConfigError: the config is not well formed.
    """
    config, checked = load_checked(path)
    found = list(of_problems(_of_config(config, checked)))
    if not found:
        rules = sum(len(one.rules) for one in checked)
        text = f"{plural(len(config.recommenders), 'recommender')}, {plural(rules, 'rule')}"
        found.append(ConfigFinding(Level.OK, "", "", "config", text))
    now = datetime.now(UTC)
    for number, one in enumerate(checked):
        where, name = f"recommenders[{number}]", one.settings.name
        with progress(0, f"{name}: reading the logs") as step:
            if with_logs:
                from monitor.config.validate.look_at_logs import look_at_logs

                found += look_at_logs(config.engine, one, where, now, step)
            else:
                found += rules_without_ground(name, where, one.settings, one.rules, None)
        found += _scorer(one, where)
        found += _days_off(one, now)
    known = {one.place for one in found if one.check == "config"}
    return _by_log([one for one in found if one.check == "config" or not one.place or one.place not in known])


def of_problems(problems: Iterable[Problem]) -> Iterator[ConfigFinding]:
    """The findings on the config itself."""
    for one in problems:
        yield ConfigFinding(Level.PROBLEM, "", "", "config", one.message, one.place)


def _by_log(found: Sequence[ConfigFinding]) -> list[ConfigFinding]:
    """The findings grouped by log, in the order of the logs."""
    groups: dict[tuple[str, str], list[ConfigFinding]] = {}
    for one in found:
        groups.setdefault((one.recommender, one.log), []).append(one)
    return [one for group in groups.values() for one in group]


def _of_config(config: Config, checked: Sequence[Checked]) -> Iterator[Problem]:
    for one in checked:
        yield from one.problems
    if config.server.web_config is not None:
        try:
            load_web_config(config.server.web_config)
        except WebConfigError as exc:
            yield from (Problem("server.web_config", line) for line in str(exc).splitlines())


def _scorer(checked: Checked, where: str) -> Iterator[ConfigFinding]:
    models = checked.settings.models
    if models.scorer is None:
        return
    say = Reporter(checked.settings.name, "", "")
    try:
        load_scorer(models.scorer)
    except ScorerError as exc:
        yield say.problem("scorer", str(exc), f"{where}.models.scorer")
    else:
        yield say.ok("scorer", f"{models.scorer} can be imported")


def _days_off(checked: Checked, now: datetime) -> Iterator[ConfigFinding]:
    """The next days that count as a Sunday, so that a wrong country is noticed."""
    bands = checked.settings.bands
    if bands is None or not (bands.country or bands.holidays):
        return
    today = now.astimezone(bands.zone).date()
    days, days_off = (str(today + timedelta(days=number)) for number in range(_DAYS_AHEAD)), bands.days_off
    following = list(islice((day for day in days if day in days_off), _DAYS_SHOWN))
    say = Reporter(checked.settings.name, "", "")
    yield say.ok("bands", f"the next days that count as a Sunday: {', '.join(following) or 'none'}")


def problems_of(path: Path, found: Sequence[ConfigFinding]) -> ConfigError | None:
    """The problems as one error, None if there are none."""
    problems = dict.fromkeys(one.as_problem() for one in found if one.level is Level.PROBLEM)
    return ConfigError(path, problems) if problems else None


def as_json(found: Sequence[ConfigFinding]) -> str:
    """The findings as a list of objects: level, recommender, log, check, detail, place."""
    return json.dumps([asdict(one) for one in found], indent=2)


def as_lines(path: Path, found: Sequence[ConfigFinding]) -> Iterator[str]:
    """The report for people: a heading for each log, a line for each finding."""
    heading = None
    for one in found:
        above = " ".join(part for part in (one.recommender, one.log) if part)
        if above != heading and above:
            yield f"{above}:"
        heading = above
        yield f"  {one.level:<8} {one.check:<8} {one.detail}"
    warnings = sum(one.level is Level.WARNING for one in found)
    if not any(one.level is Level.PROBLEM for one in found):
        yield f"{path}: good" + (f", with {plural(warnings, 'warning')}" if warnings else "")
