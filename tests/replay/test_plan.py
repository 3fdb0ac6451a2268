"""The plan of the cases: each value keeps its type."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.replay.plan import read_plan, requests_of_cases, write_plan
from monitor.replay.templates import Templates
from monitor.settings.replay import TargetSettings

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "sent"),
    [
        ((1, 2.5, None), [1, 2.5, None]),
        ((2**60, 0.5), [float(2**60), 0.5]),
        ((1, None), [1, None]),
        ((True, False), [True, False]),
        ((True, "a", 1, 2.5), ["true", "a", "1", "2.5"]),
    ],
)
def test_a_number_among_the_cases_is_sent_as_a_number(tmp_path, values, sent):
    target = TargetSettings.model_validate(
        {"name": "it", "url": "http://127.0.0.1/", "body": {"n": "{{ n }}"}}
    )
    table = requests_of_cases({"n": values}, NOW)
    write_plan(tmp_path / "plan", iter(table.to_batches()), table.schema, ("n",), Templates(target))
    found = [one.values["n"] for one in read_plan(tmp_path / "plan")]
    assert found == sent
    assert [type(one) is bool for one in found] == [type(one) is bool for one in sent]
