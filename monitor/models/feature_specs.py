"""The metrics of a model's features in service and of its scores, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from monitor.core.results import Result, ResultKind
from monitor.core.text import VALUE_LENGTH, quoted
from monitor.metrics.family import MODEL_LABEL, ResultBuilder
from monitor.metrics.scores.labelled import sentences
from monitor.models.feature_profile import BINS, VALUES, Comparison, FeatureProfile
from monitor.models.feature_skew import FeatureSkew, Pairing, Skew
from monitor.models.specs import PAIR_LABEL, Pair, samples_spec
from monitor.settings.metrics import MetricSettings
from monitor.settings.models import ModelSettings

FEATURE_LABEL: Final = "feature"
DISTANCES: Final = ("psi", "jensen_shannon", "ks")

_BINS: Final = (
    f"counts over {BINS} bins of equal numbers of the reference (a value that fills more than one has its "
    f"own), of text over its {VALUES} commonest values and the rest, and one bin for what is missing. `psi`: "
    "sum((q - p) ln(q / p)), shares below 1e-4 taken as that; `jensen_shannon`: root of the divergence, base "
    "2, 0 where equal and 1 where nothing is shared; `ks`: the largest gap of the cumulated shares, of "
    "numbers only"
)
_CHANCE: Final = "Small samples differ by chance: the psi of n and m rows is about (bins - 1)(1 / n + 1 / m)."

FEATURE_SKEW: Final = samples_spec(
    name="feature_skew",
    kind=ResultKind.MODEL,
    help="Share of requests whose feature differs between online and offline.",
    unit="ratio",
    formula="pairs whose value is missing on one side only, or differs / pairs. A pair is an online row and "
    "an offline one of the same `pair_by`, and of the same model or of none. Rows with a null there pair "
    "with nothing, and keys that a side has twice are left out and counted. Numbers that differ by at most "
    "`tolerance` of the larger are the "
    "same, null and NaN are both missing. Of the `budget` features that differ most.",
    answers="Does service give the model the same features as training? Which are wrong, and how?",
    misleads="It ignores requests that only one side has. A value that was right when it was served and has "
    "changed since counts as wrong: join offline as of the request's time. A wrong feature that the model "
    "does not use has no cost (see auc_gap_cause).",
    labels=(MODEL_LABEL, FEATURE_LABEL),
    interval="Wilson",
    samples="pairs of an online and an offline row",
    no_data="one of the sides has no row, they share no column of `pair_by`, or no row of one pairs with a "
    "row of the other; the samples have no feature",
)
FEATURE_DISTANCE: Final = samples_spec(
    name="feature_distance",
    kind=ResultKind.MODEL,
    help="Distance between a feature's online values and its training values.",
    formula=f"train (where there is none: test) against online, as {_BINS}. Of the `budget` features that "
    "are farthest by `jensen_shannon`.",
    answers="Which features have another distribution in service: missing, stuck at a default, shifted?",
    misleads=f"Other users and other days have other values: a distance alone is not a fault. {_CHANCE}",
    by=DISTANCES,
    labels=(MODEL_LABEL, FEATURE_LABEL),
    samples="online rows",
    no_data="the reference or the online rows are empty; the samples have no feature",
    undefined="`ks` of text, which has no order",
)
SCORE_DISTANCE: Final = samples_spec(
    name="score_distance",
    kind=ResultKind.MODEL,
    help="Distance between the scores of one split and the next: train and test, or test and online.",
    formula=f"the first split against the second, as {_BINS}",
    answers="Do the model's scores in service differ from those in its test?",
    misleads="Scores move with the people who are scored, with features, and with the model's own choice of "
    f"what to show; the AUC need not. {_CHANCE}",
    by=DISTANCES,
    labels=(PAIR_LABEL, MODEL_LABEL),
    samples="rows of the second split",
    no_data="one of the splits has no row of the model",
)
FEATURE_SPECS: Final = {spec.name: spec for spec in (FEATURE_SKEW, FEATURE_DISTANCE, SCORE_DISTANCE)}


def skew_results(skew: Skew, metrics: MetricSettings, models: ModelSettings, model: str) -> Iterator[Result]:
    """The skew of the features that differ most, the largest first; one `no_data` if there are no pairs.

    The last result says how many are not shown.
    """
    parts = [FEATURE_SKEW.definition(metrics), f"over={models.over.total_seconds():.0f}s"]
    parts += [f"pair_by={','.join(skew.pairing.keys)}", f"tolerance={skew.tolerance:g}"]
    definition = ";".join(parts)

    def own(**labels: str) -> ResultBuilder:
        return ResultBuilder(FEATURE_SKEW, definition, {MODEL_LABEL: model, **labels})

    lacking = _nothing_paired(skew.pairing, models) or ("" if skew.features else _NO_FEATURE)
    if lacking:
        yield own().no_data(lacking)
        return
    worst = sorted(skew.features, key=lambda one: (-one.wrong, one.feature))
    shown = worst[: models.budget]
    for one in shown:
        rest = _rest(worst[len(shown) :]) if one is shown[-1] else ""
        detail = sentences(_what_is_wrong(one), _left_out(skew.pairing), rest)
        yield own(feature=one.feature).share(one.wrong, one.pairs, "", detail=detail)


_NO_FEATURE: Final = (
    "the samples have no feature: every further column of them is one, unless `features` names which"
)


def _nothing_paired(pairing: Pairing, models: ModelSettings) -> str:
    """What is missing for pairs, and how to provide it; empty if there are pairs."""
    if pairing.pairs:
        return ""
    if not pairing.online:
        return "no online row of the model"
    if not pairing.offline:
        return (
            "no offline row of the model: log the same requests over again with the split `offline`, with "
            "their features as the offline pipeline joins them"
        )
    if not pairing.keys:
        asked = ", ".join(map(quoted, models.pair_by))
        return f"no column to pair by: online and offline rows both need one of {asked}, or set `pair_by`"
    keys = ", ".join(map(quoted, pairing.keys))
    return sentences(
        f"no pair among {pairing.online} online and {pairing.offline} offline rows: none share {keys}",
        _left_out(pairing),
    )


def _left_out(pairing: Pairing) -> str:
    keys, unknown = pairing.ambiguous, pairing.unknown
    return sentences(
        f"{keys} {'key is' if keys == 1 else 'keys are'} left out, being on one side more than once"
        if keys
        else "",
        f"{unknown} {'row has' if unknown == 1 else 'rows have'} no value in a key" if unknown else "",
    )


def _what_is_wrong(skew: FeatureSkew) -> str:
    if not skew.wrong:
        return ""
    parts = ((skew.missing, "missing online"), (skew.extra, "missing offline"), (skew.different, "different"))
    kinds = ", ".join(f"{count} {what}" for count, what in parts if count)
    commonest = stale = ""
    if skew.commonest is not None:
        commonest = (
            f"{skew.commonest_count} of the wrong are {quoted(skew.commonest, VALUE_LENGTH, '…')} online"
        )
    if skew.stale:
        stale = f"{skew.stale} of the wrong are older online"
    return sentences(f"{skew.wrong:,} of {skew.pairs:,} pairs differ: {kinds}", commonest, stale)


def _rest(left: Sequence[FeatureSkew]) -> str:
    if not left:
        return ""
    wrong = sum(one.wrong > 0 for one in left)
    return f"{_features(len(left))} not shown, of which {wrong} differ at all"


def _features(count: int) -> str:
    return f"{count} further feature is" if count == 1 else f"{count} further features are"


def distance_results(
    comparisons: Iterable[Comparison], metrics: MetricSettings, models: ModelSettings, model: str
) -> Iterator[Result]:
    """The distances of the features farthest from the reference, the farthest first.

    One `no_data` for each distance if there is no feature, or if a side has no row. The last result says how
    many are not shown.
    """
    definition = f"{FEATURE_DISTANCE.definition(metrics)};over={models.over.total_seconds():.0f}s"

    def own(by: str, **labels: str) -> ResultBuilder:
        return ResultBuilder(FEATURE_DISTANCE, definition, {"by": by, MODEL_LABEL: model, **labels})

    every = list(comparisons)
    lacking = _empty(every[0], ("reference", "online")) if every else _NO_FEATURE
    if lacking:
        yield from (own(by).no_data(lacking) for by in DISTANCES)
        return
    every.sort(key=lambda one: (-(one.jensen_shannon or 0.0), one.feature))
    shown = every[: models.budget]
    left = len(every) - len(shown)
    for one in shown:
        rest = f"{_features(left)} nearer and not shown" if left and one is shown[-1] else ""
        yield from _distances(one, {by: own(by, feature=one.feature) for by in DISTANCES}, rest)


def score_results(
    comparison: Comparison, metrics: MetricSettings, models: ModelSettings, pair: Pair, model: str
) -> Iterator[Result]:
    """The distances of the scores of a pair of splits; `no_data` if one of them is empty."""
    parts = [SCORE_DISTANCE.definition(metrics)]
    sides = pair.split("_")
    if sides[1] == "online":
        parts.append(f"over={models.over.total_seconds():.0f}s")
        parts += [f"online={models.online}"] if models.online != "samples" else []
    builders = {
        by: ResultBuilder(SCORE_DISTANCE, ";".join(parts), {"by": by, PAIR_LABEL: pair, MODEL_LABEL: model})
        for by in DISTANCES
    }
    lacking = _empty(comparison, sides)
    if lacking:
        yield from (builders[by].no_data(lacking) for by in DISTANCES)
    else:
        yield from _distances(comparison, builders, "", sides)


def _empty(comparison: Comparison, sides: Sequence[str]) -> str:
    both = (comparison.reference, comparison.current)
    return next(
        (f"no {side} row of the model" for side, own in zip(sides, both, strict=True) if not own.rows), ""
    )


def _distances(
    comparison: Comparison,
    builders: dict[str, ResultBuilder],
    rest: str,
    sides: Sequence[str] = ("reference", "online"),
) -> Iterator[Result]:
    both = (comparison.reference, comparison.current)
    described = [f"{side}: {_described(own)}" for side, own in zip(sides, both, strict=True)]
    detail = sentences(*described, rest)
    rows = comparison.current.rows
    for by, builder in builders.items():
        value: float | None = getattr(comparison, by)
        if value is None:
            yield builder.undefined(sentences("text has no order", rest), rows)
        else:
            yield builder.value(value, rows, detail=detail)


def _described(profile: FeatureProfile) -> str:
    """The share of missing values, the number of values, and the most frequent one.

    >>> from monitor.models.feature_profile import Bins
    >>> _described(FeatureProfile(Bins("age", "number"), (9, 1), 3, "0", 7))
    "10% missing, 3 values, 70% '0'"
    """
    missing = _percent(profile.null_share)
    if profile.top is None:
        return f"{missing} missing"
    values = "1 value" if profile.distinct == 1 else f"{profile.distinct} values"
    return (
        f"{missing} missing, {values}, {_percent(profile.top_share)} {quoted(profile.top, VALUE_LENGTH, '…')}"
    )


def _percent(share: float | None) -> str:
    return f"{share or 0.0:.3%}".rstrip("%").rstrip("0").rstrip(".") + "%"
