"""What a container asks of its daemon, with and without a web config file."""

from __future__ import annotations

from pathlib import Path

import bcrypt
import pytest

from monitor.service.probe import is_alive
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import serve
from monitor.settings.server import ServerSettings
from tests.processes import free_port
from tests.service import pictures
from tests.service.web.certificates import write_certificate

WEB_CONFIGS = {
    "nothing": "",
    "a password": f"basic_auth_users: {{alice: {bcrypt.hashpw(b'secret', bcrypt.gensalt(4)).decode()}}}\n",
    "tls": "tls_server_config: {cert_file: server.crt, key_file: server.key}\n",
    "a client certificate": "tls_server_config: {cert_file: server.crt, key_file: server.key, "
    "client_ca_file: server.crt, client_auth_type: RequireAndVerifyClientCert}\n",
}


def answers(folder: Path, text: str, *, healthy: bool) -> bool:
    write_certificate(folder)
    (folder / "web.yaml").write_text(text)
    server = serve(
        ServerSettings(listen="127.0.0.1:0", web_config=folder / "web.yaml"),
        pictures.empty,
        reload=lambda: ReloadOutcome(True),
        not_ready=lambda: "",
        healthy=lambda: healthy,
    )
    try:
        return is_alive(f"{server.address}/healthz")
    finally:
        server.stop()


@pytest.mark.parametrize("wanted", ["nothing", "tls"])
def test_a_proxy_of_the_environment_is_not_asked(tmp_path, wanted, monkeypatch):
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    assert answers(tmp_path, WEB_CONFIGS[wanted], healthy=True)


@pytest.mark.parametrize("wanted", WEB_CONFIGS)
def test_a_daemon_that_asks_for_credentials_is_alive(tmp_path, wanted):
    assert answers(tmp_path, WEB_CONFIGS[wanted], healthy=True)


def test_a_daemon_that_answers_503_is_not_alive(tmp_path):
    assert not answers(tmp_path, "", healthy=False)
    assert not answers(tmp_path, WEB_CONFIGS["tls"], healthy=False)


def test_another_program_that_asks_for_a_password_is_not_the_daemon(tmp_path):
    (tmp_path / "web.yaml").write_text(WEB_CONFIGS["a password"])
    server = serve(
        ServerSettings(listen="127.0.0.1:0", web_config=tmp_path / "web.yaml"),
        pictures.empty,
        reload=lambda: ReloadOutcome(True),
        not_ready=lambda: "",
        healthy=lambda: True,
    )
    try:
        assert not is_alive(f"{server.address}/metrics")
    finally:
        server.stop()


def test_an_unreachable_daemon_is_not_alive():
    assert not is_alive(f"http://127.0.0.1:{free_port()}/healthz")
