"""`init` proposes no empty join, and no wrong column of the exposures just because it would join."""

from __future__ import annotations

import pandas as pd
import pytest

from monitor.config.init.wizard import write_config
from tests.config.exposure_logs import frame


def _actions(rows: pd.DataFrame) -> pd.DataFrame:
    done = rows.iloc[::5][["request_id", "user_id", "item_id", "ts"]].assign(event="click")
    return done.assign(ts=done["ts"] + pd.Timedelta("90s"))


def test_the_request_is_not_replaced_by_the_session_of_the_actions(init, tmp_path):
    rows = frame(200)
    rows["session_id"] = "s" + rows["user_id"]
    done = _actions(rows).assign(session_id=lambda one: "s" + one["user_id"]).drop(columns="request_id")
    rows.rename(columns={"request_id": "request_uuid"}).to_csv(tmp_path / "exposures.csv", index=False)
    done.to_csv(tmp_path / "feedback.csv", index=False)
    settings, _, written = init(tmp_path / "exposures.csv")
    assert settings.logs.exposures.columns["request_id"] == "request_uuid"
    assert "request_id" not in settings.logs.feedback.columns
    line = next(one for one in written.text.splitlines() if "request_id: session_id" in one)
    assert line.startswith(
        "          # request_id: session_id # joins nothing: no id of its 'session_id' is in 'request_uuid' "
        "of the exposures: "
    )


def test_a_second_id_of_the_same_requests_can_replace_the_first(init, tmp_path):
    rows = frame(200)
    rows["delivery"] = "d" + rows["request_id"]
    done = _actions(rows).assign(request_id=lambda one: "d" + one["request_id"])
    rows.to_csv(tmp_path / "exposures.csv", index=False)
    done.to_csv(tmp_path / "feedback.csv", index=False)
    settings, _, _ = init(tmp_path / "exposures.csv")
    assert settings.logs.exposures.columns["request_id"] == "delivery"
    assert settings.logs.feedback.columns["request_id"] == "request_id"


@pytest.fixture
def padded(tmp_path):
    """Exposures whose ids of one role have leading zeros, and actions that have them as numbers."""

    def write(*roles: str):
        rows = frame(200)
        for role in roles:
            number = rows[role].str.extract(r"(\d+)")[0]
            rows[role] = number if role == "item_id" else number.str.zfill(8)
        done = _actions(rows)
        done = done.assign(**{role: done[role].astype(int) for role in roles})
        rows.to_csv(tmp_path / "exposures.csv", index=False)
        done.to_parquet(tmp_path / "feedback.parquet")
        return tmp_path / "exposures.csv"

    return write


WHY = "no id of its 'user_id' is in 'user_id' of the exposures: they differ in leading zeros ("


def test_feedback_whose_users_differ_in_zeros_is_left_out_with_the_reason(init, padded):
    settings, _, written = init(padded("request_id", "user_id"))
    assert settings.logs.feedback is None
    line = next(one for one in written.text.splitlines() if "feedback: {path:" in one)
    assert line.startswith(
        f"      # feedback: {{path: feedback.parquet}} # not used: it looks like feedback, but {WHY}"
    )
    assert len([one for one in written.notes if one.startswith("not used: ") and WHY in one]) == 1


def test_a_named_feedback_log_that_joins_nothing_is_a_todo(padded, tmp_path):
    log = padded("request_id", "user_id")
    written = write_config([str(log)], tmp_path, [str(tmp_path / "feedback.parquet")])
    assert [one for one in written.missing if WHY in one and one.endswith("write the ids alike in both logs")]
    assert f"      # TODO feedback: {{path: feedback.parquet}} # not used: {WHY}" in written.text
    assert "\n      feedback:" not in written.text


def test_users_that_differ_in_zeros_are_reported_if_the_requests_join(init, padded):
    settings, _, written = init(padded("user_id"))
    assert settings.logs.feedback.columns["request_id"] == "request_id"
    assert f"          user_id: user_id # joins nothing: {WHY}" in written.text


def test_ids_as_numbers_with_gaps_join_whole_numbers(init, tmp_path):
    """pandas writes a column of whole numbers as fractions once one is missing."""
    rows = frame(200)
    rows["user_id"] = rows["user_id"].str[1:].astype(int)
    done = _actions(rows).astype({"user_id": float}).drop(columns="request_id")
    done.iloc[0, done.columns.get_loc("user_id")] = None
    rows.to_parquet(tmp_path / "exposures.parquet")
    done.to_parquet(tmp_path / "feedback.parquet")
    settings, _, written = init(tmp_path / "exposures.parquet")
    assert settings.logs.feedback.columns["user_id"] == "user_id"
    assert "joins nothing" not in written.text
