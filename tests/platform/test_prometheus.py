"""Totals from a real Prometheus, and from servers that are slow, large, wrong or dead."""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from benchmarks.scoreboard.prometheus import make_blocks, running
from monitor.core.results import Status
from monitor.platform.answers import Answer
from monitor.platform.days import day_of
from monitor.platform.prometheus import fetch_prometheus
from monitor.settings.platform import PrometheusSystem

FIRST = date(2026, 3, 1)
DAYS = tuple(FIRST + timedelta(days=number) for number in range(3))
HOUR = 3600
UTC_ZONE = ZoneInfo("UTC")
SHORT = timedelta(seconds=5)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with a counter that grows by 10 an hour, by 20 on the second day, and ends there."""
    if shutil.which("prometheus") is None:
        assert os.environ.get("CI") != "true", "prometheus is missing"
        pytest.skip("prometheus is not installed; `sh deploy/install-test-services` installs it")
    folder = tmp_path_factory.mktemp("prometheus")
    begin = int(datetime(2026, 2, 28, 12, tzinfo=UTC).timestamp())
    lines = ["# TYPE search_orders counter"]
    total = 0
    for number in range(12 + 48 + 1):
        at = begin + number * HOUR
        lines += [f'search_orders_total{{shop="{shop}"}} {total} {at}' for shop in ("a", "b")]
        total += 20 if number >= 36 else 10
    text = folder / "samples.om"
    text.write_text("\n".join([*lines, "# EOF", ""]), "utf-8")
    make_blocks(text, folder / "data")
    with running(folder) as url:
        yield url


def ask(
    url: str, query: str, timeout: timedelta = SHORT, zone: ZoneInfo = UTC_ZONE, **settings: str
) -> Answer:
    system = PrometheusSystem(url=url, queries={"orders": query}, **settings)
    return fetch_prometheus(system, ("orders",), DAYS, zone, timeout)


def test_each_day_is_what_the_counter_grew_by_until_its_end(prometheus: str) -> None:
    found = ask(
        prometheus, "sum(max_over_time(search_orders_total[1m]) - min_over_time(search_orders_total[24h1m]))"
    )
    reading = found.reading(("orders",), DAYS)
    assert found.error == ""
    assert reading.values["orders"][:2].tolist() == [480.0, 960.0]
    assert reading.status == (Status.OK, Status.OK, Status.LATE)
    assert math.isnan(reading.values["orders"][2])


def test_a_day_of_another_zone_ends_at_its_own_midnight(prometheus: str) -> None:
    zone = ZoneInfo("Asia/Tokyo")
    found = ask(prometheus, "time()", zone=zone)
    assert found.values == {day: {"orders": str(int(day_of(day, zone).end.timestamp()))} for day in DAYS}


def test_days_around_a_change_of_the_clocks_are_asked_for_at_their_ends(prometheus: str) -> None:
    zone, first = ZoneInfo("Europe/Berlin"), date(2026, 3, 27)
    days = tuple(first + timedelta(days=number) for number in range(5))
    system = PrometheusSystem(url=prometheus, queries={"orders": "time()"})
    found = fetch_prometheus(system, ("orders",), days, zone, SHORT)
    assert found.values == {day: {"orders": str(int(day_of(day, zone).end.timestamp()))} for day in days}


def test_several_series_and_a_wrong_query_are_errors_that_say_what_to_do(prometheus: str) -> None:
    several = ask(prometheus, "max_over_time(search_orders_total[1d])")
    assert several.error == "orders: the query gives 2 series; write sum(...) around it"
    assert ask(prometheus, "sum(").error.startswith("orders: ")


def test_no_sample_is_no_value_and_never_a_0(prometheus: str) -> None:
    reading = ask(prometheus, "sum(nobody_counts_this)").reading(("orders",), DAYS)
    assert set(reading.status) == {Status.LATE}
    assert all(math.isnan(one) for one in reading.values["orders"])


@contextmanager
def server(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    opened = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    opened.daemon_threads = True
    thread = threading.Thread(target=opened.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{opened.server_address[1]}"
    finally:
        opened.shutdown()
        opened.server_close()


def says(body: bytes, code: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"<html>", 200), (b"", 200), (b"[]", 200), (b"{}", 502), (b'{"status": "success"}', 200),
     (b'{"status": "success", "data": {"resultType": "matrix", "result": [{"values": 3}]}}', 200),
     (b"[" * 100_000, 200), (b'{"status": "success", "data": {"resultType": "scalar"}}', 200),
     (b'{"status": "error", "error": "too\\nmany \\u001b[31m"}', 422)],
)  # fmt: skip
def test_whatever_a_server_answers_is_an_error_on_one_line(body: bytes, code: int) -> None:
    with server(says(body, code)) as url:
        found = ask(url, "up")
    assert found.error
    assert "\n" not in found.error
    assert "\x1b" not in found.error
    assert set(found.reading(("orders",), DAYS).status) == {Status.ERROR}


def test_a_redirect_is_not_followed_with_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-secret-token\n")
    seen: list[str] = []

    def other(handler: BaseHTTPRequestHandler) -> None:
        seen.append(str(handler.headers.get("Authorization")))
        says(b"{}")(handler)

    with server(other) as elsewhere, server(says(b"", 307, Location=f"{elsewhere}/")) as url:
        assert ask(url, "up", bearer_token_file=str(tmp_path / "token")).error
    assert seen == []


def test_the_token_and_the_password_come_from_files_at_each_request(tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        seen.append(str(handler.headers.get("Authorization")))
        empty = {"status": "success", "data": {"resultType": "matrix", "result": []}}
        says(json.dumps(empty).encode())(handler)

    secret = tmp_path / "secret"
    with server(answer) as url:
        secret.write_text("one\n")
        assert ask(url, "up", bearer_token_file=str(secret)).error == ""
        secret.write_text("two\n")
        ask(url, "up", bearer_token_file=str(secret))
        ask(url, "up", username="me", password_file=str(secret))
        secret.write_text("two\nlines\n")
        broken = ask(url, "up", bearer_token_file=str(secret))
        missing = ask(url, "up", bearer_token_file=str(tmp_path / "none"))
    assert seen == ["Bearer one", "Bearer two", "Basic bWU6dHdv"]
    assert "one line of text" in broken.error
    assert "cannot be read" in missing.error
    assert "lines" not in broken.error.replace("one line", "")


def test_an_error_that_repeats_the_token_or_the_password_shows_neither(tmp_path: Path) -> None:
    def refuse(handler: BaseHTTPRequestHandler) -> None:
        given = str(handler.headers.get("Authorization"))
        plain = base64.b64decode(given.split()[1]).decode() if given.startswith("Basic") else ""
        body = {"status": "error", "error": f"cannot verify {given} {plain}"}
        says(json.dumps(body).encode(), 401)(handler)

    (tmp_path / "token").write_text("token-of-the-shop\n")
    (tmp_path / "password").write_text("password-of-the-shop\n")
    with server(refuse) as url:
        bearer = ask(url, "up", bearer_token_file=str(tmp_path / "token")).error
        basic = ask(url, "up", username="reader", password_file=str(tmp_path / "password")).error
    assert bearer.strip() == "orders: cannot verify Bearer ***"
    assert basic == "orders: cannot verify Basic *** reader:***"


def test_an_endless_answer_is_cut(tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b"x" * 65_536)

    with server(answer) as url:
        assert "more than 4 MiB" in ask(url, "up", timeout=timedelta(seconds=20)).error


def test_a_server_that_drips_or_hangs_is_given_up_at_the_timeout() -> None:
    def drips(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.2)

    for answer in (drips, lambda _: time.sleep(20)):
        began = time.monotonic()
        with server(answer) as url:
            found = ask(url, "up", timeout=timedelta(seconds=1))
            took = time.monotonic() - began
        assert "no answer within 1 s" in found.error
        assert took < 10


def test_a_server_that_is_not_there_is_an_error() -> None:
    found = ask("http://127.0.0.1:1", "up")
    assert found.error.startswith("http://127.0.0.1:1 cannot be asked: ")
