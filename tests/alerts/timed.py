"""In which minutes the alerts of a file of rules fire, and whether Alertmanager makes one message of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from tests.alerts.posted import SEVERITIES
from tests.alerts.test_alert_rules import promtool
from tests.processes import ROOT

_MINUTES = {"d": 24 * 60, "h": 60, "m": 1}
# Minutes before Alertmanager sends, the page's half one rounded up; what is never sent holds back at once.
_WAITS = {"page": 1, "ticket": 5, "none": 0}

Fired = dict[str, dict[str, list[int]]]  # recommender -> alert -> minutes; of the monitor itself under ""


def fired(
    folder: Path, rules: str, inputs: Mapping[str, Sequence[int | str]], names: Sequence[str], minutes: range
) -> Fired:
    """Those of the minutes in which the alerts fire, by promtool; `inputs` have a value a minute."""
    series = [{"series": one, "values": " ".join(map(str, values))} for one, values in inputs.items()]
    silent = [{"eval_time": f"{minute}m", "alertname": name} for minute in minutes for name in names]
    content = {
        "rule_files": [str(ROOT / "rules" / "alerts" / rules)],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "alert_rule_test": silent}],
    }
    (folder / "test.yaml").write_text(yaml.safe_dump(content), "utf-8")
    answer = promtool("test", "rules", folder / "test.yaml")
    found: Fired = {}
    for told in (answer.stdout + answer.stderr).split("alertname: ")[1:]:  # each was expected to be silent
        name, time = re.findall(r"^(\w+), time: (\w+)", told)[0]
        minute = sum(int(number) * _MINUTES[unit] for number, unit in re.findall(r"(\d+)([dhm])", time))
        for labels in re.findall(r"Labels:\{(.*)\}", told):
            of = re.findall(r'recommender="([^"]*)"', labels)
            found.setdefault(of[0] if of else "", {}).setdefault(name, []).append(minute)
    assert bool(found) is bool(answer.returncode), answer.stderr
    return found


def is_one_message(found: Mapping[str, Sequence[int]], held: Sequence[str], by: str) -> bool:
    """Whether `by` is sent before any of those that it holds back, and fires for as long as they do."""
    first, last = found[by][0] + _WAITS[SEVERITIES[by]], found[by][-1]
    return all(first < found[one][0] + _WAITS[SEVERITIES[one]] and last >= found[one][-1] for one in held)
