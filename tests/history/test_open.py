"""Opening a store: schema, versions, two processes at once, passwords, and what can go wrong."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from pydantic import ValidationError
from sqlalchemy import text

from monitor.core.results import Result, Status, Window
from monitor.history import migrate, schema
from monitor.history.errors import Fault, StoreError
from monitor.history.readonly import ReadOnlyHistory
from monitor.history.store import Store
from monitor.settings.history import HistorySettings, parse_url
from tests.history.recording import record

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
HOUR = Window.of(NOON, timedelta(hours=1))


def put(store: Store, count: int = 1, fingerprint: str = "a") -> None:
    results = [
        Result(metric=f"m{n}", status=Status.OK, definition="1", value=1.0, detail="x" * 1000)
        for n in range(count)
    ]
    record(store, HOUR, results, fingerprint=fingerprint, evaluated_at=NOON)


def test_the_migrations_make_exactly_the_tables_that_the_code_knows(store: Store) -> None:
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, schema.metadata) == []
        assert context.get_current_heads() == (schema.HEAD,)


def test_the_newest_migration_is_the_one_that_the_code_names() -> None:
    assert ScriptDirectory(str(migrate._SCRIPTS)).get_heads() == [schema.HEAD]


def test_a_store_of_a_newer_version_is_refused_and_left_alone(url: str) -> None:
    with Store.open(url) as store:
        put(store)
        with store._database.writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="9999, written by a newer version") as caught:
        Store.open(url)
    assert caught.value.fault is Fault.NEWER_SCHEMA


@pytest.mark.parametrize(
    ("version", "next_step"),
    [("9999", "written by a newer version"), ("0005", "start `recsys-monitor run` of this version")],
)
def test_a_reader_of_another_version_is_told_what_to_do(tmp_path: Path, version: str, next_step: str) -> None:
    path = tmp_path / "history.sqlite"
    with Store.open(path) as store, store._database.writing() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{version}'"))
    with pytest.raises(StoreError, match=f"has schema {version}, .*{next_step}"):
        ReadOnlyHistory.open(f"sqlite:///{path}")


def test_processes_that_open_a_new_store_at_once_all_get_it(url: str) -> None:
    script = "import sys; from monitor.history.store import Store; Store.open(sys.argv[1]).close()"
    running = [
        subprocess.Popen([sys.executable, "-c", script, url], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    errors = [process.communicate(timeout=60)[1] for process in running]
    assert [process.returncode for process in running] == [0] * 4, errors
    with Store.open(url) as store:
        put(store)


def test_an_upgrade_that_fails_leaves_the_old_schema(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripts = tmp_path / "migrations"
    (scripts / "versions").mkdir(parents=True)
    for number, before, body in [("0001", None, ""), ("0002", "0001", "op.execute('SELECT * FROM nowhere')")]:
        (scripts / "versions" / f"v{number}.py").write_text(
            "from alembic import op\nimport sqlalchemy as sa\n"
            f"revision, down_revision = {number!r}, {before!r}\n"
            f"def upgrade():\n    op.create_table('t{number}', sa.Column('a', sa.Integer))\n"
            f"    {body or 'pass'}\n"
        )
    monkeypatch.setattr(migrate, "_SCRIPTS", scripts)
    with pytest.raises(StoreError):
        Store.open(url)
    monkeypatch.undo()
    with Store.open(url) as store:  # had its version remained, the real first migration would not run
        put(store)


def test_a_password_appears_nowhere(postgres_server: str, caplog: pytest.LogCaptureFixture) -> None:
    secret = "do-not-show-me"
    caplog.set_level(logging.DEBUG)
    address = postgres_server.rpartition("@")[2]
    settings = HistorySettings(url=f"postgresql://monitor:{secret}@{address}/history")  # type: ignore[arg-type]
    location = settings.location(Path("state"))
    assert secret in location
    shown = [repr(settings), str(settings), settings.model_dump_json()]
    for wrong in (location, location.replace(address, "127.0.0.1:1"), location + f"?password={secret}&x=1"):
        with pytest.raises(StoreError) as caught:
            Store.open(wrong)
        assert caught.value.fault in (Fault.UNREACHABLE, Fault.OTHER)
        shown += ["".join(traceback.format_exception(caught.value)), repr(caught.value)]
    for wrong in (f"oracle://me:{secret}@db/x", f"postgresql://me:{secret}@db:port/x", f"://{secret}"):
        with pytest.raises(ValueError) as refused:
            parse_url(wrong)
        shown += ["".join(traceback.format_exception(refused.value))]
        with pytest.raises(ValidationError) as invalid:
            HistorySettings(url=wrong)  # type: ignore[arg-type]
        shown += [error["msg"] for error in invalid.value.errors()]
    shown += [record.getMessage() for record in caplog.records]
    assert not [text for text in shown if secret in text]


def test_an_open_store_shows_where_it_is_without_the_password(store: Store) -> None:
    assert "kept-to-itself" not in repr(store)
    assert "history" in repr(store)


def test_by_default_the_history_is_a_file_of_the_state_folder(tmp_path: Path) -> None:
    settings = HistorySettings()
    with Store.open(settings.location(tmp_path / "a state")) as store:
        put(store)
    assert (tmp_path / "a state" / "history.sqlite").exists()
    assert settings.retention == timedelta(days=90)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://db/x", "nonsense"])
def test_a_url_that_cannot_keep_a_history_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        HistorySettings(url=url)  # type: ignore[arg-type]


def test_a_retention_under_a_day_is_refused() -> None:
    with pytest.raises(ValidationError, match="at least one day"):
        HistorySettings(retention="12h")  # type: ignore[arg-type]


def test_a_file_that_is_no_database_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "history.sqlite").write_bytes(b"item_id,user_id\n" * 1000)
    with pytest.raises(StoreError, match="damaged, or is not a database") as caught:
        Store.open(tmp_path / "history.sqlite")
    assert caught.value.fault is Fault.CORRUPT


def test_a_place_that_cannot_be_written_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "history.sqlite", tmp_path):
        with pytest.raises(StoreError) as caught:
            Store.open(place)
        assert caught.value.fault is Fault.UNREACHABLE


def test_a_moved_sqlite_file_is_unreachable_until_it_is_back(tmp_path: Path) -> None:
    path, away = tmp_path / "history.sqlite", tmp_path / "away.sqlite"
    with Store.open(f"sqlite:///{path}") as store:
        put(store)
        path.rename(away)
        for use in (lambda: put(store, fingerprint="b"), lambda: list(store.results())):
            with pytest.raises(StoreError, match="file was moved or deleted") as caught:
                use()
            assert caught.value.fault is Fault.UNREACHABLE
        assert not path.exists()
        away.rename(path)
        put(store, count=2, fingerprint="b")
        assert len(list(store.results())) == 2


def test_a_sqlite_file_that_takes_the_place_of_another_is_used(tmp_path: Path) -> None:
    path, backup = tmp_path / "history.sqlite", tmp_path / "backup.sqlite"
    with Store.open(f"sqlite:///{backup}") as other:
        put(other, count=3)
    with Store.open(f"sqlite:///{path}") as store:
        put(store)
        for name in ("history.sqlite", "history.sqlite-wal", "history.sqlite-shm"):
            (tmp_path / name).unlink()
        backup.rename(path)
        assert len(list(store.results())) == 3
        put(store, count=4, fingerprint="b")
    with Store.open(f"sqlite:///{path}") as store:
        assert len(list(store.results())) == 4


def test_a_locked_sqlite_file_is_an_error_after_the_wait_and_works_again_afterwards(
    tmp_path: Path, dump: Callable[[Store], Any]
) -> None:
    path = tmp_path / "history.sqlite"
    with Store.open(path, wait_seconds=0.1) as store:
        put(store)
        before = dump(store)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another process") as caught:
            put(store, fingerprint="b")
        assert caught.value.fault is Fault.LOCKED
        assert dump(store) == before  # reading goes on meanwhile
        other.execute("ROLLBACK")
        put(store, fingerprint="b")
        assert store.evaluated("shop")[0].revision == 1
        other.close()


def test_a_locked_postgresql_store_is_an_error_after_the_wait(postgres_server: str) -> None:
    url = f"{postgres_server}/postgres"
    with Store.open(url, wait_seconds=0.2) as store, Store.open(url) as other:
        with other._database.writing(), pytest.raises(StoreError) as caught:
            put(store)
        assert caught.value.fault is Fault.LOCKED
        put(store)


def test_a_full_disk_writes_nothing_of_the_window(tmp_path: Path, dump: Callable[[Store], Any]) -> None:
    with Store.open(tmp_path / "history.sqlite") as store:
        put(store)
        before = dump(store)
        with store.reading() as connection:
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
            connection.execute(text(f"PRAGMA max_page_count = {pages + 20}"))
        with pytest.raises(StoreError, match="disk of the history store is full") as caught:
            put(store, count=500, fingerprint="b")
        assert caught.value.fault is Fault.FULL
        assert dump(store) == before
        put(store, count=2, fingerprint="c")
        assert store.evaluated("shop")[0].revision == 1


def cut_off(store: Store, other: Store) -> None:
    with store._database.writing() as connection:
        mine = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        with other.reading() as killer:
            killer.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": mine})
        connection.execute(text("SELECT 1"))


def test_a_server_that_goes_away_is_unreachable_and_is_found_again(postgres_server: str) -> None:
    with (
        Store.open(f"{postgres_server}/postgres") as store,
        Store.open(f"{postgres_server}/postgres") as other,
    ):
        put(store)
        with pytest.raises(StoreError) as caught:
            cut_off(store, other)
        assert caught.value.fault is Fault.UNREACHABLE
        put(store, fingerprint="b")
