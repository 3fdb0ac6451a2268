"""The users have one row each, with the requested columns."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import pytest

from monitor.logs.source import Source
from monitor.settings.logs import LogsSettings, TimeSettings
from tests.logs.conftest import NOW


@pytest.fixture
def users(tmp_path, engine):
    def read(*columns):
        paths = {"exposures": {"path": "none"}, "users": {"path": str(tmp_path / "users*")}}
        source = Source(LogsSettings.model_validate(paths), TimeSettings())
        source.logs["users"].refresh(engine, NOW + timedelta(days=1))
        table = source.load_users(engine, table="users", columns=columns)
        return [] if table is None else table.execute().sort_values("user_id").to_dict("records")

    return read


def test_the_newest_snapshot_of_a_user_wins(written, users):
    written("users-1.parquet", pd.DataFrame({"user_id": ["u", "v"], "plan": ["free", "free"]}), NOW)
    written("users-0.parquet", pd.DataFrame({"user_id": ["u"], "plan": ["paid"]}), NOW + timedelta(hours=1))
    assert users("plan") == [{"user_id": "u", "plan": "paid"}, {"user_id": "v", "plan": "free"}]


def test_only_the_requested_columns_are_read(written, users):
    written("users.csv", "user_id,plan,country\nu,free,NL\n,free,NL\n")
    assert users("country", "no_such") == [{"user_id": "u", "country": "NL"}]


def test_users_have_no_windows_and_equal_files_are_not_duplicates(written, tmp_path, engine):
    for name in ("users-0.csv", "users-1.csv"):
        written(name, "user_id,ts\nu,2026-01-01T00:00:00Z\n")
    paths = {"exposures": {"path": "none"}, "users": {"path": str(tmp_path / "users*")}}
    log = Source(LogsSettings.model_validate(paths), TimeSettings()).logs["users"]
    log.refresh(engine, NOW + timedelta(days=1))
    assert not log.has_windows
    assert log.watermark is None
    assert (len(log.read_entries), log.skipped) == (2, ())
