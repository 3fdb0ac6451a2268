"""Specs of the results on the platform. They are of days and of other systems, so no family has them.

The label `system` is the name of a system, `recommender`, `platform` for the whole, or `others` for all that
is not the recommender.
"""

from __future__ import annotations

from typing import Final

from monitor.core.results import Result, ResultKind
from monitor.metrics.family import MetricSpec, Theme
from monitor.settings.platform import DEMAND, RESERVED
from monitor.settings.recommender import RecommenderSettings

TOTAL: Final = "total"
SYSTEM: Final = "system"
EXPERIMENT: Final = "experiment"
ARM: Final = "arm"
SUBSTITUTION_LABELS: Final = (TOTAL, SYSTEM, EXPERIMENT, ARM)

_OF_DAYS: Final = (
    "The days off of `bands` count as Sundays. Days of maintenance, of another season and without a total in "
    "every system are left out."
)

AMOUNT: Final = MetricSpec(
    name="platform_amount",
    theme=Theme.PLATFORM,
    kind=ResultKind.PLATFORM,
    help="A total of a day: of a system, of the recommender, or of the whole platform.",
    formula="the rows of the event that count, or the sum of their `value`, over the day; what the query "
    "gives for it; the platform: the system that is the whole, else the recommender and its neighbours added "
    "up",
    answers="How much did each system bring on this day?",
    misleads="It is as good as its source. increase() of Prometheus extrapolates, and two systems that claim "
    "the same order count it twice.",
    labels=(TOTAL, SYSTEM),
    requires=("platform",),
    counted=False,
    sliced=False,
    no_data="the day is not complete, or a query has no row of it; the platform: one of its parts has none",
)
SHARE: Final = MetricSpec(
    name="platform_share",
    theme=Theme.PLATFORM,
    kind=ResultKind.PLATFORM,
    help="The share of the platform's total of a day that the recommender brings.",
    unit="ratio",
    formula="the recommender's total / the platform's total",
    answers="How large is the recommender in what the platform earns?",
    misleads="It rises too if the others fall for a reason of their own. Read it with the totals.",
    labels=(TOTAL,),
    range=(float("-inf"), float("inf")),
    requires=("platform",),
    counted=False,
    sliced=False,
    no_data="one of the two totals is missing",
    undefined="the platform's total is 0 or less",
)
CHANGE: Final = MetricSpec(
    name="platform_change",
    theme=Theme.PLATFORM,
    kind=ResultKind.PLATFORM,
    help="Relative change of a system's daily total: the recent days against the days before.",
    unit="ratio",
    formula="change / level before, both from y = level + effect of the weekday + change in the recent "
    "days + noise; the interval is Student's, of noise that remembers the day before",
    answers="Does this system rise or fall, beyond chance?",
    misleads="It compares with the past, so a season, a campaign or a new price looks like a change. With "
    f"`demand`, days are compared at equal demand. {_OF_DAYS}",
    labels=(TOTAL, SYSTEM),
    interval="AR(1)",
    range=(float("-inf"), float("inf")),
    requires=("platform",),
    samples="days before and recent days that were used",
    sliced=False,
    no_data="too few days with a total in every system; the detail says how many there are",
    undefined="the level before is 0 or less",
)
LEAST_RISE: Final = MetricSpec(
    name="platform_least_rise",
    theme=Theme.PLATFORM,
    kind=ResultKind.PLATFORM,
    help="Smallest relative rise of the recommender whose substitution these days could show.",
    unit="ratio",
    formula="quantile x max(error of the recommender's change, error of the platform's change / "
    "least_gain) / the recommender's level before",
    answers="How blind is the watch over substitution?",
    misleads="It takes for granted that the platform does not move at all. If the platform gains a little, "
    "the rise must be larger.",
    labels=(TOTAL,),
    range=(0.0, float("inf")),
    requires=("platform",),
    counted=False,
    sliced=False,
    no_data="as platform_change",
    undefined="as platform_change",
)
SUBSTITUTION: Final = MetricSpec(
    name="substitution",
    theme=Theme.PLATFORM,
    kind=ResultKind.SUBSTITUTION,
    help="What the platform gained for each unit that the recommender gained, while this system fell: 1 all "
    "of it, 0 nothing.",
    formula="change of the platform / change of the recommender, with Fieller's interval. Violated if the "
    "recommender surely rises, this system surely falls, and the whole interval lies below `least_gain`",
    answers="Does the recommender only take over what another system would have brought?",
    misleads="It is observed, not caused: search may fall for a reason of its own while the recommender "
    "rises. Confirm it with an experiment (substitution_in_experiment). "
    f"{_OF_DAYS}",
    labels=(TOTAL, SYSTEM),
    interval="Fieller",
    range=(float("-inf"), float("inf")),
    requires=("platform",),
    samples="days before and recent days that were used",
    sliced=False,
    no_data="as platform_change",
)
ARM_DIFFERENCE: Final = MetricSpec(
    name="platform_arm_difference",
    theme=Theme.PLATFORM,
    kind=ResultKind.PLATFORM,
    help="Difference of an arm from the control in a system's total per user, since the experiment began.",
    formula="mean over the users of the arm - mean over those of the control, with Welch's interval; a user "
    "without an action counts as 0",
    answers="What does the arm change in each system?",
    misleads="It is looked at every day, while its interval is for one look. Users in two arms are left out. "
    "A user's actions count from the begin of the experiment, also before the user was first seen in it.",
    labels=(TOTAL, SYSTEM, EXPERIMENT, ARM),
    interval="Welch or delta",
    requires=("platform",),
    samples="users of both arms",
    sliced=False,
    no_data="no user in one of the arms; the logs have no user ids; more than 5 % of a total have no known "
    "user; more than 10 % of the experiment's windows are missing in some system",
    undefined="fewer than two users in an arm, no variance, or the split is broken",
)
IN_EXPERIMENT: Final = MetricSpec(
    name="substitution_in_experiment",
    theme=Theme.PLATFORM,
    kind=ResultKind.SUBSTITUTION,
    help="What the platform gains for each unit that the recommender gains because of an arm: 1 all of it, 0 "
    "nothing.",
    formula="difference of all systems per user / difference of the recommender per user, arm less control, "
    "with Fieller's interval. Violated if the recommender surely gains and the whole interval lies below "
    "`least_gain`",
    answers="Is what the recommender gains new, or taken from other systems? This is causal.",
    misleads="Only systems with a log and user ids count; the detail names the others, and the shares "
    "without a known user. It is looked at every day, while its interval is for one look.",
    labels=(TOTAL, EXPERIMENT, ARM),
    interval="Fieller",
    range=(float("-inf"), float("inf")),
    requires=("platform",),
    samples="users of both arms",
    sliced=False,
    no_data="as platform_arm_difference",
    undefined="as platform_arm_difference",
)
PLATFORM_SPECS: Final = {
    spec.name: spec
    for spec in (AMOUNT, SHARE, CHANGE, LEAST_RISE, SUBSTITUTION, ARM_DIFFERENCE, IN_EXPERIMENT)
}


def of_platform(result: Result, settings: RecommenderSettings) -> bool:
    """Whether the config still asks for a result on the platform."""
    platform = settings.platform
    if platform is None or result.labels.get(TOTAL) not in (*platform.totals, DEMAND):
        return False
    systems = {*RESERVED, *(one.name for one in platform.systems)}
    if result.labels.get(SYSTEM) == DEMAND:
        return platform.demand is not None
    arms = {(one.name, arm) for one in settings.experiments for arm in one.arms}
    arm = result.labels.get(ARM)
    of_arm = arm is None or (result.labels.get(EXPERIMENT, ""), arm) in arms
    return result.labels.get(SYSTEM, RESERVED[0]) in systems and of_arm
