"""The address of the web side: what a config may leave empty."""

from __future__ import annotations

from monitor.settings.server import ServerSettings


def test_an_empty_external_url_is_the_listen_address() -> None:
    settings = ServerSettings(listen="127.0.0.1:9200", external_url="")
    assert settings.external_url is None
    assert settings.public_url() == "http://127.0.0.1:9200"
    assert ServerSettings(external_url="https://m.example.org/").public_url() == "https://m.example.org"
