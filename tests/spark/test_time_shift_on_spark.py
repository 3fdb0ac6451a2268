"""The shift of the feedback's times is the same on Spark as on DuckDB."""

from __future__ import annotations

from datetime import timedelta

import ibis
import pytest

from monitor.metrics.feedback.time_shift import joining_shift
from monitor.metrics.feedback.why_lost import why_lost
from tests.metrics.feedback.test_time_shift import world


@pytest.mark.parametrize("hours", [8, -5.5])
def test_spark_finds_the_same_shift(spark, hours):
    exposures, feedback = world(timedelta(hours=hours), users=40)
    there = [
        spark.create(name, table) for name, table in (("shift_shown", exposures), ("shift_acted", feedback))
    ]
    found = joining_shift(*there, timedelta(minutes=30))
    assert found == joining_shift(exposures, feedback, timedelta(minutes=30))
    assert found.shift == timedelta(hours=-hours)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"user_id": lambda t: t.user_id.concat("-B")}, "0% of the actions have a user of the exposures"),
        ({"user_id": lambda t: t.user_id.concat(" ")}, "the user ids differ in case or in blanks"),
        ({"ts": lambda t: t.ts + ibis.interval(hours=2)}, "come later than metrics.attribution (30m)"),
    ],
    ids=["other ids", "blanks", "late"],
)
def test_spark_gives_the_same_reason(spark, change, says):
    exposures, feedback = world(users=40)
    feedback = feedback.mutate(**change)
    there = [spark.create(name, table) for name, table in (("why_shown", exposures), ("why_acted", feedback))]
    found = why_lost(*there, timedelta(minutes=30))
    assert says in found
    assert found == why_lost(exposures, feedback, timedelta(minutes=30))
