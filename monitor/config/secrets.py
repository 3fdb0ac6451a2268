"""Which values of a config are secrets, and what messages show in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from monitor.config.fill import Filler
from monitor.config.problems import KeyPath
from monitor.core.redaction import keep_secret
from monitor.settings.config import Config
from monitor.settings.history import parse_url
from monitor.settings.logs import LogSettings
from monitor.settings.platform import Measured, parse_sql_url
from monitor.settings.recommender import RecommenderSettings

HIDDEN = "***"
_SECRET_NAME = re.compile(r"(?i)secret|passw|token|credential|private|(?<![a-z])(key|pwd|sas|auth)(?![a-z])")
"""Names of variables and settings that hold a secret. `key` must be a word: PARTITIONKEY is no secret."""
_PLAIN_NAME = re.compile(r"(?i)endpoint(_url)?|region(_name)?")


def keep_secrets(config: Config, filler: Filler) -> None:
    """Hide the secrets of the config in all messages of this process.

    Secrets are: all texts in `storage_options` but endpoints and regions, which people on call need; in
    `catalog` those with a secret's name, and the password of its URL; the values of `secret_headers`; the
    password and the options of a database's URL; the salt; options of the engine with a secret's name; and
    every value from a secret file or from a variable with a secret's name. A message shows the reference of a
    secret, or `***`.
    """
    references: dict[str, str] = {}
    for place, pairs in filler.secrets.items():
        for reference, filled in pairs:
            references.setdefault(unquote(filled), reference)  # a password in a URL is written with %
            is_named = reference.startswith("${file:") or _SECRET_NAME.search(reference) is not None
            if (
                is_named
                or _holds_password(config, place, filled)
                or ("storage_options" in place and not _is_plain(place[-1]))
            ):
                keep_secret(filled, reference)
    for value in _secrets(config):
        keep_secret(value, references.get(value, HIDDEN))


def _secrets(config: Config) -> Iterator[str]:
    if config.history.url is not None:
        url = parse_url(config.history.url.get_secret_value())
        yield from _texts([url.password, *url.query.values()])
    if config.history.salt is not None:
        yield from _texts([config.history.salt.get_secret_value()])
    yield from (value for name, value in config.engine.options.items() if _SECRET_NAME.search(name))
    for recommender in config.recommenders:
        for log in recommender.logs.named().values():
            yield from _of_log(log)
        if recommender.replay is not None:
            for target in recommender.replay.targets:
                yield from target.secret_headers.get_secret_value().values()
            if recommender.replay.requests is not None:
                yield from _of_log(recommender.replay.requests)
        for system in _systems(recommender):
            if system.log is not None:
                yield from _of_log(system.log)
            if system.sql is not None:
                url = parse_sql_url(system.sql.url.get_secret_value())
                yield from _texts([url.password, *url.query.values()])


def _of_log(log: LogSettings) -> Iterator[str]:
    yield from _texts(log.storage_options.get_secret_value())
    for name, value in log.catalog.get_secret_value().items():
        if _SECRET_NAME.search(name):
            yield from _texts(value)
        elif isinstance(value, str) and "://" in value:
            yield from _password(value)


def _password(url: str) -> Iterator[str]:
    """The password of a URL; the whole text if it is no URL: nobody knows where a password would be in it."""
    try:
        password = urlsplit(url).password
    except ValueError:
        yield url
    else:
        yield from [unquote(password)] if password else []


def _systems(recommender: RecommenderSettings) -> Iterator[Measured]:
    """What a platform measures: the recommender itself, other systems, the demand."""
    platform = recommender.platform
    if platform is not None:
        yield from (one for one in platform.measured.values() if one is not None)


def _holds_password(config: Config, place: KeyPath, filled: str) -> bool:
    """Whether the value that was filled in at this place holds the password of a database's URL."""
    urls = [] if place != ("history", "url") else [config.history.url]
    if place[-2:] == ("sql", "url"):
        urls = [one.sql.url for each in config.recommenders for one in _systems(each) if one.sql is not None]
    passwords = [parse_sql_url(url.get_secret_value()).password for url in urls if url is not None]
    return any(password is not None and str(password) in unquote(filled) for password in passwords)


def _is_plain(name: object) -> bool:
    return isinstance(name, str) and _PLAIN_NAME.fullmatch(name) is not None


def _texts(value: Any) -> Iterator[str]:
    """Every text in a nested value, except plain settings such as endpoints."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            if not _is_plain(name):
                yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
