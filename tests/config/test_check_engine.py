"""The settings of the engine, and the problems of logs that Spark cannot read."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from monitor.config.checks.engine import check_engine
from monitor.settings.engine import EngineSettings
from monitor.settings.logs import LogsSettings

SPARK = EngineSettings(kind="spark", url="local[2]")


def places(engine, **log):
    logs = LogsSettings(exposures={"path": "log/*.parquet", **log})
    return {one.place for one in check_engine("recommenders[0]", engine, logs)} - {"engine.kind"}


@pytest.mark.parametrize(
    ("log", "field"),
    [
        ({"path": ("log/a.csv", "log/*.csv.zst")}, "path"),
        ({"timezone": "Europe/Berlin"}, "timezone"),
    ],
)
def test_what_spark_cannot_read_is_a_problem_with_its_place(log, field):
    assert places(SPARK, **log) == {f"recommenders[0].logs.exposures.{field}"}
    assert places(EngineSettings(), **log) == set()


def test_plain_files_and_urls_are_no_problem():
    assert places(SPARK) == set()
    assert places(SPARK, path="s3://bucket/*.parquet") == set()


def test_missing_java_or_pyspark_gives_an_install_hint(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("monitor.config.checks.engine.find_spec", lambda _: None)
    logs = LogsSettings(exposures={"path": "log/*.parquet"})
    messages = [one.message for one in check_engine("", SPARK, logs)]
    assert len(messages) == 2
    assert "recsys-monitor[spark]" in messages[0]
    assert "java" in messages[1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "spark", "url": "sc://host"}, "is not a Spark master"),
        ({"kind": "spark", "url": "local[2]; rm"}, "is not a Spark master"),
        ({"kind": "spark", "options": {"java": "x"}}, "begin with spark."),
        ({"url": "local[2]"}, "needs kind: spark"),
        ({"kind": "polars"}, "duckdb"),
    ],
)
def test_settings_that_make_no_sense_are_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        EngineSettings(**values)


def test_urls_of_spark_masters_are_accepted():
    for url in ("local", "local[*]", "spark://a:7077,b:7077", "yarn", "k8s://https://host:6443"):
        assert EngineSettings(kind="spark", url=url).url == url
