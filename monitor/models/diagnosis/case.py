"""The data that every cause is judged by, read once: both splits, the binned features, and the scoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.core.text import NAME_LENGTH, quoted
from monitor.models.diagnosis.area import Ranking, change, mixed_area
from monitor.models.diagnosis.columns import Binned, Bins, Column, part, read_column
from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.models.diagnosis.scoring import Rescored, Scorer, Scoring, Surrogate
from monitor.settings.models import DiagnosisSettings
from monitor.statistics.counts import Floats
from monitor.statistics.intervals import quantile

Pair = Literal["train_test", "test_online"]
EVIDENCE = 20
"""Rows of evidence that a finding has at most."""
NAMED = 10
"""Features that a finding names at most."""
FAITHFUL, POOR, VERY_POOR = 0.9, 0.7, 0.25
"""Bounds of fidelity, by which a share is exact, `about`, `at least`, or unknown."""
_OWNER = "user_id"


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause of a gap."""

    cause: str
    """Its name in the registry."""
    share: float | None
    """Share of the gap, above 0 and at most 1; None if there is evidence but the share is unknown."""
    features: tuple[str, ...]
    """The one that explains most first."""
    summary: str
    advice: str
    evidence: tuple[Mapping[str, Any], ...]
    bound: str = ""
    """How exact the share is: empty for exact, `about`, or `at least`."""


class ShareEstimate(NamedTuple):
    """A share as a finding gives it."""

    share: float | None
    bound: str
    text: str
    """For a sentence: the share of the gap, and how it was measured."""
    evidence: Mapping[str, Any]
    """How well the scoring reproduces the scores of the log."""


def finding_of(
    cause: str,
    estimate: ShareEstimate | None,
    features: Sequence[str],
    summary: str,
    advice: str,
    evidence: Sequence[Mapping[str, Any]],
) -> Finding:
    """A finding with an estimated share (None: unknown). The last row of evidence says how good it is."""
    rows = (*evidence[: EVIDENCE - 1], *([estimate.evidence] if estimate and estimate.evidence else []))
    share, bound = (estimate.share, estimate.bound) if estimate else (None, "")
    return Finding(cause, share, tuple(features[:NAMED]), summary, advice, rows, bound)


class Claim(NamedTuple):
    """The result of looking for one cause."""

    owned: frozenset[str] = frozenset()
    """Features that later causes may not claim, whether or not the finding names them."""
    won: float = 0.0
    """The AUC that the worse split would gain without the cause."""
    finding: Finding | None = None
    plain: bool = False
    """Whether the finding is shown beside others even if its share is unknown."""


@dataclass(frozen=True, slots=True)
class Case:
    """One gap and the data of its splits."""

    pair: Pair
    better: Sample
    worse: Sample
    train: Sample | None
    pairs: Pairs | None
    settings: DiagnosisSettings
    auc: float
    """Of `better`."""
    gap: float
    columns: Mapping[str, Column]
    """The features that `better` has."""
    slices: Mapping[str, Column]
    """The slices that both splits have, except those that are features too."""
    bins: Mapping[str, Bins]
    binned: Binned
    scoring: Scoring
    owners: Mapping[str, NDArray[np.int64]]
    """Side -> a number for each row, equal for the rows of one user; without the sides that have no users."""

    def share(self, won: float, error: float) -> float | None:
        """A change of AUC as a share of the gap; None if it is too small or may be chance."""
        if won <= one_sided(self.settings.confidence) * error or won < self.settings.least_share * self.gap:
            return None
        return won / self.gap

    def estimate(self, won: float, error: float, *sides: str) -> ShareEstimate | None:
        """A change of AUC as a share of the gap; None if it is too small or may be chance.

        Args:
            won, error: the change of AUC, and its standard error.
            sides: the sides whose rows were scored again.
        """
        share = self.share(won, error)
        if share is None:
            return None
        share = min(share, 1.0)
        if not sides:
            return ShareEstimate(share, "", f"{share:.0%} of the gap of {self.gap:.3f}", {})
        scoring, names = self.scoring, self.names
        met = {names[side]: scoring.fidelity[side] for side in sides}
        worst = min(met.values())
        how = f"{scoring.method}, {scoring.measure} " + " and ".join(
            f"{value:.2f} on {name}" for name, value in met.items()
        )
        evidence = {"measured_by": scoring.method, "measure": scoring.measure, **met}
        if worst < VERY_POOR:
            text = f"an unknown share of the gap of {self.gap:.3f} ({how}: too poor for a share)"
            return ShareEstimate(None, "", text, evidence | {"share": "unknown"})
        # A surrogate understates an effect: the part of a score that it misses stays with the row.
        poor = "at least" if isinstance(scoring, Surrogate) else "about"
        bound = "" if worst >= FAITHFUL else "about" if worst >= POOR else poor
        said = f"{bound} {share:.0%}".strip()
        text = f"{said} of the gap of {self.gap:.3f} (by {how})"
        return ShareEstimate(share, bound, text, evidence | {"share": bound or "exact"})

    @property
    def names(self) -> Mapping[str, str]:
        """The names of the sides in messages."""
        better, worse = self.pair.split("_")
        return {"better": better, "worse": worse, "online": "the pairs"}

    def lost(self, side: str, versions: list[Floats], shares: list[float]) -> tuple[float, float]:
        """The fall of AUC on a side if its rows get these scores, each with its share; and the error."""
        labels = self.sample(side).labels
        before = Ranking(self.scoring.base(side), labels).area()
        after = mixed_area(versions, shares, labels)
        return change(before, after, self.owners.get(side)) if before and after else (0.0, 0.0)

    def sample(self, side: str) -> Sample:
        """The rows of a side that has scores."""
        if side == "online" and self.pairs is not None:
            return self.pairs.online
        return self.better if side == "better" else self.worse

    def rates(self, feature: str, weights: Floats | None = None) -> tuple[Floats, Floats, Floats, Floats]:
        """By bin: rows and positives of `better`, under weights if given, and those of `worse`."""
        size = self.bins[feature].size
        found: list[Floats] = []
        for side, weight in (("better", weights), ("worse", None)):
            codes, labels = self.binned.codes(side, feature), self.sample(side).labels
            found.append(np.bincount(codes, weight, size).astype(np.float64))
            found.append(
                np.bincount(codes, labels if weight is None else labels * weight, size).astype(np.float64)
            )
        rows, positives, worse_rows, worse_positives = found
        return rows, positives, worse_rows, worse_positives


def one_sided(confidence: float) -> float:
    """How many standard errors above 0 a value must be to be above 0 with this confidence.

    >>> round(one_sided(0.975), 2)
    1.96
    """
    return quantile(2 * confidence - 1)


def read_case(
    pair: Pair,
    better: Sample,
    worse: Sample,
    train: Sample | None,
    pairs: Pairs | None,
    scorer: Scorer | None,
    settings: DiagnosisSettings,
    auc: float,
    gap: float,
) -> Case:
    """Read and bin the features, and learn how the score depends on them."""
    columns = {}
    for name, values in better.features.items():
        sides = {"better": values}
        if name in worse.features:
            sides["worse"] = worse.features[name]
        if pairs is not None and name in pairs.online.features:
            sides["online"] = pairs.online.features[name]
        if pairs is not None and name in pairs.offline:
            sides["offline"] = pairs.offline[name]
        columns[name] = read_column(name, sides)
    # Enough rows in each bin that its effect exceeds their noise.
    most = max(2, min(settings.bins, (len(better) + len(worse)) // settings.least_rows))
    bins = {name: part(column, most) for name, column in columns.items()}
    slices = {
        name: read_column(name, {"better": values, "worse": worse.slices[name]})
        for name, values in better.slices.items()
        if name in worse.slices and name not in columns
    }
    samples = {"better": better, "worse": worse} | ({"online": pairs.online} if pairs else {})
    binned = Binned(columns, bins, {side: len(one) for side, one in samples.items()})
    scoring: Scoring = Surrogate(samples, columns) if scorer is None else Rescored(scorer, samples, columns)
    owners = {side: found for side, one in samples.items() if (found := owners_of(one)) is not None}
    return Case(
        pair, better, worse, train, pairs, settings, auc, gap,
        columns, slices, bins, binned, scoring, owners,
    )  # fmt: skip


def owners_of(sample: Sample) -> NDArray[np.int64] | None:
    """A number for each row, equal for the rows of one user; a row without a user has its own.

    None if the sample has no users, or no user with two rows.
    """
    users = sample.entities.get(_OWNER)
    if users is None:
        return None
    place: dict[Any, int] = {}
    keys = ((at,) if user is None else user for at, user in enumerate(users.tolist()))
    found = [place.setdefault(key, len(place)) for key in keys]
    return None if len(place) == len(found) else np.asarray(found, np.int64)


def labelled(sample: Sample) -> Sample:
    """The usable rows, scores and labels as float64, times as float64 where there are any."""
    rows = sample.take(sample.usable())
    return replace(
        rows,
        scores=np.asarray(rows.scores, np.float64),
        labels=np.asarray(rows.labels, np.float64),
        times=None if rows.times is None else np.asarray(rows.times, np.float64),
    )


def called(sample: Sample, at: int) -> Any:
    """The id of a row for evidence, as a plain value; None if the sample has no ids."""
    if sample.ids is None:
        return None
    name = sample.ids[at]
    return name.item() if isinstance(name, np.generic) else name


def number(names: Sequence[str], singular: str, plural: str) -> str:
    """The form of a word that agrees with `shown(names)`.

    >>> number(["age"], "varies", "vary"), number(["age", "city"], "varies", "vary")
    ('varies', 'vary')
    """
    return singular if len(names) == 1 else plural


def shown(names: tuple[str, ...] | list[str], most: int = 3) -> str:
    """Names from a log for a sentence, quoted and shortened.

    >>> shown(["age", "city", "x", "y"])
    "'age', 'city', 'x' and 1 more"
    """
    text = ", ".join(quoted(name, NAME_LENGTH) for name in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"
