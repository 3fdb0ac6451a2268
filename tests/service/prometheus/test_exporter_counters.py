"""What a scrape says of what has been counted, and of the monitor itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.core.results import Kind
from monitor.history.snapshot import LogState, RecommenderState, RuleInfo, SkippedFile, Snapshot
from monitor.logs.files import STILL_WRITTEN
from monitor.logs.index import DUPLICATE
from tests.service import pictures
from tests.service.prometheus.scrapes import find, scrape


def test_counters_of_every_known_rule_start_at_zero():
    text = scrape(pictures.empty())
    labels = {"recommender": "shop", "rule": "blacklist", "kind": "hard"}
    assert find(text, "recsys_rule_violations_total", **labels) == 0
    assert find(text, "recsys_windows_total", recommender="shop", status="violated") == 0
    assert find(text, "recsys_corrections_total", recommender="shop") == 0
    assert find(text, "recsys_scheduler_runs_total", recommender="shop", outcome="missed") == 0


def test_a_counter_of_a_removed_rule_is_not_exported_until_the_rule_comes_back():
    key = ("recsys_rule_violations_total", (("kind", "hard"), ("recommender", "shop"), ("rule", "old")))
    counted = replace(pictures.empty(), counters={key: 7.0})
    labels = {"recommender": "shop", "rule": "old", "kind": "hard"}
    assert find(scrape(counted), "recsys_rule_violations_total", **labels) is None
    back = replace(counted, recommenders=(RecommenderState("shop", rules=(RuleInfo("old", Kind.HARD),)),))
    assert find(scrape(back), "recsys_rule_violations_total", **labels) == 7


def test_a_counter_of_a_rule_is_left_out_when_its_kind_changes_or_no_rule_is_left():
    key = ("recsys_rule_violations_total", (("kind", "hard"), ("recommender", "shop"), ("rule", "old")))
    labels = dict(key[1])
    for rules in ((RuleInfo("old", Kind.SOFT),), ()):
        state = RecommenderState("shop", rules=rules)
        text = scrape(Snapshot(pictures.NOW, (state,), counters={key: 7.0}))
        assert find(text, key[0], **labels) is None
    broken = RecommenderState("shop", error="its rules cannot be read")
    text = scrape(Snapshot(pictures.NOW, (broken,), counters={key: 7.0}))
    assert find(text, key[0], **labels) == 7


def test_a_counter_that_this_version_does_not_know_is_left_out():
    assert "gone_in_this_version" not in scrape(pictures.full())


@pytest.mark.parametrize("reason", [STILL_WRITTEN, f"{DUPLICATE}logs/c.csv"])
def test_a_file_that_is_being_written_or_is_a_copy_is_no_unreadable_one(reason):
    fine = SkippedFile("logs/a.csv", reason)
    for skipped, count in (((), 0), ((fine,), 0), ((fine, SkippedFile("logs/b.csv", "no header")), 1)):
        state = RecommenderState("shop", logs=(LogState("exposures", skipped=skipped),))
        text = scrape(Snapshot(pictures.NOW, (state,)))
        assert find(text, "recsys_log_skipped_files", recommender="shop", log="exposures") == count


def test_the_monitor_exports_its_own_state():
    text = scrape(pictures.full())
    assert find(text, "recsys_build_info", version="0.1.0") == 1
    assert find(text, "recsys_web_info", url="http://monitor.test") == 1
    assert find(text, "recsys_config_reload_success") == 1
    assert find(text, "recsys_recommender_error", recommender="video") == 1
    assert find(text, "recsys_recommender_error", recommender="shop") == 0
    assert find(text, "recsys_pending_windows", recommender="shop") == 1
    assert find(text, "recsys_log_skipped_files", recommender="shop", log="exposures") == 2
    assert find(text, "recsys_log_lost_files", recommender="shop", log="exposures") == 1
    assert find(text, "recsys_log_lost_files", recommender="shop", log="feedback") == 0
    assert find(text, "recsys_log_listing_errors", recommender="shop", log="exposures") == 1
    assert find(text, "recsys_last_window_end_timestamp_seconds", recommender="shop") == (
        pictures.LAST.end.timestamp()
    )
    assert find(text, "recsys_last_window_end_timestamp_seconds", recommender="video") is None
    refused = scrape(replace(pictures.full(), config_error="wrong"))
    assert find(refused, "recsys_config_reload_success") == 0
