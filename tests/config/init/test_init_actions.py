"""`init` takes events, grades and the attribution from a feedback log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from monitor.config.init.profile import CannotProfile
from monitor.config.init.wizard import write_config
from monitor.config.load import load_config
from tests.config.exposure_logs import frame

HOSTILE = ["line\nbreak", "${HOME}", "a: b # c", "<<", "no", "42", '"', "\u202eright", "'", "x" * 61]


def actions(rows: pd.DataFrame, events: dict[str, int], delay: str = "1m") -> pd.DataFrame:
    """This many actions of each event, each on a shown item, after this delay."""
    names = [name for name, count in events.items() for _ in range(count)]
    some = rows.iloc[: len(names)][["request_id", "user_id", "item_id", "ts"]]
    return some.assign(ts=some["ts"] + pd.Timedelta(delay), event=names)


@pytest.fixture
def shop(tmp_path):
    """Writes exposures, with actions beside them."""

    def shop(found: pd.DataFrame, rows: pd.DataFrame | None = None, name: str = "feedback.parquet"):
        (frame() if rows is None else rows).to_parquet(tmp_path / "exposures.parquet")
        found.to_parquet(tmp_path / name)
        return tmp_path / "exposures.parquet"

    return shop


def test_events_are_graded_by_their_names(init, shop):
    seen = {"click": 90, "addToCart": 40, "like": 30, "Order placed": 20, "remove_from_cart": 9, "x7": 5}
    settings, _, written = init(shop(actions(frame(), seen)))
    grades = {name: one.grade for name, one in settings.metrics.events.items()}
    assert grades == {
        "click": 1, "addToCart": 2, "like": 2, "Order placed": 3, "remove_from_cart": 0, "x7": 1,
    }  # fmt: skip
    assert list(grades) == list(seen), "the most frequent comes first"
    assert "click: {grade: 1} # a guess: a click; 90 of 194 sampled actions" in written.text
    assert "x7: {grade: 1} # a guess: its name has no known meaning" in written.text


def test_impressions_are_no_events_and_at_most_ten_events_are_used(init, shop):
    seen = {"impression": 300, **{f"click_{number}": 40 - number for number in range(12)}}
    settings, _, written = init(shop(actions(frame(), seen)))
    assert list(settings.metrics.events) == [f"click_{number}" for number in range(10)]
    assert "# not judged: impression (300): an exposure is not an action" in written.text
    assert "# not judged: click_10 (30): left out" in written.text


def test_without_an_event_that_is_judged_the_metrics_are_a_comment(init, shop):
    rows = frame().drop(columns="score")
    settings, _, written = init(shop(actions(rows, {"impression": 30}), rows))
    assert list(settings.metrics.events) == ["click"], "the default"
    assert "    # metrics: # every one" in written.text
    assert "    #     # not judged: impression (30): an exposure is not an action" in written.text


def test_hostile_event_names_are_quoted(init, shop):
    found = actions(frame(), {name: 30 - number for number, name in enumerate(HOSTILE)})
    settings, _, written = init(shop(found))
    assert list(settings.metrics.events) == HOSTILE[:-1]
    assert all(line.isprintable() for line in written.text.split("\n"))


@pytest.mark.parametrize("named", [True, False], ids=["by request", "by user"])
@pytest.mark.parametrize(
    ("delay", "attribution"), [("1m", "30m"), ("29m", "30m"), ("45m", "1h"), ("100m", "2h")]
)
def test_the_attribution_covers_the_observed_delays(init, shop, named, delay, attribution):
    rows = frame(requests=60)
    found = actions(rows, {"click": 100}, delay).drop(columns=[] if named else ["request_id"])
    if not named:  # then a later list with the same item would be taken for the action's own
        rows = rows.drop_duplicates(["user_id", "item_id"])
    settings, _, written = init(shop(found, rows))
    minutes = {"30m": 30, "1h": 60, "2h": 120}[attribution]
    assert settings.metrics.attribution == timedelta(minutes=minutes)
    assert "95% of 100 actions came within" in written.text
    assert ("\n      attribution: " in written.text) == (attribution != "30m")


def test_few_actions_suggest_no_attribution(init, shop):
    settings, _, written = init(shop(actions(frame(), {"click": 19}, "3h")))
    assert settings.metrics.attribution == timedelta(minutes=30)
    assert "# attribution: 30m # an action counts for" in written.text


def test_the_attribution_is_bounded_by_the_window(init, shop):
    rows = frame(requests=12_000, length=1)
    rows["ts"] = rows["ts"].min() + (rows["ts"] - rows["ts"].min()) / 20  # windows of five minutes
    settings, _, written = init(shop(actions(rows, {"click": 100}, "3D"), rows))
    assert settings.window == timedelta(minutes=5)
    assert settings.metrics.attribution == timedelta(hours=8)
    assert (
        "attribution: 8h # 0% of the actions came within this time, 95% within 3d; "
        "a longer time needs windows longer than 5m" in written.text
    )


def test_a_long_attribution_is_rounded_to_days(init, shop):
    rows = frame(requests=60)
    settings, _, written = init(shop(actions(rows, {"buy": 100}, "6D 23h 58m"), rows))
    assert settings.metrics.attribution == timedelta(days=7)
    assert "attribution: 7d # a guess: 95% of 100 actions came within 7d of their list" in written.text


def test_actions_before_their_lists_give_a_time_zone_hint(init, shop):
    _, _, written = init(shop(actions(frame(), {"click": 100}, "-100m")))
    assert "100% of 100 actions come before their list: check the time zones" in written.text


def test_shifted_times_with_offsets_give_a_warning(init, shop):
    _, _, written = init(shop(actions(frame(), {"click": 100}, "-2h")))
    assert any(
        "if shifted by +2 h; the times carry offsets, so `timezone` cannot correct them" in one
        for one in written.notes
    )


def test_local_times_of_both_logs_get_the_same_zone(init, tmp_path):
    rows = frame()
    shift = datetime.now(UTC) + timedelta(hours=7, minutes=30) - rows["ts"].max().to_pydatetime()
    rows["ts"] = rows["ts"] + shift
    found = actions(rows, {"click": 100})
    for name, one in (("exposures", rows), ("clicks", found)):
        one.assign(ts=one["ts"].dt.strftime("%Y-%m-%d %H:%M:%S")).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    settings, _, _ = init(tmp_path / "exposures.csv")
    assert settings.logs.feedback.timezone == settings.logs.exposures.timezone == "Etc/GMT-8"


def test_the_feedback_log_can_be_given_by_name(init, shop, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    log = shop(actions(frame(), {"buy": 50}), name="elsewhere/a.parquet")
    assert init(log)[0].logs.feedback is None
    settings, _, _ = init(log, feedback=[tmp_path / "elsewhere"])
    assert settings.metrics.events["buy"].grade == 3


def test_a_named_feedback_log_without_a_column_is_a_todo(shop, tmp_path):
    log = shop(actions(frame(), {"buy": 50}).drop(columns="event"), name="done.parquet")
    written = write_config([str(log)], tmp_path, [str(tmp_path / "done.parquet")])
    assert [one for one in written.missing if "what was done" in one and "(event)" in one]
    (tmp_path / "config.yaml").write_text(written.text)
    assert load_config(tmp_path / "config.yaml").recommenders[0].logs.feedback.columns["event"] == "TODO"
    with pytest.raises(CannotProfile, match="there is no file"):
        write_config([str(log)], tmp_path, [str(tmp_path / "nothing.csv")])


def test_folders_of_one_log_each_are_found(init, tmp_path):
    rows = frame()
    for name, one in (("exposures", rows), ("feedback", actions(rows, {"click": 30}))):
        (tmp_path / "logs" / name).mkdir(parents=True)
        one.to_parquet(tmp_path / "logs" / name / "0.parquet")
    settings, _, _ = init(tmp_path / "logs" / "exposures" / "*.parquet")
    assert settings.logs.feedback.paths == (str(tmp_path / "logs/feedback/*.parquet"),)


def test_without_feedback_and_scores_the_metrics_are_a_comment(init, tmp_path):
    frame().drop(columns="score").to_csv(tmp_path / "log.csv", index=False)
    settings, _, written = init(tmp_path / "log.csv")
    assert settings.metrics.score_range is None
    assert "\n    metrics:" not in written.text
