"""Can the conditions of a gate be judged? Their names, metrics, experiments, and the other side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitor.comparison.sides import Side, SideError
from monitor.config.checks.objectives import check_series
from monitor.config.problems import Problem, nearest
from monitor.core.text import quoted
from monitor.settings.gate import Condition, GateSettings
from monitor.settings.recommender import RecommenderSettings


def check_gate(
    where: str, settings: RecommenderSettings, everybody: Sequence[RecommenderSettings]
) -> Iterator[Problem]:
    """A problem for each condition that can never be judged."""
    gate = settings.gate
    if gate is None:
        return
    known = {one.name: one for one in everybody}
    against = None
    if gate.against is not None:
        try:
            name = Side.parse(gate.against).recommender
        except SideError as error:
            yield Problem(f"{where}.against", str(error))
        else:
            against = known.get(name)
            if against is None:
                meant = nearest(name, known)
                hint = f"; did you mean {quoted(meant)}?" if meant else f"; there are: {', '.join(known)}"
                yield Problem(f"{where}.against", f"no recommender is called {quoted(name)}{hint}")
    first: dict[str, int] = {}
    for number, one in enumerate(gate.conditions):
        place = f"{where}.conditions[{number}]"
        if one.name in first:
            yield Problem(
                f"{place}.name", f"{quoted(one.name)} is already the name of conditions[{first[one.name]}]"
            )
        first.setdefault(one.name, number)
        yield from _condition(place, one, gate, settings, against)


def _condition(
    place: str,
    one: Condition,
    gate: GateSettings,
    settings: RecommenderSettings,
    against: RecommenderSettings | None,
) -> Iterator[Problem]:
    if one.rules is not None and not settings.rules:
        yield Problem(f"{place}.rules", "the recommender has no rules, so this could never hold; add rules")
    if one.rules is not None:
        return
    if one.forecast is not None:
        yield from _target(f"{place}.forecast", one.forecast, gate, against)
        return
    if one.margin is not None and gate.against is None:
        yield Problem(
            f"{place}.margin", "needs `against`: the recommender that the candidate is compared with"
        )
    if one.margin is not None and one.experiment is None and _is_whole(gate.against, settings.name):
        part = (
            "name another one"
            if one.metric is None
            else f"name another one, or a part as {settings.name}:model=m6"
        )
        yield Problem(f"{place}.margin", f"`against` is the recommender itself, which is never worse; {part}")
    of = settings if one.experiment is None else against
    if of is not None and one.metric is not None:
        yield from check_series(place, one.metric, one.labels, of)
    if of is not None and one.survey is not None:
        yield from _question(f"{place}.survey", one.survey, of)
    if one.experiment is None or against is None:
        return
    experiments = {found.name: found for found in against.experiments}
    found = experiments.get(one.experiment)
    if found is None:
        there = f"there are: {', '.join(experiments)}" if experiments else "it has none"
        yield Problem(
            f"{place}.experiment",
            f"{against.name} has no experiment called {quoted(one.experiment)}; {there}",
        )
        return
    others = [arm for arm in found.arms if arm != found.baseline]
    if one.arm is None and len(others) > 1:
        yield Problem(place, f"{found.name} has several arms: name one, as arm: {others[0]}")
    elif one.arm is not None and one.arm not in others:
        yield Problem(
            f"{place}.arm", f"{quoted(one.arm)} is no arm beside the control; there are: {', '.join(others)}"
        )


def _is_whole(against: str | None, name: str) -> bool:
    """Whether the other side is all rows of this recommender, so that they hold those of any candidate."""
    return against == name


def _question(place: str, question: str, of: RecommenderSettings) -> Iterator[Problem]:
    if of.logs.survey is None:
        yield Problem(place, f"{of.name} has no logs.survey, so nobody answers")
    elif of.survey.questions and question not in of.survey.questions:
        meant = nearest(question, of.survey.questions)
        hint = f"did you mean {quoted(meant)}?" if meant else "see survey.questions"
        yield Problem(place, f"{of.name} does not ask {quoted(question)}; {hint}")


def _target(
    place: str, target: str, gate: GateSettings, against: RecommenderSettings | None
) -> Iterator[Problem]:
    if gate.against is None:
        yield Problem(place, "needs `against`: the forecast rests on the past of that recommender")
    if against is None:
        return
    names = [] if against.forecast is None else [one.name for one in against.forecast.targets]
    if not names:
        yield Problem(place, f"{against.name} has no forecast; see docs/forecast.md")
    elif target not in names:
        meant = nearest(target, names)
        hint = f"did you mean {quoted(meant)}?" if meant else f"there are: {', '.join(names)}"
        yield Problem(place, f"the forecast of {against.name} has no target {quoted(target)}; {hint}")
