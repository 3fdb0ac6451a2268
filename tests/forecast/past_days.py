"""A made-up past of days: offline metrics and the business metrics that follow them, in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta

import numpy as np

from monitor.core.results import Result, ResultKind, Status, Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.recommender import RecommenderSettings

DAY = timedelta(days=1)
START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
SHOP = "shop"
LENGTH = timedelta(hours=12)
CLICKS = {"by": "exposure", "event": "click"}
NDCG = {"k": "10"}

Values = Callable[[int], float]


def settings(**more: object) -> RecommenderSettings:
    """A recommender whose click rate is predicted from ndcg."""
    forecast = {
        "targets": [
            {"name": "ctr", "metric": "action_rate", "labels": CLICKS,
             "used": [{"metric": "ndcg", "labels": NDCG}]}
        ],
        "days": 60,
    }  # fmt: skip
    given: dict[str, object] = {
        "name": SHOP,
        "window": "12h",
        "logs": {"exposures": {"path": "x"}, "feedback": {"path": "y"}, "samples": {"path": "z"}},
        "forecast": forecast | dict(more.pop("forecast", {})),  # type: ignore[call-overload]
    }
    return RecommenderSettings.model_validate(given | more)


def day(number: int) -> date:
    return (START + number * DAY).date()


def result(
    metric: str, value: float | None, samples: int | None = 1000, kind: ResultKind = ResultKind.METRIC,
    /, **labels: str,
) -> Result:  # fmt: skip
    status = Status.NO_DATA if value is None else Status.OK
    return Result(
        metric=metric, labels=labels, definition="1", status=status, value=value, samples=samples, kind=kind
    )


def put(
    store: Store, number: int, check: str, results: Iterable[Result], name: str = SHOP,
    status: Status | None = None, places: Iterable[int] = (0, 1),
) -> None:  # fmt: skip
    """The same results in the windows of a day."""
    for place in places:
        start = START + number * DAY + place * LENGTH
        window = Window(start, start + LENGTH)
        run = CheckRun(check=check, results=list(results), status=status, outcome="ok")
        store.record_window(name, window, [run], fingerprint="a", rows=1, evaluated_at=window.end)


def put_days(
    store: Store, count: int, ndcg: Values, ctr: Values, name: str = SHOP, first: int = 0,
    more: Callable[[int], list[Result]] = lambda _: [],
) -> None:  # fmt: skip
    """Days with a value of ndcg and of the click rate."""
    for number in range(first, first + count):
        results = [
            result("ndcg", ndcg(number), 500, **NDCG),
            result("action_rate", ctr(number), 4000, **CLICKS),
            *more(number),
        ]
        put(store, number, "feedback", results, name)


def put_models(store: Store, count: int, model: Callable[[int], str], auc: Values, first: int = 0) -> None:
    """Days on which a model served, with its AUC on test samples."""
    for number in range(first, first + count):
        of = {"model": model(number)}
        results = [
            result("auc", auc(number), 9000, ResultKind.MODEL, split="test", **of),
            result("sample_rows", 800.0, 800, ResultKind.MODEL, split="online", **of),
        ]
        put(store, number, "models", results)


def related(seed: int = 1, slope: float = 0.5, noise: float = 0.004) -> tuple[Values, Values]:
    """ndcg around 0.3 and a click rate that follows it; both rise at the weekend."""

    def ndcg(number: int) -> float:
        rng = np.random.default_rng([seed, number])
        return float(0.3 + rng.normal(0, 0.02) + (0.05 if number % 7 >= 5 else 0.0))

    def ctr(number: int) -> float:
        rng = np.random.default_rng([seed, number])
        quality = rng.normal(0, 0.02)
        return float(0.05 + slope * quality + rng.normal(0, noise) + (0.03 if number % 7 >= 5 else 0.0))

    return ndcg, ctr
