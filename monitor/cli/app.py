"""The program, and the commands of everyday work. Each one is a thin call into the layers below."""

from __future__ import annotations

import gc
import inspect
import os
import shlex
import signal
import sys
import threading
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from monitor import __version__
from monitor.cli.files import EPILOG as FILES_EPILOG
from monitor.cli.files import files
from monitor.cli.history import history_app
from monitor.cli.launch import launch_app
from monitor.cli.on_call import on_call_app
from monitor.cli.options import ConfigPath, Format, From, Only, To
from monitor.cli.power import EPILOG as POWER_EPILOG
from monitor.cli.power import power
from monitor.cli.report import EPILOG as REPORT_EPILOG
from monitor.cli.report import report
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
    "3 something could not be judged (no data, late, error), or the config judges nothing."
)

# So many objects are made before garbage is searched for. With Python's 700, a command that judges spends a
# sixth of its start on searches among the modules that it loads, and none of these is garbage.
_GARBAGE = 20_000

app = typer.Typer(
    name="recsys-monitor",
    help="Watch a recommender's logs: rules, health metrics, alerts with their evidence.",
    epilog="Begin with: recsys-monitor demo\n\nThen, on a log of yours: recsys-monitor init LOG",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class LogFormat(StrEnum):
    """The log formats of `init`."""

    AUTO = "auto"
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    DELTA = "delta"
    ICEBERG = "iceberg"


def main() -> None:
    """Run a command. A failure ends in a sentence and an exit code, never in a traceback."""
    gc.set_threshold(_GARBAGE)
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

    Without --to, it leaves out what still waits for rows, as the daemon does: the last windows of a live log.
    Standard error says which. --to judges them on the rows so far, as late.

    Without --from, it judges every window from the first to the last row of the log. It skips a gap of more
    than 1,000 empty windows, such as the years after a stray row of 1970: standard error reports the gap, and
    the exit code is 3. It is also 3 if a recommender has no rule, objective or other bound: then nothing is
    judged. It writes nothing to the history, and does not affect a running daemon.
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
    from monitor.config.problems import ConfigError

    try:
        findings = validating.validate(config, with_logs=logs)
    except ConfigError as error:
        if output is Listing.JSON:
            with printing():
                write(validating.as_json(list(validating.of_problems(error.problems))))
        raise
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
        say(f"wrote {output}; {task}, then: recsys-monitor validate --config {shlex.quote(str(output))}")
    sys.exit(USAGE if written.missing else OK)


@app.command(
    epilog="Example: recsys-monitor demo --folder /tmp/demo\n\n"
    "Exit codes: 0 stopped; 2 an address is in use, or the folder is in use, cannot be written, or has files "
    "that no demo wrote."
)
def demo(
    folder: Annotated[
        Path, typer.Option("--folder", metavar="FOLDER", help="The folder of the demo's logs and state.")
    ] = Path("demo"),
    endpoint: Annotated[
        str,
        typer.Option("--endpoint", metavar="ADDRESS", help="Where its recommender listens; port 0: any."),
    ] = "127.0.0.1:9109",
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="ADDRESS",
            envvar="RECSYS_LISTEN",
            show_envvar=False,
            help="Where the status page and /metrics listen; port 0: any. RECSYS_LISTEN sets it too.",
        ),
    ] = "127.0.0.1:9108",
) -> None:
    """Write a small live log and watch it. Now and then it shows a blacklisted item.

    Its recommender also answers requests, with a good and a bad candidate; docs/launch.md tries them.
    """
    from monitor.service.state_lock import LOCK_FILE, StateInUseError, StateLock
    from monitor.service.web.server import ServeError, serve_app
    from monitor.settings.server import split_listen
    from monitor.simulate.demo import SEED, live, prepare, prepare_launch
    from monitor.simulate.endpoint import application
    from monitor.simulate.traffic import Simulator, Traffic

    try:
        split_listen(listen)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--listen") from None
    state = folder / "state"
    if (state / LOCK_FILE).exists():  # of an earlier demo, which may still run
        try:
            StateLock(state).release()
        except StateInUseError:
            fail(f"a demo is running in {folder}; stop it first, or name another folder with --folder")
    os.environ["RECSYS_LISTEN"] = listen  # the demo's config reads it, also when it is read again
    try:
        split_listen(endpoint)
        server = serve_app(endpoint, application(Simulator(Traffic(), SEED), seed=SEED))
    except (ServeError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--endpoint") from None
    stop = threading.Event()
    try:
        begun = datetime.now(UTC)
        path = prepare(folder, begun)
        say(f"config       {path}")
        say(f"recommender  {server.address}/recommend/current, /good, /bad")
        say(f"launch       {prepare_launch(folder, server.address)}")
        writer = threading.Thread(
            target=live, args=(folder, stop), kwargs={"start": begun}, name="demo", daemon=True
        )
        writer.start()
        try:
            code = _serve(path)
        except ServeError as error:
            raise typer.BadParameter(str(error), param_hint="--listen") from None
        stop.set()
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
    """Judge the windows of a span and write the verdicts to the history. A second run changes nothing.

    It stores no window outside the log, except where a daemon of this config has waited for rows.
    """
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


app.command("power", epilog=POWER_EPILOG)(power)
app.command("files", epilog=FILES_EPILOG)(files)
app.command("report", epilog=REPORT_EPILOG)(report)
app.add_typer(launch_app)
app.add_typer(on_call_app)
app.add_typer(history_app, name="history")


def flowing(text: str) -> str:
    r"""The text of a help with one line for each paragraph; Typer would also break it where the source does.

    >>> flowing("One line.\n\nA paragraph\nof two lines.")
    'One line.\n\nA paragraph of two lines.'
    """
    return "\n\n".join(" ".join(one.split()) for one in inspect.cleandoc(text).split("\n\n"))


for each in (app, launch_app, on_call_app, history_app):
    for command in each.registered_commands:
        command.help = flowing(command.help or getattr(command.callback, "__doc__", None) or "")
