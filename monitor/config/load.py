"""Read a config file: YAML, then environment and secret files, then the models, then its paths.

All mistakes are reported at once, each with its place and a hint: mistakes of form, and what makes no sense
in the well-formed parts (see `check`).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import SecretStr, ValidationError
from sqlalchemy import URL

from monitor.config.explain import explain, places_of
from monitor.config.fill import Filler
from monitor.config.problems import ConfigError, Problem, is_within, show_place
from monitor.config.secrets import keep_secrets
from monitor.core.settings import Settings
from monitor.core.yaml_text import YamlProblem, read_yaml
from monitor.settings.config import Config
from monitor.settings.history import parse_url
from monitor.settings.logs import LogSettings
from monitor.settings.on_call import OnCallSettings
from monitor.settings.platform import Measured, parse_sql_url
from monitor.settings.recommender import RecommenderSettings

if TYPE_CHECKING:
    from monitor.config.checks.check import Checked

_Measured = TypeVar("_Measured", bound=Measured)
_Model = TypeVar("_Model", bound=Settings)
_EXAMPLE = "a config is a mapping that has at least `recommenders`; `recsys-monitor init LOGFILE` writes one"


def load_config(path: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """Read and check a config; paths in it are relative to its folder.

    Raises:
        ConfigError: with every problem found.
    """
    return _filled(read_config(path), path, environment)[0]


def load_checked(path: Path, environment: Mapping[str, str] = os.environ) -> tuple[Config, list[Checked]]:
    """A well-formed config, and its recommenders with their rules or with their problems.

    Raises:
        ConfigError: it is not well formed; with all problems, those of sense too.
    """
    return checked_values(read_config(path), path, environment)


def checked_values(
    values: Mapping[Any, Any], path: Path, environment: Mapping[str, str] = os.environ
) -> tuple[Config, list[Checked]]:
    """As `load_checked`, of values that were read or made elsewhere; `path` names them in messages."""
    from monitor.config.checks.check import Checked, check_config  # takes seconds, as it loads the rules

    config, filler = _filled(values, path, environment)
    return config, [
        Checked(one.settings, one.rules, tuple(_hidden(one.problems, filler)))
        for one in check_config(config, path.parent.absolute())
    ]


def _filled(raw: Mapping[Any, Any], path: Path, environment: Mapping[str, str]) -> tuple[Config, Filler]:
    filler = Filler(path.parent, environment)
    values = filler.fill(dict(raw))
    mistakes = [(place, False) for place in filler.wrong]
    problems = list(filler.problems)
    try:
        config = Config.model_validate(values)
    except ValidationError as exc:
        known = {show_place(place) for place in filler.wrong}
        further = explain(exc, Config, hide=filler.hide, is_filled=filler.is_filled)
        problems += [one for one in further if not any(is_within(one.place, place) for place in known)]
        mistakes += places_of(exc, Config)
    if mistakes:
        from monitor.config.checks.parts import Mistake, senseless_parts

        found = senseless_parts(values, [Mistake(*one) for one in mistakes], path.parent.absolute())
        raise ConfigError(path, dict.fromkeys([*problems, *_hidden(found, filler)]))
    if config.server.export:
        from monitor.config.checks.check import check_config
        from monitor.config.checks.server import check_server  # takes a second, as it loads the catalogue

        if found := list(check_server(config.server)):
            found += [one for each in check_config(config, path.parent.absolute()) for one in each.problems]
            raise ConfigError(path, dict.fromkeys(_hidden(found, filler)))
    keep_secrets(config, filler)
    return _absolute(config, path.parent.absolute()), filler


def _hidden(problems: Iterable[Problem], filler: Filler) -> Iterator[Problem]:
    """The problems without values from the environment or from files."""
    return (Problem(one.place, filler.hide(one.message, one.place)) for one in problems)


def read_config(path: Path) -> dict[Any, Any]:
    """The values of a config file as they are written. Raises ConfigError if it is no mapping in YAML."""

    def wrong(message: str, place: str = "") -> ConfigError:
        return ConfigError(path, [Problem(place, message)])

    try:
        raw = read_yaml(path)
    except YamlProblem as exc:
        raise wrong(exc.message, exc.place) from None
    if raw is None:
        raise wrong(f"the file is empty; {_EXAMPLE}")
    if not isinstance(raw, dict):
        kind = {"list": "a list", "str": "text"}.get(type(raw).__name__, "a single value")
        raise wrong(f"this is {kind}; {_EXAMPLE}")
    return raw


def _absolute(config: Config, folder: Path) -> Config:
    """Make the paths of a config independent of where the process was started."""

    def path(one: str) -> str:
        if "://" in one or Path(one).is_absolute():
            return one
        return str(Path(glob.escape(str(folder))) / one)  # the folder's own name is no pattern

    def log(settings: LogSettings) -> LogSettings:
        if settings.has_catalog:
            return settings
        if settings.is_table:  # a table's path is no pattern
            places = (one if "://" in one else str(folder / one) for one in settings.paths)
            return settings.model_copy(update={"path": tuple(places)})
        return settings.model_copy(update={"path": tuple(path(one) for one in settings.paths)})

    def recommender(one: RecommenderSettings) -> RecommenderSettings:
        logs = {name: log(settings) for name, settings in one.logs.named().items()}
        replay = one.replay
        if replay is not None and replay.requests is not None:
            replay = replay.model_copy(update={"requests": log(replay.requests)})
        update: dict[str, Any] = {"logs": one.logs.model_copy(update=logs), "replay": replay}
        if one.platform is not None:
            own = one.platform.own
            systems = tuple(measured(each) for each in one.platform.systems)
            own = own if own is None else measured(own)
            demand = one.platform.demand
            demand = demand if demand is None else measured(demand)
            update["platform"] = one.platform.model_copy(
                update={"own": own, "systems": systems, "demand": demand}
            )
        return one.model_copy(update=update)

    def measured(one: _Measured) -> _Measured:
        if one.log is not None:
            return one.model_copy(update={"log": log(one.log)})
        if one.sql is not None:
            url = _absolute_url(one.sql.url, folder, parse_sql_url)
            return one.model_copy(update={"sql": one.sql.model_copy(update={"url": url})})
        if one.prometheus is None:
            return one
        return one.model_copy(update={"prometheus": _with_files(one.prometheus, folder)})

    server = config.server
    if server.web_config is not None:
        server = server.model_copy(update={"web_config": folder / server.web_config})
    history = config.history
    if history.url is not None:
        history = history.model_copy(update={"url": _absolute_url(history.url, folder, parse_url)})
    reports = config.reports
    if reports is not None:
        reports = reports.model_copy(update={"folder": folder / reports.folder})
    return config.model_copy(
        update={
            "reports": reports,
            "state": folder / config.state,
            "history": history,
            "on_call": _absolute_on_call(config.on_call, folder),
            "recommenders": tuple(map(recommender, config.recommenders)),
            "server": server,
        }
    )


def _with_files(settings: _Model, folder: Path) -> _Model:
    """The settings with the paths of their files of secrets made absolute."""
    files = {
        name: str(folder / path)
        for name in type(settings).model_fields
        if name.endswith("_file") and (path := getattr(settings, name)) is not None
    }
    return settings.model_copy(update=files)


def _absolute_on_call(settings: OnCallSettings, folder: Path) -> OnCallSettings:
    alertmanager, relay = settings.alertmanager, settings.relay
    if alertmanager is not None:
        alertmanager = _with_files(alertmanager, folder)
    if relay is not None:
        targets = tuple(_with_files(one, folder) for one in relay.targets)
        relay = _with_files(relay, folder).model_copy(update={"targets": targets})
    return settings.model_copy(update={"alertmanager": alertmanager, "relay": relay})


def _absolute_url(secret: SecretStr, folder: Path, parse: Callable[[str], URL]) -> SecretStr:
    """A SQLite file's path made absolute; any other URL as it is."""
    url = parse(secret.get_secret_value())
    if url.get_backend_name() != "sqlite" or url.database is None or url.database.startswith("file:"):
        return secret
    whole = url.set(database=str(folder / url.database))
    return SecretStr(whole.render_as_string(hide_password=False))
