"""The daemon does not load what it does not use."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import monitor.expectations.engine as engine
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
"""


def test_statistics_of_great_expectations_are_loaded_when_a_suite_needs_them():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
