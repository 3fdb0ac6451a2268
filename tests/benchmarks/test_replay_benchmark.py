"""The benchmark of replay runs to its end, whatever the speed of the machine."""

from __future__ import annotations

import re
import sys

from benchmarks import replay


def test_every_request_of_the_benchmark_is_answered_and_each_part_has_a_figure(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["replay", "--requests", "400", "--concurrency", "8"])
    replay.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "400 requests of 10 items, 8 at the same time"
    figures = [float(re.search(r"([0-9.]+) (us|requests|ms)", line)[1]) for line in lines[1:]]
    assert len(figures) == 4 + 3  # plan, send twice, log, and three percentiles
    assert all(figure > 0 for figure in figures)
