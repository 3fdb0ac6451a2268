"""The Helm chart: Helm renders it, and each object has the form that Kubernetes or the operator publishes."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import json
import os
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement

from monitor.config.load import load_config
from monitor.service.web.app import OPEN_PATHS
from tests.conftest import need

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "recsys-monitor"
VALUES = {path.name.removesuffix("-values.yaml"): path for path in sorted((CHART / "ci").glob("*.yaml"))}
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
OPERATOR = "monitoring.coreos.com/v1"
OWN = yaml.safe_load(VALUES["own-logs"].read_text("utf-8"))

LISTEN = 'write `server: {listen: "${RECSYS_LISTEN}"}`'

if os.environ.get("CI") != "true" and importlib.util.find_spec("helm_python") is None:
    pytest.skip("Helm is not installed; `make .venv/helm` installs it", allow_module_level=True)
helm = importlib.import_module("helm_python")
kubernetes_validate = importlib.import_module("kubernetes_validate")
pytestmark = pytest.mark.slow


def rendered(values: dict[str, Any], name: str = "shop", chart: Path = CHART) -> list[dict[str, Any]]:
    with helm.Chart.load(str(chart)) as loaded:
        texts = loaded.render(values, name=name, namespace="watch")
    objects = [
        one
        for path, text in texts.items()
        if not path.endswith("NOTES.txt")
        for one in yaml.safe_load_all(text)
    ]
    return [one for one in objects if one is not None]


@cache
def of_file(which: str) -> tuple[dict[str, Any], ...]:
    return tuple(rendered(yaml.safe_load(VALUES[which].read_text("utf-8"))))


def only(kind: str, objects: Any) -> dict[str, Any]:
    (found,) = [one for one in objects if one["kind"] == kind]
    return found


def container(objects: Any) -> dict[str, Any]:
    return only("StatefulSet", objects)["spec"]["template"]["spec"]["containers"][0]


every_values = pytest.mark.parametrize("which", VALUES)


def test_helm_finds_no_mistake_in_the_chart() -> None:
    said = helm.lint(str(CHART))
    assert said["errors"] == []
    assert [one["error"] for one in said["messages"]] == ["icon is recommended"]


@every_values
@pytest.mark.parametrize("version", ["1.27", kubernetes_validate.latest_version()])
def test_every_object_has_the_form_that_kubernetes_publishes(which: str, version: str) -> None:
    ours = [one for one in of_file(which) if one["apiVersion"] != OPERATOR]
    assert {one["kind"] for one in ours} >= {"StatefulSet", "Service", "ServiceAccount", "ConfigMap"}
    for one in ours:
        kubernetes_validate.validate(one, version, strict=True)


def test_a_mistake_of_form_is_noticed() -> None:
    wrong = copy.deepcopy(only("StatefulSet", of_file("demo")))
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


@cache
def operator_schema(kind: str) -> dict[str, Any]:
    """The published schema of an object of the Prometheus Operator; a key that it lacks is a mistake."""
    models = importlib.import_module("cloudcoil.models.prometheus_operator.v1")
    schema = getattr(models, kind).model_json_schema(by_alias=True)
    for part in (schema, *schema["$defs"].values()):
        if "properties" in part:
            part.setdefault("additionalProperties", False)
    return schema


@every_values
@pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
def test_what_the_operator_reads_has_the_form_that_it_publishes(which: str, kind: str) -> None:
    one = only(kind, of_file(which))
    assert one["apiVersion"] == OPERATOR
    # Its own form is not checked: a pattern in it is one of Go.
    schema = jsonschema.Draft202012Validator(operator_schema(kind))
    schema.validate(one)
    wrong = json.loads(json.dumps(one).replace('"groups"', '"group"').replace('"relabelings"', '"relabel"'))
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(wrong)


def test_the_rules_are_the_alerts_of_the_repository_and_prometheus_accepts_them(tmp_path: Path) -> None:
    spec = only("PrometheusRule", of_file("demo"))["spec"]
    files = sorted((ROOT / "rules" / "alerts").glob("*.yaml"))
    assert spec["groups"] == [
        group for path in files for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
    ]
    written = tmp_path / "rules.yaml"
    written.write_text(yaml.safe_dump(spec), "utf-8")
    checked = subprocess.run(
        [need("promtool", "prometheus"), "check", "rules", written],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr


def test_prometheus_scrapes_the_service_as_the_job_that_the_alerts_name() -> None:
    objects = of_file("own-logs")
    monitor, service = only("ServiceMonitor", objects)["spec"], only("Service", objects)
    job = service["metadata"]["labels"][monitor["jobLabel"]]
    alerts = "".join(path.read_text("utf-8") for path in (ROOT / "rules" / "alerts").glob("*.yaml"))
    assert set(re.findall(r'job="([^"]+)"', alerts)) == {job}
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    pod = only("StatefulSet", objects)["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pod.items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert endpoint["basicAuth"] == OWN["serviceMonitor"]["endpoint"]["basicAuth"]
    assert [port["name"] for port in container(objects)["ports"]] == [
        service["spec"]["ports"][0]["targetPort"]
    ]


@pytest.mark.parametrize(("probe", "scheme"), [("http", "http"), ("https", "https"), ("command", "https")])
def test_the_address_of_the_page_after_an_install_has_the_scheme_of_the_server(
    probe: str, scheme: str
) -> None:
    with helm.Chart.load(str(CHART)) as loaded:
        texts = loaded.render(OWN | {"probe": probe}, name="shop", namespace="watch")
    (said,) = [text for path, text in texts.items() if path.endswith("NOTES.txt")]
    assert re.findall(r"\S+://\S+", said) == [f"{scheme}://127.0.0.1:9108/"]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_probes_ask_what_needs_no_password(scheme: str) -> None:
    asked = container(rendered(OWN | {"probe": scheme}))
    probes = {name: asked[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe["path"] for probe in probes.values()} == set(OPEN_PATHS)
    assert {probe["scheme"] for probe in probes.values()} == {scheme.upper()}
    assert probes["readinessProbe"]["path"] == "/readyz"


def test_where_clients_need_a_certificate_a_program_in_the_container_asks() -> None:
    asked = container(rendered(OWN | {"probe": "command"}))
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert asked[name]["exec"]["command"] == COMPOSE["services"]["monitor"]["healthcheck"]["test"][1:]
    urls = [one["value"] for one in asked["env"] if one["name"] == "RECSYS_HEALTH_URL"]
    assert urls == ["https://127.0.0.1:9108/healthz"]


@every_values
def test_the_pod_may_do_little(which: str) -> None:
    pod = only("StatefulSet", of_file(which))["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert str(pod["securityContext"]["runAsUser"]) == COMPOSE["services"]["monitor"]["user"].split(":")[0]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container(of_file(which))["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_config_arrives_unchanged_and_the_monitor_reads_it(tmp_path: Path) -> None:
    objects = of_file("own-logs")
    data = only("ConfigMap", objects)["data"]
    assert data == {"recsys-monitor.yaml": OWN["config"], **OWN["files"]}
    for name, text in data.items():
        (tmp_path / name).write_text(text, "utf-8")
    environment = {one["name"]: one["value"] for one in container(objects)["env"]}
    settings = load_config(tmp_path / "recsys-monitor.yaml", environment)
    assert settings.server.listen == environment["RECSYS_LISTEN"]
    assert settings.server.external_url == OWN["externalUrl"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container(objects)["volumeMounts"]}
    assert str(settings.state) == mounts["state"]
    assert Path(str(settings.server.web_config)).is_relative_to(mounts["web"])


def test_text_of_a_config_is_never_a_template() -> None:
    text = OWN["config"] + '# {{ fail "a template" }} ${HOME} " \\ é\n'
    assert only("ConfigMap", rendered(OWN | {"config": text}))["data"]["recsys-monitor.yaml"] == text


def test_a_changed_config_starts_a_new_pod() -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = only("StatefulSet", rendered(values))["spec"]["template"]
        return template["metadata"]["annotations"]["checksum/config"]

    assert checksum(OWN) == checksum(OWN | {"probe": "http"})
    assert checksum(OWN) != checksum(OWN | {"files": {"blacklist.csv": "item_id\ni2\n"}})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "set `config` to the text of your recsys-monitor.yaml"),
        ({"config": "x: 1", "demo": True}, "not both"),
        ({"config": "a: [1"}, "is not YAML"),
        *(
            ({"config": f"state: /var/lib/recsys-monitor\n{server}"}, LISTEN)
            for server in (
                "recommenders: []",
                "server:",
                "server: x",
                "server: {listen: 127.0.0.1:9108}",
                'server: {listen: ":80"}',
                "server: {listen: localhost:9108}",
            )
        ),
        *(
            ({"config": f'server: {{listen: ":9108"}}\n{state}'}, "write `state: /var/lib/recsys-monitor`")
            for state in (
                "",
                "state:",
                "state: ./state",
                "state: /var/lib/recsys-monitor-2",
                "state: /var/lib/recsys-monitor/../other",
            )
        ),
        ({"demo": True, "replicas": 2}, "replicas"),
        ({"demo": True, "image": {"digest": "sha256:short"}}, "digest"),
    ],
)
def test_values_with_which_no_pod_could_start_are_refused_with_a_reason(
    values: dict[str, Any], said: str
) -> None:
    with pytest.raises(helm.HelmError, match=re.escape(said)):
        rendered(values)


def test_the_config_that_a_refusal_asks_for_is_accepted() -> None:
    """Where the reason is read as YAML, as people copy it."""
    (server,) = re.findall("`(.+)`", LISTEN)
    for state in ("", "/state", "/state/"):
        config = f"state: /var/lib/recsys-monitor{state}\n{server}"
        assert yaml.safe_load(config)["server"] == {"listen": "${RECSYS_LISTEN}"}
        rendered({"config": config})
    assert server in (ROOT / "docs" / "install.md").read_text("utf-8")


@pytest.mark.parametrize("listen", [":9108", "0.0.0.0:9108", "[::]:9108", "${RECSYS_LISTEN:-127.0.0.1:9108}"])
def test_an_address_at_which_the_service_finds_the_monitor_is_accepted(listen: str) -> None:
    rendered({"config": f'state: /var/lib/recsys-monitor\nserver: {{listen: "{listen}"}}'})


def test_the_image_is_named_by_its_digest_if_there_is_one() -> None:
    assert container(of_file("own-logs"))["image"].endswith(f"recsys-monitor@{OWN['image']['digest']}")
    version = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))["appVersion"]
    assert container(of_file("demo"))["image"] == f"recsys-monitor:{version}"
    assert COMPOSE["services"]["monitor"]["image"] == f"recsys-monitor:{version}"


def test_the_dashboards_are_those_of_the_repository_and_fit_into_their_objects() -> None:
    maps = [one for one in of_file("demo") if one["metadata"]["labels"].get("grafana_dashboard") == "1"]
    files = sorted((ROOT / "grafana" / "dashboards").glob("*.json"))
    assert {name: text for one in maps for name, text in one["data"].items()} == {
        f"recsys-{path.name}": path.read_text("utf-8") for path in files
    }
    assert all(len(json.dumps(one)) < 1_000_000 for one in maps)


def test_a_packaged_chart_is_the_same_chart_and_is_small(tmp_path: Path) -> None:
    """A package holds the files that the folder links to."""
    helm.package(str(CHART), destination=str(tmp_path))
    (package,) = tmp_path.glob("*.tgz")
    values = yaml.safe_load(VALUES["demo"].read_text("utf-8"))
    assert rendered(values, chart=package) == rendered(values)
    assert package.stat().st_size < 300_000  # a release with its chart must fit into a Secret of 1 MiB


def test_long_names_of_releases_stay_names() -> None:
    for one in rendered(OWN | {"demo": False}, name="a" * 53):
        assert len(one["metadata"]["name"]) <= 63


def test_the_lock_of_helm_satisfies_the_extra_and_agrees_with_the_main_lock() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    locked, main = (
        dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / name).read_text("utf-8"), re.MULTILINE))
        for name in ("requirements-helm.lock", "requirements.lock")
    )
    for one in map(Requirement, project["optional-dependencies"]["helm"]):
        assert one.specifier.contains(locked[one.name]), one
        assert one.name not in main
    assert {name: version for name, version in locked.items() if main.get(name, version) != version} == {}
