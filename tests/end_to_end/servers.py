"""The real Prometheus and Alertmanager, with the repository's own files but for addresses and durations."""

from __future__ import annotations

import json
import shutil
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from monitor.history.snapshot import Snapshot
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import serve
from monitor.settings.server import ServerSettings
from tests.conftest import need
from tests.processes import ROOT, Running, free_port, get, wait_for


class Alertmanager:
    """deploy/alertmanager.yml with every receiver at the webhook and no patience.

    `receivers` take the place of those of the same name, as they are. `options` are further ones of the
    program. `intervals` are those of a receiver's routes by their kind: `always` or `long ago`. With
    `patient`, messages wait as long as in the shipped file.
    """

    def __init__(
        self,
        folder: Path,
        webhook: str,
        receivers: Sequence[dict[str, Any]] = (),
        options: Sequence[str] = (),
        intervals: Mapping[str, Mapping[str, str]] | None = None,
        *,
        patient: bool = False,
    ) -> None:
        program = shutil.which("alertmanager") or need("prometheus-alertmanager", "prometheus-alertmanager")
        config = yaml.safe_load((ROOT / "deploy/alertmanager.yml").read_text("utf-8"))
        config["templates"] = [str(ROOT / "deploy" / glob) for glob in config["templates"]]
        for receiver in config["receivers"]:
            for one in receiver.get("webhook_configs", ()):
                one["url"] = f"{webhook}/{receiver['name']}"
        given = {one["name"]: one for one in receivers}
        config["receivers"] = [given.get(one["name"], one) for one in config["receivers"]]
        for route in (config["route"], *config["route"]["routes"]):
            # Durations of the copy: messages leave at once, and the watchdog comes every two seconds.
            if not patient:
                route["group_wait"], route["group_interval"] = "0s", "1s"
            if route.get("receiver") == "dead-man":
                route["repeat_interval"] = "2s"
        for route in config["route"]["routes"]:
            for kind, name in (intervals or {}).get(route["receiver"], {}).items():
                route[kind] = [name]
        config["time_intervals"] = [
            {"name": "always", "time_intervals": [{"times": [{"start_time": "00:00", "end_time": "24:00"}]}]},
            {"name": "long ago", "time_intervals": [{"years": ["1999"]}]},
        ]
        port = free_port()
        self.target = f"127.0.0.1:{port}"
        path = folder / "alertmanager.yml"
        path.write_text(yaml.safe_dump(config), "utf-8")
        command = [
            program, f"--config.file={path}", f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address={self.target}", "--cluster.listen-address=", "--log.level=warn",
            *options,
        ]  # fmt: skip
        self.running = Running(command, folder, "alertmanager")

    def up(self) -> None:
        self.running.up(f"http://{self.target}/-/ready")

    def stop(self) -> None:
        self.running.stop()


class Prometheus:
    """deploy/prometheus.yml and rules/alerts, looking every second at these monitors.

    `durations` are the `for` of alerts that a test cannot wait for, in the copy of the rules.
    """

    def __init__(
        self,
        folder: Path,
        monitor: str | Sequence[str],
        alertmanager: str | None = None,
        durations: dict[str, str] | None = None,
    ) -> None:
        config = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text("utf-8"))
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(path) for path in copied_rules(folder / "rules", durations or {})]
        (job,) = [one for one in config["scrape_configs"] if one["job_name"] == "recsys-monitor"]
        job["static_configs"] = [{"targets": [monitor] if isinstance(monitor, str) else list(monitor)}]
        config["scrape_configs"] = [job]
        if alertmanager is None:
            del config["alerting"]
        else:
            config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [alertmanager]}]}]
        path = folder / "prometheus.yml"
        path.write_text(yaml.safe_dump(config), "utf-8")
        target = f"127.0.0.1:{free_port()}"
        self.url = f"http://{target}"
        command = [
            need("prometheus", "prometheus"), f"--config.file={path}",
            f"--storage.tsdb.path={folder / 'prometheus'}", f"--web.listen-address={target}",
            "--log.level=warn",
        ]  # fmt: skip
        self.running = Running(command, folder, "prometheus")

    def up(self) -> None:
        self.running.up(f"{self.url}/-/ready")

    def stop(self) -> None:
        self.running.stop()

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """The result of an instant query; an AssertionError where Prometheus does not understand it."""
        query = urllib.parse.urlencode({"query": expression})
        status, body = get(f"{self.url}/api/v1/query?{query}")
        assert status == 200, f"{expression}: {body}"
        found: list[dict[str, Any]] = json.loads(body)["data"]["result"]
        return found

    def data(self, expression: str) -> list[dict[str, Any]]:
        """The result of an instant query as soon as it has one.

        A scrape that takes longer than a second fails, and its series are gone until the next one.
        """
        return wait_for(f"data for {expression}", lambda: self.ask(expression))

    def alerts(self) -> dict[str, str]:
        """The active alerts by name, with their state."""
        _, body = get(f"{self.url}/api/v1/alerts")
        return {one["labels"]["alertname"]: one["state"] for one in json.loads(body)["data"]["alerts"]}


def copied_rules(folder: Path, durations: dict[str, str]) -> list[Path]:
    """The rules of the repository, with the `for` of some alerts changed."""
    folder.mkdir(parents=True)
    left, paths = dict(durations), []
    for path in sorted((ROOT / "rules/alerts").glob("*.yaml")):
        rules = yaml.safe_load(path.read_text("utf-8"))
        for group in rules["groups"]:
            for rule in group["rules"]:
                if rule["alert"] in left:
                    assert "for" in rule
                    rule["for"] = left.pop(rule["alert"])
        paths.append(folder / path.name)
        paths[-1].write_text(yaml.safe_dump(rules), "utf-8")
    assert not left, f"no alert is called {left}"
    return paths


@contextmanager
def exported(folder: Path, picture: Snapshot | Callable[[], Snapshot]) -> Iterator[Prometheus]:
    """A Prometheus that looks at the real exporter of one snapshot, or of that which is returned now."""
    page = serve(
        ServerSettings(listen="127.0.0.1:0", export=("*",)),
        picture if callable(picture) else lambda: picture,
        reload=lambda: ReloadOutcome(True),
        not_ready=lambda: "",
        healthy=lambda: True,
    )
    server = Prometheus(folder, page.address.removeprefix("http://"))
    try:
        server.up()
        yield server
    finally:
        server.stop()
        page.stop()
