"""The running server: sockets, TLS, passwords, stopping. Nothing here is simulated."""

from __future__ import annotations

import logging
import signal
import socket
import ssl
import threading
import time
from functools import partial
from pathlib import Path

import bcrypt
import httpx
import pytest
import yaml

from monitor.service.web.app import OPEN_PATHS, ReloadOutcome
from monitor.service.web.server import ServeError, WebServer, serve
from monitor.service.web.web_config import WebConfigError
from monitor.settings.server import ServerSettings
from tests.service import pictures
from tests.service.web.certificates import write_certificate

get = partial(httpx.get, timeout=pictures.PATIENCE)
post = partial(httpx.post, timeout=pictures.PATIENCE)


@pytest.fixture
def running():
    """Start servers that are stopped when the test ends."""
    started: list[WebServer] = []

    def start(current=pictures.full, healthy=lambda: True, not_ready=lambda: "", **settings) -> WebServer:
        server = serve(
            ServerSettings(**{"listen": "127.0.0.1:0"} | settings),
            current,
            reload=lambda: ReloadOutcome(True),
            not_ready=not_ready,
            healthy=healthy,
        )
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


def web_config(folder: Path, *, tls: bool = False, password: str | None = None, cost: int = 4) -> Path:
    lines = []
    if tls:
        write_certificate(folder)
        lines.append("tls_server_config: {cert_file: server.crt, key_file: server.key}")
    if password is not None:
        hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()
        lines.append(f"basic_auth_users: {{alice: {hashed}}}")
    path = folder / "web.yaml"
    path.write_text("\n".join(lines))
    return path


def test_it_serves_and_stops_and_leaves_the_signal_handlers_alone(running):
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    others = set(threading.enumerate())  # of tests whose servers run for longer
    server = running()
    assert get(f"{server.address}/-/healthy").status_code == 200
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before
    began = time.monotonic()
    assert server.stop()
    assert time.monotonic() - began < 3
    assert not any(thread.name == "web" for thread in set(threading.enumerate()) - others)
    with pytest.raises(httpx.ConnectError):
        get(f"{server.address}/-/healthy")


def test_the_links_hold_the_port_that_was_found(running):
    server = running()
    port = server.address.rsplit(":", 1)[1]
    assert port != "0"
    assert f'recsys_web_info{{url="http://127.0.0.1:{port}"}} 1.0' in get(f"{server.address}/metrics").text


def test_a_request_in_hand_is_finished_when_it_stops(running):
    entered, release = threading.Event(), threading.Event()

    def slow():
        entered.set()
        release.wait(5)
        return pictures.full()

    server = running(slow)
    answers = []
    caller = threading.Thread(target=lambda: answers.append(get(f"{server.address}/metrics")))
    caller.start()
    assert entered.wait(5)
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    time.sleep(0.3)
    release.set()
    caller.join(5)
    stopper.join(5)
    assert answers[0].status_code == 200


def test_a_taken_address_is_an_error_in_one_sentence(running):
    server = running()
    port = server.address.rsplit(":", 1)[1]
    with pytest.raises(ServeError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
        running(listen=f"127.0.0.1:{port}")


def test_an_address_of_another_machine_is_an_error_in_one_sentence(running):
    with pytest.raises(ServeError, match=r"cannot listen on 192\.0\.2\.1:0"):
        running(listen="192.0.2.1:0")


def test_every_interface_can_be_listened_on(running):
    server = running(listen=":0")
    port = int(server.address.rsplit(":", 1)[1])
    assert get(f"http://127.0.0.1:{port}/-/healthy").status_code == 200


def test_a_listener_beyond_loopback_without_a_password_is_warned_about(running, caplog, tmp_path):
    with caplog.at_level(logging.WARNING, logger="monitor.service.web.server"):
        running(listen="127.0.0.1:0")
        running(listen="0.0.0.0:0", web_config=web_config(tmp_path, password="secret"))
        assert caplog.messages == []
        running(listen="0.0.0.0:0")
    assert "without authentication" in caplog.messages[0]


def test_a_wrong_web_config_opens_no_port(running, tmp_path):
    path = tmp_path / "web.yaml"
    path.write_text("basic_auth_users: {alice: secret}")
    with pytest.raises(WebConfigError, match=r"basic_auth_users\.alice"):
        running(web_config=path)


def test_basic_auth_guards_every_path(running, tmp_path):
    server = running(web_config=web_config(tmp_path, password="secret"))
    paths = ["/", "/metrics", "/-/healthy", "/-/ready", "/static/style.css", "/nothing"]
    for path in paths:
        refused = get(server.address + path)
        assert refused.status_code == 401, path
        assert refused.headers["www-authenticate"].startswith("Basic ")
        assert "content-security-policy" in refused.headers
        assert get(server.address + path, auth=("alice", "guess")).status_code == 401
        assert get(server.address + path, auth=("bob", "secret")).status_code == 401
    not_ascii = get(server.address, headers={"Authorization": b"Basic \xe9\xff"})
    assert (not_ascii.status_code, not_ascii.text) == (401, "Unauthorized\n")
    assert post(f"{server.address}/-/reload").status_code == 401
    codes = [get(server.address + path, auth=("alice", "secret")).status_code for path in paths]
    assert codes == [200, 200, 200, 200, 200, 404]


@pytest.mark.parametrize("path", OPEN_PATHS)
def test_a_probe_needs_no_password_and_learns_one_word(running, tmp_path, path):
    settings = web_config(tmp_path, password="secret")
    good = running(web_config=settings)
    bad = running(
        web_config=settings, healthy=lambda: False, not_ready=lambda: "secret-db.example.org is down"
    )
    for server, expected in ((good, (200, "ok\n")), (bad, (503, "not ok\n"))):
        answer = get(server.address + path)
        assert (answer.status_code, answer.text) == expected
        assert "www-authenticate" not in answer.headers
    for near in (f"{path}/", f"/{path}", f"{path}/../metrics", f"{path.upper()}", f"{path}%2f..%2fmetrics"):
        assert get(good.address + near).status_code == 401, near


def test_a_scrape_pays_for_its_password_once(running, tmp_path, monkeypatch):
    server = running(web_config=web_config(tmp_path, password="secret"))
    calls = []
    real = bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda *given: calls.append(1) or real(*given))
    for _ in range(5):
        assert get(f"{server.address}/metrics", auth=("alice", "secret")).status_code == 200
    assert calls == [1]


def test_tls_is_spoken_with_the_certificate_and_plain_http_is_not(running, tmp_path):
    server = running(web_config=web_config(tmp_path, tls=True, password="secret"))
    trusted = ssl.create_default_context(cafile=str(tmp_path / "server.crt"))
    assert server.address.startswith("https://127.0.0.1:")
    assert server.url == server.address
    answer = get(f"{server.address}/metrics", verify=trusted, auth=("alice", "secret"))
    assert answer.status_code == 200
    assert get(f"{server.address}/metrics", verify=trusted).status_code == 401
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        get(f"{server.address}/-/healthy")
    with pytest.raises(httpx.TransportError):
        get(f"{server.address.replace('https', 'http')}/-/healthy")


def test_an_old_tls_version_is_refused(running, tmp_path):
    server = running(web_config=web_config(tmp_path, tls=True))
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    host, port = server.address.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port))) as plain, pytest.raises(ssl.SSLError):
        old.wrap_socket(plain)


@pytest.mark.parametrize("changed", ["client_auth_type", "min_version", "client_ca_file"])
def test_what_tls_asks_of_clients_changes_only_with_a_restart(running, tmp_path, changed):
    path = web_config(tmp_path, tls=True)
    (tls,) = yaml.safe_load(path.read_text()).values()
    authorities = tmp_path / "clients.crt"
    authorities.write_bytes((tmp_path / "server.crt").read_bytes())
    guarded = {"client_ca_file": "clients.crt", "client_auth_type": "RequireAndVerifyClientCert"}
    before, after = {
        "client_auth_type": ({}, guarded),
        "min_version": ({}, {"min_version": "TLS13"}),
        "client_ca_file": (guarded, guarded),
    }[changed]
    path.write_text(yaml.safe_dump({"tls_server_config": {**tls, **before}}))
    server = running(web_config=path)
    server.reload_web_config()
    path.write_text(yaml.safe_dump({"tls_server_config": {**tls, **after}}))
    authorities.write_bytes(authorities.read_bytes() * (2 if changed == "client_ca_file" else 1))
    with pytest.raises(WebConfigError, match="client_auth_type and min_version change only with a restart"):
        server.reload_web_config()


def test_a_changed_web_config_is_taken_over_without_a_restart(running, tmp_path):
    server = running(web_config=web_config(tmp_path, tls=True, password="old"))
    first = ssl.create_default_context(cafile=str(tmp_path / "server.crt"))
    assert get(server.address, verify=first, auth=("alice", "old")).status_code == 200
    web_config(tmp_path, tls=True, password="new")
    server.reload_web_config()
    renewed = ssl.create_default_context(cafile=str(tmp_path / "server.crt"))
    assert get(server.address, verify=renewed, auth=("alice", "new")).status_code == 200
    assert get(server.address, verify=renewed, auth=("alice", "old")).status_code == 401


def test_a_wrong_new_web_config_leaves_the_old_one_in_force(running, tmp_path):
    server = running(web_config=web_config(tmp_path, password="secret"))
    (tmp_path / "web.yaml").write_text("basic_auth_users: {alice: plain}")
    with pytest.raises(WebConfigError):
        server.reload_web_config()
    (tmp_path / "web.yaml").write_text("")
    web_config(tmp_path, tls=True)
    with pytest.raises(WebConfigError, match="only with a restart"):
        server.reload_web_config()
    assert get(server.address).status_code == 401
    assert get(server.address, auth=("alice", "secret")).status_code == 200


def test_ten_thousand_series_are_scraped_well_within_a_second(running):
    wide = pictures.wide(2300)
    server = running(lambda: wide, series_limit=20_000, export=("*",))
    get(f"{server.address}/metrics")
    took = []
    for _ in range(3):
        before = time.process_time()  # the server runs in this process
        text = get(f"{server.address}/metrics").text
        took.append(time.process_time() - before)
    (counted,) = [line for line in text.splitlines() if line.startswith("recsys_series ")]
    assert float(counted.split()[1]) > 9000
    assert min(took) < 1.0
