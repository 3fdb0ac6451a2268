"""`init` proposes no rule that can never be judged on the log, or that the whole log violates."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.config.init.wizard import write_config
from tests.config.exposure_logs import frame


@pytest.fixture
def proposed(tmp_path):
    def propose(rows, pack: str) -> str:
        rows.to_parquet(tmp_path / "log.parquet")
        text = write_config([str(tmp_path / "log.parquet")], tmp_path).text
        (line,) = (one.strip() for one in text.splitlines() if f"pack: {pack}" in one)
        return line

    return propose


def test_equal_scores_are_not_judged_where_no_list_has_two(proposed):
    assert proposed(frame(60, length=1), "scores").startswith(
        "- {pack: scores, parameters: {min_score: 0, max_score: 1}, disable: [scores_all_equal]} # scores "
    )


def test_equal_scores_are_judged_if_a_list_has_two(proposed):
    assert "disable" not in proposed(frame(60, length=2), "scores")


def test_scores_that_are_the_same_in_a_whole_list_are_not_judged_as_faults(proposed):
    rows = frame(60)
    rows["score"] = rows.groupby("request_id").score.transform("max")
    line = proposed(rows, "scores")
    assert "disable: [scores_all_equal]" in line
    assert line.endswith("; all are equal in 100% of the lists")


def test_scores_that_are_0_or_1_are_not_judged_as_saturated(proposed):
    rows = frame(60).assign(score=lambda one: np.where(one.position == 1, 1.0, 0.0))
    line = proposed(rows, "scores")
    assert "{min_score: 0, max_score: 1, saturated_values: null}" in line
    assert line.endswith("; 100% of them are 0 or 1")


@pytest.mark.parametrize(
    ("lowest", "least"), [(0.2, "0.001"), (0.00042, "0.0001"), (0.000007, "0.000001"), (0.0, "0.001")]
)
def test_the_smallest_propensity_seen_is_in_the_proposed_range(proposed, lowest, least):
    rows = frame(60).assign(propensity=[lowest] + [0.5] * 299)
    assert f"parameters: {{min_propensity: {least}}}}}" in proposed(rows, "importance")
