"""The work of `gate`: judge the candidate, the other side and the experiments, then each condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import typer

from monitor.cli.export import check_name, open_history
from monitor.cli.judge import load
from monitor.cli.sides import JudgedSide, Times, check_differ, judge_side, judge_split, known_side, same_rows
from monitor.cli.survey import NoAnswersError, opened
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED
from monitor.comparison.sides import Side, SideError
from monitor.config.checks.check import Checked
from monitor.config.load import load_config
from monitor.config.problems import nearest
from monitor.core.columns import MODEL
from monitor.core.results import Result, Status
from monitor.core.text import quoted
from monitor.experiments.specs import SPLIT_P
from monitor.forecast.candidate import forecast_of
from monitor.gate.conditions import Judgement, Outcome, Override, Sides, judge, overall
from monitor.history.gates import GateRun
from monitor.history.store import Store
from monitor.report.gate import LaunchReport, as_content
from monitor.service.state_folder import keep_private
from monitor.settings.config import Config
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.gate import Condition, GateSettings
from monitor.survey.measure import SurveyError

CODES = {Outcome.PASSED: OK, Outcome.FAILED: VIOLATED, Outcome.NOT_KNOWN: NOT_JUDGED}


@dataclass(frozen=True, slots=True)
class Overrides:
    """The conditions that somebody overrides, and why."""

    names: Sequence[str] = ()
    override: Override | None = None

    @classmethod
    def of(cls, names: Sequence[str], by: str | None, because: str | None) -> Overrides:
        """Checked options of the command line. Raises a usage error without a name and a reason."""
        who, why = (by or "").strip(), (because or "").strip()
        if not names:
            if who or why:
                raise typer.BadParameter(
                    "name the condition with --override", param_hint="--by" if who else "--because"
                )
            return cls()
        if not who or not why:
            raise typer.BadParameter(
                "an override needs a name and a reason: give --by and --because", param_hint="--override"
            )
        return cls(names, Override(who, why))


def gate(
    path: Path, text: str, against: str | None, times: Times, overrides: Overrides
) -> tuple[LaunchReport, int]:
    """The launch report of a candidate, which is stored in the history, and the exit code."""
    config, checked = load(path)
    known = {one.settings.name: one for one in checked}
    side = known_side(text, known)
    settings = known[side.recommender].settings.gate
    if settings is None:
        raise SideError(
            f"{quoted(side.recommender)} has no gate in the config; docs/gate.md says how to write one"
        )
    names = [one.name for one in settings.conditions]
    for name in overrides.names:
        if name not in names:
            meant = nearest(name, names)
            hint = f"did you mean {quoted(meant)}?" if meant else f"there are: {', '.join(names)}"
            raise typer.BadParameter(
                f"no condition is called {quoted(name)}; {hint}", param_hint="--override"
            )
    other = against or settings.against
    against_side = None if other is None else known_side(other, known)
    keep_private(config.state)
    judging = _Judging(config, known, side, against_side, times)
    judgements = [_overridden(one, overrides) for one in judging.all(settings)]
    report = LaunchReport(
        text, other, datetime.now(UTC).replace(microsecond=0), overall(judgements), judgements
    )
    with Store.open(config.history.location(config.state)) as store:
        store.record_gate(
            GateRun(side.recommender, report.judged_at, report.outcome.value, as_content(report))
        )
    return report, CODES[report.outcome]


def _overridden(judgement: Judgement, overrides: Overrides) -> Judgement:
    if judgement.outcome is Outcome.PASSED or judgement.condition.name not in overrides.names:
        return judgement
    return replace(judgement, override=overrides.override)


@dataclass(slots=True)
class _Judging:
    config: Config
    known: Mapping[str, Checked]
    candidate: Side
    other: Side | None
    times: Times

    def all(self, settings: GateSettings) -> list[Judgement]:
        """Every condition. Sides and arms are judged once each."""
        of_sides = [one for one in settings.conditions if one.experiment is None and _is_of_sides(one)]
        sides = self._sides(of_sides) if of_sides else Sides()
        arms: dict[tuple[str, str | None], Sides] = {}
        judgements = []
        for one in settings.conditions:
            if one.survey is not None:
                judgements.append(judge(one, self._answers(one, one.survey)))
                continue
            if one.forecast is not None:
                judgements.append(judge(one, self._predicted(one.forecast)))
                continue
            if one.experiment is None:
                judgements.append(judge(one, sides))
                continue
            key = (one.experiment, one.arm)
            if key not in arms:
                arms[key] = self._arms(*key)
            judgements.append(judge(one, arms[key]))
        return judgements

    def _sides(self, conditions: Sequence[Condition]) -> Sides:
        metrics = [one.metric for one in conditions if one.metric is not None]
        try:
            candidate = self._judged(self.candidate, metrics)
        except SideError as error:
            return Sides(broken=str(error))
        if all(one.margin is None for one in conditions):
            return Sides(candidate.with_groups)
        if self.other is None:
            raise SideError("name the other side with --against, or as `against` in the gate")
        try:
            other = self._judged(self.other, metrics)
        except SideError as error:
            return Sides(candidate.with_groups, without_other=str(error))
        check_differ(candidate, other)
        return Sides(candidate.with_groups, other.with_groups)

    def _judged(self, side: Side, metrics: Sequence[str]) -> JudgedSide:
        return judge_side(self.config, self.known[side.recommender], side, self.times, metrics=metrics)

    def _arms(self, name: str, arm: str | None) -> Sides:
        """The arm and the control of an experiment of the other side."""
        try:
            arms = self._experiment(name, arm)
            recommender, column = arms.checked.settings.name, arms.experiment.column
            treated, control = (
                judge_side(
                    self.config, arms.checked,
                    Side(f"{recommender}:{column}={value}", recommender, column, value), arms.times,
                ).with_groups
                for value in arms.values
            )  # fmt: skip
        except SideError as error:
            return Sides(broken=str(error))
        return Sides(treated, control)

    def _experiment(self, name: str, arm: str | None) -> _Arms:
        """An experiment of the other side. Raises SideError if it has none, or if its split is broken."""
        assert self.other is not None  # the config was checked
        checked = self.known[self.other.recommender]
        experiment = next((one for one in checked.settings.experiments if one.name == name), None)
        if experiment is None:
            raise SideError(f"{checked.settings.name} has no experiment called {quoted(name)}")
        arms = [one for one in experiment.arms if one != experiment.baseline]
        if arm is None and len(arms) > 1:
            raise SideError(
                f"{name} of {checked.settings.name} has several arms, and the condition names none"
            )
        chosen = arm or arms[0]
        first, last = self.times
        begins = experiment.begins(checked.settings.window)
        if begins is not None:
            first = begins if first is None else max(first, begins)
        split = judge_split(self.config, checked, experiment, (first, last))
        if why := _broken(split, experiment.alpha):
            raise SideError(f"the split of {name}: {why}")
        return _Arms(checked, experiment, (chosen, experiment.baseline), (first, last))

    def _answers(self, condition: Condition, question: str) -> Sides:
        """The mean answer to a question, of the candidate and the other side or of two arms."""
        try:
            if condition.experiment is not None:
                arms = self._experiment(condition.experiment, condition.arm)
                with opened(self.config, arms.checked, *arms.times) as survey:
                    treated, control = (
                        [_of_question(survey.answer(question, arms.experiment.name, value))]
                        for value in arms.values
                    )
                return Sides(treated, control)
            candidate = self._answer(self.candidate, question)
            if condition.margin is None:
                return Sides(candidate)
            if self.other is None:
                raise SideError("name the other side with --against, or as `against` in the gate")
        except (SideError, NoAnswersError, SurveyError) as error:
            return Sides(broken=str(error))
        of_itself = self.candidate.recommender == self.other.recommender
        if of_itself and not (self.other.column or self.other.start):
            raise same_rows(self.candidate, self.other)
        try:
            return Sides(candidate, self._answer(self.other, question))
        except (SideError, NoAnswersError, SurveyError) as error:
            return Sides(candidate, without_other=str(error))

    def _predicted(self, target: str) -> Sides:
        """What the past days of the other side predict for the candidate."""
        assert self.other is not None  # the config was checked
        past = self.known[self.other.recommender].settings
        targets = [] if past.forecast is None else [one.name for one in past.forecast.targets]
        if target not in targets:
            return Sides(broken=f"{past.name} has no forecast of {quoted(target)}")
        name = self.candidate.recommender
        if name == past.name:
            if self.candidate.column != MODEL:
                why = "a forecast is of another recommender, or of a model, as shop:model=m7"
                return Sides(broken=f"{quoted(self.candidate.text)}: {why}")
            name = self.candidate.value
        elif self.candidate.column:
            why = f"a forecast by the past of {past.name} is of one of its models, or of a whole recommender"
            return Sides(broken=f"{quoted(self.candidate.text)}: {why}")
        with Store.open(self.config.history.location(self.config.state)) as store:
            found = forecast_of(store, past, name, target, everybody=self.config.recommenders)
        known = found.status is Status.OK
        result = Result(
            metric="forecast", labels={"target": target}, definition="1", status=found.status,
            samples=found.points, value=found.value if known else None, lower=found.lower if known else None,
            upper=found.upper if known else None, detail=found.detail,
        )  # fmt: skip
        return Sides([result])

    def _answer(self, side: Side, question: str) -> list[Result]:
        checked = self.known[side.recommender]
        if side.column or side.start:
            raise SideError(f"{quoted(side.text)}: a survey is of a whole recommender; name an experiment")
        with opened(self.config, checked, *self.times) as survey:
            return [_of_question(survey.answer(question))]


@dataclass(frozen=True, slots=True)
class _Arms:
    """An experiment whose split holds: the arm and its control, and the times that count."""

    checked: Checked
    experiment: ExperimentSettings
    values: tuple[str, str]
    times: Times


def _is_of_sides(condition: Condition) -> bool:
    return condition.rules is not None or condition.metric is not None


def _of_question(result: Result) -> Result:
    """The result without the arm, so that two arms have the same series."""
    return replace(result, labels={"question": result.labels["question"]})


def _broken(split: Sequence[Result], alpha: float) -> str:
    """Why the arms of an experiment cannot be compared; empty if they can.

    A gate is one look at the split, so the chi-square test counts too. It needs fewer users.
    """
    if not split:
        return "no window of it is in this span"
    for one in split:
        if one.status is not Status.OK:
            return one.detail or f"{one.metric} is {one.status}"
    by_chance = {one.labels.get("by"): one for one in split if one.metric == SPLIT_P.name}
    if (found := by_chance["chi_square"].value) is not None and found < alpha:
        return f"it is broken: {by_chance['anytime'].detail} (chi-square p {found:.2g})"
    return ""


def gate_runs(path: Path, only: str | None, first: datetime | None, last: datetime | None) -> list[GateRun]:
    """The stored runs of gates, oldest first."""
    config = load_config(path)
    if only is not None:
        check_name(only, config)
    with open_history(config) as store:
        return store.gate_runs(recommenders=[only] if only else None, start=first, end=last)
