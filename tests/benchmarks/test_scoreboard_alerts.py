"""`for` and `keep_firing_for` as the scoreboard applies them, held against Prometheus' own unit tests."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
import yaml

from benchmarks.scoreboard.alerts import RULES, Episode, firing, read_alerts, seconds, standing
from benchmarks.scoreboard.selectors import selectors
from tests.conftest import need

STEP = 60
SERIES = {  # alerts of the shipped rules, and a series that is 1 while their expression has a result
    "RecsysNoData": 'recsys_rule_status{recommender="shop",rule="r",kind="hard",status="no_data"}',
    "RecsysSoftRuleViolated": 'recsys_rule_status{recommender="shop",rule="r",kind="soft",status="violated"}',
    "RecsysRuleError": 'recsys_rule_status{recommender="shop",rule="r",kind="hard",status="error"}',
}
LABELS = {
    "RecsysNoData": {"recommender": "shop"},
    "RecsysSoftRuleViolated": {"recommender": "shop", "rule": "r"},
    "RecsysRuleError": {"recommender": "shop", "rule": "r", "kind": "hard"},
}


def pattern(seed: int, length: int = 150) -> list[bool]:
    """Minutes with a result and without, in spans about as long as the durations at hand."""
    rng, found = random.Random(seed), []
    while len(found) < length:
        found += [len(found) % 2 == 0 if not found else not found[-1]] * rng.choice(
            [1, 2, 3, 9, 10, 11, 15, 16]
        )
    return found[:length]


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("seed", range(3))
def test_an_alert_fires_exactly_as_in_prometheus(name: str, seed: int, tmp_path: Path) -> None:
    (alert,) = [one for one in read_alerts() if one.name == name]
    assert alert.wait or alert.keep
    there = pattern(seed)
    present = [minute * STEP for minute, one in enumerate(there) if one]
    last = (len(there) - 1) * STEP
    fired = [
        Episode({}, *one) for one in firing(present, step=STEP, last=last, wait=alert.wait, keep=alert.keep)
    ]
    assert len(fired) > 1
    cases = [
        {
            "eval_time": f"{minute}m",
            "alertname": name,
            "exp_alerts": [
                {"exp_labels": LABELS[name] | dict(alert.labels)} for one in fired if one.fires(minute * STEP)
            ],
        }
        for minute in range(len(there))
    ]
    values = " ".join("1" if one else "0" for one in there)
    test = {
        "rule_files": [str(without_texts(name, tmp_path))],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": SERIES[name], "values": values}],
                "alert_rule_test": cases,
            }
        ],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(test), "utf-8")
    command = [need("promtool", "prometheus"), "test", "rules", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("seed", range(3))
def test_an_alert_that_reads_its_own_state_fires_as_long_as_in_prometheus(seed: int, tmp_path: Path) -> None:
    (alert,) = [one for one in read_alerts() if one.name == "RecsysAnomalySevere"]
    rng = random.Random(seed)
    severities: list[float | None] = []
    while len(severities) < 400:
        severities += [rng.choice([0.6, 0.3, 0.3, 0.1, None])] * rng.choice([1, 5, 14, 15, 16, 17, 18])
    violated = [rng.random() < 0.995 for _ in severities]
    both = list(enumerate(zip(severities, violated, strict=True)))
    present = [minute * STEP for minute, (one, bad) in both if bad and one is not None and one >= 0.5]
    held = [minute * STEP for minute, (one, bad) in both if bad and (one is None or one >= 0.25)]
    stands = standing(present, held, step=STEP, wait=alert.wait, keep=alert.keep)
    assert len(present) < len(stands) < len(held)
    last = (len(severities) - 1) * STEP
    fired = [
        Episode({}, *one) for one in firing(stands, step=STEP, last=last, wait=alert.wait, keep=alert.keep)
    ]
    assert len(fired) > 1
    labels = {"recommender": "shop", "cause": "traffic_lost"}
    told = ",".join(f'{name}="{value}"' for name, value in labels.items())
    values = " ".join("stale" if one is None else str(one) for one in severities)
    series = {
        f"recsys_anomaly_severity_ratio{{{told}}}": values,
        f'recsys_anomaly_status{{{told},status="violated"}}': " ".join(str(int(one)) for one in violated),
    }
    cases = [
        {
            "eval_time": f"{minute}m",
            "alertname": alert.name,
            "exp_alerts": [
                {"exp_labels": labels | dict(alert.labels)} for one in fired if one.fires(minute * STEP)
            ],
        }
        for minute in range(len(severities))
    ]
    test = {
        "rule_files": [str(without_texts(alert.name, tmp_path))],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": one, "values": each} for one, each in series.items()],
                "alert_rule_test": cases,
            }
        ],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(test), "utf-8")
    command = [need("promtool", "prometheus"), "test", "rules", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def without_texts(name: str, folder: Path) -> Path:
    """The rule alone, as it is shipped but for its annotations, which promtool would compare as well."""
    rules = [
        {key: value for key, value in rule.items() if key != "annotations"}
        for path in RULES.glob("*.yaml")
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
        for rule in group["rules"]
        if rule["alert"] == name
    ]
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": rules}]}), "utf-8")
    return path


@pytest.mark.parametrize(
    ("present", "wait", "keep", "expected"),
    [
        ([], 0, 0, []),
        ([60], 0, 0, [(60, 120)]),
        ([60], 60, 0, []),
        ([540], 0, 0, [(540, 600)]),
        ([600], 0, 0, [(600, None)]),
        ([540], 0, 60, [(540, None)]),
        ([0, 60, 180], 60, 60, [(60, 300)]),
        ([0, 60, 240], 60, 60, [(60, 180)]),
        ([0], 0, 90, [(0, 180)]),
    ],
)
def test_an_alert_by_hand(present, wait, keep, expected) -> None:
    assert firing(present, step=60, last=600, wait=wait, keep=keep) == expected


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-5m", "5mm", "1.5h"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        seconds(text)


def test_every_shipped_alert_is_read() -> None:
    text = "".join(path.read_text("utf-8") for path in RULES.glob("*.yaml"))
    assert len(read_alerts()) == text.count("- alert:") > 20


def test_no_alert_reads_series_of_slices_that_the_scoreboard_does_not_record() -> None:
    read = selectors(alert.expr for alert in read_alerts())
    of_slices = [name for name in read if name.startswith("recsys_slice_")]
    assert of_slices
    assert all(name.endswith("_status") for name in of_slices)
