"""The metrics of experiments.

No metric family produces them: they count users over the whole life of an experiment, their labels come from
its settings, and they have no slices.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from monitor.core.results import ResultKind
from monitor.metrics.family import MetricSpec, ResultBuilder, Theme
from monitor.settings.experiments import ARM_METRICS, ArmMetric, ExperimentSettings
from monitor.settings.metrics import MetricSettings

EXPERIMENT: Final = "experiment"
ONE_ARM: Final = "Users with an id who were in one arm only since the experiment began"
_NOT_READ: Final = (
    "the split is broken: the arms differ by more than the tested change, so the numbers cannot be used"
)
_NO_USERS: Final = "the experiment has not begun, or no user of it was seen; the exposures lack its column"
_spec = partial(MetricSpec, theme=Theme.EXPERIMENTS, kind=ResultKind.EXPERIMENT, sliced=False)
_split_spec = partial(_spec, requires=("exposures",), no_data=_NO_USERS)

USERS = _split_spec(
    name="experiment_users",
    help="Users of an arm since the experiment began, each counted once.",
    formula=f"distinct users of the arm over all windows from `start` to this one. {ONE_ARM} are counted.",
    answers="How large is each arm by now?",
    misleads="Users who have seen two arms no longer count (see experiment_mixed_users), so it can fall. "
    "`user_id` identifies a user: one person with two devices may be two users.",
    labels=(EXPERIMENT, "arm"),
    samples="the users themselves",
)
SHARE = _split_spec(
    name="experiment_share",
    help="Share of an arm in the users since the experiment began.",
    unit="ratio",
    formula="users of the arm / users of all arms of the split. The interval is a confidence sequence "
    "(Lindon and Malek, 2022): it holds for all windows together, however often you look.",
    answers="Which arm is too small or too large, and by how much?",
    misleads="The intervals of one arm hold together over time, but not those of all arms at once. Near the "
    "start it is wide on purpose.",
    labels=(EXPERIMENT, "arm"),
    interval="anytime",
    samples="users of all arms of the split",
)
MIXED_USERS = _split_spec(
    name="experiment_mixed_users",
    help="Users who were in more than one arm since the experiment began; they count in no arm.",
    formula="distinct users with two or more values of the column over all windows from `start` to this one",
    answers="Is the assignment stable, and does it use the logged user id?",
    misleads="After few windows most users have been seen once and cannot be mixed: it rises with time. "
    "RecsysAssignmentBroken fires if it is 20 or more, and above a twentieth of all users.",
    labels=(EXPERIMENT,),
    samples="users seen in the experiment at all",
)
UNKNOWN_ARM_USERS = _split_spec(
    name="experiment_unknown_arm_users",
    help="Users in an arm that the split does not name; one is enough to call the split broken.",
    formula="distinct users with a value of the column that `split` does not name, over all windows from "
    "`start` to this one. Violated if there is any; the detail names the largest arms.",
    answers="Does the log have arms that the config does not have?",
    misleads="An arm that was added on purpose is unknown until `split` names it and `start` is moved.",
    labels=(EXPERIMENT,),
    samples="users seen in the experiment at all",
)
SPLIT_P = _split_spec(
    name="experiment_split_p_value",
    help="Sample ratio mismatch: probability that chance alone gives users per arm as far from the split.",
    formula="`anytime`: 1 / the largest Bayes factor of all windows so far, of a Dirichlet prior around the "
    "split (worth 1,000 users) against the split (Lindon and Malek, NeurIPS 2022); violated where it is "
    "below `alpha`. `chi_square`: Pearson's test of the users by now (Fabijan et al., KDD 2019); exact or "
    "simulated where an arm expects fewer than 5. Both over users in one arm of the split, each once.",
    answers="Were users lost or sorted before they reached the arms? Then no metric by arm can be used.",
    misleads="`chi_square` is for a single look at a time that is fixed in advance. Over many looks it "
    "falls below any bound in the end, even for a correct split, so it is not judged. `anytime` may be "
    "looked at in every window, and never rises: after the cause is fixed, move `start`. It needs more "
    "users for the same deviation.",
    by=("anytime", "chi_square"),
    labels=(EXPERIMENT,),
    samples="users of all arms of the split",
)
BUCKET_P = _split_spec(
    name="experiment_bucket_p_value",
    help="Bucket uniformity: probability that chance alone fills the hash buckets as unevenly.",
    formula="Pearson's chi-square of the window's users per bucket against equal shares; empty buckets "
    "count. Buckets that expect fewer than 5 users are counted together by lot, for groups of 5. "
    "Users seen in two buckets are left out.",
    answers="Does the hash behind the arms favour some buckets?",
    misleads="Every window is tested: one in a hundred has p < 0.01 by chance. Look for several windows "
    "in a row; RecsysAssignmentBroken fires if p is below 1e-6 in one.",
    labels=(EXPERIMENT,),
    samples="users of the window in one bucket",
    no_data="no user of the window has a bucket; the exposures lack the column",
    undefined="more buckets in the log than `buckets.count` says",
    version="2",
)
LAYER_P = _split_spec(
    name="experiment_layer_p_value",
    help="Layer orthogonality: probability that chance alone ties the arms of two experiments as closely.",
    formula="Pearson's chi-square of the table of the window's users by the arms of both experiments; the "
    "detail has Cramer's V. Only users in one arm of each; every pair of experiments with different columns.",
    answers="Are two layers assigned independently of each other?",
    misleads="Every window is tested, as for experiment_bucket_p_value. With very many users p finds ties "
    "that are too small to matter: V measures their size; 0: independent, 1: one arm determines the other.",
    labels=(EXPERIMENT, "against"),
    samples="users of the window in both experiments",
    no_data="no user of the window is in both experiments; the exposures lack a column",
    undefined="all users are in one arm of one of the two",
)

_ARM: Final = (EXPERIMENT, "arm", "event")
_WHO: Final = (
    "Of the users of the window who were in one arm only since the experiment began; an action counts where "
    "a list of the experiment held the item (see attribution)."
)
_OF_A_WINDOW: Final = (
    "It covers one window: returning users count in each. One interval in twenty misses by chance."
)
_arm_spec = partial(
    _spec,
    labels=_ARM,
    parameters=("events", "attribution"),
    requires=("exposures", "feedback"),
    samples="users of the arm in the window",
    no_data="no user of the arm was seen in the window",
    undefined=_NOT_READ,
)
_difference_spec = partial(
    _arm_spec,
    by=ARM_METRICS,
    samples="users of both arms in the window",
    no_data="no user of the arm, or of the control, was seen in the window",
    undefined=f"fewer than two users in an arm, or no variance in either; {_NOT_READ}",
)

ARM_SPECS: Final[dict[ArmMetric, MetricSpec]] = {
    "action_rate": _arm_spec(
        name="experiment_action_rate",
        help="Actions per exposure of an arm; of clicks: the click rate.",
        formula=f"actions of the event / exposures of the arm. {_WHO} The interval is the delta method's "
        "with users as units, since exposures of one user are correlated.",
        answers="Are the arm's items acted on more often?",
        misleads=f"{_OF_A_WINDOW} An arm that shows fewer items can have a higher rate and fewer actions.",
        unit="ratio",
        range=(0.0, math.inf),
        interval="delta",
        undefined=f"no item was shown to the users of the arm; {_NOT_READ}",
    ),
    "conversion": _arm_spec(
        name="experiment_conversion",
        help="Share of an arm's users with an action.",
        formula=f"users with an action of the event / users. {_WHO}",
        answers="Do more of the arm's users act at all?",
        misleads=_OF_A_WINDOW,
        unit="ratio",
        interval="Wilson",
    ),
    "actions_per_user": _arm_spec(
        name="experiment_actions_per_user",
        help="Actions per user of an arm, users without any included.",
        formula=f"actions of the event / users. {_WHO}",
        answers="Do the arm's users act more?",
        misleads=f"{_OF_A_WINDOW} A few users with very many actions dominate it.",
        range=(0.0, math.inf),
        interval="normal",
    ),
    "value_per_user": _arm_spec(
        name="experiment_value_per_user",
        help="Sum of the actions' values per user of an arm, users without any included.",
        formula=f"sum of the event's values / users. {_WHO} Values that are not finite are left out.",
        answers="Is the arm worth more: money, minutes?",
        misleads=f"{_OF_A_WINDOW} Values have heavy tails: with few users the normal interval is too narrow.",
        interval="normal",
        no_data="no user of the arm was seen in the window; no action of the event has a value",
    ),
}

DIFFERENCE = _difference_spec(
    name="experiment_difference",
    help="A metric of an arm minus that of the control.",
    formula="arm - control, of each metric by arm and event. `action_rate` by the delta method and the "
    "normal distribution, the others by Welch's t test (conversion of users as 0 and 1).",
    answers="What does the arm change, and how certain is it?",
    misleads=f"{_OF_A_WINDOW} With many arms, events and metrics some intervals exclude 0 by chance. It is "
    "not a verdict on the experiment, which needs its planned number of users (`recsys-monitor power`).",
    interval="Welch or delta",
)
DIFFERENCE_P = _difference_spec(
    name="experiment_difference_p_value",
    help="Probability that chance alone gives a difference between arm and control as large.",
    formula="the two-sided p of the test that gives the interval of experiment_difference",
    answers="Could the difference be due to chance?",
    misleads=f"{_OF_A_WINDOW} If you stop at the first window with p < 0.05, you find effects that do not "
    "exist.",
)

SPLIT_SPECS: Final = (USERS, SHARE, MIXED_USERS, UNKNOWN_ARM_USERS, SPLIT_P, BUCKET_P, LAYER_P)
EXPERIMENT_SPECS: Final[dict[str, MetricSpec]] = {
    spec.name: spec for spec in (*SPLIT_SPECS, *ARM_SPECS.values(), DIFFERENCE, DIFFERENCE_P)
}


def builder(
    spec: MetricSpec, experiment: ExperimentSettings, settings: MetricSettings, **labels: str
) -> ResultBuilder:
    """The builder of one metric's results of an experiment.

    The definition names the experiment's settings that change the metric, such as its split and its start.
    """
    parts = [spec.definition(settings), f"column={experiment.column}"]
    if spec is BUCKET_P and experiment.buckets is not None:
        parts[-1] = f"column={experiment.buckets.column};count={experiment.buckets.count}"
    else:
        split = ",".join(f"{arm}:{weight:g}" for arm, weight in experiment.split.items())
        parts.append(f"split={split}")
        if experiment.start is not None:
            parts.append(f"start={experiment.start:%Y-%m-%dT%H:%M:%SZ}")
    if spec in (DIFFERENCE, DIFFERENCE_P):
        parts.append(f"control={experiment.baseline}")
    shares = spec is DIFFERENCE and labels.get("by") == "conversion"
    return ResultBuilder(
        spec, ";".join(parts), {EXPERIMENT: experiment.name, **labels}, (-1.0, 1.0) if shares else None
    )
