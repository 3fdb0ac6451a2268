"""A problem is reported at a key that was written, not at a default."""

from __future__ import annotations

import pytest

from monitor.config.load import load_checked

CONFIG = """\
history: {{retention: {retention}}}
recommenders:
  - name: shop
    logs: {{exposures: {{path: logs/*.parquet}}}}
    {settings}
"""


def problems(tmp_path, settings, retention="90d"):
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG.format(settings=settings, retention=retention))
    return [str(one) for checked in load_checked(path)[1] for one in checked.problems]


@pytest.mark.parametrize(
    ("settings", "retention", "expected"),
    [
        ("window: 400d", "90d", ["window: is longer than history.retention (90d)"]),
        (
            "window: 100d",
            "1000d",
            [
                "window: is so long that catch_up (by default 48 windows) reaches back 4800d; "
                "at most 10 years; set catch_up lower",
                "window: is longer than metrics.history (by default 7d), which remembers whole windows; "
                "set metrics.history to at least 100d",
            ],
        ),
        (
            "window: 100d\n    catch_up: 40\n    metrics: {history: 1d}",
            "1000d",
            [
                "catch_up: reaches back 4000d; at most 10 years",
                "metrics.history: is shorter than the window (100d); it remembers whole windows",
            ],
        ),
        (
            "lateness: 2h",
            "90d",
            [
                "lateness: is longer than max_wait (by default 1h), so every window would be late; "
                "set max_wait too"
            ],
        ),
        (
            "lateness: 2h\n    max_wait: 30m",
            "90d",
            ["max_wait: is shorter than lateness (2h), so every window would be late"],
        ),
    ],
)
def test_a_problem_names_the_key_that_was_written(tmp_path, settings, retention, expected):
    assert problems(tmp_path, settings, retention) == [f"recommenders[0].{one}" for one in expected]
