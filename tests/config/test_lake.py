"""Logs that are tables: what the config says of them, what it hides, and what `init` and `validate` do."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake
from packaging.requirements import Requirement
from pydantic import ValidationError

from monitor.config.checks.check import check_config
from monitor.config.init.wizard import write_config
from monitor.config.load import load_config
from monitor.core.redaction import redact
from monitor.logs.lake import delta, iceberg
from monitor.logs.lake.table import TableError
from monitor.settings.logs import LogSettings
from tests.conftest import ROOT

CATALOG = {
    "name": "prod", "type": "sql", "uri": "postgresql+psycopg://reader:pass-of-the-catalog@db/iceberg",
    "warehouse": "s3://lake-of-the-shop/warehouse", "credential": "client:secret-of-the-catalog",
}  # fmt: skip


def config(folder: Path, **log: object):
    values = {"state": "state", "recommenders": [{"name": "shop", "logs": {"exposures": log}}]}
    (folder / "shop.yaml").write_text(yaml.safe_dump(values), "utf-8")
    return load_config(folder / "shop.yaml")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ({"path": "lake/log", "format": "delta"}, "{folder}/lake/log"),
        ({"path": "s3://lake/log", "format": "delta"}, "s3://lake/log"),
        ({"path": "lake/v1.metadata.json", "format": "iceberg"}, "{folder}/lake/v1.metadata.json"),
        ({"path": "web.log", "format": "iceberg", "catalog": CATALOG}, "web.log"),
    ],
)
def test_the_path_of_a_table_is_a_place_and_no_pattern(tmp_path, log, expected):
    folder = tmp_path / "a[1]"
    folder.mkdir()
    (found,) = config(folder, **log).recommenders[0].logs.exposures.paths
    assert found == expected.format(folder=folder)


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ({"path": "log", "format": "delta", "catalog": CATALOG}, "only format: iceberg has one"),
        ({"path": "lake/log", "format": "iceberg", "catalog": CATALOG}, "namespace.table"),
        ({"path": "log", "format": "hudi"}, "iceberg"),
        ({"path": "s3://id:secret@lake/log", "format": "delta"}, "a password in a path would be shown"),
        ({"path": "a.b", "format": "iceberg", "catalog": {"token": 1234}}, "token was read as a number"),
    ],
)
def test_settings_that_make_no_sense_are_refused(log, message):
    with pytest.raises(ValidationError, match=message):
        LogSettings.model_validate(log)


def test_secrets_of_a_catalog_are_never_shown_and_its_place_is(tmp_path):
    log = config(tmp_path, path="web.log", format="iceberg", catalog=CATALOG).recommenders[0].logs.exposures
    for text in (repr(log), str(log), log.model_dump_json()):
        assert "of-the-catalog" not in text
    shown = redact(f"{CATALOG}")
    assert "of-the-catalog" not in shown
    assert "lake-of-the-shop" in shown


@pytest.mark.parametrize(("kind", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch, kind, package):
    made = config(tmp_path, path="log", format=kind)
    monkeypatch.setattr("monitor.config.checks.check.find_spec", lambda name: None if name == package else 1)
    (checked,) = check_config(made, tmp_path)
    (problem,) = [one for one in checked.problems if one.place.endswith("exposures.format")]
    assert problem.message == f"{kind} needs the extra: pip install 'recsys-monitor[lake]'"
    monkeypatch.setitem(sys.modules, package, None)
    read = delta.delta_table if kind == "delta" else iceberg.iceberg_table
    with pytest.raises(TableError, match=r"recsys-monitor\[lake\]"):
        read(LogSettings(path="log", format=kind), "log")


def test_the_main_lock_satisfies_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [Requirement(one) for one in project["optional-dependencies"]["lake"]]
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE))
    assert {one.name for one in asked} == {"deltalake", "pyiceberg"}
    for one in asked:
        assert one.specifier.contains(locked[one.name]), one


def requests(hour: int, **more: object) -> pa.Table:
    start = datetime(2026, 3, 1, hour)
    places = [(number, place) for number in range(200) for place in range(1, 4)]
    columns = {
        "request_id": [f"q{hour}-{number}" for number, _ in places],
        "user_id": [f"u{number % 40}" for number, _ in places],
        "ts": pa.array(
            [start + timedelta(seconds=number) for number, _ in places], pa.timestamp("us", "UTC")
        ),
        "item_id": [f"i{(number * 7 + place) % 60}" for number, place in places],
        "position": [place for _, place in places],
    }
    return pa.table({**columns, **{name: [value] * len(places) for name, value in more.items()}})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Exposures and clicks as tables that were rewritten: their folders hold deleted rows too."""
    for hour in range(3):
        write_deltalake(tmp_path / "shop", requests(hour, day="007"), mode="append", partition_by=["day"])
    DeltaTable(tmp_path / "shop").optimize.compact()
    clicks = requests(2, event="click").slice(0, 300)
    write_deltalake(tmp_path / "clicks", clicks)
    DeltaTable(tmp_path / "clicks").delete("position = 3")
    return tmp_path


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "monitor", command, "--config", str(folder / "shop.yaml")]
    return subprocess.run(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, cwd=ROOT
    )


def test_init_writes_a_config_for_a_table_and_the_table_beside_it(lake):
    written = write_config([str(lake / "shop")], lake)
    logs = yaml.safe_load(written.text)["recommenders"][0]["logs"]
    assert (logs["exposures"]["path"], logs["exposures"]["format"]) == ("shop", "delta")
    assert (logs["feedback"]["path"], logs["feedback"]["format"]) == ("clicks", "delta")
    assert "path: shop # a table of 1 data file when this was written" in written.text
    assert "600 requests in" in written.text, "those of the files before the compaction do not count"
    assert "200 of 200 sampled actions" in written.text


def test_validate_names_the_version_and_check_judges_the_table(lake):
    (lake / "shop.yaml").write_text(write_config([str(lake / "shop")], lake).text, "utf-8")
    found = run("validate", lake)
    assert f"delta table {lake}/shop, version 3: 1 data file" in found.stdout
    assert f"delta table {lake}/clicks, version 1: 1 data file" in found.stdout
    found = run("check", lake)
    assert found.returncode in (0, 1), found.stdout
    assert "1,800" in found.stdout
    (lake / "shop/_delta_log/00000000000000000004.json").write_text('{"add":', "utf-8")
    for command, code in (("validate", 2), ("check", 3)):
        found = run(command, lake)
        assert found.returncode == code, found.stdout
        assert f"delta table {lake}/shop: cannot be read" in " ".join(found.stdout.split())


def test_validate_warns_of_a_glob_over_the_folder_of_a_table(lake):
    values = {
        "state": "state",
        "recommenders": [{"name": "shop", "logs": {"exposures": {"path": "shop/*/*.parquet"}}}],
    }
    (lake / "shop.yaml").write_text(yaml.safe_dump(values), "utf-8")
    found = run("validate", lake)
    assert f"{lake}/shop is a table" in found.stdout
    assert "set format: delta" in found.stdout


def test_the_examples_of_the_page_are_configs_that_make_sense(tmp_path):
    page = (ROOT / "docs" / "tables.md").read_text("utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    for text in examples:
        (tmp_path / "shop.yaml").write_text(f"state: state\n{text}", "utf-8")
        (checked,) = check_config(load_config(tmp_path / "shop.yaml"), tmp_path)
        assert checked.problems == ()
        assert all(log.is_table for log in checked.settings.logs.named().values())
