"""`validate` reports each fault of a config or of its logs, and none in a valid config."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import run_monitor
from tests.config.validate import faulty
from tests.config.validate.faulty import CLICKS, EXPOSURES, ITEMS, Shop

IN_THE_RECOMMENDER = "recommenders[0]."
FAULTS = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text("utf-8"))


@pytest.fixture
def shop(tmp_path) -> Shop:
    return Shop(tmp_path)


@pytest.mark.parametrize("fault", FAULTS)
def test_only_this_fault_is_reported(fault, shop, command):
    getattr(faulty, fault)(shop)
    shop.write()
    code, output, errors = command("validate", "--config", "shop.yaml", "--format", "json")
    found = [one for one in json.loads(output) if one["level"] != "ok"]
    said = [
        f"{one['level']} at {one['place'].removeprefix(IN_THE_RECOMMENDER)}: {one['detail']}" for one in found
    ]
    said = [one.replace(str(shop.folder), "{folder}") for one in said]
    # The folders of Python's path are those of this machine.
    assert [re.sub(r"(?<=was looked up in ).*", "...", one) for one in said] == FAULTS[fault]
    problems = [one for one in found if one["level"] == "problem"]
    assert code == (2 if problems else 0)
    assert [one for one in problems if f"  {one['place']}: {one['detail']}\n" not in errors] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "recommenders: [{name: A, logs: {exposures: {path: x}}}]",
            ("recommenders[0].name", "'A' has a wrong form"),
        ),
        ("recommenders: [", ("line 1, column 16", "")),
        ("", ("", "the file is empty")),
    ],
)
def test_a_config_that_is_not_well_formed_has_its_problems_in_the_json_too(tmp_path, command, text, found):
    (tmp_path / "shop.yaml").write_text(text)
    code, output, errors = command("validate", "--config", "shop.yaml", "--format", "json")
    (problem,) = json.loads(output)
    assert (code, problem["level"], problem["check"]) == (2, "problem", "config")
    assert (problem["place"], problem["detail"][: len(found[1])]) == found
    assert problem["detail"] in errors


def test_every_fault_of_the_shop_has_its_sentences():
    own = {name for name, one in vars(faulty).items() if getattr(one, "__module__", "") == faulty.__name__}
    assert {name for name in own if name != "Shop" and not name.startswith("_")} == set(FAULTS)


def test_a_valid_config_has_a_line_for_each_thing_checked(shop, command):
    shop.write()
    code, output, errors = command("validate", "--config", "shop.yaml")
    assert (code, errors) == (0, "")
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert lines[-1] == "shop.yaml: good"
    assert {line.split()[0] for line in lines if not line.endswith(":")} == {"ok", "shop.yaml:"}
    expected = (
        f"{EXPOSURES:,} rows",
        "about 250 rows in 50 requests per window of 1h",
        f"ok events click ({CLICKS})",
        f"ok join 100 % of {CLICKS} sampled actions join an exposure within 30m",
        f"ok known has 100 % of the {ITEMS} items in the exposures looked at",
        "ok columns the logs have every column that the config names: exposures.scene, catalog.category",
        "ok rules the columns and list files of 4 rules are there",
    )
    assert [one for one in expected if not any(one in line for line in lines)] == []


@pytest.mark.parametrize(
    ("bands", "shown"),
    [
        ({"country": "DE"}, 4),
        ({"holidays": ["2020-02-29"]}, 0),
        ({"country": "BV"}, 0),
        ({"timezone": "Europe/Berlin"}, None),
    ],
)
def test_the_next_days_off_are_shown(bands, shown, shop, command):
    shop.recommender["bands"] = bands
    shop.write()
    code, output, _ = command("validate", "--config", "shop.yaml", "--no-logs")
    line = next((one for one in output.splitlines() if "count as a Sunday" in one), None)
    assert code == 0
    if shown is None:
        assert line is None
    else:
        days = re.findall(r"\b2\d{3}-\d\d-\d\d\b", line)
        assert (len(days), "none" in line) == (shown, not shown)
        assert days == sorted(days)


def test_a_look_at_the_logs_writes_nothing(shop, command):
    shop.write()
    before = {path: path.stat().st_mtime_ns for path in shop.folder.rglob("*")}
    assert command("validate", "--config", "shop.yaml")[0] == 0
    assert {path: path.stat().st_mtime_ns for path in shop.folder.rglob("*")} == before


def test_a_list_that_may_be_empty_is_accepted(shop, command):
    (shop.folder / "blocked.csv").write_text("item_id\n")
    parameters = {"blacklist": "blocked.csv", "allow_empty": True}
    shop.recommender["rules"] = [{"pack": "blacklist", "parameters": parameters}]
    shop.write()
    code, output, errors = command("validate", "--config", "shop.yaml")
    assert (code, errors) == (0, "")
    assert "the columns and list files of 1 rule are there" in output


def test_no_logs_accepts_a_config_whose_logs_are_elsewhere(shop, command):
    shop.write()
    for path in shop.folder.glob("*.parquet"):
        path.unlink()
    assert command("validate", "--config", "shop.yaml")[0] == 2
    code, output, errors = command("validate", "--config", "shop.yaml", "--no-logs")
    assert (code, errors) == (0, "")
    assert output.splitlines()[-1] == "shop.yaml: good"


def test_the_newest_files_and_the_oldest_are_checked(shop, command):
    shop.log()["path"] = "logs/*.parquet"
    (shop.folder / "logs").mkdir()
    shop.write()
    for number, rows in enumerate(range(0, EXPOSURES, 5)):
        path = shop.folder / "logs" / f"{number:03}.parquet"
        shop.exposures.iloc[rows : rows + 5].to_parquet(path)
    code, output, _ = command("validate", "--config", "shop.yaml")
    assert code == 0
    assert "looked at 5 of 300 files" in output


def test_a_large_file_read_in_part_is_not_called_old(shop, command, monkeypatch):
    monkeypatch.setattr("monitor.config.look.WHOLE_BYTES", 0)
    monkeypatch.setattr("monitor.config.look.SAMPLE_ROWS", 100)
    shop.write()
    code, output, _ = command("validate", "--config", "shop.yaml")
    assert (code, output.splitlines()[-1]) == (0, "shop.yaml: good")
    assert "100 rows (only the first rows of 1 large file)" in output
    assert "the newest row of those looked at is 5 h old" in output


@pytest.mark.parametrize("parts", [4, 12])
def test_files_that_were_written_at_the_same_time_share_the_requests_of_a_window(parts, shop, command):
    shop.write()
    (shop.folder / "exposures").mkdir()
    for number, rows in shop.exposures.groupby(shop.exposures.request_id.str[1:].astype(int) % parts):
        rows.to_parquet(shop.folder / "exposures" / f"{number}.parquet", index=False)
    shop.log()["path"] = "exposures/*.parquet"
    shop.write()
    _, output, _ = command("validate", "--config", "shop.yaml")
    (found,) = re.findall(r"about (\d+) rows in (\d+) requests per window of 1h", output)
    assert [float(one) for one in found] == pytest.approx([250, 50], rel=0.05)
    _, written, _ = command("init", "exposures", "--output", "-")
    assert f"# {faulty.REQUESTS} requests in " in written


def test_actions_whose_lists_are_in_other_files_are_no_sign_of_a_bad_join(shop, command):
    shop.write()
    (shop.folder / "hours").mkdir()
    hours = (shop.exposures.ts - shop.exposures.ts.min()) // faulty.pd.Timedelta("20min")
    for hour, rows in shop.exposures.groupby(hours):
        rows.to_parquet(shop.folder / "hours" / f"{hour:02}.parquet", index=False)
    shop.log()["path"] = "hours/*.parquet"
    shop.write()
    code, output, _ = command("validate", "--config", "shop.yaml")
    assert "looked at 5 of 18 files" in output
    (line,) = [" ".join(one.split()) for one in output.splitlines() if " join " in one]
    found = re.match(r"ok join at least (\S+) % of (\d+) sampled actions join an exposure", line)
    assert found is not None, line
    assert float(found[1]) > 90
    assert int(found[2]) < 0.4 * CLICKS
    assert code == 0


def test_a_time_shift_is_found_from_a_few_files(shop, command):
    """Files of one hour each: the newest exposures and the newest actions have no hour in common."""
    shop.feedback["ts"] = shop.feedback["ts"] - faulty.pd.Timedelta("8h")
    shop.write()
    for name in ("exposures", "feedback"):
        table, folder = shop.tables()[name], shop.folder / name
        folder.mkdir()
        shop.log(name)["path"] = f"{name}/*.parquet"
        hours = (table.ts - table.ts.min()) // faulty.pd.Timedelta("40min")
        for hour, rows in table.groupby(hours):
            rows.to_parquet(folder / f"{hour}.parquet", index=False)
    shop.write()
    _, output, _ = command("validate", "--config", "shop.yaml")
    (line,) = [line for line in output.splitlines() if " join " in line]
    assert line.split()[:2] == ["warning", "join"]
    assert "would join with the feedback's times moved by +8 h: set `timezone`" in line


@pytest.mark.parametrize(
    ("fault", "code", "line"),
    [
        (None, 0, "shop.yaml: good"),
        (faulty.one_event_of_the_config_is_not_in_the_log, 0, "shop.yaml: good, with 1 warning"),
        (
            faulty.a_supplier_does_not_exist,
            2,
            "  recommenders[0].slices.by[0]: logs.catalog has no column 'supplier' in the files looked at; "
            "it has category, item_id",
        ),
    ],
)
def test_the_command_as_a_process_of_its_own(fault, code, line, shop, tmp_path: Path):
    if fault is not None:
        fault(shop)
    shop.write()
    ran = run_monitor("validate", "--config", "shop.yaml", cwd=tmp_path)
    assert ran.code == code
    assert line in (ran.err if code else ran.out).splitlines()
