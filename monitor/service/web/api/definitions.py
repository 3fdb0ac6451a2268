"""The answers on what is configured and defined: rules, experiments, models, metrics, the monitor itself."""

from __future__ import annotations

import math
from collections.abc import Mapping

from monitor import __version__
from monitor.catalogue import ALL_SPECS
from monitor.core.results import worst_status
from monitor.core.text import encodable, visible_lines
from monitor.experiments.specs import EXPERIMENT
from monitor.history.counters import RULE_VIOLATIONS
from monitor.history.schema import canonical
from monitor.history.snapshot import RecommenderState, RuleInfo, Series
from monitor.metrics.family import MODEL_LABEL, MetricSpec
from monitor.models.specs import PAIR_LABEL
from monitor.report import rows
from monitor.report.evidence import rule_series
from monitor.report.frame import frame
from monitor.report.gaps import causes_of, gaps_of
from monitor.report.models import model_state
from monitor.service.web.api.answers import (
    ArmAnswer,
    ExperimentAnswer,
    GapAnswer,
    MetricAnswer,
    ModelAnswer,
    MonitorAnswer,
    PageOf,
    RuleAnswer,
)
from monitor.service.web.api.context import Context, missing, without_secrets
from monitor.service.web.api.paging import page_of
from monitor.service.web.api.parameters import ModelsQuery, Paging, Query, RulesQuery
from monitor.service.web.api.series import newest
from monitor.settings.experiments import ExperimentSettings


def monitor(context: Context, asked: Query) -> MonitorAnswer:  # noqa: ARG001
    """The monitor itself: whether its answers can be relied on."""
    snapshot = context.snapshot
    return MonitorAnswer(
        version=__version__,
        taken_at=snapshot.taken_at,
        worked_at=snapshot.worked_at,
        stale=frame(snapshot, context.now).stale,
        history_error=visible_lines(snapshot.history_error),
        config_loaded_at=snapshot.config_loaded_at,
        config_error=visible_lines(snapshot.config_error or ""),
        recommenders=sorted(encodable(one.name) for one in snapshot.recommenders),
    )


def metrics(context: Context, asked: Paging) -> PageOf[MetricAnswer]:  # noqa: ARG001
    """The metric catalogue: every number that the monitor reports."""
    return page_of(ALL_SPECS.values(), asked, key=lambda spec: (spec.name,), shown=_metric)


def metric(context: Context, asked: Query, metric: str) -> MetricAnswer:  # noqa: ARG001
    """The definition of one metric."""
    if metric not in ALL_SPECS:
        raise missing("metric", metric, list(ALL_SPECS))
    return _metric(ALL_SPECS[metric])


def _metric(spec: MetricSpec) -> MetricAnswer:
    low, high = (bound if math.isfinite(bound) else None for bound in spec.bounds)
    return MetricAnswer(
        name=spec.name,
        kind=spec.kind,
        help=spec.help,
        formula=spec.formula,
        answers=spec.answers,
        misleads=spec.misleads,
        unit=spec.unit,
        by=list(spec.by),
        labels=[*spec.labels, *spec.of_samples],
        interval=spec.interval,
        minimum=low,
        maximum=high,
        is_count=spec.is_count,
        better=spec.better,
        sliced=spec.sliced,
        requires=list(spec.requires),
        parameters=list(spec.parameters),
        samples=spec.samples,
        no_data=spec.no_data,
        undefined=spec.undefined,
        version=spec.version,
    )


def rules(context: Context, asked: RulesQuery, recommender: str) -> PageOf[RuleAnswer]:
    """The rules of a recommender's config, with their verdicts."""
    state = context.state(recommender)
    return page_of(
        [one for one in state.rules if asked.rule in (None, encodable(one.rule))],
        asked,
        key=lambda one: (canonical(one.rule),),
        shown=lambda one: _rule(context, state, one),
    )


def rule(context: Context, asked: Query, recommender: str, rule: str) -> RuleAnswer:  # noqa: ARG001
    """One rule of the config."""
    state = context.state(recommender)
    for one in state.rules:
        if encodable(one.rule) == rule:
            return _rule(context, state, one)
    raise missing("rule", rule, [one.rule for one in state.rules])


def _rule(context: Context, state: RecommenderState, info: RuleInfo) -> RuleAnswer:
    series = rule_series(state, info.rule)
    own = {("recommender", state.name), ("rule", info.rule)}
    total = sum(
        value
        for (family, pairs), value in context.snapshot.counters.items()
        if family == RULE_VIOLATIONS and own <= set(pairs)
    )
    return RuleAnswer(
        rule=encodable(info.rule),
        kind=info.kind,
        severity=info.severity,
        threshold=info.threshold,
        table=info.table,
        pack=info.pack,
        expectation=info.expectation,
        arguments=without_secrets(dict(info.arguments)),
        definition=info.definition,
        description=encodable(info.description),
        owner=encodable(info.owner),
        runbook=context.links.runbook(info.runbook, context.docs_url),
        standing=None if series is None else series.standing,
        since=None if series is None else series.since,
        result=None if series is None else newest(series),
        violations_total=int(total),
        page_url=f"{context.links.url}/{rows.rule_href(state.name, info.rule)}",
    )


def experiments(context: Context, asked: Paging, recommender: str) -> PageOf[ExperimentAnswer]:
    """The experiments of a recommender, with the results of their last window."""
    state = context.state(recommender)
    return page_of(
        state.settings.experiments if state.settings is not None else (),
        asked,
        key=lambda one: (one.name,),
        shown=lambda one: _experiment(state, one),
    )


def experiment(context: Context, asked: Query, recommender: str, experiment: str) -> ExperimentAnswer:  # noqa: ARG001
    """One experiment."""
    state = context.state(recommender)
    known = state.settings.experiments if state.settings is not None else ()
    for one in known:
        if one.name == experiment:
            return _experiment(state, one)
    raise missing("experiment", experiment, [one.name for one in known])


def _experiment(state: RecommenderState, settings: ExperimentSettings) -> ExperimentAnswer:
    own = [one for one in state.series if one.result.labels.get(EXPERIMENT) == settings.name]
    judged = [one for one in own if one.result.threshold is not None]
    status = worst_status(one.standing for one in judged)
    whole = sum(settings.weights)
    return ExperimentAnswer(
        name=settings.name,
        column=encodable(settings.column),
        arms=[
            ArmAnswer(arm=encodable(arm), share=weight / whole, is_control=arm == settings.baseline)
            for arm, weight in settings.split.items()
        ],
        start=settings.start,
        alpha=settings.alpha,
        status=status,
        since=min((one.since for one in judged if one.standing is status), default=None),
        results=[newest(one) for one in own],
    )


def models(context: Context, asked: ModelsQuery, recommender: str) -> PageOf[ModelAnswer]:
    """The models of a recommender, with the gaps of their AUC."""
    known = _models(context.state(recommender))
    return page_of(
        [(name, own) for name, own in known.items() if asked.model in (None, encodable(name))],
        asked,
        key=lambda one: (canonical(one[0]),),
        shown=lambda one: _model(*one),
    )


def model(context: Context, asked: Query, recommender: str, model: str) -> ModelAnswer:  # noqa: ARG001
    """One model."""
    known = _models(context.state(recommender))
    for name, own in known.items():
        if encodable(name) == model:
            return _model(name, own)
    raise missing("model", model, list(known))


def _models(state: RecommenderState) -> Mapping[str, list[Series]]:
    found: dict[str, list[Series]] = {}
    for one in state.series:
        if rows.is_of_model(one.result):
            found.setdefault(one.result.labels.get(MODEL_LABEL, ""), []).append(one)
    return found


def _model(name: str, series: list[Series]) -> ModelAnswer:
    gaps = gaps_of(series)
    shown = {id(gap) for gap in gaps}
    causes = {id(gap): causes_of(gap, series) for gap in gaps}
    shown |= {id(one) for own in causes.values() for one in own}
    return ModelAnswer(
        name=encodable(name),
        status=model_state(series),
        gaps=[
            GapAnswer(
                pair=gap.result.labels[PAIR_LABEL],
                standing=gap.standing,
                since=gap.since,
                result=newest(gap),
                causes=[newest(one) for one in causes[id(gap)]],
            )
            for gap in gaps
        ],
        results=[newest(one) for one in series if id(one) not in shown],
    )
