"""The commands for people on call: a test page, and the relay to chats that Alertmanager cannot talk to."""

from __future__ import annotations

import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from monitor.cli.options import ConfigPath, Only
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED, claim_output, fail, say

if TYPE_CHECKING:
    from monitor.on_call.drill import Answer, Drill
    from monitor.settings.config import Config

on_call_app = typer.Typer()
_PANEL: Final = "On call"
_SHORTEST, _LONGEST = timedelta(minutes=1), timedelta(hours=4)


class Severity(StrEnum):
    """The severities that reach a person."""

    PAGE = "page"
    TICKET = "ticket"


@on_call_app.command(
    rich_help_panel=_PANEL,
    epilog="Example: recsys-monitor drill --config shop.yaml --recommender shop\n\n"
    "Exit codes: 0 it is sent to the printed receivers, 1 a silence, maintenance, a time interval of a route "
    "or a receiver without an address holds it back, 2 a wrong config or usage, 3 Alertmanager cannot be "
    "reached or refused it. With --wait also 1 if a request to a receiver failed, 3 if that is not known.",
)
def drill(
    config: ConfigPath,
    only: Only = None,
    severity: Annotated[
        Severity, typer.Option("--severity", help="Take the route of pages, or that of tickets.")
    ] = Severity.PAGE,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner", metavar="NAME", help="Take the route of this owner. Default: the recommender's."
        ),
    ] = None,
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="When it resolves by itself; from 1m to 4h.")
    ] = "15m",
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="TIME",
            help="Wait, and print what the receivers answered; from 1s to 15m.",
        ),
    ] = None,
) -> None:
    """Send a test page through Alertmanager, as a real alert would go.

    It posts an alert to `on_call.alertmanager` of the config. Its summary begins with TEST. Without
    --recommender it is about the first recommender. The command prints which receivers get it, how to see
    that it arrived, and when it resolves. Nothing is written to the history.
    """
    claim_output()
    from monitor.config.load import load_config

    settings = load_config(config)
    span = _span(lasts, "--for", _SHORTEST, _LONGEST)
    waits = None if wait is None else _span(wait, "--wait", timedelta(seconds=1), timedelta(minutes=15))
    sys.exit(_run_drill(settings, only, severity.value, owner, span, waits))


def _run_drill(
    config: Config,
    only: str | None,
    severity: str,
    owner: str | None,
    span: timedelta,
    waits: timedelta | None,
) -> int:
    from monitor.core.settings import show_duration
    from monitor.on_call.alertmanager import AlertmanagerApi, AlertmanagerError
    from monitor.on_call.drill import send_drill

    server = config.on_call.alertmanager
    if server is None:
        fail(
            "the config has no on_call.alertmanager\n"
            "Write it as on_call: {alertmanager: {url: http://127.0.0.1:9093}}; see docs/on-call.md."
        )
    api, alert = AlertmanagerApi(server), _alert(config, only, severity, owner, span)
    try:
        before = api.requests() if waits else {}
        made = send_drill(api, alert)
        for line in _report(made, config):
            say(line)
        if not made.will_be_sent:
            return VIOLATED
        if waits is None:
            return OK
        say(f"waits        {show_duration(waits)} for the receivers to answer")
        time.sleep(waits.total_seconds())
        said = [_answered(one, show_duration(waits)) for one in made.answers(before, api.requests())]
        for line, _ in said:
            say(line)
        codes = {code for _, code in said}
        return next(code for code in (VIOLATED, NOT_JUDGED, OK) if code in codes)
    except AlertmanagerError as error:
        fail(error.advice, NOT_JUDGED)


def _answered(one: Answer, waited: str) -> tuple[str, int]:
    """What a receiver answered, as a line and an exit code."""
    from monitor.core.text import plural

    to = f"{one.receiver}: {one.kind}"
    if one.made < 0 or one.failed < 0:
        return (
            f"not known    {to}: Alertmanager was restarted, or another one answered. Try again",
            NOT_JUDGED,
        )
    if not one.made:
        return f"not known    {to}: nothing has been answered in {waited}. Wait longer", NOT_JUDGED
    said = f"{plural(one.made, 'request')}, {one.failed or 'none'} failed"
    if one.others:
        others = ", ".join(one.others)
        return f"not known    {to}: {said}, but those to {others} are counted with them", NOT_JUDGED
    if one.failed:
        return f"failed       {to}: {said}. Alertmanager's log says why", VIOLATED
    return f"accepted     {to}: {said}", OK


def _alert(
    config: Config, only: str | None, severity: str, owner: str | None, span: timedelta
) -> dict[str, Any]:
    from monitor.cli.export import check_name
    from monitor.on_call.drill import drill_alert

    if only is not None:
        check_name(only, config)
    recommender = next(one for one in config.recommenders if only in (None, one.name))
    now = datetime.now(UTC).replace(microsecond=0)
    return drill_alert(
        recommender,
        _base(config),
        config.server.grafana_url,
        number=secrets.token_hex(3),
        severity=severity,
        owner=owner,
        now=now,
        ends=now + span,
    )


def _base(config: Config) -> str:
    """The address of the status page, as the daemon says it."""
    from monitor.service.web.web_config import load_web_config

    path = config.server.web_config
    return config.server.public_url(tls=path is not None and load_web_config(path).tls is not None)


def _span(text: str, option: str, least: timedelta, most: timedelta) -> timedelta:
    from monitor.core.settings import parse_duration, show_duration

    try:
        span = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    if not least <= span <= most:
        between = f"from {show_duration(least)} to {show_duration(most)}"
        raise typer.BadParameter(f"{text!r} must be {between}", param_hint=option)
    return span


def _report(made: Drill, config: Config) -> Iterator[str]:
    server = config.on_call.alertmanager
    assert server is not None
    labels = ", ".join(f"{name}={value}" for name, value in made.labels.items())
    yield f"sent         test page {made.number} to Alertmanager at {server.url}"
    yield f"labels       {labels}"
    for name, kinds in made.receivers.items():
        yield f"receiver     {name}: {', '.join(kinds) if kinds else 'it delivers to nobody'}"
        if (muted := made.muted.get(name)) is not None:
            sent = "no message is sent" if muted.certain else "a message may not be sent"
            yield f"{'held back ' if muted.certain else 'held back?'}   {muted.why}: {sent}"
    yield f"resolves     by itself at {made.ends:%Y-%m-%d %H:%M:%S} UTC"
    if made.held_back:
        yield f"held back    {made.held_back}: no message is sent"
        return
    if not made.will_be_sent:
        return
    waits = ("30 s", "5 min") if made.labels["severity"] == Severity.PAGE else ("5 min", "10 min")
    yield f'arrived?     look for "TEST {made.number}" there. Our routes send it after {waits[0]},'
    yield f"             or within {waits[1]} if another alert of this recommender and receiver fires"
    yield f"not there?   {server.url}/#/alerts shows it; Alertmanager's log and its metric"
    yield "             alertmanager_notifications_failed_total say whether a receiver refused it"


@on_call_app.command(
    rich_help_panel=_PANEL,
    epilog="Example: recsys-monitor relay --config shop.yaml\n\n"
    "Stops on SIGTERM. Exit codes: 0 stopped, 2 a wrong config, or an address in use.",
)
def relay(config: ConfigPath) -> None:
    """Post Alertmanager's messages to Feishu, DingTalk and WeCom, which it cannot talk to.

    It reads `on_call.relay` of the config. Run it beside Alertmanager, as a process of its own: the page that
    the monitor is down must arrive too. It logs the number of alerts and refusals, never a secret.
    """
    claim_output()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    _serve_relay(config, stop)
    sys.exit(OK)


def _serve_relay(path: Path, stop: threading.Event) -> None:
    from monitor.config.load import load_config
    from monitor.on_call.relay import relay_application
    from monitor.service.logging import configure
    from monitor.service.web.server import ServeError, serve_app

    settings = load_config(path)
    targets = settings.on_call.relay
    if targets is None:
        fail("the config has no on_call.relay\nName its targets; see docs/on-call.md.")
    configure(settings.log.format, settings.log.level)
    try:
        server = serve_app(targets.listen, relay_application(targets))
    except ServeError as error:
        fail(f"{error}\non_call.relay.listen in the config says where the relay listens.")
    for target in targets.targets:
        say(f"{target.to:<12} {server.address}/{target.name}")
    stop.wait()
    server.stop()
