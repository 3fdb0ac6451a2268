"""`recsys_monitor.metric`: any metric of the catalogue in one call, or a sentence that says why not."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recsys_monitor
from monitor.core.json_value import iso
from monitor.metrics.catalogue import FAMILIES, SPECS
from monitor.metrics.family import MetricSpec
from monitor.report.result_json import result_as_json
from tests.python.conftest import HOURS, METRICS, START

WHOLE = {"window": "2d", "metrics": METRICS}  # all rows are in one window
PAST = {"novelty", "self_information", "average_popularity", "matthew_effect", "serendipity", "update_rate"}


@pytest.fixture(scope="session")
def checked(logs: dict[str, pd.DataFrame]) -> recsys_monitor.Results:
    return recsys_monitor.check(**logs, config=WHOLE)


@pytest.mark.parametrize("name", SPECS)
def test_a_metric_of_the_whole_frame_is_that_of_one_window_that_holds_it(
    name: str, logs: dict[str, pd.DataFrame], checked: recsys_monitor.Results
) -> None:
    measured = recsys_monitor.metric(name, **logs, config=WHOLE)
    expected = [
        result_as_json(one.recommender, one.check, one.window, one.result)
        for one in checked
        if one.result.metric == name
    ]
    shown = [result_as_json(one.recommender, one.check, one.window, one.result) for one in measured]
    assert shown == expected
    assert shown
    if name not in PAST:
        assert any(one["value"] is not None for one in shown)


@pytest.mark.parametrize("kind", [lambda rows: rows, pl.from_pandas, pa.Table.from_pandas])
def test_labels_choose_one_value_and_the_kind_of_frame_does_not_matter(
    kind: Any, logs: dict[str, pd.DataFrame]
) -> None:
    exposures, feedback, catalog = (kind(rows) for rows in logs.values())
    shown = set(logs["exposures"].item_id.dropna())
    there = set(logs["catalog"].item_id)
    coverage = recsys_monitor.metric("coverage", exposures, catalog=catalog, by="item")
    assert coverage.value == len(shown & there) / len(there)
    assert coverage.status == "ok"
    settings = {"metrics": METRICS}
    clicks = recsys_monitor.metric("action_volume", exposures, feedback, config=settings, event="click")
    in_time = logs["feedback"].ts < START + pd.Timedelta(hours=HOURS)  # one click is later
    assert clicks.value == ((logs["feedback"].event == "click") & in_time).sum()
    assert recsys_monitor.metric("ndcg", exposures, feedback, config=settings, k=3).value > 0


def test_rows_of_many_windows_are_one_measurement(logs: dict[str, pd.DataFrame]) -> None:
    requests = recsys_monitor.metric("volume", logs["exposures"], by="requests")
    assert len(requests) == 1
    assert requests.value == logs["exposures"].query("status == 'ok'").request_id.nunique()
    span = requests[0].window
    assert iso(span.start) == "2026-01-05T00:00:00Z"
    assert iso(span.end) == "2026-01-06T06:00:00Z"


def test_several_results_have_no_one_value(logs: dict[str, pd.DataFrame]) -> None:
    measured = recsys_monitor.metric("coverage", logs["exposures"])
    with pytest.raises(ValueError, match="there are 2 results: coverage by=pv, coverage by=uv"):
        _ = measured.value
    assert measured.frame().series.tolist() == ["coverage by=pv", "coverage by=uv"]


@pytest.mark.parametrize(
    ("name", "drop", "labels", "message"),
    [
        ("coverge", (), {}, "no metric is called 'coverge'; did you mean coverage?"),
        ("x" * 9, (), {}, "no metric is called 'xxxxxxxxx'; recsys_monitor.metrics() lists all"),
        (
            "score_health",
            ("score",),
            {},
            "score_health needs the column score of the exposures; the frame has",
        ),
        (
            "score_health",
            ("score",),
            {},
            "if the column has another name there, pass columns={'score': NAME}",
        ),
        ("log_loss", (), {}, "log_loss needs the feedback; pass it as feedback="),
        ("coverage", (), {"by": "item"}, "coverage has no result with by=item; it has: by=pv, by=uv; "),
        ("coverage", (), {"by": "item"}, "; coverage needs the catalog; pass it as catalog="),
        ("latency", (), {"by": "p75"}, "latency has no result with by=p75; it has: by=p50, by=p90, by=p99"),
        ("drift", (), {}, "drift is not measured on one frame"),
        ("coverage", ("ts",), {}, "exposures: column ts (looked for as 'ts') is missing; the frame has "),
    ],
)
def test_what_is_missing_is_named(
    name: str, drop: tuple[str, ...], labels: dict[str, str], message: str, logs: dict[str, pd.DataFrame]
) -> None:
    with pytest.raises(ValueError) as raised:
        recsys_monitor.metric(name, logs["exposures"].drop(columns=list(drop)), **labels)
    assert message in str(raised.value)


@pytest.mark.parametrize("empty", ["exposures", "feedback"])
def test_an_empty_frame_is_no_data_and_has_no_value(empty: str, logs: dict[str, pd.DataFrame]) -> None:
    given = {**logs, empty: logs[empty].head(0)}
    measured = recsys_monitor.metric(
        "action_rate", **given, by="pv", event="click", config={"metrics": METRICS}
    )
    assert (measured.status, measured.value) == ("no_data", None)
    lengths = recsys_monitor.metric("list_length", given["exposures"])
    assert (lengths.status == "ok") == (empty == "feedback")
    assert (lengths.value is not None) == (empty == "feedback")


def test_the_list_of_metrics_is_the_catalogue_and_every_one_says_what_it_answers() -> None:
    listed = recsys_monitor.metrics().set_index("name")
    assert listed.index.tolist() == list(dict.fromkeys(spec.name for spec in outputs()))
    assert (listed[["answers", "formula"]] != "").all().all()
    assert listed.loc["ndcg", "labels"] == "k"
    assert listed.loc["action_rate", "labels"] == "by, event"


def outputs() -> list[MetricSpec]:
    return [spec for family in FAMILIES for spec, _ in family.outputs]
