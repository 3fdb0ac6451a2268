"""`recsys-monitor power`: the users that an experiment needs, or the effect that its users can show."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Annotated

import typer

from monitor.cli.terminal import Listing, fail, printing, say, write
from monitor.report import numbers
from monitor.statistics.sample_size import (
    Mean,
    Plan,
    Share,
    detectable_effect,
    power_at,
    sample_size,
)

EPILOG = (
    "Example: recsys-monitor power --baseline 5% --effect 2% --users-per-day 10000\n\nThis example asks how "
    "many users can show a rise of a conversion from 5 % to 5.1 %: 752,703 in each of two arms, 151 days. "
    "With --users instead of --effect it prints the smallest rise that these users can show; with both, the "
    "power. For a mean, such as minutes a user: --mean 12.5 --sd 30.\n\nUsers are assigned to arms, and "
    "each counts once. A click rate by exposure is therefore a mean over users, with the standard deviation "
    "between users.\n\nExit codes: 0 printed, 2 a wrong usage, or an effect that no number of users can "
    "show."
)
_WIDTH = 26


@dataclass(frozen=True, slots=True)
class Answer:
    """The inputs and the answer, in the order of the printed JSON.

    `effect` is absolute. `users` counts all arms. A treatment has `ratio` times the users of control.
    """

    metric: str
    baseline: float
    sd: float | None
    effect: float
    relative_effect: float | None
    alpha: float
    alpha_per_comparison: float
    two_sided: bool
    power: float
    arms: int
    ratio: float
    users_control: int
    users_per_treatment: int
    users: int
    users_per_day: int | None
    days: int | None


def power(
    baseline: Annotated[
        str | None, typer.Option(metavar="SHARE", help="The current share of users, as 0.05 or 5%.")
    ] = None,
    mean: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="The current mean, instead of --baseline.")
    ] = None,
    sd: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="The standard deviation between users; with --mean."),
    ] = None,
    effect: Annotated[
        str | None,
        typer.Option(metavar="CHANGE", help="The effect to find: 2% of the baseline, or 0.001 more than it."),
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=10**15, help="The number of users in all arms together."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(metavar="SHARE", help="The chance of claiming an effect that does not exist.")
    ] = 0.05,
    wanted: Annotated[
        float,
        typer.Option("--power", metavar="SHARE", help="The chance of finding an effect that exists."),
    ] = 0.8,
    arms: Annotated[
        int,
        typer.Option(
            metavar="N", min=2, max=1000, help="Control and treatments; each is compared to control."
        ),
    ] = 2,
    ratio: Annotated[
        float, typer.Option(metavar="NUMBER", help="Users of each treatment for each user of control.")
    ] = 1.0,
    one_sided: Annotated[
        bool, typer.Option("--one-sided", help="Test only the direction of the effect.")
    ] = False,
    users_per_day: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="New users a day; the number of days is printed too."),
    ] = None,
    output: Annotated[Listing, typer.Option("--format", "-f", help="The output format.")] = Listing.TABLE,
) -> None:
    """Plan an experiment: the users it needs, the days, the smallest effect it can show.

    With more than two arms, alpha is divided by the number of treatments (Bonferroni).
    """
    try:
        metric, now = _metric(baseline, mean, sd)
        plan = Plan(alpha, wanted, ratio, not one_sided)
        change = None if effect is None else _effect(effect, now)
        answer = _answer(metric, now, change, users, plan, arms, users_per_day)
    except ValueError as exc:
        fail(str(exc))
    with printing():
        if output is Listing.JSON:
            write(json.dumps(asdict(answer), indent=2))
        else:
            _print(answer)


def _metric(baseline: str | None, mean: float | None, sd: float | None) -> tuple[Share | Mean, float]:
    if (baseline is None) == (mean is None):
        raise ValueError("give either --baseline, or --mean with --sd")
    if (mean is None) != (sd is None):
        raise ValueError("--mean needs --sd, and --sd needs --mean")
    if mean is not None and sd is not None:
        if not math.isfinite(mean):
            raise ValueError(f"--mean must be a number, got {mean}")
        return Mean(sd), mean
    now, is_percent = _number(baseline or "", "--baseline")
    if now >= 1:
        meant = f"; did you mean {now:g}%?" if now < 100 and not is_percent else ""
        raise ValueError(f"--baseline {baseline}: a share must lie between 0 and 1{meant}")
    return Share(now), now


def _effect(text: str, now: float) -> float:
    """The absolute effect. A number with a % sign is relative to the baseline."""
    number, relative = _number(text, "--effect")
    if number == 0 or (relative and now == 0):
        raise ValueError(f"--effect {text} changes nothing")
    return number * now if relative else number


def _number(text: str, option: str) -> tuple[float, bool]:
    """The number, and whether it has a % sign."""
    bare = text.strip()
    percent = bare.endswith("%")
    try:
        number = float(bare.removesuffix("%"))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{option} {text!r} is not a number; write it as 0.05 or 5%")
    return (number / 100 if percent else number), percent


def _answer(
    metric: Share | Mean,
    now: float,
    effect: float | None,
    users: int | None,
    plan: Plan,
    arms: int,
    users_per_day: int | None,
) -> Answer:
    each = replace(plan, alpha=plan.alpha / (arms - 1))
    ratio = Fraction(str(plan.ratio))  # exact: as a float, 110 / 1.1 is below 100
    weight = 1 + ratio * (arms - 1)
    reached = plan.power
    if users is None:
        if effect is None:
            raise ValueError("give --effect, or --users to see what effect they can show")
        control = sample_size(metric, effect, each)
        treatment = math.ceil(control * ratio)
    else:
        control, treatment = math.floor(users / weight), math.floor(users / weight * ratio)
        if min(control, treatment) < 1:
            raise ValueError(f"--users {users:,}: too few for {arms} arms")
        if effect is not None:
            reached = power_at(metric, effect, control, each)
        else:
            effect = detectable_effect(metric, control, each)
    if effect is None:
        raise ValueError(f"--users {users:,}: too few to show any rise; give more, or a smaller --power")
    total = control + (arms - 1) * treatment
    sd = metric.sd if isinstance(metric, Mean) else None
    return Answer(
        metric="share" if sd is None else "mean", baseline=now, sd=sd, effect=effect,
        relative_effect=effect / now if now else None, alpha=plan.alpha, alpha_per_comparison=each.alpha,
        two_sided=plan.two_sided, power=reached, arms=arms, ratio=plan.ratio, users_control=control,
        users_per_treatment=treatment, users=total, users_per_day=users_per_day,
        days=None if users_per_day is None else math.ceil(total / users_per_day),
    )  # fmt: skip


def _print(answer: Answer) -> None:
    relative = "" if answer.relative_effect is None else f", {100 * answer.relative_effect:+.4g} %"
    spread = "" if answer.sd is None else f", standard deviation {numbers.number(answer.sd)}"
    effect = f"{'+' if answer.effect > 0 else ''}{numbers.number(answer.effect)}"
    corrected = "" if answer.arms == 2 else f" ({answer.alpha_per_comparison:.4g} a comparison)"
    rows = [
        (f"{answer.metric} now", f"{answer.baseline:,.15g}{spread}"),
        ("effect", f"{effect} (to {answer.baseline + answer.effect:,.12g}{relative})"),
        ("alpha", f"{answer.alpha:g}, {'two-sided' if answer.two_sided else 'one-sided'}{corrected}"),
        ("power", f"{answer.power:.4g}"),
        ("users of control", f"{answer.users_control:,}"),
        ("users of each treatment", f"{answer.users_per_treatment:,}"),
        (f"users in all {answer.arms} arms", f"{answer.users:,}"),
    ]
    if answer.users_per_day is not None:
        rows.append((f"days at {answer.users_per_day:,} a day", f"{answer.days:,}"))
    for name, value in rows:
        say(f"{name:<{_WIDTH}}{value}")
