"""Monitors that share a PostgreSQL history: ids and salts. tests/end_to_end/test_takeover.py has the rest."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.core.digest import digest
from monitor.core.results import Window
from monitor.history import leases
from monitor.history.errors import Fault, StoreError
from monitor.history.kept import KeptPairs
from monitor.history.leases import Holdings, Monitor
from monitor.history.store import Store
from monitor.rollups.kept import KeptRollups
from monitor.service.daemon import Daemon
from monitor.service.salt import ID_FILE, install_id
from monitor.service.sharing import Sharing
from monitor.settings.metrics import MetricSettings
from tests.postgres import Postgres, postgres
from tests.processes import Monitor as RunningMonitor
from tests.processes import monitor, wait_for

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


def config(server: Postgres, **history: str) -> dict[str, Any]:
    logs = {"exposures": {"path": "logs/*.parquet"}}
    recommender = {"name": "shop", "logs": logs, "window": "1m", "every": "1s"}
    return {"history": {"url": f"{server.url}/postgres", **history}, "recommenders": [recommender]}


def holds(one: RunningMonitor) -> bool:
    return one.value("recsys_lease", recommender="shop") == 1


def test_a_monitor_with_another_salt_is_refused_with_what_to_do(tmp_path: Path, server: Postgres) -> None:
    with monitor(tmp_path / "first", config(server)) as first:
        wait_for("the lease", lambda: holds(first))
        with monitor(tmp_path / "second", config(server), start=False) as second:
            second.start(wait=False)
            assert second.running is not None
            assert second.running.ended(60) == 2
            said = second.running.output
            assert f"the monitor at {first.url} shares this history" in said
            assert "Set `history.salt` to the same secret in both configs" in said
            assert "Traceback" not in said
            salt = (tmp_path / "first/state/salt").read_text()
            (tmp_path / "second/state/salt").write_text(salt)
            second.start()
            wait_for("its view of the lease", second.has("recsys_lease", 0, recommender="shop"))
            assert salt not in second.running.output


def test_a_monitor_that_was_killed_goes_on_at_once_with_what_it_had(tmp_path: Path, server: Postgres) -> None:
    shared = config(server, salt="a secret of every monitor")
    with monitor(tmp_path / "a", shared) as first, monitor(tmp_path / "b", shared) as second:
        wait_for("the lease", lambda: holds(first) or holds(second))
        owner = first if holds(first) else second
        assert owner.running is not None
        owner.running.send(signal.SIGKILL)
        owner.running.ended(10)
        owner.start()
        assert holds(owner)  # in its first snapshot
        assert not holds(second if owner is first else first)


def test_the_id_of_a_monitor_stays(tmp_path: Path) -> None:
    assert install_id(tmp_path) == install_id(tmp_path) == (tmp_path / ID_FILE).read_text()
    assert install_id(tmp_path / "another") != install_id(tmp_path)


def test_what_was_kept_of_windows_before_another_monitor_judged_is_dropped(tmp_path: Path) -> None:
    other = Monitor("other", "http://other:9108", digest("salt", 12))
    with Store.open(tmp_path / "history.sqlite") as store:
        sharing = Sharing(store, tmp_path, "salt", "http://own:9108")
        assert sharing.renew(["shop"], ()).mine == {"shop"}
        noon = Window(NOON, NOON + timedelta(hours=1))
        pairs = KeptPairs(tmp_path, "shop")
        sums = KeptRollups(pairs, MetricSettings()).sums["feedback"]
        for path in (kept := [pairs.path(noon), sums.path(noon)]):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"rows")
        arms = pairs.folder / "arms" / "arm" / "noon.parquet"
        arms.parent.mkdir(parents=True)
        arms.write_bytes(b"users")
        sharing.renew(["shop"], ())
        assert all(path.exists() for path in kept), "nobody else has judged it"
        sharing.release()
        assert store.renew_leases(other, ["shop"], ()).mine == {"shop"}
        store.release_leases(other)
        assert sharing.renew(["shop"], ()).mine == {"shop"}
        assert not any(path.exists() for path in kept)
        assert arms.exists(), "the first arm of a user is kept, though its file was rotated"


class Shared:
    """Leases in a history that another monitor uses too, until it can no longer be written."""

    def __init__(self) -> None:
        self.is_down = False

    def renew(self, names: Collection[str], busy: Collection[str]) -> Holdings:
        if self.is_down:
            raise StoreError("the history is down", Fault.UNREACHABLE)
        others = {"news": "http://other:9108", "music": "http://other:9108"}
        return Holdings(frozenset({"shop"}), others=others, history="one")

    def release(self) -> None:
        pass


def test_a_reload_while_the_history_is_down_forgets_neither_the_leases_nor_that_it_is_shared(
    tmp_path: Path,
) -> None:
    logs = {"exposures": {"path": "logs/*.parquet"}}
    recommenders = [{"name": name, "logs": logs} for name in ("shop", "news")]
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"state": "state", "recommenders": recommenders}))
    daemon = Daemon(path)
    try:
        daemon._sharing = shared = Shared()  # type: ignore[assignment]

        def view() -> tuple[str, dict[str, str | None]]:
            found = daemon.publisher.current()
            return found.shared_history, {one.name: one.judged_by for one in found.recommenders}

        daemon._renew()
        before = view()
        assert before == ("one", {"shop": None, "news": "http://other:9108"})
        shared.is_down = True
        assert daemon.reload().ok
        assert view() == before
        assert daemon._running.elsewhere["music"] == "http://other:9108"
    finally:
        daemon.close()


def test_a_renewal_that_a_reload_overtakes_takes_nothing_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config.yaml"

    def write(*names: str) -> None:
        found = [{"name": name, "logs": {"exposures": {"path": "logs/*.parquet"}}} for name in names]
        path.write_text(yaml.safe_dump({"state": "state", "recommenders": found}))

    class Slow:
        """Leases of this monitor alone. The first renewal takes as long as a whole reload."""

        def __init__(self) -> None:
            self.is_first = True

        def renew(self, names: Collection[str], busy: Collection[str]) -> Holdings:
            found = Holdings(frozenset(names), history="one")
            if self.is_first:
                self.is_first = False
                write("shop", "video")
                assert daemon.reload().ok
            return found

        def release(self) -> None:
            pass

    write("shop")
    daemon = Daemon(path)
    try:
        daemon._sharing = Slow()  # type: ignore[assignment]
        daemon._renew()
        found = {one.name: one.judged_by for one in daemon.publisher.current().recommenders}
        assert found == {"shop": None, "video": None}
        assert "judged by another monitor" not in caplog.text
    finally:
        daemon.close()


def test_after_a_freeze_in_which_a_monitor_with_another_salt_has_started_it_judges_nothing(
    tmp_path: Path, server: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    url = server.create("frozen")
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({**config(server), "history": {"url": url}, "state": "state"}), "utf-8")
    other = Monitor("other", "http://other:9108", "another")
    daemon = Daemon(path)
    try:
        assert daemon.publisher.current().recommenders[0].judged_by is None
        with Store.open(url) as store, store._database.writing() as connection:
            leases.release(connection, install_id(tmp_path / "state"))  # as if its time had ended
            assert leases.renew(connection, other, ["shop"], ()).mine == {"shop"}
        daemon._renew()
        assert daemon.publisher.current().recommenders[0].judged_by == ""
        assert "this monitor judges nothing: the monitor at http://other:9108" in caplog.text
    finally:
        daemon.close()
