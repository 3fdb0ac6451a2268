"""The optional extra: what it names is what the lock of the tests installs."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement

from tests.conftest import ROOT


def test_the_spark_lock_satisfies_the_extra_and_agrees_with_the_main_lock():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [Requirement(one) for one in project["optional-dependencies"]["spark"]]
    locked, main = (
        dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / name).read_text("utf-8"), re.MULTILINE))
        for name in ("requirements-spark.lock", "requirements.lock")
    )
    assert {one.name for one in asked} >= {"pyspark", "grpcio", "grpcio-status"}
    for one in asked:
        assert one.specifier.contains(locked[one.name]), one
    assert {name: main[name] for name in locked if name in main} == {
        name: version for name, version in locked.items() if name in main
    }
    assert "pyspark" not in main, "four hundred megabytes that only those who run on Spark need"
