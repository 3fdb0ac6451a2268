"""`init` on exposures with a column of clicks, and on lists in several columns."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from monitor.config.init.wizard import write_config
from tests.config.init.log_shapes import CLICK_RATE, CLICKS, clicks, exposures


def _flagged(yes: object, no: object) -> pd.DataFrame:
    shown = exposures()
    done = clicks(shown)[["request_id", "item_id"]].assign(clicked=True)
    found = shown.merge(done, how="left", on=["request_id", "item_id"])
    return found.assign(clicked=found["clicked"].eq(True).map({True: yes, False: no}))


def _uncommented(text: str) -> str:
    """The config with the lines of the feedback log and of its event uncommented."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("      # feedback: "))
    for number in range(at, at + 5):
        lines[number] = lines[number].replace("      # ", "      ", 1)
    return "\n".join(lines).replace("      # events: ", "      events: ")


@pytest.mark.parametrize(("yes", "no"), [(1, 0), (True, False)], ids=["numbers", "truth values"])
def test_a_click_flag_in_the_exposures_can_be_read_as_feedback(yes, no, command, tmp_path):
    _flagged(yes, no).to_csv(tmp_path / "exposures.csv", index=False)
    code, _, notes = command("init", "exposures.csv", "--output", "shop.yaml")
    assert code == 0
    assert (
        "warning: 'clicked' says what users did, and no metric uses it: feedback is rows with an event; the "
        "config has a feedback log as a comment that reads it from the same files"
    ) in notes.replace("\n", " ")
    text = (tmp_path / "shop.yaml").read_text("utf-8")
    assert "by: [clicked]" not in text, "what users did is no property of what was shown"
    (tmp_path / "shop.yaml").write_text(_uncommented(text), "utf-8")
    code, said, _ = command("check", "--config", "shop.yaml", "--format", "json")
    found = {
        (one["metric"], one["labels"].get("by")): one["value"]
        for one in json.loads(said)
        if one["labels"].get("event") in ("1", "true", "True") and "dimension" not in one["labels"]
    }
    assert found["action_rate", "exposure"] == pytest.approx(CLICK_RATE)
    assert found["action_volume", None] == CLICKS
    assert found["attribution", "request"] == 1


def test_a_click_time_in_the_exposures_gets_a_warning(tmp_path):
    shown = exposures()
    done = clicks(shown)[["request_id", "item_id", "ts"]].rename(columns={"ts": "click_time"})
    shown.merge(done, how="left", on=["request_id", "item_id"]).to_csv(tmp_path / "log.csv", index=False)
    written = write_config([str(tmp_path / "log.csv")], tmp_path)
    advice = (
        "'click_time' says what users did, and no metric uses it: feedback is rows with an event; write one "
        "row for each action (user_id, item_id, ts, event, request_id) to a feedback log"
    )
    assert written.notes == (f"warning: {advice}",)
    assert f"      # feedback: {{path: ...}} # {advice}\n" in written.text


def test_a_click_flag_is_ignored_if_there_is_a_feedback_log(tmp_path):
    _flagged(1, 0).to_csv(tmp_path / "exposures.csv", index=False)
    clicks(exposures()).to_csv(tmp_path / "feedback.csv", index=False)
    written = write_config([str(tmp_path / "exposures.csv")], tmp_path)
    assert written.notes == (
        "feedback: took feedback.csv, since its name says so and its ids join the exposures",
    )
    assert "by: [clicked]" not in written.text


def _wide() -> pd.DataFrame:
    keys = ["request_id", "user_id", "ts"]
    rows = exposures().pivot_table(index=keys, columns="position", values="item_id", aggfunc="first")
    return rows.rename(columns=lambda number: f"item_{number}").reset_index()


def test_a_list_in_several_columns_is_a_todo_and_then_a_warning(command, tmp_path):
    _wide().to_csv(tmp_path / "exposures.csv", index=False)
    code, _, notes = command("init", "exposures.csv", "--output", "shop.yaml")
    assert code == 2
    assert (
        "TODO: 'item_1' to 'item_5' seem to hold one list in 5 columns, which is not read; write one row for "
        "each item, or one column with a list of the items"
    ) in notes.replace("\n", " ")
    lines = (tmp_path / "shop.yaml").read_text("utf-8").splitlines()
    lines = ["          item_id: item_1" if "item_id: TODO" in one else one for one in lines]
    (tmp_path / "shop.yaml").write_text("\n".join(lines), "utf-8")
    _, said, _ = command("validate", "--config", "shop.yaml")
    assert (
        "only 'item_1' is judged, and 'item_2', 'item_3', 'item_4' may hold further items of the same list"
    ) in said


def test_a_folder_as_path_and_an_unfinished_file_give_advice(command, tmp_path):
    (tmp_path / "logs").mkdir()
    exposures().to_csv(tmp_path / "logs" / "a.csv", index=False)
    text = (tmp_path / "logs" / "a.csv").read_text("utf-8")
    command("init", "logs/a.csv", "--output", "shop.yaml")
    config = (tmp_path / "shop.yaml").read_text("utf-8")
    (tmp_path / "shop.yaml").write_text(config.replace("path: logs/a.csv", "path: logs"), "utf-8")
    code, said, _ = command("validate", "--config", "shop.yaml")
    assert code == 2
    folder = tmp_path / "logs"
    assert f"{folder} is a folder, not a file; name the files in it, such as '{folder}/*.csv'" in said
    (tmp_path / "logs" / "a.csv").write_text(text.rstrip("\n"), "utf-8")
    code, _, notes = command("init", "logs/a.csv", "--output", "other.yaml")
    assert code == 2
    assert (
        "a.csv: its last line has no end yet: still being written; it is read 60 s after its last change, or "
        "once its last line ends"
    ) in notes.replace("\n", " ")
