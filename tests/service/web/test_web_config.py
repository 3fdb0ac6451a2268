"""The web config file: what it may say, and what a mistake in it is answered with."""

from __future__ import annotations

import ssl
import textwrap
from pathlib import Path

import bcrypt
import pytest
from pydantic import ValidationError

from monitor.service.web.auth import Passwords, read_credentials
from monitor.service.web.web_config import WebConfigError, load_web_config
from monitor.settings.server import ServerSettings
from tests.service.web.certificates import write_certificate

HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()


def load(folder: Path, text: str):
    path = folder / "web.yaml"
    path.write_text(textwrap.dedent(text))
    return load_web_config(path)


def problems(folder: Path, text: str) -> dict[str, str]:
    with pytest.raises(WebConfigError) as caught:
        load(folder, text)
    return dict(caught.value.problems)


def test_yaml_dates_and_repeated_keys_are_problems_with_their_place(tmp_path):
    assert (
        "looks like a date"
        in problems(tmp_path, "basic_auth_users: {alice: 2026-13-45}")["line 1, column 27"]
    )
    twice = f"basic_auth_users:\n  alice: {HASH}\n  alice: {HASH}\n"
    assert "given twice" in problems(tmp_path, twice)["line 3, column 3"]


def test_a_plain_password_is_not_shown_however_yaml_parses_it(tmp_path):
    for password in ("*hunter2", "!hunter2", "hunter2", "%hunter2", "[hunter2", "&hunter2"):
        found = problems(tmp_path, f"basic_auth_users: {{alice: {password}}}")
        assert "hunter2" not in str(found)


def test_the_address_that_alerts_link_to_holds_no_password():
    with pytest.raises(ValidationError, match="leave it out"):
        ServerSettings(external_url="https://me:hunter2@monitor.example.org")
    assert ServerSettings(external_url="https://monitor.example.org/a/").public_url().endswith(".org/a")


def test_an_empty_file_asks_for_nothing(tmp_path):
    config = load(tmp_path, "")
    assert (dict(config.users), config.tls, config.guards) == ({}, None, False)


def test_users_and_a_certificate_are_read_relative_to_the_file(tmp_path):
    write_certificate(tmp_path)
    config = load(
        tmp_path,
        f"""
        tls_server_config: {{cert_file: server.crt, key_file: server.key, min_version: TLS13}}
        basic_auth_users: {{alice: {HASH}}}
        """,
    )
    assert config.users == {"alice": HASH}
    assert config.guards
    assert config.tls is not None
    assert config.tls.cert_file == tmp_path / "server.crt"
    assert config.tls.context().minimum_version is ssl.TLSVersion.TLSv1_3


def test_a_client_certificate_guards_as_well_as_a_password(tmp_path):
    write_certificate(tmp_path)
    text = """
        tls_server_config:
          cert_file: server.crt
          key_file: server.key
          client_ca_file: server.crt
          client_auth_type: RequireAndVerifyClientCert
        """
    assert load(tmp_path, text).guards


def test_all_mistakes_are_reported_at_once_with_their_places(tmp_path):
    found = problems(
        tmp_path,
        """
        tls_server_config: {cert_file: 5, cipher_suites: [A], min_version: TLS10, colour: red}
        basic_auth_users: {alice: secret, 7: x}
        http_server_config: {http2: true}
        typo: 1
        """,
    )
    assert set(found) == {
        "tls_server_config.cert_file",
        "tls_server_config.cipher_suites",
        "tls_server_config.min_version",
        "tls_server_config.colour",
        "tls_server_config.key_file",
        "basic_auth_users.alice",
        "basic_auth_users.7",
        "http_server_config",
        "typo",
    }


def test_a_password_in_the_clear_is_refused_and_not_repeated(tmp_path):
    with pytest.raises(WebConfigError) as caught:
        load(tmp_path, "basic_auth_users: {alice: hunter2}")
    assert "hunter2" not in str(caught.value)
    assert "htpasswd" in str(caught.value)


def test_a_file_that_is_missing_is_named(tmp_path):
    found = problems(tmp_path, "tls_server_config: {cert_file: no.crt, key_file: no.key}")
    assert "no.crt cannot be read: No such file" in found["tls_server_config.cert_file"]
    assert "tls_server_config.key_file" in found


def test_a_key_of_another_certificate_is_refused(tmp_path):
    write_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    write_certificate(tmp_path / "other")
    found = problems(tmp_path, "tls_server_config: {cert_file: server.crt, key_file: other/server.key}")
    assert "KEY_VALUES_MISMATCH" in found["tls_server_config"]


def test_a_client_ca_without_client_authentication_is_refused(tmp_path):
    write_certificate(tmp_path)
    found = problems(
        tmp_path,
        "tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: server.crt}",
    )
    assert "has no effect" in found["tls_server_config.client_ca_file"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a list", "must be a mapping"),
        ("basic_auth_users: {alice: [", "line 1, column"),
        ("basic_auth_users: [a]", "must map user names"),
        ("tls_server_config: yes", "must be a mapping"),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path, text, says):
    assert says in str(WebConfigError(tmp_path, list(problems(tmp_path, text).items())))


def test_a_file_that_cannot_be_read_is_an_error_and_no_open_door(tmp_path):
    with pytest.raises(WebConfigError, match="No such file"):
        load_web_config(tmp_path / "missing.yaml")


def test_a_password_that_passed_is_remembered_until_its_hash_changes():
    users = {"alice": HASH}
    passwords = Passwords(lambda: users)
    assert not passwords.remembered("alice", "secret")
    assert passwords.check("alice", "secret")
    assert passwords.remembered("alice", "secret")
    assert not passwords.remembered("bob", "secret")
    users["alice"] = bcrypt.hashpw(b"secret2", bcrypt.gensalt(4)).decode()
    assert not passwords.remembered("alice", "secret")
    assert not passwords.check("alice", "secret")


def test_a_failed_check_is_not_remembered():
    passwords = Passwords(lambda: {"alice": HASH})
    assert not passwords.check("alice", "guess")
    assert not passwords.remembered("alice", "guess")


def test_no_more_than_a_hundred_checks_are_remembered():
    users = {f"user{index}": HASH for index in range(103)}
    passwords = Passwords(lambda: users)
    assert all(passwords.check(name, "secret") for name in users)
    assert sum(passwords.remembered(name, "secret") for name in users) == 100


def test_an_unknown_user_costs_the_work_of_a_known_one(monkeypatch):
    costs = []
    real = bcrypt.checkpw

    def watched(password: bytes, hashed: bytes) -> bool:
        costs.append(int(hashed[4:6]))
        return real(password, hashed)

    monkeypatch.setattr(bcrypt, "checkpw", watched)
    passwords = Passwords(lambda: {"alice": HASH})
    assert not passwords.check("alice", "guess")
    assert not passwords.check("nobody", "guess")
    assert costs == [4, 4]


@pytest.mark.parametrize("password", ["x" * 500, "nul\0inside", "ü" * 80, ""])
def test_an_odd_password_is_wrong_and_no_failure(password):
    assert not Passwords(lambda: {"alice": HASH}).check("alice", password)


@pytest.mark.parametrize(
    "header", ["", "Basic", "Bearer abc", "Basic !!!", "Basic YWxpY2U=", "Basic /////w==", "Basic \xe9"]
)
def test_a_header_without_credentials_holds_none(header):
    assert read_credentials(header) is None


def test_a_password_may_hold_a_colon():
    assert read_credentials("basic YWxpY2U6YTpi") == ("alice", "a:b")


@pytest.mark.parametrize(
    "listen", ["9108", "localhost", "1.2.3.4:99999", "http://x:1", "::1:80", "a b:1", ":"]
)
def test_a_listen_address_without_sense_is_refused(listen):
    with pytest.raises(ValidationError, match="is not an address"):
        ServerSettings(listen=listen)


@pytest.mark.parametrize(
    "url", ["monitor.example.org", "ftp://x", "https://", "https://x/?a=1", "javascript:alert(1)"]
)
def test_an_external_url_that_cannot_be_the_base_of_links_is_refused(url):
    with pytest.raises(ValidationError, match="is not a base URL"):
        ServerSettings(external_url=url)


def test_links_go_to_the_external_url_else_to_the_listen_address():
    assert ServerSettings(external_url="https://m.example.org/recsys/").public_url() == (
        "https://m.example.org/recsys"
    )
    assert ServerSettings(listen="[::1]:80").public_url(tls=True) == "https://[::1]:80"
    assert ServerSettings(listen=":0").public_url(port=4321) == "http://127.0.0.1:4321"
