"""The work of `history export`. It loads no rules and no engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import typer

from monitor.config.load import load_config
from monitor.core.text import quoted
from monitor.history.readonly import ReadOnlyHistory
from monitor.report.result_json import result_as_json
from monitor.settings.config import Config


def export(path: Path, first: datetime | None, last: datetime | None, only: str | None) -> Iterator[str]:
    """Every stored result as a line of JSON."""
    config = load_config(path)
    if only is not None:
        check_name(only, config)
    with open_history(config) as store:
        for one in store.results(recommenders=[only] if only else None, start=first, end=last):
            line = result_as_json(one.recommender, one.check, one.window, one.result)
            yield json.dumps(line, ensure_ascii=True)


def open_history(config: Config) -> ReadOnlyHistory:
    """The history of the config, which stays as it is. Raises StoreError if there is none yet."""
    return ReadOnlyHistory.open(config.history.location(config.state))


def who_lacks(only: str | None) -> str:
    """The subject and verb of an error on a part of the config that is missing.

    >>> who_lacks(None), who_lacks("shop")
    ('no recommender of this config has', "'shop' does not have")
    """
    return "no recommender of this config has" if only is None else f"{quoted(only)} does not have"


def check_name(name: str, config: Config, option: str = "--recommender") -> None:
    """Raise a usage error if no recommender of the config has this name."""
    names = [one.name for one in config.recommenders]
    if name not in names:
        raise typer.BadParameter(
            f"no recommender is called {name!r}; there are: {', '.join(names)}", param_hint=option
        )
