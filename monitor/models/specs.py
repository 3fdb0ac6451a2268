"""The metrics of a model from its samples: the gaps of its AUC, and their causes.

The AUC and related metrics have their specs in `monitor/metrics`, because exposures have them too. On samples
they carry the labels `split` and `model`.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from monitor.core.results import ResultKind
from monitor.metrics.family import MODEL_LABEL, SPLIT_LABEL, MetricSpec

PAIR_LABEL: Final = "pair"
CAUSE_LABEL: Final = "cause"

Pair = Literal["train_test", "test_online"]
PAIRS: Final[tuple[Pair, ...]] = ("train_test", "test_online")

samples_spec: Final = partial(MetricSpec, requires=("samples",), sliced=False)
"""A spec of a metric that reads the samples."""

SAMPLE_ROWS: Final = samples_spec(
    name="sample_rows",
    kind=ResultKind.MODEL,
    help="Samples of a split of a model that can be judged: with a finite score and a label of 0 or 1.",
    formula="rows of the split (`online`: in the last `over` before the window's end) whose score is finite "
    "and whose label is 0 or 1; the detail counts the others",
    answers="How many rows are behind this model's AUCs, and how many were left out?",
    misleads="Many rows of a few users hold less information than it seems. The intervals of auc and "
    "auc_gap add up what each user contributes where `user_id` is known; with fewer than 10 users there is "
    "none.",
    labels=(SPLIT_LABEL, MODEL_LABEL),
    samples="rows of the split, whatever they hold",
    no_data="the split has no row of the model",
)
AUC_GAP: Final = samples_spec(
    name="auc_gap",
    kind=ResultKind.GAP,
    range=(-1.0, 1.0),
    help="AUC of one split minus that of the next: train minus test, or test minus online, of one model.",
    formula="AUC of the first split - AUC of the second, each exact as in auc; the interval of the "
    "difference of independent samples, from DeLong's intervals of both by the square-and-add rule. They "
    "add up what each user contributes where users have several rows. Violated if its lower end is above "
    "`gaps`. If it is not, and half the interval is wider than the bound, it is `no_data`: such a gap could "
    "not be detected, and the detail says how many rows would be needed.",
    answers="Is the model certainly worse in service than in its test, or in its test than in its training?",
    misleads="Test rows and online rows are from different people on different days: a gap may be only "
    "that, and auc_gap_cause says so. Online labels exist only for items that the model chose to show. "
    "Models are never compared with each other.",
    labels=(PAIR_LABEL, MODEL_LABEL),
    interval="DeLong",
    samples="rows of both splits",
    no_data="a split has no row of the model, labels of one class only, or too few of one to see such a gap",
)
AUC_GAP_CAUSE: Final = samples_spec(
    name="auc_gap_cause",
    kind=ResultKind.CAUSE,
    help="Share of a violated AUC gap that one cause explains.",
    unit="ratio",
    formula="1 - gap without the cause / gap, cut at 0 and 1: the scores as they would be with the feature "
    "served as it was joined offline, without the leaked feature, or with the mix of the other split; see "
    "docs/models.md. Given only while the gap is violated.",
    answers="Why is the model worse in one split than in the other, and what can you do?",
    misleads="Causes overlap, and their shares need not add up to 1. Without a scoring function the effect "
    "of a feature comes from boosted trees that learn the scores. The detail gives their R2 on held-out "
    "rows: where that is low a share is `about` or `at least` what is given, or unknown. A cause without a "
    "trace in the samples is not named.",
    labels=(PAIR_LABEL, MODEL_LABEL, CAUSE_LABEL),
    samples="rows that the diagnosis looked at, of both splits",
    no_data="there is evidence, but its share of the gap is unknown",
)

MODEL_SPECS: Final = {spec.name: spec for spec in (SAMPLE_ROWS, AUC_GAP, AUC_GAP_CAUSE)}
