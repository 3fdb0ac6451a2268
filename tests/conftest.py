"""Fixtures that every part of the test suite shares."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.by_turns import LONGEST, changed_recently, is_in, takes_turns

# How fast examples are made depends on what else the machine does. It is no fault of a test.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = pytest.StashKey[dict[str, int]]()


# Files that one worker runs in a row, because what they share takes long to start.
TOGETHER = {
    "tests/spark/": "Spark",
    "tests/service/web/api/": "the judged shop",
    "tests/service/web/test_past_pages.py": "the judged shop",
}
# What takes longest begins first: at the end, short files keep all workers busy.
FIRST = ("tests/spark/", *LONGEST)
# What starts programs: slow is a file that imports one of these, and a test that asks for a fixture.
STARTERS = {"subprocess", "selenium.webdriver", "tests.forked", "tests.postgres", "tests.processes"}
SERVERS = {
    "browser",
    "chain",
    "monitor",
    "postgres_server",
    "served",
    "spark",
    "spark_is_here",
    "spark_session",
}
# Fixtures that judge windows, half a second each, or read a past of weeks.
WINDOWS = {"another_shop", "command", "init", "runtime", "three_weeks"}
_FAST = "not slow"  # what `make test-fast` chooses
# What takes long without any of these: folders and files of this folder.
LONG = (
    "anomalies/test_anomalies_over_weeks.py", "anomalies/test_band_state.py",
    "anomalies/test_clock_change.py", "anomalies/test_drift_check.py", "anomalies/test_follows_requests.py",
    "anomalies/test_lasting_anomalies.py", "anomalies/test_look_back.py", "anomalies/test_moments.py",
    "anomalies/test_nearly_whole.py", "anomalies/test_schedule.py", "anomalies/test_schedule_failures.py",
    "anomalies/test_small_counts.py",
    "benchmarks",
    "cli/test_span.py",
    "config/init/test_init_faults.py", "config/init/test_init_folders.py",
    "config/init/test_init_window.py", "config/test_junk.py",
    "examples",
    "experiments/test_arms_check.py", "experiments/test_experiment_truth.py",
    "forecast",
    "history/test_browse.py", "history/test_standing.py",
    "judging/test_unattributed.py",
    "logs/test_bad_input.py", "logs/test_limits.py", "logs/test_nested.py", "logs/test_odd_values.py",
    "logs/test_pace.py", "logs/test_s3.py",
    "metrics",
    "models",
    "off_policy",
    "on_call/test_relay.py",
    "platform/test_arms.py", "platform/test_prometheus.py", "platform/test_recorded_platform.py",
    "platform/test_zero_sum_incident.py",
    "python",
    "replay/test_sample.py", "replay/test_send.py",
    "report/distributions", "report/test_period.py",
    "rules/engines/test_duckdb.py", "rules/test_list_tables.py", "rules/test_packs.py",
    "service/test_finished_log.py", "service/web/api", "service/web/test_fleet.py",
    "simulate/incidents/test_delivery.py", "simulate/incidents/test_every_incident.py",
    "simulate/incidents/test_models.py", "simulate/incidents/test_models_judged.py",
    "simulate/test_demo.py",
    "spark",
    "statistics/bands/test_drift.py", "statistics/bands/test_drift_of_rare_hits.py",
    "statistics/bands/test_false_alarms.py", "statistics/bands/test_seasonal_filter.py",
    "statistics/test_bounded_means.py", "statistics/test_coverage_of_intervals.py",
    "statistics/test_experiments.py", "statistics/test_forecast_statistics.py",
    "statistics/test_off_policy.py", "statistics/test_substitution.py",
    "window/test_slices_alone.py", "window/test_together.py",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        default="",
        metavar="N/K",
        help="run a K-th of the slow tests that take turns; 2/3, for example",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read what takes long where it is not chosen."""
    return True if config.option.markexpr == _FAST and is_long(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow, and put the longest files first: at the end one worker would have nothing to do."""
    items.sort(
        key=lambda item: next((n for n, path in enumerate(FIRST) if item.nodeid.startswith(path)), len(FIRST))
    )
    known: dict[Path, bool] = {}
    for item in items:
        if item.path not in known:
            known[item.path] = is_long(item.path) or starts_programs(getattr(item, "module", None))
        if known[item.path] or asks_for_much(item):
            item.add_marker(pytest.mark.slow)
    if part := config.getoption("part", ""):
        leave_out(config, items, part)


def leave_out(config: pytest.Config, items: list[pytest.Item], part: str) -> None:
    """Leave out the slow tests whose turn it is not."""
    recent = changed_recently(ROOT)
    kept, out = [], []
    for item in items:
        path = item.nodeid.partition("::")[0]
        waits = takes_turns(path) and path not in recent and not is_in(path, part)
        (out if waits and item.get_closest_marker("slow") else kept).append(item)
    items[:] = kept
    config.stash[LEFT_OUT] = dict(Counter(item.nodeid.partition("::")[0] for item in out))
    config.hook.pytest_deselected(items=out)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells the process that prints what it left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT].update(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Nothing is left out in silence."""
    if out := config.stash[LEFT_OUT]:
        part = config.getoption("part")
        count = sum(out.values())
        terminalreporter.write_line(f"part {part} leaves out {count} slow tests of {len(out)} files:")
        for path in sorted(out):
            terminalreporter.write_line(f"  {path} {out[path]}")


def pytest_collection_finish() -> None:
    """Search no more for garbage among what is loaded, as the daemon does: it took a tenth of the time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """A file at a time to a worker; files that share something slow to one worker."""
    from xdist.scheduler import LoadFileScheduling

    class SharedScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            shared = next((one for path, one in TOGETHER.items() if nodeid.startswith(path)), None)
            return shared or super()._split_scope(nodeid)

    return SharedScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def is_long(path: Path) -> bool:
    return any(path.is_relative_to(ROOT / "tests" / one) for one in LONG)


@functools.cache
def starts_programs(module: ModuleType | None) -> bool:
    """Whether a module holds something of STARTERS, or of another module of tests that does."""
    if module is None:
        return False
    held = vars(module).values()
    names = {
        one.__name__ if isinstance(one, ModuleType) else getattr(one, "__module__", None) for one in held
    }
    ours = {str(one) for one in names if str(one).startswith("tests.")} - {module.__name__, "tests.conftest"}
    return bool(STARTERS & names) or any(starts_programs(sys.modules.get(one)) for one in ours)


def asks_for_much(item: pytest.Item) -> bool:
    given = (
        item.callspec.params.values()
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else ()
    )
    return bool((SERVERS | WINDOWS) & set(getattr(item, "fixturenames", ()))) or "postgresql" in map(
        str, given
    )


def pytest_configure(config: pytest.Config) -> None:
    """Where only what is not slow runs, a test that starts a program fails: it is slow, and not marked."""
    config.stash[LEFT_OUT] = {}
    if part := config.getoption("part", ""):
        try:
            is_in("", part)
        except ValueError as error:
            raise pytest.UsageError(f"--part: {error}") from None
    config.addinivalue_line("markers", "slow: starts a program (server, browser, Spark), or takes long")
    if config.option.markexpr == _FAST:
        sys.addaudithook(refuse_programs)


def refuse_programs(event: str, arguments: tuple[object, ...]) -> None:
    if event == "subprocess.Popen" and "PYTEST_CURRENT_TEST" in os.environ:  # pytest itself may
        raise RuntimeError(f"a test that is not slow starts {arguments[0]}: name it in tests/conftest.py")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real logs and published cases beside the checkout; absent elsewhere."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared with real logs and published cases is not present")
    return folder


def need(program: str, package: str) -> str:
    """The path of a real server that a test needs; in CI a missing one is a failure, elsewhere a skip."""
    found = shutil.which(program)
    if found is None:
        reason = f"{program} is not installed (package {package}); see deploy/install-test-services"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found
