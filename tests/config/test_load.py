"""A valid config once it is loaded: defaults, paths, references, and no secret in its texts."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.config.problems import ConfigError
from monitor.config.reference import reference
from monitor.logs.index import settings_digest
from monitor.settings.history import HistorySettings
from monitor.settings.logs import LogSettings, TimeSettings

MINIMAL = "recommenders: [{name: shop, logs: {exposures: {path: log/*.csv}}}]\n"


@pytest.fixture
def load(tmp_path):
    def load(text: str, **environment: str):
        path = tmp_path / "config.yaml"
        path.write_text(text, "utf-8")
        return load_config(path, environment)

    return load


def test_a_config_needs_only_a_name_and_a_path(load, tmp_path):
    config = load(MINIMAL)
    one = config.recommenders[0]
    assert one.window == timedelta(hours=1)
    assert one.logs.exposures.paths == (str(tmp_path / "log/*.csv"),)
    assert config.state == tmp_path / "state"
    assert check_config(config, tmp_path)[0].problems == ()


def test_paths_do_not_depend_on_where_the_process_was_started(load, tmp_path):
    config = load(
        "state: kept\nserver: {web_config: web.yaml}\nhistory: {url: 'sqlite:///kept/h.sqlite?timeout=5'}\n"
        "recommenders: [{name: a, logs: {exposures: {path: [/abs/*.csv, 's3://b/*.csv', rel.csv]}}}]"
    )
    assert config.server.web_config == tmp_path / "web.yaml"
    assert config.history.location(config.state) == f"sqlite+pysqlite:///{tmp_path}/kept/h.sqlite?timeout=5"
    assert config.recommenders[0].logs.exposures.paths == (
        "/abs/*.csv",
        "s3://b/*.csv",
        f"{tmp_path}/rel.csv",
    )


def test_the_folder_of_a_config_is_not_a_glob(tmp_path):
    folder = tmp_path / "logs [new]*"
    folder.mkdir()
    (folder / "config.yaml").write_text(MINIMAL)
    (folder / "log").mkdir()
    (folder / "log" / "one.csv").write_text("a\n")
    from monitor.logs.listing import list_files

    found = list_files(load_config(folder / "config.yaml").recommenders[0].logs.exposures)
    assert [Path(one.path).name for one in found] == ["one.csv"]


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(load):
    assert load("\ufeff" + MINIMAL.replace("\n", "\r\n")).recommenders[0].name == "shop"


def test_anchors_and_merge_keys_work(load):
    config = load(
        "recommenders:\n"
        "  - &base {name: one, window: 1d, logs: {exposures: &log {path: a.csv, format: csv}}}\n"
        "  - {<<: *base, name: two, logs: {exposures: {<<: *log, path: b.csv}}}\n"
    )
    one, two = config.recommenders
    assert (two.name, two.window, two.logs.exposures.format) == ("two", one.window, "csv")


def test_references_are_filled_into_values(load, tmp_path):
    (tmp_path / "password").write_text("p@ss:word\n")
    config = load(
        "state: ${BASE}/${SUB:-state}\n"
        "history: {url: 'postgresql://me:${PASSWORD}@db/${DB:-}history'}\n"
        "server: {series_limit: '${LIMIT}'}\n"
        "recommenders:\n"
        "  - name: shop\n"
        "    logs: {exposures: {path: x.csv, columns: {item_id: '$${sku}'}, "
        "storage_options: {secret: '${file:password}', key: '${KEY}'}}}\n"
        "    rules: [{pack: lists, parameters: {max_length: '${MOST}', min_length: '0${MOST}'}}]\n",
        BASE="/srv", PASSWORD="a b", LIMIT="5000", KEY="0123", MOST="50",
    )  # fmt: skip
    shop = config.recommenders[0]
    assert config.state == Path("/srv/state")
    assert config.history.location(config.state) == "postgresql://me:a b@db/history"
    assert config.server.series_limit == 5000
    assert shop.logs.exposures.columns == {"item_id": "${sku}"}
    options = shop.logs.exposures.storage_options.get_secret_value()
    assert options == {"secret": "p@ss:word", "key": "0123"}
    assert shop.rules[0].parameters == {"max_length": 50, "min_length": "050"}


def test_a_filled_in_text_is_never_parsed_as_yaml(load):
    hostile = "x.csv, format: csv}\nrecommenders: []"
    config = load(MINIMAL.replace("log/*.csv", "'${P}'"), P=hostile)
    assert config.recommenders[0].logs.exposures.paths[0].endswith(hostile)
    nested = load(MINIMAL.replace("log/*.csv", "'${P}'"), P="${Q}", Q="no")
    assert nested.recommenders[0].logs.exposures.paths[0].endswith("${Q}")


def test_a_reference_in_a_key_is_not_filled_in(load):
    text = MINIMAL.replace("path: log/*.csv", "path: x, columns: {'${A}': sku}")
    assert load(text, A="item_id").recommenders[0].logs.exposures.columns == {"${A}": "sku"}


def test_a_huge_or_special_secret_file_is_a_problem(load, tmp_path):
    (tmp_path / "huge").write_bytes(b"x" * 100_000)
    with pytest.raises(ConfigError) as caught:
        load("state: '${file:huge}'\nlog: {level: '${file:/dev/zero}'}\n" + MINIMAL)
    assert [one.place for one in caught.value.problems] == ["state", "log.level"]
    assert "larger than 64 KiB" in str(caught.value)


def test_a_folder_or_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "a\0b")


def test_a_file_without_end_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        load_config(Path("/dev/zero"))


def test_a_bomb_of_aliases_is_refused_at_once():
    started = time.process_time()
    with pytest.raises(ConfigError, match="more than 100,000 values"):
        load_config(Path(__file__).parent / "bad" / "billion_laughs.yaml")
    assert time.process_time() - started < 2


def test_no_repr_dump_or_digest_of_the_settings_shows_a_secret():
    log = LogSettings(path="s3://b/*", storage_options={"key": "AKIA", "client_kwargs": {"token": "hunter2"}})
    history = HistorySettings(url="postgresql://me:hunter2@db/history")
    for shown in (
        repr(log), str(log), str(log.model_dump()), log.model_dump_json(),
        repr(history), str(history.model_dump()), history.model_dump_json(),
    ):  # fmt: skip
        assert "hunter2" not in shown
        assert "AKIA" not in shown
    schedule = TimeSettings()
    other = log.model_copy(update={"storage_options": LogSettings(path="x").storage_options})
    assert settings_digest(log, schedule) == settings_digest(other, schedule)
    assert log != other


def test_docs_config_md_is_up_to_date():
    page = (Path(__file__).resolve().parents[2] / "docs" / "config.md").read_text("utf-8")
    assert page == reference(), "run: make docs"


def test_the_reference_names_the_page_of_objectives():
    (row,) = [line for line in reference().splitlines() if line.startswith("| `objectives` |")]
    assert "docs/objectives.md" in row


def test_very_long_or_malformed_durations_are_refused(load):
    for wrong in ("9" * 30 + "w", "36501d", "1h" * 20, "", "h", "1 h"):
        with pytest.raises(ConfigError, match=r"recommenders\[0\].window: "):
            load(MINIMAL.replace("name: shop", f"name: shop, window: '{wrong}'"))


def test_the_files_of_secrets_for_on_call_are_relative_to_the_config(load, tmp_path):
    config = load(
        MINIMAL
        + "on_call:\n"
        + "  alertmanager: {url: 'http://alertmanager:9093/', bearer_token_file: token}\n"
        + "  relay:\n"
        + "    token_file: /etc/relay-token\n"
        + "    targets: [{name: a, to: dingtalk, url_file: url, secret_file: secret}]\n"
    )
    alertmanager, relay = config.on_call.alertmanager, config.on_call.relay
    assert (alertmanager.url, alertmanager.bearer_token_file) == (
        "http://alertmanager:9093",
        str(tmp_path / "token"),
    )
    assert (relay.token_file, relay.listen) == ("/etc/relay-token", "127.0.0.1:9110")
    (target,) = relay.targets
    assert (target.url_file, target.secret_file) == (str(tmp_path / "url"), str(tmp_path / "secret"))


def test_a_short_salt_is_refused_with_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("history: {salt: pepper7}\nrecommenders: []\n", "utf-8")
    with pytest.raises(ConfigError, match=r"history\.salt: write at least 16 characters.*openssl") as caught:
        load_config(path)
    assert "pepper7" not in str(caught.value)


def test_a_text_that_is_no_path_may_look_like_one_for_a_shell(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "state: ./state\n"
        "recommenders: [{name: a, logs: {exposures: {path: x.csv, only: {plan: $PRO, tag: ~a/b}}}}]\n"
    )
    (one,) = load_config(tmp_path / "a.yaml").recommenders
    assert one.logs.exposures is not None
    assert one.logs.exposures.only == {"plan": "$PRO", "tag": "~a/b"}
