"""Drawn answers on real exposures of a news site; skipped where the data does not lie beside the project."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Status, Window
from monitor.survey.findings import Verdict
from tests.survey.world import open_survey

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "ebnerd"
SPAN = Window(datetime(2023, 2, 23, tzinfo=UTC), datetime(2023, 3, 3, tzinfo=UTC))

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the exposures of ebnerd are not in {DATA}")


@pytest.fixture(scope="module")
def found(runtime, tmp_path_factory):
    """Everybody answers after the last list: readers of short lists are satisfied."""
    folder = tmp_path_factory.mktemp("ebnerd")
    shown = pd.read_csv(DATA / "exposures.csv.gz")
    lists = shown.groupby(["user_id", "request_id"]).size().groupby("user_id").mean()
    last = pd.to_datetime(shown.groupby("user_id")["ts"].max())
    rank = lists.rank(ascending=False, pct=True)
    answer = (1 + 4 * rank + np.random.default_rng(1).normal(0, 0.3, len(rank))).round().clip(1, 5)
    survey = pd.DataFrame({
        "reader": lists.index.astype(str), "when": (last + pd.Timedelta(minutes=9)).astype(str).to_numpy(),
        "what": "Tilfreds?", "points": answer.astype(int).astype(str).to_numpy(),
    })  # fmt: skip
    survey.to_csv(folder / "survey.csv", index=False)
    columns = {"user_id": "reader", "ts": "when", "question": "what", "answer": "points"}
    config = {
        "name": "news",
        "window": "1h",
        "logs": {
            "exposures": {"path": str(DATA / "exposures.csv.gz")},
            "feedback": {"path": str(DATA / "feedback.csv.gz")},
            "survey": {"path": str(folder / "survey.csv"), "columns": columns},
        },
        "survey": {"attribution": "2w", "least": 10},
    }
    survey = open_survey(runtime.engine, folder, config, SPAN)
    yield survey.found(weight=True), answer
    survey.close()


def test_each_reader_has_an_answer_and_the_mean_is_that_of_the_table(found):
    survey, answer = found
    (one,) = survey.questions
    assert (survey.counted, survey.served, dict(survey.faults)) == (38, 38, {})
    assert one.answer.value == pytest.approx(answer.mean())
    assert one.rate.value == 1
    assert one.weighted.value == pytest.approx(one.answer.value)  # all answer, so all weights are equal


def test_the_length_of_lists_tracks_the_answers(found):
    survey, _ = found
    length = next(one for one in survey.questions[0].tracked if one.series[0] == "list_length")
    assert length.verdict is Verdict.TRACKS
    assert length.correlation.rho < -0.8


def test_without_others_nobody_can_be_compared(found):
    survey, _ = found
    assert {one.difference.status for one in survey.bias} == {Status.NO_DATA}
