"""The figures of real logs: what is known of them can be seen."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pandas as pd
import pytest
import yaml

from monitor.config.load import load_checked
from monitor.core.results import Window
from monitor.report.distributions.desk import Desk, Drawn


def drawn(folder, span: Window, **own) -> Drawn:
    path = folder / "real.yaml"
    path.write_text(yaml.safe_dump({"state": "state", "recommenders": [{"name": "real", **own}]}))
    config = load_checked(path)[0]
    return Desk().figures(config, config.recommenders[0], span)


@pytest.fixture(scope="module")
def shop(shared, tmp_path_factory) -> Drawn:
    """A week of a fashion shop whose learned policy prefers some items."""
    data = shared / "data" / "obd"
    if not data.is_dir():
        pytest.skip("the folder ../shared/data/obd with a real log is not present")
    logs = {log: {"path": str(data / f"{log}.csv.gz")} for log in ("exposures", "feedback", "catalog")}
    week = Window(datetime(2019, 11, 24, tzinfo=UTC), datetime(2019, 12, 1, tzinfo=UTC))
    return drawn(tmp_path_factory.mktemp("obd"), week, window="1d", logs=logs)


def rows(shared, log: str) -> pd.DataFrame:
    return pd.read_csv(
        shared / "data" / "obd" / f"{log}.csv.gz", parse_dates=["ts"] if log != "catalog" else []
    )


def test_the_curve_of_a_real_shop_ends_with_its_most_shown_item(shop, shared):
    counts = Counter(rows(shared, "exposures").item_id)
    points = shop.figure("items").table.rows
    assert shop.figure("items").why == ""
    catalog = rows(shared, "catalog")
    most = max(counts[item] for item in catalog.item_id)
    assert points[-1][1] - points[-2][1] == pytest.approx(most / sum(counts.values()))
    assert shop.figure("items").rests_on.startswith(f"{sum(counts.values()):,} exposures")


def test_the_requests_of_a_real_shop_are_of_one_item(shop, shared):
    requests = rows(shared, "exposures").request_id.nunique()
    assert shop.figure("list-lengths").table.rows == ((1, 1, requests, 1.0),)


def test_the_clicks_of_a_real_shop_are_all_in_its_positions(shop, shared):
    table = shop.figure("positions").table.rows
    clicks = sum(row[2] * row[5] for row in table)
    assert clicks == pytest.approx(len(rows(shared, "feedback")), rel=0.02)  # a few belong to no list
    assert {row[1] for row in table} <= {"0", "1", "2", "3"}


def test_every_figure_of_a_real_shop_is_drawn_or_says_why(shop):
    assert shop.is_complete
    for figure in shop.figures:
        assert bool(figure.plots) != bool(figure.why)
        assert "error" not in figure.why
    assert shop.figure("features").why == "The config has no log of samples."


def test_a_news_site_without_catalog_or_scores_gives_what_it_can(shared, tmp_path):
    data = shared / "data" / "ebnerd"
    if not data.is_dir():
        pytest.skip("the folder ../shared/data/ebnerd with a real log is not present")
    logs = {log: {"path": str(data / f"{log}.csv.gz")} for log in ("exposures", "feedback")}
    week = Window(datetime(2023, 2, 23, tzinfo=UTC), datetime(2023, 3, 3, tzinfo=UTC))
    found = drawn(tmp_path, week, window="1d", logs=logs)
    assert found.is_complete
    assert found.figure("items").plots
    assert found.figure("list-lengths").plots
    assert found.figure("scores").why == "No row has a finite score."
