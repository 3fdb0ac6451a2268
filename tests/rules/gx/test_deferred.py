"""The daemon does not load what it does not use."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from monitor.rules.gx.deferred import defer, hide

STATISTICS = """
import sys
import monitor.rules.engines.duckdb as engine
assert "scipy.stats._stats_py" not in sys.modules, "loaded too early"
import pandas as pd, great_expectations as gx
context = gx.get_context(mode="ephemeral")
context.variables.progress_bars = {"globally": False}
frame = pd.DataFrame({"x": ["a"] * 50 + ["b"] * 50})
batch = (context.data_sources.add_pandas("p").add_dataframe_asset("a")
         .add_batch_definition_whole_dataframe("b").get_batch({"dataframe": frame}))
even = gx.expectations.ExpectColumnKLDivergenceToBeLessThan(
    column="x", partition_object={"values": ["a", "b"], "weights": [0.5, 0.5]}, threshold=0.01)
assert batch.validate(even).success
assert "scipy.stats._stats_py" in sys.modules, "was needed and is not there"
assert "altair.vegalite" not in sys.modules, "loaded too early"
even._get_kl_divergence_chart({"values": ["a", "b"], "weights": [0.5, 0.5]})
assert "altair.vegalite" in sys.modules, "was needed and is not there"
"""

DAEMON = """
import sys
import monitor.service.daemon
unused = {"scipy.stats._stats_py", "altair.vegalite", "narwhals", "boto3", "botocore", "grpc",
          "pyspark.sql.connect.dataframe"}
print(*sorted(unused & set(sys.modules)))
"""


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_a_suite_of_great_expectations_seldom_needs_is_loaded_when_it_does():
    run(STATISTICS)


def test_the_daemon_starts_without_what_great_expectations_takes_and_it_never_uses():
    assert all(map(find_spec, ("altair", "botocore"))), "the test would say nothing"
    assert run(DAEMON) == ""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Write a module that can be imported until the test is over."""
    names: list[str] = []

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
        names.append(name)

    monkeypatch.syspath_prepend(tmp_path)
    finders = sys.meta_path.copy()
    yield write
    sys.meta_path[:] = finders
    for name in names:
        sys.modules.pop(name, None)


TAKES_IT = """
try:
    import an_optional as found
except ImportError:
    found = None
"""


def test_a_deferred_module_is_loaded_at_the_first_look_and_is_the_same_everywhere(written):
    written("a_late_one", "import sys\nsys.late_ones = getattr(sys, 'late_ones', 0) + 1\nvalue = []")
    defer("a_late_one")
    early = importlib.import_module("a_late_one")
    assert not hasattr(sys, "late_ones"), "an import alone loads it"
    assert early.value is importlib.import_module("a_late_one").value
    assert sys.late_ones == 1
    del sys.late_ones
    with pytest.raises(AttributeError):
        early.nothing  # noqa: B018


def test_what_is_not_there_cannot_be_deferred():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        defer("no_such_module")


def test_a_package_is_hidden_from_one_module_while_it_loads_and_from_nobody_else(written):
    written("an_optional", "value = 1")
    written("takes_it", TAKES_IT)
    written("takes_it_too", TAKES_IT)
    before = sys.meta_path.copy()
    hide("takes_it", "an_optional")
    assert importlib.import_module("takes_it").found is None
    assert importlib.import_module("takes_it_too").found.value == 1
    assert sys.meta_path == before


def test_a_package_that_is_loaded_already_is_not_hidden(written):
    written("an_optional", "value = 1")
    written("takes_it", TAKES_IT)
    loaded = importlib.import_module("an_optional")
    hide("takes_it", "an_optional")
    assert importlib.import_module("takes_it").found is loaded
    assert sys.modules["an_optional"] is loaded


def test_a_module_that_fails_to_load_leaves_nothing_hidden(written):
    written("an_optional", "value = 1")
    written("takes_it", "import an_optional")
    hide("takes_it", "an_optional")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("takes_it")
    assert importlib.import_module("an_optional").value == 1
