"""What each metric of lists at k says, and where it misleads."""

from __future__ import annotations

from monitor.metrics.family import MetricSpec

_NEEDS = ("exposures.position or exposures.score", "feedback")
_MEANT = (
    "T = the items that the list's actions are on with a grade above 0, shown by it or not; l = its length"
)
_MEAN = "mean over users of the mean over a user's lists with |T| > 0"
_BOTH = ("macro", "micro")
_HOW = ("events", "attribution", "unrated")
_USERS = "users with a list with |T| > 0"
_EITHER = f"{_USERS} (macro); lists with |T| > 0 (micro)"
_NO_T = "no list; no list with |T| > 0"
_NO_USER = f"{_NO_T}; none of a known user"
_EMPTY = "every list with |T| > 0 is empty"
_SEEN_ONLY = (
    "People act on what they are shown: an item further down, or never shown, had little chance to be in T"
)

PRECISION = MetricSpec(
    name="precision",
    help="Share of the first k places of a list that hold a relevant item; short lists are not punished.",
    unit="ratio",
    by=_BOTH,
    labels=("k",),
    interval="Wilson of means",
    parameters=_HOW,
    formula=f"hits / k' of a list, k' = min(k, l); {_MEANT}. macro: {_MEAN}. micro: sum of hits / sum of k'.",
    answers="How much of what people see first is what they want?",
    misleads=f"{_SEEN_ONLY}. A list of one item that hits has the best precision there is. It cannot reach 1 "
    "where |T| < k. Lists without items have none and are left out of macro (and counted).",
    requires=_NEEDS,
    samples=_EITHER,
    no_data=f"{_NO_T}; none of a known user (macro)",
    undefined=_EMPTY,
)
PRECISION_STRICT = MetricSpec(
    name="precision_strict",
    help="Hits in the first k places of a list over k; an empty place is a miss.",
    unit="ratio",
    by=_BOTH,
    labels=("k",),
    interval="Wilson of means",
    parameters=_HOW,
    formula=f"hits / k of a list; {_MEANT}. macro: {_MEAN}. micro: sum of hits / (k times the lists).",
    answers="How many of the k places that there were to fill were filled well?",
    misleads="Where lists are shorter than k by design it says how long they are, not how good.",
    requires=_NEEDS,
    samples=_EITHER,
    no_data=f"{_NO_T}; none of a known user (macro)",
)
RECALL = MetricSpec(
    name="recall",
    help="Share of a list's relevant items that stand in its first k places.",
    unit="ratio",
    by=_BOTH,
    labels=("k",),
    interval="Wilson of means",
    parameters=_HOW,
    formula=f"hits / |T| of a list; {_MEANT}. macro: {_MEAN}. micro: sum of hits / sum of |T|. Together with "
    "precision over several k it is the precision-recall curve.",
    answers="How much of what people went for did the first k places hold?",
    misleads=f"{_SEEN_ONLY}, so recall from a log is higher than the true one. It cannot reach 1 where "
    "|T| > k; adjusted_precision can.",
    requires=_NEEDS,
    samples=_EITHER,
    no_data=f"{_NO_T}; none of a known user (macro)",
)
F_SCORE = MetricSpec(
    name="f_score",
    help="Precision and recall of the first k places in one number, their weighted harmonic mean.",
    unit="ratio",
    by=_BOTH,
    labels=("k",),
    interval="Wilson of means",
    parameters=(*_HOW, "beta"),
    formula="(1 + b^2) P R / (b^2 P + R) with b = `beta`, P = precision, R = recall of a list, which is "
    f"(1 + b^2) hits / (b^2 |T| + k') and so 0 without a hit; {_MEANT}. macro: {_MEAN}. micro: the same of "
    "the micro precision and recall.",
    answers="Are the first places both good and complete?",
    misleads="Two lists with the same value can be good in opposite ways: look at precision and recall. The "
    "mean of F is not the F of the means.",
    requires=_NEEDS,
    samples=_EITHER,
    no_data=f"{_NO_T}; none of a known user (macro)",
    undefined=_EMPTY,
)
ADJUSTED_PRECISION = MetricSpec(
    name="adjusted_precision",
    help="Hits in the first k places over the most hits that there could be; also called adjusted recall.",
    unit="ratio",
    by=_BOTH,
    labels=("k",),
    interval="Wilson of means",
    parameters=_HOW,
    formula=f"hits / min(k, |T|) of a list; {_MEANT}. macro: {_MEAN}. micro: sum of hits / sum of "
    "min(k, |T|).",
    answers="How near do the first k places come to the best that they could hold?",
    misleads="With one relevant item a list, which is what most logs hold, it is the same as recall: 0 or 1.",
    requires=_NEEDS,
    samples=_EITHER,
    no_data=f"{_NO_T}; none of a known user (macro)",
)
HIT_RATE = MetricSpec(
    name="hit_rate",
    help="Relevant items found in the first k places, of all of them; or lists with at least one.",
    unit="ratio",
    by=("micro", "any"),
    labels=("k",),
    interval="Wilson",
    parameters=_HOW,
    formula="micro: sum of hits / sum of |T| over lists. any: lists with a hit / lists with |T| > 0; "
    f"{_MEANT}.",
    answers="How often is there anything right among the first k places?",
    misleads="A longer k always looks better. The interval (of any alone) takes lists for independent, which "
    "those of one user are not. micro equals recall by micro, under the name that others use for it.",
    requires=_NEEDS,
    samples="relevant items (micro); lists with |T| > 0 (any)",
    no_data=_NO_T,
)
RECIPROCAL_RANK = MetricSpec(
    name="reciprocal_rank",
    help="How high the first relevant item stands: 1 at the top, 1/2 one below, 0 where not in the first k.",
    unit="ratio",
    labels=("k",),
    interval="Wilson of means",
    parameters=_HOW,
    formula="1 / place of the list's first hit, 0 where the first k places hold none; "
    f"{_MEANT}; {_MEAN} (MRR).",
    answers="How far must people look until they find something?",
    misleads="Only the first hit counts. From place 1 to 2 it loses as much as from 2 to never.",
    requires=_NEEDS,
    samples=_USERS,
    no_data=_NO_USER,
)
AVERAGE_PRECISION = MetricSpec(
    name="average_precision",
    help="Precision at each hit of the first k places, over the most hits that there could be.",
    unit="ratio",
    labels=("k",),
    interval="Wilson of means",
    parameters=_HOW,
    formula="sum over hits in the first k places of (hits up to there / place), divided by min(k, |T|); "
    f"{_MEANT}; {_MEAN} (MAP).",
    answers="Do the relevant items stand above the others?",
    misleads="Several formulas go by this name: divided by min(k, |T|) as here, by |T| "
    "(average_precision_full), by k, or by the hits. Numbers of two libraries are rarely the same thing.",
    requires=_NEEDS,
    samples=_USERS,
    no_data=_NO_USER,
)
AVERAGE_PRECISION_FULL = MetricSpec(
    name="average_precision_full",
    help="Precision at each hit of the first k places, over all relevant items.",
    unit="ratio",
    labels=("k",),
    interval="Wilson of means",
    parameters=_HOW,
    formula="sum over hits in the first k places of (hits up to there / place), divided by |T|; "
    f"{_MEANT}; {_MEAN}.",
    answers="Do the relevant items stand above the others, and are all of them there?",
    misleads="It cannot reach 1 where |T| > k, so it falls when people get more active.",
    requires=_NEEDS,
    samples=_USERS,
    no_data=_NO_USER,
)
NDCG = MetricSpec(
    name="ndcg",
    help="Relevance found in the first k places, discounted by place, over that of the best list there is.",
    unit="ratio",
    labels=("k",),
    interval="Wilson of means",
    parameters=(*_HOW, "gain"),
    formula="DCG / ideal DCG, DCG = sum over the first k places i of gain / log2(i + 1), gain = 2^rel - 1 or "
    "rel (`gain`), rel = the grade of the event with the highest one; ideal: the best min(k, |T|) of T in "
    f"order; {_MEANT}; {_MEAN}.",
    answers="Do the most relevant items stand at the top?",
    misleads="With the exponential gain the highest grade outweighs all else: grades 1 and 5 are 1 and 31. "
    "A list of one relevant item at the top has 1 however bad the rest is.",
    requires=_NEEDS,
    samples=_USERS,
    no_data=_NO_USER,
    undefined="every gain is too small for float64",
)
