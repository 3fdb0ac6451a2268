"""The commands before and after a launch. Each one is a thin call into the layers below."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.options import CompareFormat, ConfigPath, From, Only, PageFormat, To
from monitor.cli.terminal import (
    OK,
    Listing,
    claim_output,
    out,
    printing,
    say,
    span,
    write,
)

launch_app = typer.Typer()
_PANEL = "Before and after a launch"


@launch_app.command(
    rich_help_panel=_PANEL,
    epilog="Example: recsys-monitor compare old new --config shop.yaml\n\n"
    "recsys-monitor compare shop:model=m6 shop:model=m7 --config shop.yaml --metric ndcg --metric conversion"
    "\n\nrecsys-monitor compare shop@2026-11-01/2026-11-08 shop@2026-11-08/2026-11-15 --config shop.yaml\n\n"
    "Exit codes: 0 nothing is worse, 1 something is worse, 2 a wrong config or usage, "
    "3 nothing is worse, but something is unknown, or nothing was judged.",
)
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The side to compare with.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="The candidate.", show_default=False)],
    config: ConfigPath,
    start: From = None,
    end: To = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", metavar="NAME", help="Compare only this metric or rule; again for more."
        ),
    ] = None,
    margin: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Differences up to this part of A are the same, as 0.02 or 2%."),
    ] = "2%",
    output: Annotated[
        CompareFormat,
        typer.Option("--format", "-f", help="The output format; html is one file with pictures."),
    ] = CompareFormat.TABLE,
    slices: Annotated[
        bool, typer.Option("--slices", help="Also compare each slice of the config, not only the whole.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show what has no interval, or no value on either side.")
    ] = False,
) -> None:
    """Compare two recommenders, models, arms or spans: every rule and metric side by side.

    A side is the NAME of a recommender of the config, and may choose rows and a span of its own:
    NAME:COLUMN=VALUE@FROM/TO. The whole span is judged as one window. Each difference has an interval, so
    wide that all intervals hold together: the fewer metrics you ask for, the more each comparison sees.
    """
    times = span(start, end)
    claim_output()
    from monitor.cli import compare as commands
    from monitor.report import comparison as report
    from monitor.report.comparison_page import as_html

    chosen = commands.Chosen(metrics or (), commands.share(margin), slices)
    found, code = commands.compare(config, (a, b), times, chosen)
    with printing():
        match output:
            case CompareFormat.JSON:
                write(report.as_json(found))
            case CompareFormat.JUNIT:
                write(report.as_junit(found))
            case CompareFormat.HTML:
                write(as_html(found))
            case CompareFormat.TABLE:
                report.print_comparison(found, out, everything=everything)
    sys.exit(code)


@launch_app.command(
    rich_help_panel=_PANEL,
    epilog="Example: recsys-monitor gate candidate --config shop.yaml --format html > launch.html\n\n"
    "Exit codes: 0 passed, 1 a condition fails, 2 a wrong config or usage, 3 none fails, but one is not yet "
    "known.",
)
def gate(
    candidate: Annotated[
        str, typer.Argument(metavar="CANDIDATE", help="The recommender to launch, or a side as in compare.")
    ],
    config: ConfigPath,
    start: From = None,
    end: To = None,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="SIDE", help="The other side. Default: `against` of the gate."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--override", metavar="CONDITION", help="Launch although this fails; again for more."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who overrides; needed with --override.")
    ] = None,
    because: Annotated[
        str | None, typer.Option("--because", metavar="REASON", help="Why; needed with --override.")
    ] = None,
    output: Annotated[
        CompareFormat,
        typer.Option("--format", "-f", help="The output format; html is one file for a change request."),
    ] = CompareFormat.TABLE,
) -> None:
    """Judge whether a candidate may go live: each condition of its gate is passed, failed, or not yet known.

    The conditions are in the config under `gate`. The whole span is judged as one window. A gate never passes
    on missing data. An override needs a name and a reason. Each run, with its overrides, is stored in the
    history; `history gates` prints them.
    """
    times = span(start, end)
    claim_output()
    from monitor.cli import gate as commands
    from monitor.report import gate as report

    chosen = commands.Overrides.of(overrides or (), by, because)
    found, code = commands.gate(config, candidate, against, times, chosen)
    with printing():
        match output:
            case CompareFormat.JSON:
                write(report.as_json(found))
            case CompareFormat.JUNIT:
                write(report.as_junit(found))
            case CompareFormat.HTML:
                write(report.as_html(found))
            case CompareFormat.TABLE:
                report.print_report(found, out)
    sys.exit(code)


@launch_app.command(
    rich_help_panel=_PANEL,
    epilog="Example: recsys-monitor estimate --config shop.yaml --recommender random --target learned\n\n"
    "Exit codes: 0 estimated, 2 a wrong config or usage, or a log without propensities or feedback, 3 no "
    "estimate: too little overlap, or no row.",
)
def estimate(
    config: ConfigPath,
    only: Annotated[
        str | None,
        typer.Option(
            "--recommender", "-r", metavar="NAME", help="The log with propensities. Default: the only one."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="NAME", help="The recommender whose log shows the target policy."),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            "--target-column",
            metavar="COLUMN",
            help="The column of the exposures with the target's probability of the shown item.",
        ),
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(
            "--event", metavar="EVENT", help="The rewarded event. Default: the first of the config."
        ),
    ] = None,
    cap: Annotated[
        float, typer.Option("--cap", metavar="WEIGHT", help="Where clipped_ips cuts weights; from 1.")
    ] = 10.0,
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context",
            metavar="COLUMN",
            help="A column that direct_method and doubly_robust predict from, with item and position; again "
            "for more.",
        ),
    ] = None,
    start: From = None,
    end: To = None,
    output: Annotated[
        Listing, typer.Option("--format", "-f", help="The output format; json as in check.")
    ] = Listing.TABLE,
) -> None:
    """Estimate what another policy would have earned, from a log with propensities.

    The target policy is known from the log of another recommender, by how often it shows an item at a
    position, or from a column of this log. A target that personalizes needs the column. The command prints
    the rate of the event for each exposure, with its interval by user, and how well the log covers the
    target. It prints no_data and the reason if the overlap is too small. It writes nothing.
    """
    first, last = span(start, end)
    claim_output()
    from monitor.cli.estimate import Asked, estimated
    from monitor.report import off_policy

    judged, code = estimated(
        config, Asked(only, target, column, event, cap, tuple(context or ()), first, last)
    )
    with printing():
        if output is Listing.JSON:
            write(off_policy.as_json(judged))
        else:
            off_policy.print_estimates(judged, out)
    sys.exit(code)


@launch_app.command(
    rich_help_panel=_PANEL,
    epilog="Example: recsys-monitor replay candidate --config shop.yaml --users 500 --dry-run\n\n"
    "recsys-monitor replay candidate --config shop.yaml --users 500 --run first\n\n"
    "Exit codes: 0 every request was sent, 1 a limit was passed and the run aborted, 2 a wrong config or "
    "usage, 3 nothing to send, no answer at all (also if it aborted), or requests without an outcome, 130 "
    "stopped by a signal.",
)
def replay(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="The endpoint, by its name in replay.targets.")
    ],
    config: ConfigPath,
    only: Annotated[
        str | None,
        typer.Option(
            "--recommender", "-r", metavar="NAME", help="The recommender of the target, if several have one."
        ),
    ] = None,
    start: From = None,
    end: To = None,
    users: Annotated[
        str | None,
        typer.Option(
            "--users",
            metavar="COUNT",
            help="Replay all requests of so many users, as 500 or 10%. Default: all users.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="NUMBER", help="Another seed draws other users.", min=0)
    ] = 0,
    cases: Annotated[
        bool, typer.Option("--cases", help="Send the cases of the config instead of logged requests.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder of the runs.")
    ] = Path("replays"),
    run_name: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="NAME", help="The name of the run; one that exists goes on where it ended."
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--send-interrupted",
            help="Also send what was begun without an answer; the target must be idempotent.",
        ),
    ] = False,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Print the first requests; send and write nothing.")
    ] = False,
    output_format: Annotated[
        Listing, typer.Option("--format", "-f", help="The output format.")
    ] = Listing.TABLE,
) -> None:
    """Send logged requests to an endpoint again, and log its answers as exposures.

    The requests of whole users are drawn from the log, in the proportions of scenes and times of the day. The
    answers become an ordinary exposure log in FOLDER/NAME/log, so check, compare and gate read it. No request
    is sent twice, also after a crash. Only the hosts of replay.allowed_hosts get requests.
    """
    first, last = span(start, end)
    claim_output()
    from monitor.cli import replay as commands
    from monitor.report import replay as report

    options = commands.Options(target, only, first, last, users, seed, cases, output, run_name, again)
    if dry:
        shown = commands.dry_run(config, options)
        with printing():
            if output_format is Listing.JSON:
                write(report.dry_run_as_json(shown))
            else:
                report.print_dry_run(shown, out)
        sys.exit(OK)
    found, code = commands.replay(config, options)
    with printing():
        if output_format is Listing.JSON:
            write(report.as_json(found))
        else:
            report.print_report(found, out)
    sys.exit(code)


@launch_app.command(
    rich_help_panel=_PANEL,
    epilog="Example: recsys-monitor platform --config shop.yaml --from 2026-01-01 --to 2026-02-15\n\n"
    "Exit codes: 0 nothing is zero-sum, 1 something is, 2 a wrong config or usage, or no platform, 3 nothing "
    "is, but a total is missing or something could not be judged.",
)
def platform(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Only = None,
    output: Annotated[
        Listing, typer.Option("--format", "-f", help="The output format; json as in check.")
    ] = Listing.TABLE,
) -> None:
    """Add up the platform's totals by day, and judge whether the recommender gains at the cost of others.

    It reads the logs of all systems and asks their databases, and writes nothing. The last days of the span
    are compared with the days before, and the arms of experiments with their control. The default span is the
    days that one judgement needs, up to the last day that every log has reached.
    """
    first, last = span(start, end)
    claim_output()
    from monitor.cli.platform import watched
    from monitor.report import platform as report

    found, code = watched(config, only, first, last)
    with printing():
        if output is Listing.JSON:
            write(report.as_json(found))
        else:
            for number, one in enumerate(found):
                if number:
                    say("")
                report.print_report(one, out)
    sys.exit(code)


@launch_app.command(
    rich_help_panel=_PANEL,
    epilog="Example: recsys-monitor survey --config shop.yaml --weight --format html > survey.html\n\n"
    "Exit codes: 0 measured, 1 respondents clearly differ from the other users, 2 a wrong config or usage, "
    "3 a question has too few answers, or there is none.",
)
def survey(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Annotated[
        str | None,
        typer.Option(
            "--recommender", "-r", metavar="NAME", help="Whose users answered. Default: the only one."
        ),
    ] = None,
    weight: Annotated[
        bool,
        typer.Option("--weight", help="Add means in which silent groups of users count by their share."),
    ] = False,
    slices: Annotated[
        bool, typer.Option("--slices", help="Split the means by the slices of the config too.")
    ] = False,
    output: Annotated[
        PageFormat,
        typer.Option("--format", "-f", help="The output format; html is one file with pictures."),
    ] = PageFormat.TABLE,
) -> None:
    """Show what users say, who answered, and which metrics track the answers.

    Answers are in logs.survey. Each is joined with the lists that it is about. The span is the time of the
    answers, by default all of them. The command prints each question with its interval, compares respondents
    with the users who did not answer, and tests each metric of single users against their answers. It writes
    nothing.
    """
    first, last = span(start, end)
    claim_output()
    from monitor.cli import survey as commands
    from monitor.report import survey as report
    from monitor.report import survey_page

    found, code = commands.survey(config, commands.Asked(only, first, last, weight, slices))
    with printing():
        match output:
            case PageFormat.JSON:
                write(report.as_json(found))
            case PageFormat.HTML:
                write(survey_page.as_html(found))
            case PageFormat.TABLE:
                report.print_survey(found, out)
    sys.exit(code)


@launch_app.command(
    rich_help_panel=_PANEL,
    epilog="Example: recsys-monitor forecast --config shop.yaml --model m8 --at auc,split=test=0.71\n\n"
    "Exit codes: 0 measured, 1 a metric that is used no longer predicts, 2 a wrong config or usage, "
    "3 no data: too few days, or no forecast of the candidate.",
)
def forecast(
    config: ConfigPath,
    only: Only = None,
    start: From = None,
    end: To = None,
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", metavar="NAME", help="Forecast this recommender of the config."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Forecast this model of the recommender.")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="METRIC=VALUE",
            help="The candidate's offline value, as auc=0.71 or ndcg,k=10=0.31; again for more.",
        ),
    ] = None,
    output: Annotated[
        PageFormat,
        typer.Option("--format", "-f", help="The output format; html is one file with pictures."),
    ] = PageFormat.TABLE,
) -> None:
    """Show which offline metrics predict the business metrics, and forecast a candidate.

    It reads the days of the history and the config under `forecast`; docs/forecast.md explains it. The
    forecast of a candidate that is not online yet is stored, unless --from or --to is given. Later runs, and
    the daemon, say whether it came true.
    """
    times = span(start, end)
    claim_output()
    from monitor.cli.forecast import Asked, forecasts
    from monitor.report import forecast as report
    from monitor.report.forecast_page import as_html

    found, code = forecasts(config, Asked.of(only, times, candidate, model, at or ()))
    with printing():
        match output:
            case PageFormat.JSON:
                write(report.as_json(found))
            case PageFormat.HTML:
                write(as_html(found))
            case PageFormat.TABLE:
                report.print_forecasts(found, out)
    sys.exit(code)
