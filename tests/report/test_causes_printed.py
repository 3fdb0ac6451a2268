"""What `check` prints of a violated gap and its causes: for people, for programs, for a CI server."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from xml.etree import ElementTree

from rich.console import Console

from monitor.core.results import Result, Status, Window
from monitor.report.judged import Judged, as_json, as_junit, title
from monitor.report.table import print_table
from tests.service import pictured_models, pictures
from tests.service.pictured_models import WHY, causes, gap, split, violated_gap

SMALL = gap("train_test", "v1", value=0.01, lower=0.0, upper=0.02, samples=900)
RESULTS = [*split("online", 0.7, "v1", 900), SMALL, violated_gap("v1"), *causes("v1")]


def judged(results: list[Result], window: Window = pictures.LAST) -> list[Judged]:
    return [Judged("ranker", "models", window, one) for one in results]


def table(results: list[Result], width: int = 100, *, everything: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    print_table(judged(results), console, everything=everything)
    return out.getvalue().replace("\xa0", " ").splitlines()


def test_the_causes_are_printed_below_their_gap_the_largest_share_first():
    lines = table(RESULTS)
    small, large = (
        next(n for n, line in enumerate(lines) if f"pair={pair}" in line)
        for pair in ("train_test", "test_online")
    )
    named = [n for n, line in enumerate(lines) if line.endswith(("of the gap", "is unknown"))]
    assert [lines[n].strip() for n in named] == [
        "serving skew: 68 % of the gap",
        "population shift: 11 % of the gap",
        "score shift: its share of the gap is unknown",
    ]
    assert small < large < named[0]
    assert "✓ ok" in lines[small]
    assert "✗ violated" in lines[large]
    assert " ".join(line.strip() for line in lines[named[0] + 1 : named[1]]) == WHY


def test_causes_are_no_verdicts_of_their_own_and_nothing_that_is_only_measured():
    lines = table(RESULTS)
    assert lines[-1] == "1 window, 2 verdicts: 1 ok, 1 violated"
    assert any("7 more measured but not judged; --all shows them" in line for line in lines)
    everything = table(RESULTS, everything=True)
    assert sum("serving skew" in line for line in everything) == 1
    assert not any("auc_gap_cause" in line for line in everything)


def test_text_of_a_log_is_one_harmless_line_of_the_table():
    lines = table([violated_gap(), *causes()], width=80)
    assert any("model=a/b?<script>#%[LF].." in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_model_without_a_name_is_shown_as_no_name():
    assert title(violated_gap("")) == "auc_gap model=(no name) pair=test_online"


def test_json_has_the_bound_of_a_gap_and_what_was_found_with_the_rows():
    content = json.loads(as_json(judged(RESULTS)))
    (large,) = [one for one in content if one["status"] == "violated"]
    assert (large["threshold"], "evidence" in large) == (0.02, False)
    (skew,) = [one for one in content if one["labels"].get("cause") == "serving_skew"]
    assert (skew["value"], skew["detail"]) == (0.68, WHY)
    assert skew["evidence"][0]["online"] == pictures.HOSTILE
    (auc,) = [one for one in content if one["metric"] == "auc"]
    assert not {"threshold", "evidence"} & set(auc)


def test_junit_tells_the_causes_within_the_failure_of_their_gap_and_window():
    earlier = Window(pictures.LAST.start - timedelta(hours=1), pictures.LAST.start)
    before = [
        violated_gap("v1"),
        pictured_models.cause("overfitting", 0.9, "v1", detail="of the hour before"),
    ]
    root = ElementTree.fromstring(as_junit([*judged(RESULTS), *judged(before, earlier)]))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("10", "2", "0")
    now, then = root.iter("failure")
    text = str(now.text).replace("\xa0", " ")
    assert text.splitlines()[0] == now.get("message")
    assert f"\nserving skew (68 %): {WHY}\n[" in text
    assert text.index("serving skew (68 %)") < text.index("population shift (11 %)")
    assert "score shift (share unknown): The scores online are another: <script>" in text
    assert "of the hour before" not in text
    assert str(then.text).endswith("of the hour before")


def test_junit_without_causes_is_a_failure_with_its_sentence():
    (failure,) = ElementTree.fromstring(as_junit(judged([violated_gap("v1")]))).iter("failure")
    assert (failure.text, failure.get("type")) == (failure.get("message"), Status.VIOLATED)
    assert "the gap is at least 0.0731" in str(failure.get("message"))


def test_an_interval_that_fills_its_column_stays_apart_from_the_value():
    wide = gap("train_test", "v1", value=0.003998, lower=-0.004632, upper=0.01278, samples=30000)
    (line,) = [line for line in table([wide]) if "auc_gap" in line]
    assert line.split()[-7:] == ["0.003998", "-0.00463", "-", "0.0128", "<=", "0.05", "30,000"]
