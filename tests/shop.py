"""A shop whose logs are written to a folder, and its windows judged as the daemon judges them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from monitor.core.results import Result, Window
from monitor.history.kept import KeptPairs
from monitor.history.store import Store
from monitor.judging.evaluate import Evaluation, Evaluator
from monitor.judging.runtime import Runtime
from monitor.logs.windows import Due, Part
from monitor.rules.suites import load_rules
from monitor.settings.recommender import RecommenderSettings
from monitor.settings.rules import RuleSettings
from tests.anomalies.banded import NOW, WITH_THREE_WEEKS, store_hour, usual_hour
from tests.judged_world import World

DAY = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hour(number: int) -> Window:
    """The hour of this number since DAY."""
    return Window(DAY + number * HOUR, DAY + (number + 1) * HOUR)


def rows(number: int, count: int = 20, **columns: Any) -> pd.DataFrame:
    """Lists of two items in the hour of this number; a column is a value, a list or a function of the row."""
    frame = pd.DataFrame(
        {
            "request_id": [f"{number}-{row // 2}" for row in range(count)],
            "user_id": [f"u{(row // 2) % 5}" for row in range(count)],
            "ts": [hour(number).start.replace(tzinfo=None) + timedelta(seconds=row) for row in range(count)],
            "item_id": [f"i{(row * 7 + number) % 13}" for row in range(count)],
        }
    )
    for name, given in columns.items():
        frame[name] = [given(row) for row in range(count)] if callable(given) else given
    return frame


class Shop:
    """`write` its logs, then `judge` a window of them."""

    def __init__(self, folder: Path, runtime: Runtime) -> None:
        self.folder = folder
        self.runtime = runtime
        self.config: dict[str, Any] = {
            "name": "shop",
            "logs": {"exposures": {"path": str(folder / "logs" / "*")}},
            "window": "1h",
        }
        self.expectations: list[dict[str, Any]] = []
        self.in_a_row = False
        self._evaluator: Evaluator | None = None

    def write(
        self, name: str, content: pd.DataFrame | str | bytes, modified: datetime = DAY + 30 * HOUR
    ) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pd.DataFrame):
            content.to_parquet(path) if path.suffix == ".parquet" else content.to_csv(path, index=False)
        elif isinstance(content, str):
            path.write_text(content, "utf-8")
        else:
            path.write_bytes(content)
        os.utime(path, (modified.timestamp(), modified.timestamp()))
        return path

    def rule(self, name: str, kind: str, type_: str, table: str = "exposures", **kwargs: Any) -> None:
        """Add a rule, to be judged from the first `judge` on."""
        meta = {"rule": name, "kind": kind, "table": table}
        self.expectations.append({"type": type_, "kwargs": kwargs, "meta": meta})

    @property
    def evaluator(self) -> Evaluator:
        if self._evaluator is None:
            rules = ()
            if self.expectations:
                suite = {"name": "ours", "expectations": self.expectations}
                (self.folder / "suite.yaml").write_text(yaml.safe_dump(suite), "utf-8")
                rules = load_rules([RuleSettings(suite="suite.yaml")], self.folder)
            settings = RecommenderSettings.model_validate(self.config)
            kept = KeptPairs(self.folder / "state", "shop")
            self._evaluator = Evaluator(settings, rules, kept, "salt", in_a_row=self.in_a_row)
        return self._evaluator

    def judge(self, window: Window, late: str | None = None, part: Part = "exposures") -> Evaluation:
        source = self.evaluator.source
        for log in source.logs.values():
            log.refresh(self.runtime.index, DAY + 30 * HOUR)
        known = self.evaluator.parts.timeline(part).rows(window)
        due = Due(window, source.fingerprint(window, source.logs), known, late, part=part)
        return self.evaluator.evaluate(self.runtime, due)


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    made = Runtime(tmp_path / "spill", threads=2)
    yield made
    made.close()


@pytest.fixture
def shop(tmp_path: Path, runtime: Runtime) -> Shop:
    return Shop(tmp_path, runtime)


@pytest.fixture
def another_shop(tmp_path: Path) -> Iterator[Callable[[str], Shop]]:
    """A shop in a folder and with a runtime of its own."""
    runtimes: list[Runtime] = []

    def make(name: str) -> Shop:
        runtimes.append(Runtime(tmp_path / name / "spill", threads=2))
        return Shop(tmp_path / name, runtimes[-1])

    yield make
    for one in runtimes:
        one.close()


def one(results: Sequence[Result] | Evaluation, metric: str, **labels: str) -> Result:
    """The only result of this metric and these labels (slices have labels of their own)."""
    found = results.results if isinstance(results, Evaluation) else results
    (result,) = [r for r in found if r.metric == metric and r.labels == labels]
    return result


def ruled(results: Sequence[Result] | Evaluation, name: str) -> Result:
    """The result of a rule."""
    found = results.results if isinstance(results, Evaluation) else results
    (result,) = [r for r in found if r.metric == "rule" and r.labels["rule"] == name]
    return result


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.rule_engine.close()


@pytest.fixture(scope="session")
def three_weeks_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store with three weeks of measured hours."""
    path = tmp_path_factory.mktemp("three_weeks") / "history.db"
    with Store.open(path) as store:
        for number in range(NOW):
            store_hour(store, number, usual_hour(number))
    return path


@pytest.fixture
def three_weeks(three_weeks_file: Path, tmp_path: Path) -> Iterator[Store]:
    """A store of one's own with three weeks of measured hours."""
    for file in three_weeks_file.parent.glob("history.db*"):
        shutil.copy(file, tmp_path)
    with Store.open(tmp_path / three_weeks_file.name) as store:
        WITH_THREE_WEEKS.add(store)
        yield store
