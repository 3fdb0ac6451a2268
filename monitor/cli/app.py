"""The commands. Each one is a thin call into the layers below."""

from __future__ import annotations

import signal
import sys
import threading
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from monitor import __version__
from monitor.cli.power import EPILOG as POWER_EPILOG
from monitor.cli.power import power
from monitor.cli.terminal import (
    OK,
    USAGE,
    Listing,
    claim_output,
    fail,
    guarded,
    note,
    out,
    printing,
    progress,
    say,
    span,
    write,
)

EXIT_CODES = (
    "Exit codes: 0 all is well, 1 something is violated, 2 a wrong config or usage, "
    "3 something could not be judged (no data, late, error)."
)

app = typer.Typer(
    name="recsys-monitor",
    help="Watch a recommender's logs: rules, health metrics, alerts with their evidence.",
    epilog="Begin with: recsys-monitor demo\n\nThen, on a log of yours: recsys-monitor init LOG",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
history_app = typer.Typer(help="Read the stored results.", no_args_is_help=True)
app.add_typer(history_app, name="history")

ConfigPath = Annotated[
    Path, typer.Option("--config", "-c", help="The config file.", metavar="FILE", show_default=False)
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="From this time on, as 2026-01-31 or 2026-01-31T10:00:00Z."),
]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Up to this time (not included).")]
Only = Annotated[
    str | None, typer.Option("--recommender", "-r", metavar="NAME", help="Only this recommender.")
]


class Format(StrEnum):
    """The output formats of `check`."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"


class ForecastFormat(StrEnum):
    """The output formats of `forecast`."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


class CompareFormat(StrEnum):
    """The output formats of `compare`."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"
    HTML = "html"


class SurveyFormat(StrEnum):
    """The output formats of `survey`."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


class LogFormat(StrEnum):
    """The log formats of `init`."""

    AUTO = "auto"
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


def main() -> None:
    """Run a command. A failure ends in a sentence and an exit code, never in a traceback."""
    with guarded():
        app(prog_name="recsys-monitor")


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Watch a recommender's logs: rules, health metrics, alerts with their evidence."""
    if show:
        out.print(__version__)
        raise typer.Exit(OK)


@app.command(
    epilog="Example: recsys-monitor run --config shop.yaml\n\n"
    "Stops within 10 s on SIGTERM. SIGHUP, or a POST to /-/reload, reads the config again. "
    "Exit codes: 0 stopped, 2 a wrong config, an address or a state folder in use, or a history "
    "that cannot be opened."
)
def run(config: ConfigPath) -> None:
    """Start the daemon: judge every window as it closes, serve the status page and /metrics."""
    sys.exit(_serve(config))


def _serve(path: Path) -> int:
    claim_output()
    # The imports take seconds. A stop in that time must be clean too, also for process 1 of a container.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the config is about to be read anyway
    from monitor.config.load import load_config
    from monitor.service.daemon import Daemon
    from monitor.service.logging import configure
    from monitor.service.state_folder import keep_private

    settings = load_config(path)
    configure(settings.log.format, settings.log.level)
    keep_private(settings.state)
    return Daemon(path).run(announce=say)


@app.command(epilog=f"Example: recsys-monitor check --config shop.yaml --format json\n\n{EXIT_CODES}")
def check(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Only = None,
    output: Annotated[Format, typer.Option("--format", "-f", help="The output format.")] = Format.TABLE,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show metrics that are measured but not judged.")
    ] = False,
) -> None:
    """Judge windows once and exit with the verdict: for cron, Airflow and CI.

    Without --from, it judges every window from the first to the last row of the log. It skips a gap of more
    than 1,000 empty windows, such as the years after a stray row of 1970: standard error reports the gap, and
    the exit code is 3. It writes nothing to the history, and does not affect a running daemon.
    """
    first, last = span(start, end)
    claim_output()
    from monitor.cli import judge as commands
    from monitor.report import judged as report
    from monitor.report.table import print_table

    judged, code = commands.judge(config, first, last, only)
    with printing():
        match output:
            case Format.JSON:
                write(report.as_json(judged))
            case Format.JUNIT:
                write(report.as_junit(judged))
            case Format.TABLE:
                print_table(judged, out, everything=everything)
    sys.exit(code)


@app.command(
    epilog="Example: recsys-monitor compare old new --config shop.yaml\n\n"
    "recsys-monitor compare shop:model=m6 shop:model=m7 --config shop.yaml --metric ndcg --metric conversion"
    "\n\nrecsys-monitor compare shop@2026-11-01/2026-11-08 shop@2026-11-08/2026-11-15 --config shop.yaml\n\n"
    "Exit codes: 0 nothing is worse, 1 something is worse, 2 a wrong config or usage, "
    "3 nothing is worse, but something is unknown."
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


@app.command(
    epilog="Example: recsys-monitor gate candidate --config shop.yaml --format html > launch.html\n\n"
    "Exit codes: 0 passed, 1 a condition fails, 2 a wrong config or usage, 3 none fails, but one is not yet "
    "known."
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


@app.command(
    epilog="Example: recsys-monitor validate --config shop.yaml\n\n"
    "Exit codes: 0 the config is good, warnings included, 2 it has a problem."
)
def validate(
    config: ConfigPath,
    logs: Annotated[
        bool,
        typer.Option(
            "--logs/--no-logs",
            help="Read the log files too; use --no-logs if they are on another machine.",
        ),
    ] = True,
    output: Annotated[Listing, typer.Option("--format", "-f", help="The output format.")] = Listing.TABLE,
) -> None:
    """Check the config, its rules, and the logs that it names.

    It reads the newest and the oldest files of each log, never all of a large log, and prints how much it
    read. It checks files, columns, values that cannot be read, times, how many actions join an exposure, how
    many items are in the catalog, and whether the files have every column that the config names. It writes
    nothing. A problem is printed with its place in the config, and the exit code is 2. A warning does not
    change the exit code.
    """
    claim_output()
    from monitor.cli import validate as validating

    findings = validating.validate(config, with_logs=logs)
    with printing():
        if output is Listing.JSON:
            write(validating.as_json(findings))
        else:
            for line in validating.as_lines(config, findings):
                say(line)
    if (problems := validating.problems_of(config, findings)) is not None:
        raise problems


@app.command(
    epilog="Example: recsys-monitor init 'logs/exposures/*.parquet' --output shop.yaml\n\n"
    "Exit codes: 0 the config works, 2 a required column was not found (it is marked TODO in the file), "
    "the log cannot be read, or the file exists already."
)
def init(
    log: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="The exposures: files, a folder, or a quoted glob."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write; - prints the config.")
    ] = Path("recsys-monitor.yaml"),
    feedback: Annotated[
        list[str] | None,
        typer.Option(
            "--feedback",
            metavar="LOG",
            help="The log of user actions. Default: searched for near the exposures.",
        ),
    ] = None,
    kind: Annotated[
        LogFormat,
        typer.Option("--format", "-f", help="The format of the exposures; auto detects it from the files."),
    ] = LogFormat.AUTO,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
) -> None:
    """Read a log and write a config for it, with a comment on every guess."""
    claim_output()
    from monitor.config.init.wizard import write_config

    printed = str(output) == "-"
    if output.exists() and not force and not printed:
        fail(f"{output} exists already; --force overwrites it, --output names another file")
    with progress(0, "reading the log"):
        written = write_config(log, output.parent, feedback or (), kind)
    if printed:
        with printing():
            write(written.text, newline=False)
    else:
        output.write_text(written.text, "utf-8")
    for sentence in written.notes:
        note(sentence)
    for sentence in written.missing:
        note(f"TODO: {sentence}")
    if not printed:
        task = "resolve its TODOs" if written.missing else "check its comments"
        say(f"wrote {output}; {task}, then: recsys-monitor validate --config {output}")
    sys.exit(USAGE if written.missing else OK)


@app.command(
    epilog="Example: recsys-monitor demo --folder /tmp/demo\n\n"
    "Exit codes: 0 stopped, 2 the folder cannot be written, or the folder or the address is in use."
)
def demo(
    folder: Annotated[
        Path, typer.Option("--folder", metavar="FOLDER", help="The folder of the demo's logs and state.")
    ] = Path("demo"),
    endpoint: Annotated[
        str,
        typer.Option("--endpoint", metavar="ADDRESS", help="Where its recommender listens; port 0: any."),
    ] = "127.0.0.1:9109",
) -> None:
    """Write a small live log and watch it. Now and then it shows a blacklisted item.

    Its recommender also answers requests, with a good and a bad candidate; docs/launch.md tries them.
    """
    from monitor.service.web.server import ServeError, serve_app
    from monitor.settings.server import split_listen
    from monitor.simulate.demo import SEED, live, prepare, prepare_launch
    from monitor.simulate.endpoint import application
    from monitor.simulate.traffic import Simulator, Traffic

    try:
        split_listen(endpoint)
        server = serve_app(endpoint, application(Simulator(Traffic(), SEED), seed=SEED))
    except (ServeError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--endpoint") from None
    stop = threading.Event()
    try:
        path = prepare(folder, datetime.now(UTC))
        say(f"config       {path}")
        say(f"recommender  {server.address}/recommend/current, /good, /bad")
        say(f"launch       {prepare_launch(folder, server.address)}")
        writer = threading.Thread(target=live, args=(folder, stop), name="demo", daemon=True)
        writer.start()
        code = _serve(path)
        writer.join(5)
    finally:
        stop.set()
        server.stop()
    sys.exit(code)


@app.command(
    epilog="Example: recsys-monitor backfill --config shop.yaml --from 2026-01-01 --to 2026-02-01\n\nStop "
    "the daemon of this config first: both would write the same history.\n\nExit codes: 0 the verdicts are "
    "in the history, good or bad; 2 a wrong config or usage, a state folder that a daemon uses, or a "
    "history that cannot be written; 3 the log holds no such window."
)
def backfill(
    config: ConfigPath,
    start: Annotated[str, typer.Option("--from", metavar="TIME", help="From this time on.")],
    end: Annotated[str, typer.Option("--to", metavar="TIME", help="Up to this time (not included).")],
    only: Only = None,
) -> None:
    """Judge the windows of a span and write the verdicts to the history. A second run changes nothing."""
    first, last = span(start, end)
    claim_output()
    from monitor.cli import judge as commands

    sys.exit(commands.backfill(config, first, last, only))


@app.command(
    epilog="Example: recsys-monitor diagnose --config shop.yaml --model ranker-v7\n\n"
    "Exit codes: 0 no gap is too large, 1 one is, 2 a wrong config or usage, or no such model, "
    "3 a gap could not be judged."
)
def diagnose(
    config: ConfigPath,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="MODEL", help="Only this model. Default: all models that are judged."
        ),
    ] = None,
    only: Only = None,
    output: Annotated[
        Listing, typer.Option("--format", "-f", help="The output format; json contains the evidence.")
    ] = Listing.TABLE,
) -> None:
    """Compare a model's AUC in training, test and service, and explain a loss.

    It reads the samples up to the newest online row, and writes nothing. If the whole interval of a gap is
    above the bound, it prints each cause with its share of the gap, its features, and what to do.
    """
    claim_output()
    from monitor.cli.diagnose import diagnose as diagnosed
    from monitor.report import diagnosis

    judged, code = diagnosed(config, model, only)
    with printing():
        if output is Listing.JSON:
            write(diagnosis.as_json(judged))
        else:
            diagnosis.print_diagnosis(judged, out)
    sys.exit(code)


@app.command(
    epilog="Example: recsys-monitor estimate --config shop.yaml --recommender random --target learned\n\n"
    "Exit codes: 0 estimated, 2 a wrong config or usage, or a log without propensities or feedback, 3 no "
    "estimate: too little overlap, or no row."
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


@app.command(
    epilog="Example: recsys-monitor replay candidate --config shop.yaml --users 500 --dry-run\n\n"
    "recsys-monitor replay candidate --config shop.yaml --users 500 --run first\n\n"
    "Exit codes: 0 every request was sent, 1 a limit was passed and the run aborted, 2 a wrong config or "
    "usage, 3 nothing to send, or no answer, 130 stopped by a signal."
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


@app.command(
    epilog="Example: recsys-monitor platform --config shop.yaml --from 2026-01-01 --to 2026-02-15\n\n"
    "Exit codes: 0 nothing is zero-sum, 1 something is, 2 a wrong config or usage, or no platform, 3 nothing "
    "is, but a total is missing or something could not be judged."
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


@app.command(
    epilog="Example: recsys-monitor survey --config shop.yaml --weight --format html > survey.html\n\n"
    "Exit codes: 0 measured, 1 respondents clearly differ from the other users, 2 a wrong config or usage, "
    "3 a question has too few answers, or there is none."
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
        SurveyFormat,
        typer.Option("--format", "-f", help="The output format; html is one file with pictures."),
    ] = SurveyFormat.TABLE,
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
            case SurveyFormat.JSON:
                write(report.as_json(found))
            case SurveyFormat.HTML:
                write(survey_page.as_html(found))
            case SurveyFormat.TABLE:
                report.print_survey(found, out)
    sys.exit(code)


@app.command(
    epilog="Example: recsys-monitor forecast --config shop.yaml --model m8 --at auc,split=test=0.71\n\n"
    "Exit codes: 0 measured, 1 a metric that is used no longer predicts, 2 a wrong config or usage, "
    "3 no data: too few days, or no forecast of the candidate."
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
        ForecastFormat,
        typer.Option("--format", "-f", help="The output format; html is one file with pictures."),
    ] = ForecastFormat.TABLE,
) -> None:
    """Show which offline metrics predict the business metrics, and forecast a candidate.

    It reads the days of the history and the config under `forecast`; docs/forecast.md explains it. The
    forecast of a candidate that is not online yet is stored. Later runs, and the daemon, say whether it came
    true.
    """
    times = span(start, end)
    claim_output()
    from monitor.cli.forecast import Asked, forecasts
    from monitor.report import forecast as report
    from monitor.report.forecast_page import as_html

    found, code = forecasts(config, Asked.of(only, times, candidate, model, at or ()))
    with printing():
        match output:
            case ForecastFormat.JSON:
                write(report.as_json(found))
            case ForecastFormat.HTML:
                write(as_html(found))
            case ForecastFormat.TABLE:
                report.print_forecasts(found, out)
    sys.exit(code)


app.command("power", epilog=POWER_EPILOG)(power)


@history_app.command(
    "export",
    epilog="Example: recsys-monitor history export --config shop.yaml --from 2026-01-31 | jq .status\n\n"
    "Exit codes: 0 printed, 2 a wrong config or usage, or no history that can be read.",
)
def history_export(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Only = None,
) -> None:
    """Print every stored result, one JSON object a line, in the format of `check --format json`."""
    first, last = span(start, end)
    claim_output()
    from monitor.cli.export import export

    with printing():
        for line in export(config, first, last, only):
            write(line)


@history_app.command(
    "gates",
    epilog="Example: recsys-monitor history gates --config shop.yaml | jq .outcome\n\n"
    "Exit codes: 0 printed, 2 a wrong config or usage, or no history that can be read.",
)
def history_gates(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Only = None,
) -> None:
    """Print each run of a gate, with its overrides: one launch report as JSON a line, oldest first."""
    first, last = span(start, end)
    claim_output()
    import json

    from monitor.cli.gate import gate_runs

    with printing():
        for run in gate_runs(config, only, first, last):
            write(json.dumps(run.content, ensure_ascii=True, allow_nan=False))


@history_app.command(
    "bands",
    epilog="Example: recsys-monitor history bands --config shop.yaml --from 2026-02-01\n\n"
    "Fill the history first: recsys-monitor backfill --config shop.yaml --from 2026-01-01 --to 2026-03-01\n\n"
    "Exit codes: 0 printed, 2 a wrong config or usage, no bands, or no history that can be read.",
)
def history_bands(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Only = None,
    output: Annotated[
        Listing, typer.Option("--format", "-f", help="The output format; json is one object a line.")
    ] = Listing.TABLE,
) -> None:
    """Print the tickets and pages that the bands of this config would have raised in the past.

    It judges the measured windows of the history again, in a copy and in the order of
    time. The history does not change. So you can try `false_alarms`, `history`,
    `holidays` or `sliced` before you rely on them. The bands of the first four weeks
    of a history are wide: start later with --from.
    """
    first, last = span(start, end)
    claim_output()
    from monitor.cli.look_back import looked_back
    from monitor.report.past_alerts import as_json, print_past_alerts

    with printing():
        for name, alerts, length in looked_back(config, first, last, only):
            if output is Listing.TABLE:
                print_past_alerts(name, alerts, length, out)
            elif alerts:
                write(as_json(name, alerts))
