"""The relay: who may post, what it answers, what it posts, and what it never shows."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from starlette.testclient import TestClient

from monitor.on_call.message import as_text, read_message
from monitor.on_call.relay import relay_application
from monitor.on_call.robots import content_of
from monitor.settings.on_call import RelaySettings
from tests.alerts.received import HttpSink, closing

TOKEN = {"Authorization": "Bearer relay-token-of-the-test"}


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    with closing(HttpSink) as (made,):
        yield made


def payload(count: int = 1, *, status: str = "firing", **notes: str) -> dict[str, Any]:
    """A message of Alertmanager with so many alerts."""
    alerts = [
        {
            "status": status,
            "labels": {"alertname": "A", "recommender": "shop", "rule": f"r{number}", "severity": "page"},
            "annotations": {"summary": f"rule {number} is violated", **notes},
            "startsAt": "2026-03-09T14:00:00.5Z",
            "endsAt": "2026-03-09T15:00:00Z",
        }
        for number in range(count)
    ]
    return {"status": status, "externalURL": "http://alertmanager.test", "alerts": alerts}


def relay(folder: Path, to: str, url: str, *, guarded: bool = True) -> TestClient:
    (folder / "url").write_text(url, "utf-8")
    (folder / "token").write_text("relay-token-of-the-test\n", "utf-8")
    settings = RelaySettings.model_validate(
        {
            "token_file": str(folder / "token") if guarded else None,
            "targets": [{"name": "chat", "to": to, "url_file": str(folder / "url")}],
        }
    )
    return TestClient(relay_application(settings))


def test_a_message_without_the_token_or_for_another_target_is_refused(tmp_path: Path, sink: HttpSink) -> None:
    client = relay(tmp_path, "wecom", f"{sink.url}/robot")
    assert client.post("/chat", json=payload()).status_code == 401
    assert client.post("/chat", json=payload(), headers={"Authorization": "Bearer x"}).status_code == 401
    assert client.post("/other", json=payload()).status_code == 401
    assert client.post("/other", json=payload(), headers=TOKEN).status_code == 404
    assert client.get("/chat", headers=TOKEN).status_code == 405
    assert sink.posted == []


@pytest.mark.parametrize("body", ["", "3", "[]", "{}", '{"alerts": []}', '{"alerts": [3]}', "[" * 100_000])
def test_what_is_no_message_of_alertmanager_is_refused(tmp_path: Path, sink: HttpSink, body: str) -> None:
    client = relay(tmp_path, "wecom", f"{sink.url}/robot", guarded=False)
    assert client.post("/chat", content=body).status_code == 400
    assert sink.posted == []


@pytest.mark.parametrize(
    ("to", "answer", "status"),
    [
        ("feishu", (200, '{"code": 0}'), 200),
        ("feishu", (200, '{"StatusCode": 0, "StatusMessage": "success"}'), 200),
        ("feishu", (200, '{"code": 19024, "msg": "Key Words Not Found"}'), 502),
        ("dingtalk", (200, '{"errcode": 0}'), 200),
        ("dingtalk", (200, '{"errcode": 310000, "errmsg": "sign not match"}'), 502),
        ("wecom", (200, '{"errcode": 93000, "errmsg": "invalid webhook url"}'), 502),
        ("wecom", (500, '{"errcode": 0}'), 502),
        ("wecom", (302, ""), 502),
        ("wecom", (200, "<html>"), 502),
        ("wecom", (200, "{}"), 502),
    ],
)
def test_it_is_sent_only_if_the_robot_says_so(
    tmp_path: Path, sink: HttpSink, to: str, answer: tuple[int, str], status: int
) -> None:
    sink.answers = {"/robot": answer}
    client = relay(tmp_path, to, f"{sink.url}/robot", guarded=False)
    assert client.post("/chat", json=payload()).status_code == status
    assert len(sink.posted) == 1


@pytest.mark.parametrize(
    "url", ["not an address", "ftp://host/secret-part-of-it", "http://127.0.0.1:9/secret-part"]
)
def test_a_wrong_address_is_an_error_that_does_not_show_it(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = relay(tmp_path, "wecom", url, guarded=False)
    with caplog.at_level(logging.DEBUG):
        answer = client.post("/chat", json=payload())
    assert answer.status_code == 502
    assert "secret-part" not in answer.text + caplog.text
    assert url not in answer.text + caplog.text


def test_an_address_with_a_slash_at_its_end_is_not_shown_either(
    tmp_path: Path, sink: HttpSink, caplog: pytest.LogCaptureFixture
) -> None:
    sink.answers = {"/hook": (404, "no such path: /hook/secret-part-of-it/")}
    client = relay(tmp_path, "feishu", f"{sink.url}/hook/secret-part-of-it/", guarded=False)
    answer = client.post("/chat", json=payload())
    assert answer.text == "feishu answered with code 404: no such path: /hook/***/\n"
    assert "secret-part" not in caplog.text


def test_a_token_in_any_script_is_accepted(tmp_path: Path, sink: HttpSink) -> None:
    sink.answers = {"/robot": (200, '{"errcode": 0}')}
    client = relay(tmp_path, "wecom", f"{sink.url}/robot")
    (tmp_path / "token").write_text("schlüssel-令牌", "utf-8")
    for token, status in (("schlüssel-令牌", 200), ("schlussel-令牌", 401)):
        given = {"Authorization": f"Bearer {token}".encode()}
        assert client.post("/chat", json=payload(), headers=given).status_code == status


def test_a_robot_that_is_too_slow_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.on_call.robots.TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
                for _ in range(20):
                    connection.sendall(b"x")
                    time.sleep(0.1)

        Thread(target=drip, daemon=True).start()
        client = relay(tmp_path, "wecom", f"http://127.0.0.1:{server.getsockname()[1]}/robot", guarded=False)
        answer = client.post("/chat", json=payload())
    assert (answer.status_code, answer.text) == (502, "wecom cannot be reached: no answer within 0.5 s\n")


def test_a_long_message_fits_wecom_with_the_links_of_its_first_alert(tmp_path: Path, sink: HttpSink) -> None:
    sink.answers = {"/robot": (200, '{"errcode": 0}')}
    client = relay(tmp_path, "wecom", f"{sink.url}/robot", guarded=False)
    notes = {
        "description": "長" * 3000, "offenders": "x" * 3000, "evidence": "https://m.test/e",
        "runbook_url": "https://m.test/r", "dashboard": "https://m.test/d",
    }  # fmt: skip
    assert client.post("/chat", json=payload(12, **notes)).status_code == 200
    text = sink.posted[0].content["text"]["content"]
    assert len(text.encode()) <= 2048
    assert text.startswith("[PAGE] rule 0 is violated (and 11 more)\n")
    for line in ("Evidence: https://m.test/e", "Runbook: https://m.test/r", "Dashboard: https://m.test/d"):
        assert line in text.splitlines()
    assert "Silence: http://alertmanager.test/#/silences/new?filter=" in text


@pytest.mark.parametrize(
    ("evidence", "shown"),
    [
        ("https://m.test/e", ["Evidence", "Runbook", "Dashboard"]),
        ("https://m.test/" + "e" * 1500, ["Evidence", "Runbook"]),
        ("https://m.test/" + "e" * 3000, []),
    ],
    ids=lambda one: str(len(one)),
)
def test_links_that_do_not_fit_wecom_take_nothing_else_away(evidence: str, shown: list[str]) -> None:
    notes = {
        "evidence": evidence,
        "runbook_url": "https://m.test/r",
        "dashboard": "https://m.test/" + "d" * 600,
    }
    made = payload(description="bad", **notes)
    made["alerts"][0]["labels"]["value"] = "長" * 200  # nine bytes each in the link to a silence
    lines = as_text(read_message(made), 2048).splitlines()
    texts = ["rule 0 is violated", "How bad: bad", "Since: 2026-03-09 14:00 UTC"]
    assert lines[:5] == ["[PAGE] rule 0 is violated", "", *texts]
    assert [line.partition(":")[0] for line in lines[5:]] == shown
    assert len("\n".join(lines).encode()) <= 2048


def test_links_that_are_no_web_pages_are_left_out_and_a_line_break_makes_no_line() -> None:
    notes = {
        "evidence": "javascript:alert(1)",
        "dashboard": "/recommenders/shop",
        "runbook_url": "http://m/\nx",
    }
    message = read_message(payload(offenders="a\nEvidence: http://evil.test", **notes))
    assert [label for label, _ in message.entries[0].links] == ["Silence"]
    assert "Offenders: a[LF]Evidence: http://evil.test" in as_text(message, 9000).splitlines()


def test_an_end_is_one_line() -> None:
    message = read_message(payload(status="resolved"))
    assert as_text(message, 9000) == (
        "[RESOLVED] rule 0 is violated\n\nResolved at 2026-03-09 15:00 UTC: rule 0 is violated"
    )


@pytest.mark.parametrize(
    ("firing", "resolved", "counted"),
    [
        (10, 10, []),
        (11, 0, ["1 more alert"]),
        (0, 12, ["2 more resolved"]),
        (12, 13, ["2 more alerts", "3 more resolved"]),
    ],
)
def test_alerts_that_are_not_shown_are_counted(firing: int, resolved: int, counted: list[str]) -> None:
    made = payload(firing) | {"status": "firing" if firing else "resolved"}
    made["alerts"] += payload(resolved, status="resolved")["alerts"]
    first = [entry.lines[0] for entry in read_message(made).entries]
    assert [line for line in first if "more" in line] == counted
    assert len(first) == min(firing, 10) + min(resolved, 10) + len(counted)


@pytest.mark.parametrize(
    ("name", "address"), [("runbook_url", "http://[wiki]/x"), ("evidence", "http://a[b/x")]
)
def test_a_link_that_is_no_address_is_left_out_and_the_message_is_sent(name: str, address: str) -> None:
    message = read_message(payload(**{name: address}))
    assert [label for label, _ in message.entries[0].links] == ["Silence"]


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+08:00", "9999-12-31T23:59:59-05:00"]
)
def test_a_time_that_is_not_set_is_said_to_be_unknown(tmp_path: Path, sink: HttpSink, moment: str) -> None:
    sink.answers = {"/robot": (200, '{"errcode": 0}')}
    client = relay(tmp_path, "wecom", f"{sink.url}/robot", guarded=False)
    ended = payload(status="resolved")
    ended["alerts"][0]["endsAt"] = moment
    assert client.post("/chat", json=ended).status_code == 200
    assert sink.posted[0].content["text"]["content"].splitlines()[-1] == (
        "Resolved at an unknown time: rule 0 is violated"
    )
    begun = payload()
    begun["alerts"][0]["startsAt"] = moment
    assert "Since: an unknown time" in read_message(begun).entries[0].lines


@pytest.mark.parametrize("character", ["x", "長", "😀", '"', "\u202e"])
def test_feishu_gets_the_first_alert_and_no_more_than_it_takes(
    tmp_path: Path, sink: HttpSink, character: str
) -> None:
    sink.answers = {"/robot": (200, '{"code": 0}')}
    client = relay(tmp_path, "feishu", f"{sink.url}/robot", guarded=False)
    long = character * 3000
    made = payload(
        10, summary=f"broken {long}", description=long, offenders=long, dashboard="https://m.test/d"
    )
    assert client.post("/chat", json=made).status_code == 200
    posted = sink.posted[0]
    assert 4000 < int(posted.headers["Content-Length"]) < 20_000
    post = posted.content["content"]["post"]["en_us"]
    texts = [row[0].get("text", "") for row in post["content"]]
    assert texts[0].startswith("broken ")
    assert texts[1].startswith(f"How bad: {character if character.isprintable() else '[U+202E]'}")
    assert texts[2].startswith("Offenders: ")
    assert [part["text"] for part in post["content"][4]] == ["Dashboard ", "Silence "]


def test_feishu_gets_the_first_alert_without_the_links_that_do_not_fit() -> None:
    made = payload(2, evidence="https://m.test/e", runbook_url="https://m.test/" + "r" * 20_000)
    post = content_of("feishu", read_message(made))["content"]["post"]["en_us"]
    texts = [row[0]["text"] for row in post["content"]]
    assert texts[:3] == ["rule 0 is violated", "Since: 2026-03-09 14:00 UTC", "Evidence "]
