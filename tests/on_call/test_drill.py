"""`recsys-monitor drill` through the real Alertmanager, with the shipped routes and templates."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import bcrypt
import pytest
import yaml

from tests.alerts.posted import Group, alert, assert_groups, post, running
from tests.alerts.received import HttpSink, closing
from tests.end_to_end.servers import Alertmanager
from tests.forked import run_forked
from tests.processes import ROOT, free_port, get, wait_for

DRILL = re.compile(r"test page (\w{6})")
PLAIN: dict[str, Any] = {"username": None, "password_file": None}


@pytest.fixture(scope="module")
def sink() -> Iterator[HttpSink]:
    with closing(HttpSink) as (made,):
        yield made


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory, sink: HttpSink) -> Iterator[Alertmanager]:
    """With the Slack receiver of deploy/ for pages, a webhook for tickets, and basic authentication."""
    folder = tmp_path_factory.mktemp("drill")
    (receiver,) = yaml.safe_load((ROOT / "deploy/receivers/slack.yml").read_text("utf-8"))["receivers"]
    (folder / "slack-url").write_text(f"{sink.url}/slack/secret", "utf-8")
    receiver["slack_configs"][0]["api_url_file"] = str(folder / "slack-url")
    web = folder / "web.yml"
    hashed = bcrypt.hashpw(b"drill-password", bcrypt.gensalt(4)).decode()
    web.write_text(yaml.safe_dump({"basic_auth_users": {"monitor": hashed}}), "utf-8")
    server = Alertmanager(folder, sink.url, [receiver], [f"--web.config.file={web}"])
    try:
        wait_for("Alertmanager", lambda: _up(server))
        yield server
    finally:
        server.stop()


def _up(server: Alertmanager) -> bool:
    return get(f"http://{server.target}/-/ready")[0] == 401  # it asks for the password


def drill(
    folder: Path, url: str, *options: str, server: dict[str, Any] | None = None, **recommender: Any
) -> subprocess.CompletedProcess[str]:
    """A run of the command on a config with two recommenders."""
    (folder / "password").write_text("drill-password\n", "utf-8")
    logs = {"exposures": {"path": "logs/*.parquet"}}
    config = {
        "server": {"external_url": "https://monitor.test", "grafana_url": "https://grafana.test"},
        "on_call": {
            "alertmanager": {"url": url, "username": "monitor", "password_file": "password", **(server or {})}
        },
        "recommenders": [
            {"name": "shop", "owner": "search", "logs": logs, **recommender},
            {"name": "news", "logs": logs},
        ],
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    return run_forked("drill", "--config", folder / "config.yaml", *options, cwd=ROOT)


def url_of(server: Alertmanager) -> str:
    return f"http://{server.target}"


def number_of(done: subprocess.CompletedProcess[str]) -> str:
    found = DRILL.search(done.stdout)
    assert found is not None, done.stdout + done.stderr
    return found[1]


def test_a_drill_arrives_as_a_page_that_says_that_it_is_a_test_with_links_that_a_real_one_has(
    tmp_path: Path, alertmanager: Alertmanager, sink: HttpSink
) -> None:
    done = drill(tmp_path, url_of(alertmanager))
    number = number_of(done)
    assert done.returncode == 0, done.stderr
    assert "receiver     page: slack" in done.stdout
    assert "owner=search" in done.stdout
    assert f'look for "TEST {number}" there' in done.stdout
    ends = re.search(r"resolves     by itself at (.*) UTC", done.stdout)
    assert ends is not None
    after = datetime.strptime(ends[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) - datetime.now(UTC)
    assert timedelta(minutes=13) < after <= timedelta(minutes=15)

    def came() -> list[dict[str, Any]]:
        shown = [one.content["attachments"][0] for one in sink.to("/slack")]
        return [one for one in shown if f"TEST {number}" in one["title"]]

    shown = wait_for("the message", came)[0]
    assert shown["title"] == f"[PAGE] TEST {number}: a drill of shop, nothing is broken"
    links = dict(reversed(one.split("|")) for one in re.findall(r"<([^>]*)>", shown["text"]))
    assert links["Evidence"] == "https://monitor.test/recommenders/shop"
    assert links["Runbook"] == "https://monitor.test/runbooks/RecsysDrill"
    assert links["Dashboard"] == "https://grafana.test/d/recsys-overview?var-recommender=shop"
    assert "drill-password" not in done.stdout + done.stderr


def test_a_drill_of_tickets_of_another_recommender_and_owner_takes_their_route(
    tmp_path: Path, alertmanager: Alertmanager, sink: HttpSink
) -> None:
    options = ("--recommender", "news", "--severity", "ticket", "--owner", "trust", "--for", "1m")
    done = drill(tmp_path, url_of(alertmanager), *options)
    number = number_of(done)
    assert "receiver     ticket: webhook" in done.stdout

    def labels(status: str) -> list[dict[str, str]]:
        posted = [one for one in sink.to("/ticket") for one in one.content["alerts"]]
        return [
            one["labels"]
            for one in posted
            if one["status"] == status and one["labels"].get("drill") == number
        ]

    wait_for("the ticket", lambda: labels("firing"))
    assert labels("firing")[0] == {
        "alertname": "RecsysDrill", "recommender": "news", "severity": "ticket", "owner": "trust",
        "drill": number,
    }  # fmt: skip
    wait_for("the end, by itself", lambda: labels("resolved"))


def test_a_drill_holds_no_ticket_back_and_one_that_is_held_back_says_by_what(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        done = drill(tmp_path, url_of(server), server=PLAIN)
        assert done.returncode == 0, done.stderr
        post(server, [alert("RecsysRunsFail")])
        assert_groups(
            server, Group("page", "shop", ("RecsysDrill",)), Group("ticket", "shop", ("RecsysRunsFail",))
        )
        post(server, [alert("RecsysMaintenance", "news")])
        held = drill(tmp_path, url_of(server), "--recommender", "news", server=PLAIN)
        assert held.returncode == 1
        assert "held back    the alert RecsysMaintenance holds it back: no message is sent" in held.stdout
        now = datetime.now(UTC)
        silence = {
            "matchers": [{"name": "recommender", "value": "shop", "isRegex": False, "isEqual": True}],
            "startsAt": now.isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat(),
            "createdBy": "test", "comment": "drill",
        }  # fmt: skip
        made = post(server, silence, "silences")["silenceID"]
        silenced = drill(tmp_path, url_of(server), server=PLAIN)
        assert silenced.returncode == 1
        assert f"held back    silence {made} holds it back" in silenced.stdout
        assert "arrived?" not in silenced.stdout


def test_a_drill_on_a_route_that_is_muted_now_is_no_success(tmp_path: Path) -> None:
    intervals = {
        "page": {"mute_time_intervals": "long ago", "active_time_intervals": "always"},
        "ticket": {"mute_time_intervals": "always"},
    }
    with running(tmp_path, intervals=intervals) as server:
        page = drill(tmp_path, url_of(server), server=PLAIN)
        assert (page.returncode, "held back" in page.stdout) == (0, False), page.stdout + page.stderr
        ticket = drill(tmp_path, url_of(server), "--severity", "ticket", server=PLAIN)
        assert ticket.returncode == 1
        why = "its route is muted now: mute_time_intervals always: no message is sent"
        assert f"receiver     ticket: webhook\nheld back    {why}\n" in ticket.stdout
        assert "arrived?" not in ticket.stdout


def test_a_receiver_without_an_address_is_no_success(tmp_path: Path) -> None:
    with running(tmp_path, receivers=[{"name": "page"}]) as server:
        done = drill(tmp_path, url_of(server), server=PLAIN)
        assert done.returncode == 1
        assert "receiver     page: it delivers to nobody" in done.stdout


def test_a_drill_that_waits_says_whether_the_receiver_took_it(tmp_path: Path, sink: HttpSink) -> None:
    """A page to an address where nobody listens, and a ticket to one that answers."""
    nobody = {"api_url": f"http://127.0.0.1:{free_port()}", "channel": "x"}
    receivers = [
        {"name": "page", "slack_configs": [nobody]},
        {"name": "ticket", "webhook_configs": [{"url": f"{sink.url}/ticket"}]},
        {"name": "dead-man"},
    ]
    with running(tmp_path, sink.url, receivers=receivers) as server:
        lost = drill(tmp_path, url_of(server), "--wait", "3s", server=PLAIN)
        assert lost.returncode == 1, lost.stdout + lost.stderr
        assert "waits        3s for the receivers to answer" in lost.stdout
        assert re.search(r"failed       page: slack: (\d+) requests?, \1 failed\. Alertm", lost.stdout)
        taken = drill(tmp_path, url_of(server), "--wait", "3s", "--severity", "ticket", server=PLAIN)
        assert taken.returncode == 0, taken.stdout + taken.stderr
        assert "accepted     ticket: webhook: 1 request, none failed\n" in taken.stdout


def test_a_drill_that_waits_does_not_take_the_answers_to_others_for_its_own(
    tmp_path: Path, sink: HttpSink
) -> None:
    """The shipped receivers are of one kind, and the dead man gets a message every two seconds."""
    lost = {"name": "page", "webhook_configs": [{"url": f"http://127.0.0.1:{free_port()}"}]}
    with running(tmp_path, sink.url, receivers=[lost]) as server:
        post(server, [alert("RecsysWatchdog", severity="none")])
        done = drill(tmp_path, url_of(server), "--wait", "5s", server=PLAIN)
        assert done.returncode == 3, done.stdout + done.stderr
        assert re.search(
            r"not known    page: webhook: \d+ requests, \d+ failed, but those to ticket, dead-man are",
            done.stdout,
        )


def test_a_drill_that_waits_too_short_does_not_say_that_it_arrived(tmp_path: Path, sink: HttpSink) -> None:
    """The shipped patience: the first message of a group leaves after 30 seconds."""
    with running(tmp_path, sink.url, patient=True) as server:
        done = drill(tmp_path, url_of(server), "--wait", "1s", server=PLAIN)
        assert done.returncode == 3, done.stdout + done.stderr
        assert "not known    page: webhook: nothing has been answered in 1s. Wait longer" in done.stdout


def test_a_wrong_password_is_an_error_that_shows_no_secret(
    tmp_path: Path, alertmanager: Alertmanager
) -> None:
    (tmp_path / "wrong").write_text("wrong-password", "utf-8")
    done = drill(tmp_path, url_of(alertmanager), server={"password_file": "wrong"})
    assert done.returncode == 3
    assert f"Alertmanager at {url_of(alertmanager)} answered with code 401" in done.stderr
    assert "on_call.alertmanager in the config says" in done.stderr
    assert "wrong-password" not in done.stdout + done.stderr


def test_an_alertmanager_that_is_away_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = drill(tmp_path, url)
    assert done.returncode == 3
    assert f"Alertmanager at {url} cannot be reached: [Errno 111] Connection refused" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, "<html>a proxy</html>", "is no Alertmanager"),
        (200, '{"config": 3}', "is not that of an Alertmanager with API v2"),
        (500, "it broke for \x1b[31m reasons", "answered with code 500: it broke for [U+001B][31m reasons"),
        (302, "", "answered with code 302"),
    ],
)
def test_another_server_is_an_error_and_is_sent_no_password_elsewhere(
    tmp_path: Path, status: int, body: str, said: str
) -> None:
    with answering(lambda: (status, body)) as url:
        done = drill(tmp_path, url)
    assert done.returncode == 3
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_config_without_an_alertmanager_and_a_wrong_option_say_what_to_write(tmp_path: Path) -> None:
    config = {"recommenders": [{"name": "shop", "logs": {"exposures": {"path": "logs/*.parquet"}}}]}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    done = run_forked("drill", "--config", tmp_path / "config.yaml", cwd=ROOT)
    assert done.returncode == 2
    assert "on_call: {alertmanager: {url: http://127.0.0.1:9093}}" in done.stderr
    for options, said in (
        (("--for", "5s"), "must be from 1m to 4h"),
        (("--wait", "1h"), "must be from 1s to 15m"),
        (("--recommender", "other"), "no recommender is called 'other'"),
    ):
        wrong = drill(tmp_path, "http://127.0.0.1:9", *options)
        assert wrong.returncode == 2
        assert said in wrong.stderr


class answering:  # noqa: N801
    """A server that gives one answer to everything."""

    def __init__(self, answer: Callable[[], tuple[int, str]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                status, body = answer()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "http://elsewhere.invalid/")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
