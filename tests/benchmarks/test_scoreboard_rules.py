"""Which rules an hour with an incident violates, by the real check: those that are said to catch it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.scoreboard.config import BLACKLIST, LOGS, NAME, write_config
from benchmarks.scoreboard.play import land
from monitor.config.load import load_config
from monitor.core import columns as c
from monitor.core.results import Status, Window
from monitor.history.kept import KeptPairs
from monitor.judging.evaluate import Evaluator
from monitor.judging.runtime import Runtime
from monitor.logs.windows import Due
from monitor.metrics.catalogue import SPECS
from monitor.rules.suites import load_rules
from monitor.rules.verdict import METRIC
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import SliceSettings
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import Size
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR
from tests.simulate.incidents.conftest import SHOP, SINCE

JUDGED = Window(SINCE + HOUR, SINCE + 2 * HOUR)
_RULES_ALONE = {
    "metrics": MetricSettings(disable=[name for name in SPECS if name != "coverage"]),
    "slices": SliceSettings(),
    "experiments": (),
}
SEEN: list[tuple[str, Size, set[str]]] = [
    ("blacklist", "small", {"blacklist"}),  # a hard one is to be caught from one row on
    ("expired", "small", {"item_expired"}),
    ("zero_denominators", "small", {"zero_denominator"}),
    ("duplicates", "middle", {"duplicate_item"}),
    ("log_doubles", "small", {"duplicate_item", "position_gaps"}),
    ("empty_scene", "middle", {"list_too_short"}),
    ("empty_new_users", "middle", {"list_too_short"}),
    ("empty_everyone", "middle", {"list_too_short"}),
    ("catalog_shrinks", "middle", {"item_not_in_catalog"}),
    ("score_nan", "middle", {"score_not_finite", "score_out_of_range"}),
    ("score_infinite", "middle", {"score_not_finite", "score_out_of_range", "scores_all_equal"}),
    ("score_constant", "middle", {"scores_all_equal"}),
    ("score_saturated", "middle", {"score_saturated"}),
    ("score_underflown", "middle", {"denormal", "underflow_to_zero"}),
    ("order_broken", "middle", {"score_not_falling"}),
    ("clock_skew", "middle", {"time_in_future"}),
    ("lists_short", "large", set()),  # no rule knows how many items there should be
]
Violated = Callable[[Simulation], set[str]]


@pytest.fixture
def violated(tmp_path: Path) -> Iterator[Violated]:
    """The names of the rules that the second hour of an incident violates."""
    runtime = Runtime(tmp_path / "spill", threads=1)

    def judge(simulation: Simulation) -> set[str]:
        path = write_config(tmp_path, simulation.world)
        (tmp_path / BLACKLIST).write_text("\n".join(["item_id", *simulation.blacklist, ""]), "utf-8")
        for log in LOGS:
            (tmp_path / "logs" / log).mkdir(parents=True)
        for hour in (simulation.world.start, *(SINCE + number * HOUR for number in range(-1, 3))):
            for one in simulation.files(hour):
                land(tmp_path, one)
        settings = load_config(path).recommenders[0].model_copy(update=_RULES_ALONE)
        rules = load_rules(settings.rules, tmp_path)
        evaluator = Evaluator(settings, rules, KeptPairs(tmp_path / "state", NAME), "salt")
        for log_of in evaluator.source.logs.values():
            log_of.refresh(runtime.engine, JUDGED.end + HOUR)
        rows = evaluator.parts.timeline(c.EXPOSURES).rows(JUDGED)
        version = evaluator.source.fingerprint(JUDGED, evaluator.source.logs)
        due = Due(JUDGED, version, rows, None, part=c.EXPOSURES)
        found = [one for one in evaluator.evaluate(runtime, due).results if one.metric == METRIC]
        assert {one.status for one in found} <= {Status.OK, Status.VIOLATED}
        assert len(found) == len(rules) > 15
        return {one.labels["rule"] for one in found if one.status is Status.VIOLATED}

    yield judge
    runtime.close()


def test_a_healthy_hour_violates_no_rule(violated: Violated) -> None:
    assert violated(Simulation(SHOP)) == set()


@pytest.mark.parametrize(("name", "size", "rules"), SEEN)
def test_an_incident_violates_the_rule_that_names_it(
    name: str, size: Size, rules: set[str], violated: Violated
) -> None:
    incident = INCIDENTS[name]
    found = violated(Struck(Simulation(SHOP), incident, incident.sizes[size], SINCE))
    assert found == rules
    assert not rules or rules & {one.rule for one in incident.caught_by}


def test_every_incident_that_a_rule_names_is_among_them() -> None:
    named = {name for name, one in INCIDENTS.items() if any(each.rule for each in one.caught_by)}
    assert {name for name, *_ in SEEN} == named
