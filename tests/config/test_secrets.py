"""Messages hide the secrets of a config and show its other values."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from monitor.config.load import load_config
from monitor.core.redaction import keep_secret, redact

ENVIRONMENT = {
    "BUCKET": "bucket-named-by-variable",
    "ITEM": "itemcolumn-by-variable",
    "ACCESS": "access-by-variable",
    "SHORT": "shop",
    "API_TOKEN": "folder-by-token-variable",
    "DB_PW": "p%40ssword by variable",
    "REGION": "region-by-variable",
    "MONKEY": "monkey-by-variable",
}
CONFIG = {
    "history": {
        "url": "postgresql://someuser:${DB_PW}@dbhost.example/history?options=option-of-the-url",
        "salt": "salt-written-into-the-config",
    },
    "engine": {
        "kind": "spark",
        "options": {
            "spark.hadoop.fs.s3a.secret.key": "key-of-spark-options",
            "spark.app.name": "name-of-spark",
        },
    },
    "recommenders": [
        {
            "name": "${SHORT}",
            "logs": {
                "exposures": {
                    "path": "s3://${BUCKET}/${API_TOKEN}/*.csv",
                    "columns": {"item_id": "${ITEM}", "scene": "${MONKEY}", "model": "${file:model.txt}"},
                    "storage_options": {
                        "key": "${ACCESS}",
                        "token": "${SHORT}",
                        "client_kwargs": {
                            "endpoint_url": "http://endpoint-of-options:9000",
                            "region_name": "${REGION}",
                            "more": ["Bearer ${ACCESS}2", "text-of-options"],
                        },
                    },
                }
            },
        }
    ],
}
HIDDEN = {
    "access-by-variable": "${ACCESS}",
    "Bearer access-by-variable2": "***",
    "text-of-options": "***",
    "folder-by-token-variable": "${API_TOKEN}",
    "value of a secret file": "${file:model.txt}",
    "p@ssword by variable": "${DB_PW}",
    "p%40ssword by variable": "${DB_PW}",
    "p%40ssword%20by%20variable": "${DB_PW}",
    "option-of-the-url": "***",
    "salt-written-into-the-config": "***",
    "key-of-spark-options": "***",
}
VISIBLE = [
    "bucket-named-by-variable",
    "itemcolumn-by-variable",
    "monkey-by-variable",
    "region-by-variable",
    "http://endpoint-of-options:9000",
    "name-of-spark",
    "someuser",
    "dbhost.example",
    "shop",
]


@pytest.fixture
def loaded(tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text("value of a secret file\n")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    load_config(tmp_path / "config.yaml", ENVIRONMENT)


@pytest.mark.usefixtures("loaded")
def test_a_secret_is_shown_as_its_reference_or_as_stars():
    assert {value: redact(f"x{value}x") for value in HIDDEN} == {
        value: f"x{shown}x" for value, shown in HIDDEN.items()
    }


@pytest.mark.usefixtures("loaded")
def test_paths_names_addresses_and_short_values_stay_readable():
    assert [redact(f"of {value}") for value in VISIBLE] == [f"of {value}" for value in VISIBLE]


def test_a_secret_inside_a_longer_one_does_not_expose_the_rest():
    keep_secret("long-secret", "${A}")
    keep_secret("very-long-secret-indeed", "${B}")
    assert redact("very-long-secret-indeed long-secret") == "${B} ${A}"


def test_every_form_of_a_secret_is_hidden():
    keep_secret('it\'s "a" & b/é\n', "${ODD}")
    for shown in (
        "it's \"a\" & b/é\n", '\'it\\\'s "a" & b/é\\n\'', '"it\'s \\"a\\" & b/\\u00e9\\n"',
        "it%27s%20%22a%22%20%26%20b%2F%C3%A9%0A", "it%27s+%22a%22+%26+b%2F%C3%A9%0A",
        "it&#x27;s &quot;a&quot; &amp; b/é\n",
    ):  # fmt: skip
        assert redact(shown).strip("'\"") == "${ODD}"


def test_a_catalog_of_no_url_is_a_secret_as_a_whole(tmp_path):
    config = tmp_path / "config.yaml"
    log = {"path": "shop.shown", "format": "iceberg", "catalog": {"uri": "http://me:bracketed-word@[catalog"}}
    config.write_text(yaml.safe_dump({"recommenders": [{"name": "shop", "logs": {"exposures": log}}]}))
    load_config(config)
    assert redact("no answer from http://me:bracketed-word@[catalog") == "no answer from ***"
