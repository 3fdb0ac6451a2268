"""Code outside of a spec's own feature asks a result for its kind, and never recognises it by a name."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import monitor
from monitor.anomalies.specs import BAND_SPECS
from monitor.catalogue import ALL_SPECS
from monitor.core.results import ResultKind
from monitor.experiments.specs import EXPERIMENT_SPECS
from monitor.health.specs import HEALTH_SPECS
from monitor.models.feature_specs import FEATURE_SPECS
from monitor.models.specs import MODEL_SPECS

ROOT = Path(monitor.__file__).parent
OWNERS: dict[str, str] = {"rule": "rules"}
for feature, specs in {
    "anomalies": BAND_SPECS,
    "experiments": EXPERIMENT_SPECS,
    "health": HEALTH_SPECS,
    "models": MODEL_SPECS | FEATURE_SPECS,
}.items():
    OWNERS |= dict.fromkeys(specs, feature)
KINDS: dict[ResultKind, set[str]] = defaultdict(set)
for metric, spec in ALL_SPECS.items():
    KINDS[spec.kind].add(metric)
KINDS[ResultKind.RULE] = {"rule"}
del KINDS[ResultKind.METRIC]
LABELS = {"log", "experiment", "model"}
"""Labels that tell a kind."""
COMPARED = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def recognised(code: str, known: Mapping[str, Any], feature: str = "") -> Iterator[str]:
    """The comparisons of the code that recognise a kind by the metric's name or by a label.

    `known` are the names of its module. A comparison with all names of a kind recognises it; with one of
    several it chooses a metric within the kind, which is allowed.
    """
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], COMPARED):
            continue
        left, right = node.left, node.comparators[0]
        if _is(right, "labels") and _value(left, known) in LABELS:
            yield ast.unparse(node)
        other = right if _is(left, "metric", "name") else left if _is(right, "metric", "name") else None
        value = None if other is None else _value(other, known)
        names = {value} if isinstance(value, str) else {one for one in value or () if isinstance(one, str)}
        foreign = {name for name in names if OWNERS.get(name, feature) != feature}
        if names >= set(ALL_SPECS):  # whether it has a spec at all
            continue
        if any(own <= foreign for own in KINDS.values()):
            yield ast.unparse(node)


def _is(node: ast.expr, *attributes: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in attributes


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """What the expression is; None where it is nothing that the module knows from the start."""
    try:
        value = eval(ast.unparse(node), dict(known))
    except Exception:
        return None
    return value if isinstance(value, str | tuple | list | set | frozenset | dict) else None


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("one.metric == 'rule'", True),
        ("'rule' != one.result.metric", True),
        ("one.metric in ('gini', 'rule')", True),
        ("gap.metric == AUC_GAP.name", True),
        ("spec.name in BAND_SPECS", True),
        ("series.result.metric not in HEALTH_SPECS", True),
        ("spec.name in (*MODEL_SPECS, *FEATURE_SPECS)", True),
        ("'experiment' in result.labels", True),
        ("MODEL not in one.result.labels", True),
        ("one.metric == EXPECTED.name", False),
        ("one.metric == 'gini'", False),
        ("one.metric == other.metric", False),
        ("one.metric in SPECS", False),
        ("one.metric in ALL_SPECS", False),
        ("one.kind is ResultKind.RULE", False),
        ("'dimension' in one.labels", False),
    ],
)
def test_comparisons_that_recognise_a_kind_are_detected(code: str, found: bool) -> None:
    known = {
        "AUC_GAP": ALL_SPECS["auc_gap"], "EXPECTED": ALL_SPECS["expected"], "BAND_SPECS": BAND_SPECS,
        "HEALTH_SPECS": HEALTH_SPECS, "MODEL_SPECS": MODEL_SPECS, "FEATURE_SPECS": FEATURE_SPECS,
        "ALL_SPECS": ALL_SPECS, "SPECS": {"gini": ALL_SPECS["gini"]}, "MODEL": "model",
    }  # fmt: skip
    assert bool(list(recognised(code, known))) is found


def test_a_feature_may_name_its_own_metrics() -> None:
    known = {"AUC_GAP": ALL_SPECS["auc_gap"]}
    assert list(recognised("gap.metric == AUC_GAP.name", known, "models")) == []


def test_no_code_recognises_a_kind_by_a_name() -> None:
    found = []
    looked = 0
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        if place.parts[0] == "__main__.py" or "migrations" in place.parts:
            continue
        code = path.read_text("utf-8")
        if ".metric" not in code and ".labels" not in code and ".name" not in code:
            continue
        try:
            module = importlib.import_module(".".join(("monitor", *place.with_suffix("").parts)))
        except ModuleNotFoundError as exc:
            if (exc.name or "").startswith("pyspark"):
                continue  # the extra `spark` is not installed; `make test` installs it
            raise
        looked += 1
        found += [f"{place}: {one}" for one in recognised(code, vars(module), place.parts[0])]
    assert looked > 50
    assert found == []
