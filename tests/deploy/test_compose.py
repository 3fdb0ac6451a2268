from __future__ import annotations

import copy
import importlib.util
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from monitor.config.load import load_config
from monitor.simulate.demo import demo_config

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
LOGS: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.logs.yml").read_text(encoding="utf-8"))
OWN: dict[str, dict[str, Any]] = LOGS["services"]
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"] | {"relay": OWN["relay"]}
SECRETS = "/etc/alertmanager/secrets"
names = pytest.mark.parametrize("name", sorted(SERVICES))

STRINGS = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
DURATION = {"type": "string", "pattern": r"^(\d+(\.\d+)?(us|ms|s|m|h))+$"}
MOUNT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "source", "target"],
    "properties": {
        "type": {"enum": ["bind", "volume"]},
        "source": {"type": "string"},
        "target": {"type": "string", "pattern": "^/"},
        "read_only": {"type": "boolean"},
    },
}
SERVICE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "build": {"type": "string"},
        "image": {"type": "string"},
        "command": {"type": "array", "items": {"type": "string"}},
        "user": {"type": "string"},
        "read_only": {"type": "boolean"},
        "cap_drop": STRINGS,
        "security_opt": STRINGS,
        "restart": {"type": "string", "pattern": r"^(no|always|unless-stopped|on-failure(:\d+)?)$"},
        "stop_grace_period": DURATION,
        "environment": {
            "type": "object",
            "patternProperties": {"^[A-Z][A-Z0-9_]*$": {"type": "string"}},
            "additionalProperties": False,
        },
        "ports": STRINGS,
        "volumes": {"type": "array", "items": {"anyOf": [{"type": "string"}, MOUNT]}, "uniqueItems": True},
        "tmpfs": STRINGS,
        "profiles": STRINGS,
        "depends_on": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["condition"],
                "additionalProperties": False,
                "properties": {"condition": {"enum": ["service_started", "service_healthy"]}},
            },
        },
        "healthcheck": {
            "type": "object",
            "additionalProperties": False,
            "required": ["test"],
            "properties": {
                "test": {
                    "type": "array",
                    "minItems": 2,
                    "prefixItems": [{"enum": ["CMD", "CMD-SHELL"]}],
                    "items": {"type": "string"},
                },
                "interval": DURATION,
                "timeout": DURATION,
                "start_period": DURATION,
                "retries": {"type": "integer", "minimum": 1},
            },
        },
    },
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["services"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]*$"},
        "services": {"type": "object", "additionalProperties": SERVICE},
        "volumes": {"type": "object", "additionalProperties": {"type": ["object", "null"]}},
    },
}


@pytest.mark.parametrize("config", [COMPOSE, LOGS], ids=["docker-compose.yml", "compose.logs.yml"])
def test_the_file_has_the_form_of_the_compose_specification(config: dict[str, Any]) -> None:
    jsonschema.validate(config, SCHEMA)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("port", ["9108:9108"]),
        ("restart", "sometimes"),
        ("depends_on", {"x": {}}),
        ("healthcheck", {"test": ["true"]}),
    ],
)
def test_a_mistake_of_form_is_noticed(field: str, value: object) -> None:
    wrong = copy.deepcopy(COMPOSE)
    wrong["services"]["monitor"][field] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)


def test_compose_itself_accepts_the_files() -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("docker compose is not installed; the form is checked by schema alone")
    both = ["docker-compose.yml", "deploy/compose.logs.yml"]
    for files in (["docker-compose.yml"], both, [*both, "--profile=relay"]):
        command = [
            "docker",
            "compose",
            *(f"--file={file}" if file.endswith(".yml") else file for file in files),
            "config",
            "--quiet",
        ]
        subprocess.run(command, cwd=ROOT, check=True, env={"PATH": "/usr/local/bin:/usr/bin:/bin",
                       "RECSYS_CONFIG": "/tmp", "RECSYS_LOGS": "/tmp", "GRAFANA_PASSWORD": "x"})  # fmt: skip


@names
def test_an_image_is_pinned_to_one_version(name: str) -> None:
    assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+(@sha256:[0-9a-f]{64})?", SERVICES[name]["image"])


def test_images_whose_digest_is_known_are_pinned_by_it() -> None:
    pinned = {name for name in SERVICES if "@sha256:" in SERVICES[name]["image"]}
    assert {"alertmanager", "grafana"} <= pinned
    assert all("@sha256:" in base for base in instructions("FROM"))


def test_nothing_starts_without_a_password_for_grafana() -> None:
    """Compose stops at a `:?` whose variable is unset or empty, before it starts any service."""
    password = SERVICES["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"]
    assert re.fullmatch(r"\$\{GRAFANA_PASSWORD:\?[^}]+\.env[^}]+\}", password)


@names
def test_no_secret_has_a_value_in_the_file(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        if re.search("PASSWORD|SECRET|TOKEN|KEY", variable):
            assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), variable


def test_git_ignores_the_file_with_the_password_and_the_image_never_sees_it() -> None:
    assert "/.env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert (ROOT / ".dockerignore").read_text("utf-8").startswith("*\n")
    assert "!.env" not in (ROOT / ".dockerignore").read_text("utf-8")


@names
def test_a_service_runs_without_root_and_without_capabilities(name: str) -> None:
    service = SERVICES[name]
    assert int(service["user"].split(":")[0]) > 0
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service


@names
def test_ports_are_published_on_this_machine_only(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port)


@names
def test_every_mount_of_a_file_exists_and_is_read_only(name: str) -> None:
    for volume in SERVICES[name]["volumes"]:
        if isinstance(volume, dict):
            assert volume["read_only"] is True
            continue
        source, target, *mode = volume.split(":")
        assert target.startswith("/")
        if source.startswith("."):
            assert (ROOT / source).exists(), source
            assert mode == ["ro"]
        else:
            assert source in COMPOSE["volumes"]


def test_every_volume_is_used() -> None:
    used = {volume.split(":")[0] for service in COMPOSE["services"].values() for volume in service["volumes"]}
    assert set(COMPOSE["volumes"]) <= used


@names
def test_a_service_waits_for_services_that_exist_and_say_when_they_are_healthy(name: str) -> None:
    service = SERVICES[name]
    assert "healthcheck" in service
    for other in service.get("depends_on", {}):
        assert "healthcheck" in SERVICES[other]


def test_the_container_port_is_published_probed_and_scraped() -> None:
    assert SERVICES["monitor"]["environment"]["RECSYS_LISTEN"] == "0.0.0.0:9108"
    prometheus = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text(encoding="utf-8"))
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in prometheus["scrape_configs"]}
    targets["alerting"] = prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    for target in (target for group in targets.values() for target in group):
        host, port = target.split(":")
        host = "prometheus" if host == "127.0.0.1" else host
        assert f"127.0.0.1:{port}:{port}" in SERVICES[host]["ports"]


def test_the_demo_listens_where_the_environment_says(tmp_path: Path) -> None:
    (tmp_path / "demo.yaml").write_text(demo_config(tmp_path), encoding="utf-8")
    environment = SERVICES["monitor"]["environment"]
    assert load_config(tmp_path / "demo.yaml", environment).server.listen == environment["RECSYS_LISTEN"]
    assert load_config(tmp_path / "demo.yaml", {}).server.listen == "127.0.0.1:9108"


def test_the_file_for_own_logs_changes_the_monitor_and_adds_the_relay_where_it_is_asked_for() -> None:
    assert set(OWN) == {"monitor", "relay"}
    assert OWN["relay"]["profiles"] == ["relay"]
    assert OWN["relay"]["image"] == SERVICES["monitor"]["image"]
    assert OWN["relay"]["volumes"][0] == OWN["monitor"]["volumes"][0]


def test_a_folder_of_own_files_may_be_relative() -> None:
    """In the short form of a mount, a folder without `./` would be the name of a volume."""
    assert [(one["type"], one["read_only"]) for one in OWN["monitor"]["volumes"]] == [("bind", True)] * 2


def test_alertmanager_and_the_relay_find_the_secrets_that_the_receivers_name() -> None:
    own = f"./deploy/secrets:{SECRETS}:ro"
    assert own in SERVICES["alertmanager"]["volumes"]
    assert own in SERVICES["relay"]["volumes"]
    for path in (ROOT / "deploy" / "receivers").glob("*.yml"):
        named = re.findall(r"\w+_file: (\S+?)\}?$", path.read_text("utf-8"), re.MULTILINE)
        assert named, path
        assert all(Path(one).parent == Path(SECRETS) for one in named), path
    groups = {SERVICES[name]["user"].split(":")[1] for name in ("alertmanager", "relay")}
    assert groups == set(re.findall(r"-g (\d+) ", (ROOT / "docs" / "on-call.md").read_text("utf-8")))


def test_git_keeps_the_folder_of_the_secrets_and_ignores_them() -> None:
    ignored = subprocess.run(
        ["git", "check-ignore", "deploy/secrets/relay-token", "deploy/secrets/.gitignore"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ignored.stdout.split() == ["deploy/secrets/relay-token"]


def test_the_relay_works_with_the_config_that_the_page_describes(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "on-call.md").read_text("utf-8")
    (block,) = [one for one in re.findall("```yaml\n(.*?)```", page, re.DOTALL) if "  relay:" in one]
    (listen,) = re.findall(r"It then needs `listen: (\S+)`", page)
    config = tmp_path / "recsys-monitor.yaml"
    own = (
        "server: {external_url: '${RECSYS_EXTERNAL_URL}'}\n"
        "recommenders: [{name: shop, logs: {exposures: {path: /logs/*.parquet}}}]\n"
    )
    config.write_text(block.replace("127.0.0.1:9110", listen) + own, "utf-8")
    settings = load_config(config, SERVICES["relay"]["environment"]).on_call.relay
    assert settings is not None
    port = settings.listen.rsplit(":", 1)[1]
    assert SERVICES["relay"]["environment"]["RECSYS_HEALTH_URL"] == f"http://127.0.0.1:{port}/-/healthy"
    assert f"http://relay:{port}/{settings.targets[0].name}" in page


def test_grafana_is_given_the_dashboard_that_it_opens_with() -> None:
    grafana = SERVICES["grafana"]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert "./grafana/dashboards:/etc/grafana/dashboards:ro" in grafana["volumes"]
    assert (ROOT / "grafana" / "dashboards" / Path(home).name).is_file()


DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions(word: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", " ", DOCKERFILE)
    return re.findall(rf"^{word} (.+)$", joined, re.MULTILINE)


def test_the_image_is_built_on_one_full_version_of_python() -> None:
    bases = {base.split(" AS ")[0] for base in instructions("FROM")}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-[a-z]+(@sha256:[0-9a-f]{64})?", bases.pop())


def test_the_image_installs_only_what_the_lock_has_with_its_hashes() -> None:
    for command in " && ".join(instructions("RUN")).split("&&"):
        if re.search(r"\bpip (download|install|wheel)\b", command):
            assert "--require-hashes" in command or "--no-index" in command


def test_the_image_can_read_tables_of_a_lake_and_the_lock_has_what_that_needs() -> None:
    (own,) = [
        command.split()[-1].strip("'")
        for command in " && ".join(instructions("RUN")).split("&&")
        if "pip install" in command and "recsys-monitor" in command.split()[-1]
    ]
    name, extra = own.rstrip("]").split("[")
    assert name == "recsys-monitor"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    for needed in project["optional-dependencies"][extra]:
        assert re.search(rf"^{re.split('[<>=]', needed)[0]}==", lock, re.MULTILINE), needed


def test_the_image_runs_as_the_user_of_the_compose_file_and_asks_for_its_health() -> None:
    assert instructions("USER") == [SERVICES["monitor"]["user"]]
    assert "--uid 10001" in DOCKERFILE
    assert "RECSYS_HEALTH_URL=http://127.0.0.1:9108/healthz" in DOCKERFILE
    asked = SERVICES["monitor"]["healthcheck"]["test"]
    assert asked[:3] == ["CMD", "python", "-m"]
    assert json.dumps(asked[1:]) in instructions("HEALTHCHECK")[0]
    assert importlib.util.find_spec(asked[3]) is not None


def test_the_health_check_can_ask_a_monitor_with_tls() -> None:
    """Without it the monitor never becomes healthy, and Prometheus waits for ever."""
    (default,) = re.findall(r"RECSYS_HEALTH_URL=(\S+)", DOCKERFILE)
    asked = SERVICES["monitor"]["environment"]["RECSYS_HEALTH_URL"]
    assert asked == f"${{RECSYS_HEALTH_URL:-{default}}}"
    comments = (ROOT / "deploy" / "compose.logs.yml").read_text("utf-8")
    assert f"RECSYS_HEALTH_URL={default.replace('http:', 'https:')}" in comments


def test_files_that_the_image_copies_exist_and_are_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for copied in instructions("COPY"):
        if "--from=" not in copied:
            for source in copied.split()[:-1]:
                assert source in kept
                assert (ROOT / source).exists(), source


def test_the_image_copies_all_that_the_wheel_is_built_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], *project["project"]["license-files"]}
    copied = {word for line in instructions("COPY") if "--from=" not in line for word in line.split()[:-1]}
    assert {one for one in needed if not any(Path(one).is_relative_to(place) for place in copied)} == set()
