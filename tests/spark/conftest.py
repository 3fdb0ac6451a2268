"""One local Spark application for all tests of a process, and an engine of its own for each that asks."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import duckdb
import pytest

from tests.conftest import need

OPTIONS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    # Tables of ten rows: compiling a query to Java would take longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.memory": "1g",
    # Small heaps, minutes of work: neither a parallel collector nor the second Java compiler pays.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


@pytest.fixture(scope="session")
def spark_is_here():
    """Skipped without Java or pyspark, a failure in CI."""
    need("java", "default-jre-headless")
    if importlib.util.find_spec("pyspark") is None:
        reason = "pyspark is not installed: it comes with the extra `spark`, which `make test` installs"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)


@pytest.fixture(scope="session")
def spark_session(spark_is_here):
    """A local Spark."""
    from monitor.engines.spark import start_session

    session = start_session("local[2]", OPTIONS)
    yield session
    session.stop()


@pytest.fixture
def spark(spark_session, tmp_path) -> Iterator:
    """A SparkEngine with no tables."""
    from monitor.engines.spark import SparkEngine

    engine = SparkEngine(spark_session, duckdb.connect(), tmp_path)
    for name, value in OPTIONS.items():
        if name.startswith("spark.sql."):
            engine.session.conf.set(name, value)
    yield engine
    engine.close()
