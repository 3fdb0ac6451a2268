"""Read a config file: YAML, then environment and secret files, then the models, then its paths.

Every mistake of a stage is reported at once, each with its place and a hint. Whether a config that can
be read makes sense is the part of `check`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from monitor.config.explain import explain
from monitor.config.fill import Filler
from monitor.config.models import Config
from monitor.config.problems import ConfigError, Problem, show_place
from monitor.history.settings import parse_url
from monitor.logs.settings import LogSettings
from monitor.yaml_text import YamlProblem, read_yaml

__all__ = ["ConfigError", "Problem", "load_config", "show_place"]

_EXAMPLE = "a config is a mapping that has at least `recommenders`; `recsys-monitor init LOGFILE` writes one"


def load_config(path: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """Read and check a config; paths in it are relative to its folder.

    Raises:
        ConfigError: with every problem found.
    """
    raw = _read(path)
    filler = Filler(path.parent, environment)
    values = filler.fill(raw)
    if filler.problems:
        raise ConfigError(path, dict.fromkeys(filler.problems))
    try:
        config = Config.model_validate(values)
    except ValidationError as exc:
        problems = explain(exc, Config, hide=filler.hide, is_filled=filler.is_filled)
        raise ConfigError(path, problems) from None
    return _absolute(config, path.parent.absolute())


def _read(path: Path) -> dict[Any, Any]:
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

    def log(settings: LogSettings | None) -> LogSettings | None:
        if settings is None:
            return None
        return settings.model_copy(update={"path": tuple(path(one) for one in settings.paths)})

    recommenders = tuple(
        one.model_copy(
            update={
                "logs": one.logs.model_copy(
                    update={name: log(getattr(one.logs, name)) for name in type(one.logs).model_fields}
                )
            }
        )
        for one in config.recommenders
    )
    server = config.server
    if server.web_config is not None:
        server = server.model_copy(update={"web_config": folder / server.web_config})
    history = config.history
    if history.url is not None:
        history = history.model_copy(update={"url": _absolute_url(history.url, folder)})
    return config.model_copy(
        update={
            "state": folder / config.state,
            "history": history,
            "recommenders": recommenders,
            "server": server,
        }
    )


def _absolute_url(secret: SecretStr, folder: Path) -> SecretStr:
    """A SQLite file's path made absolute; any other URL as it is."""
    url = parse_url(secret.get_secret_value())
    if url.get_backend_name() != "sqlite" or url.database is None or url.database.startswith("file:"):
        return secret
    whole = url.set(database=str(folder / url.database))
    return SecretStr(whole.render_as_string(hide_password=False))
