"""Explains a violated gap: draws rows of both splits, diagnoses them, and turns the causes into results."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from monitor.core.columns import MODEL, ONLINE, SPLIT, TRAIN
from monitor.core.results import Result, Status
from monitor.metrics.family import MODEL_LABEL
from monitor.models import specs
from monitor.models.diagnosis.diagnose import Finding, diagnose
from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.models.samples import SampleTables
from monitor.models.sampling import features_of, sample_pairs, sample_rows
from monitor.models.scorer import ScorerError, load_scorer
from monitor.models.split_results import SIDES, builder
from monitor.rules.evidence import readable_rows
from monitor.settings.recommender import RecommenderSettings

log = logging.getLogger(__name__)


def explain(gap: Result, rows: SampleTables, settings: RecommenderSettings) -> Iterator[Result]:
    """The causes of a violated gap as results, the largest share first."""
    pair: specs.Pair = "train_test" if gap.labels[specs.PAIR_LABEL] == "train_test" else "test_online"
    model = gap.labels[MODEL_LABEL]
    better, worse = (_drawn(rows, split, model, settings) for split in SIDES[pair])
    if better is None or worse is None:
        return
    train = _drawn(rows, TRAIN, model, settings) if pair == "test_online" else None
    pairs = _pairs(rows, model, settings) if pair == "test_online" else None
    findings, note = _diagnosed(pair, better, worse, train, pairs, settings)
    for finding in findings:
        yield _result(finding, pair, model, len(better) + len(worse), settings, note)


def _diagnosed(
    pair: specs.Pair,
    better: Sample,
    worse: Sample,
    train: Sample | None,
    pairs: Pairs | None,
    settings: RecommenderSettings,
) -> tuple[tuple[Finding, ...], str]:
    """The findings, and why the configured scoring function was not used, if it failed."""
    models = settings.models
    asserted = min(getattr(models.gaps, pair), models.diagnosis.least_gap)
    bounds = models.diagnosis.model_copy(update={"least_gap": asserted})
    note = ""
    if models.scorer is not None:
        try:
            scorer = load_scorer(models.scorer)
            return diagnose(
                pair, better, worse, train=train, pairs=pairs, scorer=scorer, settings=bounds
            ), note
        except ScorerError as exc:
            log.warning("%s: the scoring function: %s", settings.name, exc)
            note = f"without the scoring function: {exc}"
    return diagnose(pair, better, worse, train=train, pairs=pairs, settings=bounds), note


def _drawn(rows: SampleTables, split: str, model: str, settings: RecommenderSettings) -> Sample | None:
    table = rows.online if split == ONLINE else rows.reference
    if table is None:
        return None
    own = table.filter(table[MODEL] == model, table[SPLIT] == split)
    return sample_rows(own, features_of((own,), settings.models), settings.models)


def _pairs(rows: SampleTables, model: str, settings: RecommenderSettings) -> Pairs | None:
    offline = rows.offline_of(model)
    if rows.online is None or offline is None:
        return None
    online = rows.online.filter(rows.online[MODEL] == model)
    features = features_of((online, offline), settings.models)
    return sample_pairs(online, offline, features, settings.models)


def _result(
    finding: Finding, pair: specs.Pair, model: str, n: int, settings: RecommenderSettings, note: str
) -> Result:
    labels = {specs.PAIR_LABEL: pair, MODEL_LABEL: model, specs.CAUSE_LABEL: finding.cause}
    own = builder(specs.AUC_GAP_CAUSE, settings.metrics, settings.models, **labels)
    detail = " ".join(part for part in (finding.summary, finding.advice, note) if part)
    return Result(
        kind=specs.AUC_GAP_CAUSE.kind,
        metric=specs.AUC_GAP_CAUSE.name,
        labels=labels,
        definition=own.definition,
        status=Status.NO_DATA if finding.share is None else Status.OK,
        value=None if finding.share is None else min(1.0, finding.share),
        samples=n,
        detail=detail,
        evidence=readable_rows(finding.evidence, salt=None),
    )
