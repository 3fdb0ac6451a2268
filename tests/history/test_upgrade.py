"""A history of an older version, brought to the schema of this one with all that is in it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, select, text

from monitor.catalogue import ALL_SPECS
from monitor.core.results import Result, ResultKind, Status, worst_status
from monitor.history import database, migrate, schema
from monitor.history.read_snapshot import read_snapshot
from monitor.history.rows import series_digest, stored_fields
from monitor.history.standing import signal_of
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import COVERAGE, NOON, Dump, counted, put

_ROWS = """
INSERT INTO series (id, recommender, check_name, metric, labels, digest)
VALUES (901, 'shop', 'rules', 'coverage', '{"by":"pv"}', :digest);
INSERT INTO windows (id, recommender, check_name, window_start, window_end, definition, status, fingerprint,
                     rows, evaluated_at, seconds, revision, current)
VALUES (901, 'shop', 'rules', :start, :end, '1', 'violated', 'a', 100, :end, 0.5, 0, true);
INSERT INTO results (window_id, series_id, window_end, signal, definition, status, value, samples, lower,
                     upper, detail, threshold, bound)
VALUES (901, 901, :end, 2, '1', 'violated', 0.1, 40, 0.05, 0.15, 'too little', 0.2, 'min');
INSERT INTO evidence (window_id, series_id, place, content) VALUES (901, 901, 0, '{"item_id":"a"}');
INSERT INTO counters (name, labels, value)
VALUES ('recsys_windows_total', '{"recommender":"shop","status":"violated"}', 7);
INSERT INTO log_files (recommender, log, digest, path, size, modified, status, reason, rows, min_ts, max_ts,
                       buckets)
VALUES ('shop', 'exposures', 'a', '"a.csv"', 10, 'then', 'read', '', 100, :start, :end, '{}')
"""


_SERIES = """
INSERT INTO series (recommender, check_name, metric, labels, digest)
VALUES ('shop', 'any', :metric, :labels, :digest)
"""


def _made_by(version: str, connection: Connection) -> None:
    """The tables of an older version, in an empty database."""
    scripts = ScriptDirectory(str(migrate._SCRIPTS))
    opts = {"fn": lambda heads, _: scripts._upgrade_revs(version, heads), "transactional_ddl": True}
    context = MigrationContext.configure(connection, opts=opts)
    with Operations.context(context):
        context.run_migrations()


def _of_the_first_version(url: str, further: Sequence[tuple[str, dict[str, str]]] = ()) -> None:
    """A database as the first schema had it, with a violated window and further series."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    values = {
        "digest": schema.value_digest([COVERAGE.metric, dict(COVERAGE.labels)]),
        "start": schema.microseconds(hour(0).start),
        "end": schema.microseconds(hour(0).end),
    }
    with engine.begin() as connection:
        _made_by("0001", connection)
        for statement in _ROWS.split(";"):
            asked = {name: value for name, value in values.items() if f":{name}" in statement}
            connection.execute(text(statement).bindparams(**asked))
        for metric, labels in further:
            named = {"metric": metric, "labels": schema.canonical(labels)}
            connection.execute(text(_SERIES), named | {"digest": schema.value_digest([metric, labels])})
        columns = connection.execute(text("SELECT * FROM results")).keys()
        assert "clear_bound" not in columns
        of_series = connection.execute(text("SELECT * FROM series")).keys()
        assert "kind" not in of_series
    engine.dispose()


def test_an_upgrade_keeps_the_history_of_an_older_version(url: str) -> None:
    _of_the_first_version(url)
    with Store.open(url) as store:
        with store.reading() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": False})
            assert context.get_current_heads() == (schema.HEAD,)
            assert compare_metadata(context, schema.metadata) == []
            (file,) = connection.execute(select(schema.log_files)).all()
            assert (file.path, file.rows, file.max_ts) == ("a.csv", 100, hour(0).end)
        (kept,) = store.results()
        assert (kept.result.value, kept.result.threshold, kept.result.clear) == (0.1, 0.2, None)
        assert kept.result.evidence == ({"item_id": "a"},)
        assert counted(store, "recsys_windows_total", status="violated") == 7


def test_a_violation_from_before_the_upgrade_ends_at_the_new_clear_bound(url: str) -> None:
    _of_the_first_version(url)
    with Store.open(url) as store:
        for number, (value, standing) in enumerate([(0.25, Status.VIOLATED), (0.3, Status.OK)], 1):
            put(store, [replace(COVERAGE, value=value, clear=0.3)], number)
            (series,) = read_snapshot(store, ["shop"], NOON).recommenders[0].series
            assert series.standing is standing
    with Store.open(url) as store:  # a second opening finds nothing to do
        assert [one.result.clear for one in store.results()] == [None, 0.3, 0.3]


def test_the_upgrade_gives_every_series_its_kind(url: str) -> None:
    hostile = {"dimension": "model", "value": '"split":"test","model":"v1"'}
    of_samples = {"split": "test", "model": "v1"}
    others = [
        ("rule", {"rule": "no_nulls", "kind": "hard"}, ResultKind.RULE),
        ("log_rows", {"log": "exposures"}, ResultKind.LOG),
        ("log_bad_values", {"log": "exposures"}, ResultKind.LOG),
        ("log_skipped_files", {"log": "exposures"}, ResultKind.LOG),
        ("log_lacks_slices", {"log": "exposures"}, ResultKind.LOG),
        ("auc", of_samples, ResultKind.MODEL),
        ("auc", of_samples | {"dimension": "scene", "value": "home"}, ResultKind.MODEL),
        ("auc", hostile, ResultKind.METRIC),
        ("gone_since", {}, ResultKind.METRIC),
    ]
    newer = {ResultKind.FORECAST, ResultKind.PLATFORM, ResultKind.SUBSTITUTION}  # not in an old history
    old = [spec for spec in ALL_SPECS.values() if spec.kind not in newer]
    wanted = [(spec.name, {"by": "any"}, spec.kind) for spec in old] + others
    assert {kind for _, _, kind in wanted} == set(ResultKind) - newer
    _of_the_first_version(url, [(metric, labels) for metric, labels, _ in wanted])
    columns = schema.series.c
    query = select(columns.metric, columns.labels, columns.kind).where(columns.check_name == "any")
    with Store.open(url) as store, store.reading() as connection:
        assert [tuple(row) for row in connection.execute(query.order_by(columns.id))] == wanted


def test_recording_corrects_the_kind_of_a_series_from_an_older_version(url: str) -> None:
    with Store.open(url) as store:
        put(store, [COVERAGE], 0)
        put(store, [replace(COVERAGE, kind=ResultKind.HEALTH)], 1)
        assert [one.result.kind for one in store.results()] == [ResultKind.HEALTH] * 2
        (series,) = read_snapshot(store, ["shop"], NOON).recommenders[0].series
        assert series.result.kind is ResultKind.HEALTH


_RESULT = """
INSERT INTO results (window_id, series_id, window_end, signal, definition, status, value, samples, lower,
                     upper, detail, violations, threshold, bound, clear_bound, severity)
VALUES (:window_id, :series_id, :window_end, :signal, :definition, :status, :value, :samples, :lower,
        :upper, :detail, :violations, :threshold, :bound, :clear_bound, :severity)
"""
_WINDOW = """
INSERT INTO windows (id, recommender, check_name, window_start, window_end, definition, status, fingerprint,
                     rows, evaluated_at, seconds, revision, current)
VALUES (:id, 'shop', 'rules', :start, :end, :definition, :status, 'a', 100, :evaluated, 0.5, 0, :current)
"""


def _random_windows(count: int, series: int) -> list[list[Result]]:
    """Results of every status, most of them ok; some windows lack some series, and one has none."""
    rng = random.Random(4)
    windows: list[list[Result]] = [[]]
    for _ in range(count - 1):
        results = []
        for number in range(series):
            if rng.random() < 0.1:
                continue
            statuses = [Status.OK, Status.VIOLATED, Status.NO_DATA, Status.LATE]
            status = rng.choices(statuses, [20, 1, 1, 1])[0]
            is_rule = number % 3 == 0
            value = None if status in (Status.NO_DATA, Status.LATE) else rng.random()
            violated = status is Status.VIOLATED
            results.append(
                Result(
                    metric="rule" if is_rule else "coverage",
                    kind=ResultKind.RULE if is_rule else ResultKind.METRIC,
                    labels={"by": f"\u00fc {number}"}, status=status, definition=rng.choice("12"),
                    value=value, samples=rng.choice([None, 0, 2**40]), lower=value and value / 3, upper=value,
                    detail="'\"\ufffd" if violated else "", violations=7 if is_rule and violated else None,
                    threshold=rng.choice([None, 0.5]), bound="min", clear=rng.choice([None, 0.7]),
                    severity="critical" if is_rule else None,
                    evidence=({"item_id": "a", "place": number},) if violated else (),
                )
            )  # fmt: skip
        windows.append(results)
    return windows


def _write_as_0004(url: str, windows: Sequence[Sequence[Result]]) -> None:
    """A database of version 0004 with these windows, all of them judged by an older definition before."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        _made_by("0004", connection)
        ids: dict[str, int] = {}
        for number, results in enumerate(windows):
            for current in (False, True):
                window_id = 1000 - 2 * number + current  # the newest was recorded first
                end = schema.microseconds(hour(number).end)
                status = worst_status(one.status for one in results)
                window = {
                    "id": window_id, "start": schema.microseconds(hour(number).start), "end": end,
                    "definition": "1" if current else "0", "status": status.value,
                    "evaluated": schema.microseconds(NOON), "current": current,
                }  # fmt: skip
                connection.execute(text(_WINDOW), window)
                for result in results:
                    name = series_digest(result)
                    if name not in ids:
                        ids[name] = len(ids) + 1
                        named = {"metric": result.metric, "labels": schema.canonical(dict(result.labels))}
                        of_rules = _SERIES.replace("'any'", "'rules'").replace("digest)", "digest, kind)")
                        of_rules = of_rules.replace(":digest, kind)", f":digest, '{result.kind.value}')")
                        connection.execute(text(of_rules), named | {"digest": name})
                    fields = stored_fields(result)
                    row = fields | {
                        "window_id": window_id, "series_id": ids[name], "window_end": end,
                        "signal": int(signal_of(result)) if current else None, "clear_bound": fields["clear"],
                    }  # fmt: skip
                    connection.execute(text(_RESULT), row)
                    for place, content in enumerate(result.evidence):
                        connection.execute(
                            text("INSERT INTO evidence VALUES (:window, :series, :place, :content)"),
                            {
                                "window": window_id, "series": ids[name], "place": place,
                                "content": schema.canonical(content),
                            },
                        )  # fmt: skip
    engine.dispose()


def test_a_history_of_rows_is_the_same_once_it_is_packed(url: str, tmp_path: Path, dump: Dump) -> None:
    windows = _random_windows(250, 8)  # more than are moved at once
    _write_as_0004(url, windows)
    with Store.open(url) as upgraded, Store.open(tmp_path / "new.sqlite") as fresh:
        for number, results in enumerate(windows):
            for definition in "01":
                put(fresh, results, number, definition=definition)
        of_old, of_new = dump(upgraded), dump(fresh)
        for each in (of_old, of_new):  # a superseded window had no signals, and they are not read
            each["results"] = [(*row[:6], row[3] == "1" and row[6], *row[7:]) for row in each["results"]]
        for table in ("windows", "results", "signals", "evidence"):
            assert of_old[table] == of_new[table], table
        assert list(upgraded.results()) == list(fresh.results())
        shown = [read_snapshot(one, ["shop"], NOON).recommenders[0].series for one in (upgraded, fresh)]
        assert shown[0] == shown[1]
        assert len(shown[0]) > 3
        with upgraded.reading() as connection:
            assert connection.execute(text("SELECT COUNT(*) FROM windows")).scalar() == 500


def test_the_file_of_an_upgraded_history_shrinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_FREE_PAGES", 10)
    path = tmp_path / "history.sqlite"
    _write_as_0004(f"sqlite:///{path}", _random_windows(60, 40))
    before = path.stat().st_size
    with Store.open(path) as store:
        assert path.stat().st_size < 0.6 * before
        assert len(store.evaluated("shop")) == 60


def test_a_file_that_cannot_shrink_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "_FREE_PAGES", 10)
    monkeypatch.setattr(database, "_VACUUM", "VACUUM INTO '/nowhere/at/all'")
    path = tmp_path / "history.sqlite"
    _write_as_0004(f"sqlite:///{path}", _random_windows(60, 40))
    with Store.open(path) as store:
        assert len(store.evaluated("shop")) == 60
    assert "keeps its size after the upgrade" in caplog.text
