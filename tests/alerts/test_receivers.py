"""What each receiver of deploy/receivers/ delivers: the real Alertmanager, to real servers on loopback."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
import yaml
from markdown_it import MarkdownIt

from tests.alerts.posted import post
from tests.alerts.received import HttpSink, SmtpSink, closing
from tests.conftest import need
from tests.end_to_end.servers import Alertmanager
from tests.processes import ROOT, RunningMonitor, free_port, get, wait_for

RECEIVERS = sorted((ROOT / "deploy/receivers").glob("*.yml"))
SECRET = re.compile(
    r"(routing_key|service_key|api_key|password|auth_password|credentials|bearer_token|api_secret|webhook_url)$"
)
HOSTILE = (
    'item_id <!channel> *b* _i_ `c` [click](http://evil.test) </p><img src=x onerror=alert(1)> "q" {"a":1} '
    '<at user_id="all"></at> & \\n {{ .Status }} (4 row(s))'
)
NOTES = {
    "summary": "shop: hard rule blacklist is violated <b>",
    "description": 'shop violated blacklist 9 time(s) & "more".\nRunbook: http://evil.test/',
    "offenders": HOSTILE,
    "evidence": "https://monitor.test/recommenders/shop/rules/blacklist?a=1&b=2",
    "dashboard": "https://grafana.test/d/recsys-overview?var-recommender=shop",
    "runbook_url": "https://monitor.test/runbooks/RecsysHardRuleViolated",
}
LABELS = {
    "alertname": "RecsysHardRuleViolated", "recommender": "shop", "rule": 'black "list" \\ & <b>',
    "severity": "page", "owner": "trust",
}  # fmt: skip
BEGAN = datetime(2026, 3, 9, 14, 0, tzinfo=UTC)
SINCE = "Since: 2026-03-09 14:00 UTC"
ONE_LINE = 'How bad: shop violated blacklist 9 time(s) & "more". Runbook: http://evil.test/'


def installed() -> tuple[int, int]:
    """The version of the installed Alertmanager."""
    done = subprocess.run(
        [need("amtool", "prometheus-alertmanager"), "--version"], capture_output=True, text=True
    )
    found = re.search(r"version (\d+)\.(\d+)", done.stdout + done.stderr)
    assert found is not None
    return int(found[1]), int(found[2])


def needed(path: Path) -> tuple[int, int]:
    """The version that the file says it needs."""
    found = re.search(r"Alertmanager (?:from )?(\d+)\.(\d+)", path.read_text("utf-8").replace("\n# ", " "))
    assert found is not None, path
    return int(found[1]), int(found[2])


def config_with(path: Path, folder: Path) -> Path:
    """deploy/alertmanager.yml with the receiver of this file in place of `page`."""
    config = yaml.safe_load((ROOT / "deploy/alertmanager.yml").read_text("utf-8"))
    (receiver,) = yaml.safe_load(path.read_text("utf-8"))["receivers"]
    config["templates"] = [str(ROOT / "deploy/templates/*.tmpl")]
    config["receivers"] = [receiver if one["name"] == "page" else one for one in config["receivers"]]
    made = folder / "alertmanager.yml"
    made.write_text(yaml.safe_dump(config), "utf-8")
    return made


@pytest.mark.parametrize("path", RECEIVERS, ids=lambda path: path.stem)
def test_amtool_accepts_a_receiver_from_the_version_on_that_its_file_names(
    path: Path, tmp_path: Path
) -> None:
    version = installed()
    done = subprocess.run(
        ["amtool", "check-config", config_with(path, tmp_path)], capture_output=True, text=True
    )
    if version >= needed(path):
        assert done.returncode == 0, done.stdout + done.stderr
    else:
        assert re.search(r"field \w+_configs not found", done.stdout + done.stderr)


def test_the_page_for_people_on_call_names_the_same_versions() -> None:
    page = (ROOT / "docs/on-call.md").read_text("utf-8")
    listed = re.findall(r"\(\.\./deploy/receivers/(\w+)\.yml\) \| (\d+)\.(\d+) ", page)
    assert {name: (int(major), int(minor)) for name, major, minor in listed} == {
        path.stem: needed(path) for path in RECEIVERS
    }


@pytest.mark.parametrize("path", RECEIVERS, ids=lambda path: path.stem)
def test_no_receiver_holds_a_secret_and_each_reports_the_end(path: Path) -> None:
    (receiver,) = yaml.safe_load(path.read_text("utf-8"))["receivers"]
    assert receiver["name"] == "page"
    ((_, configs),) = [(key, value) for key, value in receiver.items() if key.endswith("_configs")]
    (config,) = configs
    assert config["send_resolved"] is True
    keys = set(config) | set(config.get("http_config", {}).get("authorization", {}))
    assert not [key for key in keys if SECRET.search(key)]
    assert [key for key in keys if key.endswith("_file")], "the secret comes from a file"


@dataclass
class Delivered:
    """Everything that one alert became."""

    http: HttpSink
    mail: SmtpSink
    alertmanager: Alertmanager
    relay: RunningMonitor
    secrets: dict[str, str]


def configs_of(name: str) -> dict[str, Any]:
    (receiver,) = yaml.safe_load((ROOT / f"deploy/receivers/{name}.yml").read_text("utf-8"))["receivers"]
    return receiver


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivered]:
    """One alert through every receiver that the installed Alertmanager knows, with addresses of loopback."""
    folder = tmp_path_factory.mktemp("receivers")
    secrets = {
        "pagerduty-key": "pagerduty-secret", "opsgenie-key": "opsgenie-secret",
        "smtp-password": "smtp-secret", "webhook-token": "webhook-secret",
        "relay-token": "relay-secret-token", "feishu-sign": "feishu-secret",
        "dingtalk-sign": "dingtalk-secret",
    }  # fmt: skip
    with closing(HttpSink, lambda: SmtpSink("recsys-monitor@example.org", "smtp-secret")) as (http, mail):
        secrets["slack-url"] = f"{http.url}/slack/T000/slack-secret"
        secrets["teams-url"] = f"{http.url}/teams/teams-secret"
        secrets["feishu-url"] = f"{http.url}/feishu/hook/feishu-address"
        secrets["dingtalk-url"] = f"{http.url}/dingtalk/send?access_token=dingtalk-address"
        secrets["wecom-url"] = f"{http.url}/wecom/send?key=wecom-address"
        for name, value in secrets.items():
            # Without a line end, as docs/on-call.md says: Alertmanager 0.25 sends it to Opsgenie and SMTP.
            (folder / name).write_text(value, "utf-8")
        http.answers = {
            "/pagerduty": (202, "{}"), "/opsgenie": (202, "{}"),
            "/feishu": (200, '{"code":0,"msg":"success"}'),
            "/dingtalk": (200, '{"errcode":0,"errmsg":"ok"}'),
            "/wecom": (200, '{"errcode":0,"errmsg":"ok"}'),
        }  # fmt: skip
        with ExitStack() as stack:
            relay, address = relay_of(folder)
            stack.callback(relay.stop)
            relay.up(f"http://{address}/-/healthy")
            receiver = merged(folder, http, mail, address)
            server = Alertmanager(folder, "http://127.0.0.1:9", [receiver])
            stack.callback(server.stop)
            server.up()
            sent = {"labels": LABELS, "annotations": NOTES, "startsAt": BEGAN.isoformat()}
            post(server, [sent])
            names = ["/pagerduty", "/opsgenie", "/slack", "/webhook", "/feishu", "/dingtalk", "/wecom"]
            wait_for("all messages", lambda: all(map(http.to, names)) and mail.mails)
            ended = datetime.now(UTC) - timedelta(seconds=1)
            post(server, [sent | {"endsAt": ended.isoformat()}])
            wait_for(
                "the ends", lambda: len(mail.mails) > 1 and all(len(http.to(name)) > 1 for name in names)
            )
            yield Delivered(http, mail, server, relay, secrets)


def relay_of(folder: Path) -> tuple[RunningMonitor, str]:
    """A started `recsys-monitor relay` with all three kinds of robots."""
    address = f"127.0.0.1:{free_port()}"
    signed = {"feishu", "dingtalk"}
    targets = [
        {"name": kind, "to": kind, "url_file": f"{kind}-url"}
        | ({"secret_file": f"{kind}-sign"} if kind in signed else {})
        for kind in ("feishu", "dingtalk", "wecom")
    ]
    config = {
        "on_call": {"relay": {"listen": address, "token_file": "relay-token", "targets": targets}},
        "recommenders": [{"name": "shop", "logs": {"exposures": {"path": "logs/*.parquet"}}}],
    }
    path = folder / "relay.yaml"
    path.write_text(yaml.safe_dump(config), "utf-8")
    return RunningMonitor(["relay", "--config", path], folder, "relay"), address


def merged(folder: Path, http: HttpSink, mail: SmtpSink, relay: str) -> dict[str, Any]:
    """The receivers of all files as one, at the addresses of this test; all else is as shipped."""
    receiver: dict[str, Any] = {"name": "page"}
    for path in RECEIVERS:
        if installed() < needed(path):
            continue
        for key, value in configs_of(path.stem).items():
            if key.endswith("_configs"):
                receiver.setdefault(key, []).extend(value)
    text = yaml.safe_dump(receiver).replace("/etc/alertmanager/secrets", str(folder))
    text = text.replace("https://api.opsgenie.com/", f"{http.url}/opsgenie/")
    text = text.replace("https://hooks.example.org", f"{http.url}/webhook").replace("127.0.0.1:9110", relay)
    receiver = yaml.safe_load(text)
    receiver["pagerduty_configs"][0]["url"] = f"{http.url}/pagerduty"
    receiver["email_configs"][0] |= {"smarthost": mail.address, "require_tls": False}
    return receiver


def silence_of(text: str) -> dict[str, str]:
    """The labels of the silence behind a link of a text."""
    return matchers(next(one for one in re.findall(r"http://[^\s|>)\"]+", text) if "/silences/new" in one))


def matchers(link: str) -> dict[str, str]:
    """The labels of the silence behind a link: nothing but exact matchers."""
    whole = unquote(link.split("?filter=")[1])
    assert whole[0] + whole[-1] == "{}"
    found = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*")', whole[1:-1])
    assert ",".join(f"{name}={value}" for name, value in found) == whole[1:-1]
    return {name: json.loads(value) for name, value in found}


def assert_plain(text: str) -> None:
    """What, how bad, since when, offenders and every link, each on a line of its own."""
    lines = text.splitlines()
    for line in (
        NOTES["summary"], ONE_LINE, f"Offenders: {HOSTILE}", SINCE, f"Evidence: {NOTES['evidence']}",
        f"Runbook: {NOTES['runbook_url']}", f"Dashboard: {NOTES['dashboard']}",
    ):  # fmt: skip
        assert line in lines
    assert [line for line in lines if line.startswith("Runbook:")] == [f"Runbook: {NOTES['runbook_url']}"]
    assert silence_of(text) == LABELS


def test_pagerduty_gets_everything_and_links_of_its_own(delivered: Delivered) -> None:
    first, last = delivered.http.to("/pagerduty")[0], delivered.http.to("/pagerduty")[-1]
    event = first.content
    assert (event["routing_key"], event["event_action"]) == ("pagerduty-secret", "trigger")
    assert event["payload"]["summary"] == f"[PAGE] {NOTES['summary']}"
    assert event["payload"]["severity"] == "critical"
    assert (event["payload"]["component"], event["payload"]["group"]) == ("shop", "trust")
    assert_plain(event["payload"]["custom_details"]["alerts"])
    links = {one["text"]: one["href"] for one in event["links"]}
    assert matchers(links.pop("Silence")) == LABELS
    assert links == {
        "Evidence": NOTES["evidence"], "Runbook": NOTES["runbook_url"], "Dashboard": NOTES["dashboard"]
    }  # fmt: skip
    assert last.content["event_action"] == "resolve"
    assert last.content["dedup_key"] == event["dedup_key"]


def test_opsgenie_gets_everything(delivered: Delivered) -> None:
    first = delivered.http.to("/opsgenie")[0]
    assert first.headers["Authorization"] == "GenieKey opsgenie-secret"
    assert first.content["message"] == f"[PAGE] {NOTES['summary']}"
    assert first.content["priority"] == "P1"
    assert_plain(first.content["description"])
    details = first.content["details"]
    assert details["owner"] == "trust"
    assert [details[name] for name in ("evidence", "runbook", "dashboard")] == [
        NOTES["evidence"], NOTES["runbook_url"], NOTES["dashboard"]
    ]  # fmt: skip
    assert matchers(details["silence"]) == LABELS


def slack_plain(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def test_slack_gets_everything_and_only_our_links_are_markup(delivered: Delivered) -> None:
    first, last = delivered.http.to("/slack")[0], delivered.http.to("/slack")[-1]
    assert first.path == "/slack/T000/slack-secret"
    (shown,) = first.content["attachments"]
    assert slack_plain(shown["title"]) == f"[PAGE] {NOTES['summary']}"
    assert shown["title_link"] == NOTES["evidence"]
    assert (shown["color"], shown["mrkdwn_in"]) == ("danger", ["pretext"])
    controls = re.findall(r"<([^>]*)>", shown["text"])
    links = {label: slack_plain(address) for address, label in (one.split("|") for one in controls)}
    assert matchers(links.pop("Silence")) == LABELS
    assert links == {
        "Evidence": NOTES["evidence"], "Runbook": NOTES["runbook_url"], "Dashboard": NOTES["dashboard"]
    }  # fmt: skip
    without = re.sub(r"<[^>]*>", "", shown["text"])
    assert not re.search(r"&(?!lt;|gt;|amp;)", without)
    lines = slack_plain(without).splitlines()
    assert {NOTES["summary"], ONE_LINE, f"Offenders: {HOSTILE}", SINCE} <= set(lines)
    assert not re.search(r"<[^>]*>", shown["title"] + shown["fallback"])
    (ended,) = last.content["attachments"]
    assert slack_plain(ended["title"]) == f"[RESOLVED] {NOTES['summary']}"
    assert ended["color"] == "good"


class Html(HTMLParser):
    """The text and the links of a page, and every tag."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: dict[str, str] = {}
        self.text = ""
        self._href = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._href = dict(attrs).get("href") or ""
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._href:
            self.links[data], self._href = self._href, ""


def test_an_email_gets_everything_as_text_and_as_html_that_a_log_cannot_break(delivered: Delivered) -> None:
    first, last = delivered.mail.mails[0], delivered.mail.mails[-1]
    assert first["Subject"] == f"[PAGE] {NOTES['summary']}"
    assert first["To"] == "oncall@example.org"
    text, page = first.get_body(("plain",)), first.get_body(("html",))
    assert text is not None
    assert page is not None
    assert_plain(text.get_content())
    parsed = Html()
    parsed.feed(page.get_content())
    assert parsed.tags == {"html", "body", "h2", "p", "a"}
    words = " ".join(parsed.text.split())
    for line in (NOTES["summary"], ONE_LINE, f"Offenders: {' '.join(HOSTILE.split())}", SINCE):
        assert line in words
    assert matchers(parsed.links.pop("Silence")) == LABELS
    assert parsed.links == {
        "Evidence": NOTES["evidence"], "Runbook": NOTES["runbook_url"], "Dashboard": NOTES["dashboard"]
    }  # fmt: skip
    assert last["Subject"] == f"[RESOLVED] {NOTES['summary']}"
    assert delivered.mail.refused == 0


def test_a_plain_webhook_gets_the_labels_and_annotations_with_the_token_of_the_file(
    delivered: Delivered,
) -> None:
    first = delivered.http.to("/webhook")[0]
    assert first.path == "/webhook/recsys-monitor"
    assert first.headers["Authorization"] == "Bearer webhook-secret"
    (shown,) = first.content["alerts"]
    assert shown["labels"] == LABELS
    assert shown["annotations"] == NOTES
    assert datetime.fromisoformat(shown["startsAt"]) == BEGAN


def test_feishu_gets_text_and_links_apart_with_a_signature(delivered: Delivered) -> None:
    first, last = delivered.http.to("/feishu")[0], delivered.http.to("/feishu")[-1]
    assert first.path == "/feishu/hook/feishu-address"
    key = f"{first.content['timestamp']}\nfeishu-secret".encode()
    assert first.content["sign"] == b64encode(hmac.new(key, digestmod=hashlib.sha256).digest()).decode()
    assert first.content["msg_type"] == "post"
    shown = first.content["content"]["post"]["en_us"]
    assert shown["title"] == f"[PAGE] {NOTES['summary']}"
    parts = [part for row in shown["content"] for part in row]
    assert {part["tag"] for part in parts} == {"text", "a"}
    texts = [part["text"] for part in parts if part["tag"] == "text"]
    assert texts[:4] == [
        NOTES["summary"], ONE_LINE.replace(". Runbook", ".[LF]Runbook"), f"Offenders: {HOSTILE}", SINCE
    ]  # fmt: skip
    links = {part["text"].strip(): part["href"] for part in parts if part["tag"] == "a"}
    assert matchers(links.pop("Silence")) == LABELS
    assert links == {
        "Evidence": NOTES["evidence"], "Runbook": NOTES["runbook_url"], "Dashboard": NOTES["dashboard"]
    }  # fmt: skip
    assert last.content["content"]["post"]["en_us"]["title"].startswith("[RESOLVED]")


@pytest.mark.parametrize("kind", ["dingtalk", "wecom"])
def test_dingtalk_and_wecom_get_everything_as_plain_text_that_holds_no_markup(
    delivered: Delivered, kind: str
) -> None:
    first = delivered.http.to(f"/{kind}")[0]
    assert first.content["msgtype"] == "text"
    text = first.content["text"]["content"]
    assert text.startswith(f"[PAGE] {NOTES['summary']}\n")
    lines = text.splitlines()
    assert ONE_LINE.replace(". Runbook", ".[LF]Runbook") in lines
    assert f"Offenders: {HOSTILE}" in lines
    assert SINCE in lines
    for label, name in (("Evidence", "evidence"), ("Runbook", "runbook_url"), ("Dashboard", "dashboard")):
        assert f"{label}: {NOTES[name]}" in lines
    assert silence_of(text) == LABELS
    assert delivered.http.to(f"/{kind}")[-1].content["text"]["content"].startswith("[RESOLVED]")


def test_dingtalk_is_signed(delivered: Delivered) -> None:
    query = parse_qs(urlsplit(delivered.http.to("/dingtalk")[0].path).query)
    assert query["access_token"] == ["dingtalk-address"]
    text = f"{query['timestamp'][0]}\ndingtalk-secret".encode()
    assert query["sign"] == [b64encode(hmac.new(b"dingtalk-secret", text, hashlib.sha256).digest()).decode()]


def test_the_matchers_of_the_silence_link_are_read_by_alertmanager_and_mean_this_alert_alone(
    delivered: Delivered,
) -> None:
    labels = LABELS | {"recommender": "video"}
    others = [labels | {"rule": "black"}, labels | {"rule": "other"}]
    post(delivered.alertmanager, [{"labels": one, "annotations": NOTES} for one in (labels, *others)])

    def links() -> list[str]:
        text = "\n".join(one.content["text"]["content"] for one in delivered.http.to("/wecom"))
        found = re.findall(r"http://\S+/silences/new\S+", text)
        return [one for one in found if "video" in one and "list" in one]

    whole = unquote(wait_for("the message", links)[0].split("?filter=")[1])
    filters = re.findall(r'\w+="(?:[^"\\]|\\.)*"', whole)
    query = "&".join(f"filter={quote(one)}" for one in filters)
    status, body = get(f"http://{delivered.alertmanager.target}/api/v2/alerts?{query}")
    assert (status, len(filters)) == (200, len(labels))
    assert [one["labels"] for one in json.loads(body)] == [labels]


def test_a_refusal_of_a_robot_is_a_failed_notification_and_no_log_shows_a_secret(
    delivered: Delivered,
) -> None:
    def failed() -> float:
        text = get(f"http://{delivered.alertmanager.target}/metrics")[1]
        found = r'^alertmanager_notification_requests_failed_total\{integration="webhook"\} (\d+)'
        return float(re.findall(found, text, re.MULTILINE)[0])

    assert failed() == 0
    said = "sign of feishu-secret at feishu-address is wrong"
    delivered.http.answers["/feishu"] = (200, f'{{"code":19021,"msg":"{said}"}}')
    post(delivered.alertmanager, [{"labels": LABELS | {"recommender": "news"}, "annotations": NOTES}])
    wait_for("the refusal", lambda: failed() > 0)
    assert "feishu: feishu refused the message" in delivered.relay.output
    assert "sign of *** at *** is wrong" in delivered.relay.output
    for name, secret in delivered.secrets.items():
        assert secret not in delivered.relay.output, name
    for secret in ("feishu-address", "dingtalk-address", "wecom-address"):
        assert secret not in delivered.relay.output


def rendered(folder: Path, text: str, count: int, *before: dict[str, Any]) -> str:
    """What a template of Alertmanager makes of so many firing alerts, and of those before them."""
    alert = {"status": "firing", "labels": LABELS, "annotations": NOTES, "startsAt": BEGAN.isoformat()}
    data = {
        "receiver": "page", "status": "firing", "externalURL": "http://alertmanager.test",
        "groupLabels": {}, "commonLabels": LABELS, "commonAnnotations": NOTES,
        "alerts": [*before, *[alert] * count],
    }  # fmt: skip
    (folder / "data.json").write_text(json.dumps(data), "utf-8")
    done = subprocess.run(
        [need("amtool", "prometheus-alertmanager"), "template", "render",
         f"--template.glob={ROOT / 'deploy/templates/*.tmpl'}", f"--template.data={folder / 'data.json'}",
         f"--template.text={text}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["recsys.text", "recsys.slack.text", "recsys.markdown", "recsys.html"])
def test_ten_alerts_are_shown_and_the_others_counted(tmp_path: Path, name: str) -> None:
    text = '{{ template "NAME" . }}'.replace("NAME", name)
    counted = {
        count: re.findall(r"\d+ more alerts?\b", rendered(tmp_path, text, count)) for count in (10, 11, 13)
    }
    assert counted == {10: [], 11: ["1 more alert"], 13: ["3 more alerts"]}
    assert rendered(tmp_path, text, 13).count("Since: ") == 10


@pytest.mark.parametrize("name", ["link", "runbook", "dashboard", "silence"])
def test_the_links_of_a_message_are_those_of_the_alert_in_its_title(tmp_path: Path, name: str) -> None:
    """Alertmanager sorts alerts by their labels, so one that has ended may be the first."""
    ended = {
        "status": "resolved", "labels": LABELS | {"alertname": "RecsysAnomalySevere"},
        "annotations": {key: f"{value}ended" for key, value in NOTES.items()},
        "startsAt": BEGAN.isoformat(), "endsAt": BEGAN.isoformat(),
    }  # fmt: skip
    text = f'{{{{ template "recsys.{name}" . }}}}'
    assert rendered(tmp_path, text, 1, ended) == rendered(tmp_path, text, 1)
    assert "nded" not in rendered(tmp_path, '{{ template "recsys.title" . }}', 1, ended)


@pytest.mark.parametrize("name", ["recsys.text", "recsys.slack.text", "recsys.markdown"])
def test_no_line_break_of_a_log_makes_a_line(tmp_path: Path, name: str) -> None:
    """A label may hold any character, such as the line separator of Unicode."""
    hostile = "\v\x85\u2028\u2029".join(["shop", *["Runbook: http://evil.test/"] * 3])
    notes = {"summary": hostile, "description": hostile, "offenders": hostile}
    alert = {"status": "firing", "labels": LABELS, "annotations": notes, "startsAt": BEGAN.isoformat()}
    text = rendered(tmp_path, f'{{{{ template "{name}" . }}}}', 0, alert)
    assert "evil" in text
    assert not [line for line in text.splitlines() if line.startswith("Runbook")]


def test_the_markdown_of_teams_has_only_our_bold_and_our_links(tmp_path: Path) -> None:
    """The text alone, by `amtool template render`, for the receiver needs a newer Alertmanager."""
    (config,) = configs_of("teams")["msteamsv2_configs"]
    markdown = rendered(tmp_path, config["text"], 1)
    tokens = [child for token in MarkdownIt().parse(markdown) for child in token.children or ()]
    markup = {"strong_open", "strong_close", "link_open", "link_close"}
    assert {token.type for token in tokens} == {"text", *markup}
    links = [token.attrs["href"] for token in tokens if token.type == "link_open"]
    assert links[:3] == [NOTES["evidence"], NOTES["runbook_url"], NOTES["dashboard"]]
    assert matchers(str(links[3])) == LABELS
    assert len(links) == 4
    words = "".join(token.content for token in tokens)
    for line in (NOTES["summary"], ONE_LINE, f"Offenders: {HOSTILE}", SINCE):
        assert line in words


def test_the_title_of_teams_which_is_markdown_too_has_no_markup_of_a_log(tmp_path: Path) -> None:
    (config,) = configs_of("teams")["msteamsv2_configs"]
    notes = {"summary": f"shop: coverage misses its objective where scene is {HOSTILE}"}
    alert = {"status": "firing", "labels": LABELS, "annotations": notes, "startsAt": BEGAN.isoformat()}
    title = rendered(tmp_path, config["title"], 0, alert)
    tokens = [child for token in MarkdownIt().parse(title) for child in token.children or ()]
    assert {token.type for token in tokens} == {"text"}
    assert "".join(token.content for token in tokens) == f"[PAGE] {notes['summary']}"


def test_the_routes_by_owner_of_the_docs_send_each_alert_to_its_team(tmp_path: Path) -> None:
    page = (ROOT / "docs/on-call.md").read_text("utf-8")
    (written,) = re.findall(r"```yaml\n(    - matchers:.*?)```", page, re.DOTALL)
    (route,) = yaml.safe_load(written)
    config = yaml.safe_load((ROOT / "deploy/alertmanager.yml").read_text("utf-8"))
    routes = config["route"]["routes"]
    (place,) = [number for number, one in enumerate(routes) if one["receiver"] == "page"]
    assert {key: route[key] for key in routes[place]} == routes[place], "the docs repeat what is shipped"
    routes[place] = route
    config["receivers"] += [{"name": "trust-page"}, {"name": "search-page"}]
    config["templates"] = [str(ROOT / "deploy/templates/*.tmpl")]
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(config), "utf-8")
    for owner, receiver in (
        ("trust", "trust-page"),
        ("search", "search-page"),
        ("other", "page"),
        ("", "page"),
    ):
        labels = ["alertname=RecsysHardRuleViolated", "severity=page", *([f"owner={owner}"] if owner else [])]
        done = subprocess.run(
            [need("amtool", "prometheus-alertmanager"), "config", "routes", "test",
             f"--config.file={tmp_path / 'alertmanager.yml'}", f"--verify.receivers={receiver}", *labels],
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
