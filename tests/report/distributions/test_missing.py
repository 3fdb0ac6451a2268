"""A figure that cannot be drawn says why, in one sentence, and the others are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.logs.log import Log
from monitor.logs.source import Source
from monitor.report.distributions.desk import Desk, Drawn
from tests.report.distributions import drawn_shop
from tests.report.distributions.drawn_shop import END, HOUR, LAST, START, WRITTEN, configured, put

SHOWN = drawn_shop.exposures()
ACTIONS = drawn_shop.feedback(SHOWN)


def drawn(folder: Path, logs: Mapping[str, pd.DataFrame], span: Window = LAST, **changes: Any) -> Drawn:
    for log, frame in logs.items():
        put(frame, folder / f"{log}.parquet")
    return drawn_shop.drawn(configured(folder, dict.fromkeys(logs), **changes), span)


def why(found: Drawn, name: str) -> str:
    figure = found.figure(name)
    assert figure is not None
    assert (figure.why == "") == bool(figure.plots)
    assert (figure.table is None) == bool(figure.why)
    return figure.why


def reasons(found: Drawn) -> dict[str, str]:
    return {figure.name: why(found, figure.name) for figure in found.figures if figure.why}


def test_a_log_of_exposures_alone_gives_what_it_can(tmp_path):
    bare = SHOWN.drop(columns=["position", "score"])
    assert reasons(drawn(tmp_path, {"exposures": bare})) == {
        "categories": "The config has no catalog, so that the categories of the items are unknown.",
        "positions": "The log of exposures has no column position.",
        "scores": "The log of exposures has no column score.",
        "calibration": "The log of exposures has no column score.",
        "roc": "The log of exposures has no column score.",
        "precision-recall": "The log of exposures has no column score.",
        "features": "The config has no log of samples.",
    }


def test_without_feedback_the_scores_are_drawn_and_what_needs_labels_is_not(tmp_path):
    without = "The config has no log of feedback, so nothing is known of what users did."
    catalog = drawn_shop.items().drop(columns="category").assign(price=1.0)
    found = reasons(drawn(tmp_path, {"exposures": SHOWN, "catalog": catalog}))
    assert found == {
        "categories": "The catalog has no column category, so that the categories of the items are unknown.",
        "positions": without,
        "calibration": without,
        "roc": without,
        "precision-recall": without,
        "features": "The config has no log of samples.",
    }


def test_feedback_that_has_not_come_yet_is_no_rate_of_zero(tmp_path):
    early = ACTIONS[ACTIONS.ts < (LAST.start - HOUR).replace(tzinfo=None)]
    found = drawn(tmp_path, {"exposures": SHOWN, "feedback": early})
    for name in ("positions", "calibration", "roc", "precision-recall"):
        assert why(found, name) == "There is no feedback on these lists yet."
    assert why(found, "scores") == ""


def test_labels_of_one_class_give_a_sentence_and_no_curve(tmp_path):
    elsewhere = ACTIONS.assign(request_id=None, user_id="somebody else")
    found = drawn(tmp_path, {"exposures": SHOWN, "feedback": elsewhere})
    scored = len(
        SHOWN[
            (SHOWN.ts >= LAST.start.replace(tzinfo=None)) & (SHOWN.ts < LAST.end.replace(tzinfo=None))
        ].dropna()
    )
    sentence = f"The exposures: all {scored} labels are 0, so it has no curve."
    assert (why(found, "roc"), why(found, "precision-recall")) == (sentence, sentence)
    assert why(found, "calibration") == ""
    assert {row[2] for row in found.figure("positions").table.rows} == {0.0}


def test_one_split_of_one_class_leaves_the_curves_of_the_others(tmp_path):
    samples = drawn_shop.samples("m", 6)
    samples.loc[samples.split == "test", "label"] = 1
    found = drawn(tmp_path, {"samples": samples})
    assert why(found, "roc") == ""
    assert {row[1] for row in found.figure("roc").table.rows} == {"train", "online"}
    assert "m, test: all 500 labels are 1, so it has no curve." in found.figure("roc").notes


def test_scores_that_are_no_numbers_are_left_out_and_counted(tmp_path):
    half = SHOWN.copy()
    half.loc[half.index % 2 == 0, "score"] = np.inf
    within = half[(half.ts >= LAST.start.replace(tzinfo=None)) & (half.ts < LAST.end.replace(tzinfo=None))]
    within = within.dropna(subset="item_id")
    lost = int(np.isinf(within.score).sum())
    found = drawn(tmp_path / "half", {"exposures": half, "feedback": ACTIONS})
    assert f"The exposures: {lost} rows left out, with no finite score." in found.figure("scores").notes
    assert sum(row[4] for row in found.figure("scores").table.rows) == len(within) - lost
    nothing = drawn(tmp_path / "all", {"exposures": half.assign(score=np.nan), "feedback": ACTIONS})
    assert why(nothing, "scores") == why(nothing, "roc") == "No row has a finite score."


def test_where_every_list_was_empty_only_their_lengths_are_drawn(tmp_path):
    empty = SHOWN.drop_duplicates("request_id").assign(item_id=None, position=None, score=None)
    empty = empty.astype({"item_id": "string", "position": "Int64", "score": "Float64"})
    found = drawn(tmp_path, {"exposures": empty, "feedback": ACTIONS, "catalog": drawn_shop.items()})
    nothing = "Nothing was shown in this span: every list was empty."
    assert why(found, "list-lengths") == ""
    assert [row[:2] for row in found.figure("list-lengths").table.rows] == [(0, 0)]
    for name in ("items", "positions", "scores", "calibration", "roc", "precision-recall"):
        assert why(found, name) == nothing
    assert why(found, "categories") == "Nothing was shown in this time: every list was empty."


def test_samples_without_exposures_are_drawn_by_themselves(tmp_path):
    found = drawn(tmp_path, {"samples": drawn_shop.samples()})
    none = "The config has no log of exposures."
    assert reasons(found) == dict.fromkeys(("items", "list-lengths", "categories", "positions"), none)


def test_features_need_offline_rows_of_the_same_requests(tmp_path):
    samples = drawn_shop.samples()
    alone = drawn(tmp_path / "a", {"samples": samples[samples.split == "online"]})
    assert why(alone, "features") == "The log of samples has no offline rows to compare with."
    others = samples.assign(request_id=samples.request_id + samples.split)
    apart = drawn(tmp_path / "b", {"samples": others[others.split.isin(["online", "offline"])]})
    assert why(apart, "features") == "None of 400 online rows has a pair among 400 offline rows."
    plain = samples[["split", "model", "score", "label", "request_id", "item_id", "ts", "city"]]
    text = drawn(tmp_path / "c", {"samples": plain})
    assert why(text, "features") == "No feature is a number with a value on both sides of a pair."
    before = Window(START - 48 * HOUR, START - 47 * HOUR)
    early = drawn(tmp_path / "d", {"samples": samples}, before)
    assert why(early, "features").startswith("There are no online samples in 2026-02-26 23:00")
    assert why(early, "roc") == ""
    assert early.figure("roc").notes[0].startswith("There are no online samples in 2026-02-26 23:00")


def test_a_feature_that_is_never_served_has_no_plot_and_is_counted(tmp_path):
    samples = drawn_shop.samples()
    samples.loc[samples.split == "online", "clicks"] = np.nan
    found = drawn(tmp_path, {"samples": samples}).figure("features")
    assert found is not None
    assert len(found.plots) == 1
    assert any(note.startswith("Features without a plot: 2, of which 1 differs.") for note in found.notes)


@pytest.mark.parametrize(
    ("span", "sentence"),
    [
        (
            Window(START - 9 * HOUR, START - 8 * HOUR),
            "The log of exposures now begins at 2026-03-01 22:00 UTC: older files were rotated away, or "
            "never had rows of this span.",
        ),
        (Window(END + 5 * HOUR, END + 6 * HOUR), "The log of exposures has no rows in this span."),
    ],
    ids=["before", "after"],
)
def test_a_span_without_rows_says_whether_the_log_begins_later(tmp_path, span, sentence):
    found = drawn(tmp_path, {"exposures": SHOWN, "feedback": ACTIONS}, span)
    for name in ("items", "list-lengths", "positions", "scores", "roc"):
        assert why(found, name) == sentence


def known_before(path: Path) -> Callable[[str, Log], None]:
    """The index as it is now."""
    settings = drawn_shop.loaded(path).recommenders[0]
    source = Source(settings.logs, settings)
    for log in source.logs.values():
        log.refresh(Engine(duckdb.connect()), WRITTEN)

    def restore(_recommender: str, log: Log) -> None:
        log.restore(source.logs[log.name].entries.values())

    return restore


def test_files_that_were_rotated_away_are_named_as_the_reason(tmp_path):
    hours = SHOWN.groupby(SHOWN.ts.dt.floor("6h"))
    for number, (_, own) in enumerate(hours):
        put(own, tmp_path / f"exposures-{number}.parquet")
    path = configured(tmp_path, {"exposures": None})
    path.write_text(path.read_text().replace("exposures.parquet", "exposures-*.parquet"))
    config, restore = drawn_shop.loaded(path), known_before(path)
    (tmp_path / "exposures-0.parquet").unlink()
    found = Desk(restore).figures(config, config.recommenders[0], Window(START, START + HOUR))
    assert (
        why(found, "items") == "The files of the log of exposures with rows of this span were rotated away."
    )


def test_a_file_that_vanished_from_the_middle_is_a_loss(tmp_path):
    for number, (_, own) in enumerate(SHOWN.groupby(SHOWN.ts.dt.floor("h"))):
        put(own, tmp_path / f"exposures-{number:02}.parquet")
    path = configured(tmp_path, {"exposures": None})
    path.write_text(path.read_text().replace("exposures.parquet", "exposures-*.parquet"))
    config, restore = drawn_shop.loaded(path), known_before(path)
    gone = int((LAST.start - START) / HOUR)
    (tmp_path / f"exposures-{gone:02}.parquet").unlink()
    found = Desk(restore).figures(config, config.recommenders[0], LAST)
    assert why(found, "items").startswith("The rows of the log of exposures in this span are lost: ")


def test_actions_that_may_still_come_are_a_note(tmp_path):
    newest = Window(END - HOUR, END)
    found = drawn(tmp_path, {"exposures": SHOWN, "feedback": ACTIONS}, newest)
    notes = found.figure("positions").notes
    assert notes[0].startswith("Actions on these lists may be missing: the log has reached 2026-03-03 01:")
    settled = drawn(tmp_path / "settled", {"exposures": SHOWN, "feedback": ACTIONS})
    assert settled.figure("positions").notes == ()


def test_scores_of_any_size_can_be_drawn(tmp_path):
    samples = drawn_shop.samples("m", 6).drop(columns="clicks")
    largest = np.where(samples.score > 0.5, 1.7e308, -1.7e308)
    found = drawn(tmp_path / "large", {"samples": samples.assign(score=largest)})
    assert why(found, "scores") == why(found, "roc") == ""
    assert {row[4] > 0 for row in found.figure("scores").table.rows if row[2] == -1.7e308} == {True}
    equal = drawn(tmp_path / "equal", {"samples": samples.assign(score=0.25)})
    assert [row[2:] for row in equal.figure("scores").table.rows if row[1] == "train"] == [
        (-0.25, 0.75, 900, 1.0)
    ]
    far = samples.reset_index(drop=True)
    far.loc[7, "score"] = 1e9
    outlier = drawn(tmp_path / "far", {"samples": far})
    assert outlier.figure("scores").table.rows[-1][3] < 2
    assert "A few scores lie far outside; the outer bins count them." in outlier.figure("scores").notes
    assert sum(row[4] for row in outlier.figure("scores").table.rows) == 1800
    assert any("lie outside [0, 1]" in note for note in outlier.figure("calibration").notes)
