"""A history of an older version, brought to the schema of this one with all that is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, select, text

from monitor.catalogue import ALL_SPECS
from monitor.core.results import ResultKind, Status
from monitor.history import migrate, schema
from monitor.history.read_snapshot import read_snapshot
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import COVERAGE, NOON, counted, put

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


def _of_the_first_version(url: str, further: Sequence[tuple[str, dict[str, str]]] = ()) -> None:
    """A database as the first schema had it, with a violated window and further series."""
    scripts = ScriptDirectory(str(migrate._SCRIPTS))
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    opts = {"fn": lambda heads, _: scripts._upgrade_revs("0001", heads), "transactional_ddl": True}
    values = {
        "digest": schema.value_digest([COVERAGE.metric, dict(COVERAGE.labels)]),
        "start": schema.microseconds(hour(0).start),
        "end": schema.microseconds(hour(0).end),
    }
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts=opts)
        with Operations.context(context):
            context.run_migrations()
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
    wanted = [(spec.name, {"by": "any"}, spec.kind) for spec in ALL_SPECS.values()] + others
    assert {kind for _, _, kind in wanted} == set(ResultKind)
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
