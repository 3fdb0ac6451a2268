"""`forecast` as people and programs see it, on a history of sixty days."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from monitor.history.store import Store
from tests.cli.conftest import Ran, run_monitor
from tests.forecast.past_days import put_days, related

CONFIG = """\
state: ./state
recommenders:
  - name: shop
    logs: {exposures: {path: x.parquet}, feedback: {path: y.parquet}}
    window: 12h
    forecast:
      days: 60
      targets:
        - name: ctr
          metric: action_rate
          labels: {by: exposure, event: click}
          used: [{metric: ndcg, labels: {k: "10"}}]
  - name: plain
    logs: {exposures: {path: x.parquet}}
    window: 12h
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(CONFIG)
    (tmp_path / "state").mkdir()
    return tmp_path


def fill(shop: Path, count: int = 60, broken_from: int = 1000) -> None:
    ndcg, ctr = related()
    _, other = related(5)
    with Store.open(f"sqlite:///{shop}/state/history.sqlite") as store:
        put_days(store, count, ndcg, lambda at: ctr(at) if at < broken_from else other(at))


def forecast(shop: Path, *options: str) -> Ran:
    return run_monitor("forecast", "-c", "shop.yaml", *options, cwd=shop)


def test_a_candidate_is_forecast_stored_and_listed_in_every_format(shop: Path) -> None:
    fill(shop)
    ran = forecast(shop, "--model", "m<b>9", "--at", "ndcg,k=10=0.33")
    assert (ran.code, ran.err) == (0, "")
    assert "60 of the 60 days from 2026-03-02 to 2026-04-30 are used" in ran.out
    assert re.search(r"✓ ok +ndcg \(k=10\) \(used\) +0\.\d\d \(0\.\d\d to 0\.\d\d\)", ran.out)
    assert "predicts: the line saves" in ran.out
    assert "forecast of m<b>9" in ran.out
    assert "none could be compared with the truth yet, 1 not yet known" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 110

    (found,) = json.loads(forecast(shop, "--format", "json").out)
    assert found["days"]["used"] == 60
    (pair,) = found["pairs"]
    assert pair["predicts"]
    assert pair["lower"] < pair["correlation"] < pair["upper"]
    (kept,) = found["stored"]
    assert (kept["candidate"], kept["outcome"]) == ("m<b>9", "not_yet_known")
    assert kept["lower"] < kept["value"] < kept["upper"]

    page = forecast(shop, "--format", "html").out
    assert page.count("<circle") == 60
    assert '<polyline class="fit"' in page
    assert '<polygon class="band"' in page
    assert "m&lt;b&gt;9" in page
    assert "<b>" not in page


def test_a_used_metric_that_no_longer_predicts_is_code_1(shop: Path) -> None:
    (shop / "shop.yaml").write_text(CONFIG.replace("days: 60", "days: 84"))
    fill(shop, 90, broken_from=60)
    ran = forecast(shop)
    assert ran.code == 1
    assert "✗ violated" in ran.out
    assert "no longer predicts" in " ".join(ran.out.split())


def test_too_few_days_are_code_3(shop: Path) -> None:
    fill(shop, 10)
    ran = forecast(shop, "--model", "m9", "--at", "ndcg=0.33")
    assert ran.code == 3
    assert "10 of 60 days can be used, and 21 are needed" in " ".join(ran.out.split())


def test_a_history_without_a_day_has_no_heading_without_a_pair(shop: Path) -> None:
    fill(shop, 0)
    ran = forecast(shop)
    assert ran.code == 3
    assert "the history has no judged day yet" in ran.out
    assert "rank correlation" not in ran.out


def test_a_past_span_is_studied_alone(shop: Path) -> None:
    fill(shop)
    ran = forecast(shop, "--from", "2026-03-10", "--to", "2026-04-20")
    assert "days from 2026-03-10 to 2026-04-19 are used" in ran.out


@pytest.mark.parametrize("span", [("--to", "2026-04-20"), ("--from", "2026-03-10")])
def test_a_forecast_of_a_past_span_is_shown_and_not_stored(shop: Path, span: tuple[str, str]) -> None:
    fill(shop)
    (found,) = json.loads(
        forecast(shop, "--model", "m9", "--at", "ndcg,k=10=0.33", *span, "--format", "json").out
    )
    assert [one["status"] for one in found["forecasts"]] == ["ok"]
    assert found["stored"] == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "m9"], "knows no model called 'm9'"),
        (["--at", "ndcg"], "write it as auc=0.71"),
        (["--at", "gauc=0.5"], "no offline metric that is tried is 'gauc'"),
        (["--candidate", "nobody"], "no recommender is called 'nobody'"),
        (["--candidate", "shop"], "name another one"),
        (["--model", "plain"], "name it with --candidate"),
        (["--model", "a", "--candidate", "plain"], "not both"),
        (["--recommender", "plain"], "'plain' does not have a `forecast`"),
    ],
)
def test_a_wrong_option_is_code_2_and_says_what_to_do(shop: Path, options: list[str], said: str) -> None:
    fill(shop, 30)
    ran = forecast(shop, *options)
    assert ran.code == 2
    assert said in " ".join(ran.err.replace("│", " ").split())
    assert "Traceback" not in ran.err


def test_without_a_history_the_command_says_how_to_get_one(shop: Path) -> None:
    ran = forecast(shop)
    assert ran.code == 2
    assert "there is no history at" in ran.err
