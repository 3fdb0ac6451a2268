"""The config is read again while the daemon runs: by signal, by POST, and not when it is bad."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.processes import Monitor, exposures, get, land, monitor, wait_for

MINUTE = timedelta(minutes=1)


def write_suite(path: Path, *rules: str, column: str = "item_id") -> None:
    expectations = [
        {
            "type": "expect_column_values_to_not_be_null",
            "kwargs": {"column": column},
            "meta": {"rule": rule, "kind": "hard", "table": "exposures"},
        }
        for rule in rules
    ]
    path.write_text(yaml.safe_dump({"name": "ours", "expectations": expectations}), "utf-8")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Monitor]:
    write_suite(tmp_path / "ours.yaml", "known")
    recommenders = [
        {
            "name": name,
            "logs": {"exposures": {"path": f"logs/{name}/*.parquet"}},
            "window": "1m",
            "every": "1s",
            "lateness": "10s",
            "rules": [{"suite": "ours.yaml"}],
        }
        for name in ("shop", "news")
    ]
    first = start()
    for name in ("shop", "news"):
        land(tmp_path / f"logs/{name}/a.parquet", exposures(first, 60))
        land(tmp_path / f"logs/{name}/b.parquet", exposures(first + MINUTE, 30))
    with monitor(tmp_path, {"recommenders": recommenders}) as running:
        for name in ("shop", "news"):
            ok = running.has("recsys_rule_status", recommender=name, rule="known", status="ok")
            wait_for(f"the first window of {name}", ok)
        yield running


def start() -> datetime:
    now = datetime.now(UTC)
    return now - timedelta(minutes=1, seconds=now.second, microseconds=now.microsecond)


def names(shop: Monitor) -> set[str]:
    return {dict(labels).get("recommender", "") for _, labels in shop.series()} - {""}


def test_a_reload_brings_new_rules_and_takes_recommenders_away(shop: Monitor) -> None:
    assert names(shop) == {"shop", "news"}
    write_suite(shop.folder / "ours.yaml", "known", "new")
    shop.config["recommenders"] = shop.config["recommenders"][:1]
    status, text = shop.reload()
    assert (status, "reloaded" in text) == (200, True)
    assert names(shop) == {"shop"}
    assert get(f"{shop.url}/recommenders/news")[0] == 404
    assert shop.value("recsys_rule_violations_total", rule="new") == 0  # known before its first window
    land(shop.folder / "logs/shop/c.parquet", exposures(start() + 2 * MINUTE, 30))
    land(shop.folder / "logs/shop/d.parquet", exposures(start() + 3 * MINUTE, 30))
    wait_for("the new rule", shop.has("recsys_rule_status", recommender="shop", rule="new", status="ok"))
    assert names(shop) == {"shop"}


def test_a_hangup_signal_reloads_as_well(shop: Monitor) -> None:
    before = shop.value("recsys_config_reload_timestamp_seconds")
    shop.config["recommenders"][1]["name"] = "journal"
    shop.write()
    assert shop.running is not None
    shop.running.send(signal.SIGHUP)
    wait_for("the other name", lambda: names(shop) == {"shop", "journal"})
    assert shop.value("recsys_config_reload_success") == 1
    assert (shop.value("recsys_config_reload_timestamp_seconds") or 0) > (before or 0)


MISTAKES = {
    "window: [not, a, duration]": "recommenders[0].window",
    "rules: [{suite: gone.yaml}]": "gone.yaml",
    "{ this is no yaml": "is not YAML",
}


def test_a_bad_config_leaves_the_old_one_running_and_says_why(shop: Monitor) -> None:
    good, first = shop.path.read_text("utf-8"), start()
    for mistake, words in MISTAKES.items():
        bad = f"recommenders:\n- name: shop\n  logs: {{exposures: {{path: x}}}}\n  {mistake}\n"
        shop.path.write_text(bad, "utf-8")
        status, text = get(f"{shop.url}/-/reload", data=b"")
        assert status == 500
        assert words in text
        assert shop.value("recsys_config_reload_success") == 0
        assert words in shop.page()
        assert names(shop) == {"shop", "news"}
    land(shop.folder / "logs/news/c.parquet", exposures(first + 2 * MINUTE, 30))
    judged = shop.has("recsys_windows_total", 2, recommender="news", status="ok")
    wait_for("the old config to go on judging", judged)
    shop.path.write_text(good, "utf-8")
    assert get(f"{shop.url}/-/reload", data=b"")[0] == 200
    assert shop.value("recsys_config_reload_success") == 1
    assert words not in shop.page()


def test_keys_that_take_effect_only_with_a_restart_are_reported(shop: Monitor) -> None:
    shop.config["state"] = "elsewhere"
    assert "only with a restart: state" in shop.reload()[1]
    land(shop.folder / "logs/shop/c.parquet", exposures(start() + 2 * MINUTE, 30))
    wait_for("the next window", shop.has("recsys_windows_total", 2, recommender="shop", status="ok"))
    assert not (shop.folder / "elsewhere").exists()


def test_removed_rules_and_objectives_stop_alerting_before_the_next_window(shop: Monitor) -> None:
    write_suite(shop.folder / "ours.yaml", "known", column="nowhere")  # so it is an error, which alerts too
    shop.config["recommenders"][0]["objectives"] = [{"metric": "gini_exposed", "max": 0.001}]
    assert shop.reload()[0] == 200
    # Uneven in its first minute, whichever minute that is by now: the newest window keeps the status.
    land(shop.folder / "logs/shop/c.parquet", exposures(start() + MINUTE, 90, items=["i0"] * 8))
    rule = {"recommender": "shop", "rule": "known"}
    objective = {"recommender": "shop", "metric": "gini_exposed"}
    wait_for("the trouble", shop.has("recsys_rule_status", status="error", **rule))
    wait_for("the objective", shop.has("recsys_objective_status", status="violated", **objective))
    wait_for("the rest", lambda: shop.value("recsys_pending_windows", recommender="shop") == 0)
    value = shop.value("recsys_gini_exposed", recommender="shop")
    assert value is not None
    for one in shop.config["recommenders"]:
        one["rules"] = []
        one.pop("objectives", None)
    assert shop.reload()[0] == 200
    assert shop.value("recsys_rule_status", **rule) is None
    assert shop.value("recsys_rule_violations_total", **rule) is None
    assert shop.value("recsys_objective_status", **objective) is None
    assert shop.value("recsys_gini_exposed", recommender="shop") == value
    assert "All is well" in shop.page()


def test_keys_that_need_a_restart_are_reported_until_the_restart(shop: Monitor) -> None:
    shop.config["engine"] = {"threads": 2}
    shop.config["history"] = {"retention": "30d"}  # this takes effect at once
    for _ in range(2):
        assert "only with a restart: engine\n" in shop.reload()[1]


def test_a_name_given_twice_is_shown_once(tmp_path: Path) -> None:
    recommenders = [{"name": "shop", "logs": {"exposures": {"path": path}}} for path in ("a/*", "b/*")]
    with monitor(tmp_path, {"recommenders": recommenders}) as twice:
        page = twice.page()
        assert page.count("<h1><bdi>shop</bdi></h1>") == 1
        assert "is already the name of recommenders[0]" in page
