"""What docs/feedback.md says holds: its configs are good, its actions find those lists, its times are so."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime, timedelta

import pytest

from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.core.results import Window
from monitor.logs.source import Source
from monitor.logs.windows import Parts
from monitor.metrics.attribution import attributed
from monitor.settings.logs import TimeSettings
from tests.conftest import ROOT
from tests.metrics.worlds import World, shared_of

TEXT = (ROOT / "docs" / "feedback.md").read_text("utf-8")
CONFIGS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
TABLES = [list(csv.DictReader(io.StringIO(one))) for one in re.findall(r"```csv\n(.*?)```", TEXT, re.DOTALL)]


def checked(text, folder):
    path = folder / "config.yaml"
    path.write_text(text)
    (one,) = check_config(load_config(path), folder)
    return one


@pytest.mark.parametrize("text", CONFIGS, ids=["events", "bound", "objective"])
def test_a_config_of_the_page_is_valid(tmp_path, text):
    assert checked(text, tmp_path).problems == ()


def read(row):
    made = {name: value or None for name, value in row.items()}
    return made | {"ts": datetime.fromisoformat(row["ts"])}


def test_actions_of_the_page_belong_to_the_stated_lists(tmp_path):
    shown, done = ([read(row) for row in table] for table in TABLES)
    logged = [{name: row[name] for name in row if name not in ("found", "list")} for row in done]
    world = World(shown, feedback=logged, columns=(), feedback_columns=("request_id",))
    settings = checked(CONFIGS[0], tmp_path).settings.metrics
    found = attributed(shared_of(world), settings).to_pyarrow().to_pylist()
    answer = {(r["user_id"], r["item_id"], r["ts"]): (r["found"], r["request_id"]) for r in found}
    assert answer == {(r["user_id"], r["item_id"], r["ts"]): (r["found"], r["list"]) for r in done}
    assert {way for way, _ in answer.values()} == {"request", "user", "not_shown", "unattributed"}


def test_times_of_the_page_agree_with_the_parts(tmp_path):
    settings = checked(CONFIGS[0], tmp_path).settings
    time = TimeSettings(window=settings.window, lateness=settings.lateness, max_wait=settings.max_wait)
    parts = Parts.of(Source(settings.logs, time), settings.metrics.attribution)
    start = datetime(2026, 1, 1, 10, tzinfo=UTC)
    window = Window(start, start + timedelta(hours=1))
    rows = dict.fromkeys(("reads the rows of", "is judged when the logs are at", "is `late` from"), "")
    for part in ("exposures", "feedback"):
        span = parts.span(window, part)
        rows["reads the rows of"] += f" | {span.start:%H:%M} to {span.end:%H:%M}"
        rows["is judged when the logs are at"] += f" | {span.end + time.lateness:%H:%M}"
        rows["is `late` from"] += f" | {span.end + time.max_wait:%H:%M}"
    for name, cells in rows.items():
        assert f"| {name}{cells} |" in TEXT


def test_every_linked_page_exists():
    links = re.findall(r"\]\(([^)#]+\.md)", TEXT)
    assert len(links) > 5
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []
