"""What the pages say of a snapshot, before anything is laid out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from monitor.core.results import Kind, Result, Status
from monitor.history.snapshot import RecommenderState, RuleInfo, Snapshot, Violation
from monitor.report.evidence import rule_page
from monitor.report.fleet import Fleet
from monitor.report.links import alert_labels
from monitor.report.page import recommender_page
from monitor.report.sparkline import sparkline
from tests.service import pictures


def shop_view(snapshot: Snapshot | None = None):
    found = recommender_page(snapshot or pictures.full(), "shop", pictures.NOW)
    assert found is not None
    return found.recommender


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def test_the_worst_recommender_comes_first():
    page = Fleet(pictures.full(), pictures.NOW).page()
    assert [(v.name, v.verdict.key) for v in page.lines] == [
        ("shop", "violated"),
        ("video", "error"),
        ("news", "ok"),
    ]
    assert page.summary == "2 of 3 recommenders need attention"
    assert page.verdict.word == "violated"


def test_all_is_well_only_where_everything_was_judged_ok():
    well = replace(pictures.full(), recommenders=(pictures.news(),))
    assert Fleet(well, pictures.NOW).page().summary == "All is well with news"
    assert Fleet(pictures.empty(), pictures.NOW).page().summary == "Nothing has been judged yet"
    assert Fleet(pictures.empty(), pictures.NOW).page().verdict.key == "no_data"
    assert Fleet(Snapshot(pictures.NOW), pictures.NOW).page().summary == "No recommender is configured"


def test_the_summary_counts_each_rule_once():
    assert shop_view().summary == (
        "2 of 8 rules violated · 3 could not be judged · 2 ok · 1 not judged yet · 1 objective missed"
    )


def only_objectives(*results: Result):
    """The page of a recommender without rules."""
    state = replace(pictures.news(), rules=(), series=tuple(map(pictures.series, results)))
    found = recommender_page(Snapshot(pictures.NOW, (state,)), "news", pictures.NOW)
    assert found is not None
    return found.recommender


def objective(status: Status = Status.OK, metric: str = "coverage", **labels: str) -> Result:
    return pictures.metric(metric, "pv", status, value=0.9, threshold=0.99, bound="min", labels=labels)


def test_the_summary_of_objectives_alone_counts_them():
    home = {"dimension": "scene", "value": "home"}
    met, missed, unknown = objective(), objective(Status.VIOLATED, **home), objective(Status.NO_DATA, **home)
    assert only_objectives(met).summary == "1 objective ok"
    assert only_objectives(met, missed).summary == "1 objective missed"
    assert only_objectives(met, unknown).summary == "1 objective could not be judged"
    assert only_objectives(objective(metric="unattributed")).summary == "no rules"  # it is there by default
    assert only_objectives(objective(Status.VIOLATED, "unattributed")).summary == "1 objective missed"


def test_an_objective_without_a_value_has_a_runbook_and_a_silence_of_its_own():
    wrong = objective(Status.NO_DATA, dimension="scene", value="hme")
    (problem,) = only_objectives(objective(), wrong).problems
    assert problem.runbook == "runbooks/RecsysObjectiveNotJudged"
    young = objective(Status.NO_DATA, dimension="rollup", value="7d")
    (problem,) = only_objectives(objective(), young).problems
    assert problem.runbook == "runbooks/RecsysNoData"
    (problem,) = only_objectives(objective(), objective(Status.NO_DATA, "unattributed")).problems
    assert problem.runbook == "runbooks/RecsysNoData"
    labels = alert_labels(pictures.series(wrong))
    assert labels["alertname"] == "RecsysObjectiveNotJudged"
    assert (labels["metric"], labels["value"]) == ("coverage", "hme")
    alike = (
        replace(objective(Status.NO_DATA, value=name), detail="no such slice") for name in ("hme", "fed")
    )
    several = only_objectives(objective(), *alike)
    assert [one.runbook for one in several.problems] == ["runbooks/RecsysObjectiveNotJudged"]


def test_an_objective_on_a_slice_is_counted_and_in_the_section_of_objectives():
    view = only_objectives(objective(), objective(Status.VIOLATED, dimension="scene", value="home"))
    assert {one.key: one.count for one in view.sections}["objectives"] == "2"
    assert [(one.name, one.note, one.verdict.key) for one in view.objectives] == [
        ("coverage", "by pv, scene = home", "violated"),
        ("coverage", "by pv", "ok"),
    ]
    (told,) = view.problems
    assert (told.name, told.note, [one.name for one in told.offenders]) == ("coverage", "by pv", ["scene"])
    well = only_objectives(objective(dimension="scene", value="home"))
    assert well.verdict.key == "ok"


def test_attention_lists_the_worst_and_newest_first():
    rows = [(row.name, row.verdict.key) for row in shop_view().problems]
    assert rows == [
        ("blacklist", "violated"),
        ("duplicate_item", "violated"),
        ("coverage", "violated"),
        ("item_off_shelf", "error"),
        ("future_timestamp", "late"),
        ("capped_category", "no_data"),
    ]


def test_a_rule_row_says_how_much_since_when_and_how_sure():
    row = shop_view().rules[0]
    assert row.counted == "9 of 11,873"
    assert plain(row.value) == "0.0758 %"
    assert row.bound == "none allowed"
    assert plain(row.interval) == "0.04 % to 0.143 %"
    assert row.since is not None
    assert (row.since.text, row.since.age) == ("2026-03-09 11:00 UTC", "3 h 7 min ago")
    assert row.evidence == len(pictures.NASTY)


def test_a_violation_that_is_over_is_still_shown_with_its_evidence():
    broken = next(one for one in pictures.shop().series if one.result.labels.get("rule") == "blacklist")
    well = replace(
        broken,
        standing=Status.OK,
        result=replace(broken.result, status=Status.OK, value=0.0, violations=0, evidence=()),
        violation=Violation(broken.window, broken.result),
    )
    state = replace(pictures.news(), series=(well,))
    page = Fleet(replace(pictures.full(), recommenders=(state,)), pictures.NOW).page()
    assert page.summary == "All is well again with news"
    view = recommender_page(replace(pictures.full(), recommenders=(state,)), "news", pictures.NOW).recommender
    (told,) = view.lately
    assert (told.name, told.href) == ("blacklist", "recommenders/shop/rules/blacklist")
    assert plain(told.counted).startswith(f"{broken.result.violations} of ")
    assert view.problems == ()


def test_a_tiny_rate_is_not_shown_as_zero():
    rows = {row.name: row for row in shop_view().rules}
    assert plain(rows["list_length"].value) == "1.3e-05 %"


def test_a_violated_rule_shows_that_its_last_window_was_ok():
    rows = {row.name: row for row in shop_view().rules}
    last = rows["duplicate_item"].last
    assert (rows["duplicate_item"].verdict.key, last and last.key) == ("violated", "ok")


def test_metrics_are_grouped_in_the_order_of_the_catalogue():
    groups = {group.name: group for group in shop_view().metrics}
    assert next(iter(groups)) == "coverage"
    assert [row.name for row in groups["coverage"].rows] == ["pv", "uv", "item"]
    assert plain(groups["coverage"].rows[1].value) == "99.9999 %"
    assert groups["category_entropy"].rows[0].verdict.word == "undefined"


def test_slices_are_cut_off_and_the_rest_is_counted():
    (group,) = shop_view(pictures.wide(1000)).slices
    assert (len(group.rows), group.left_out) == (200, 804)


def test_a_metric_in_error_makes_its_recommender_an_error_even_without_an_objective():
    result = pictures.metric("gini", status=Status.ERROR, detail="interrupted after 5 min")
    state = replace(pictures.news(), series=(*pictures.news().series, pictures.series(result)))
    page = Fleet(Snapshot(pictures.NOW, (state,)), pictures.NOW).page()
    assert page.verdict.key == "error"
    (told,) = recommender_page(Snapshot(pictures.NOW, (state,)), "news", pictures.NOW).recommender.problems
    assert (told.name, told.sentence) == ("gini", "interrupted after 5 min")


def test_a_metric_with_nothing_to_measure_does_not_alarm():
    result = pictures.metric("serendipity", status=Status.NO_DATA)
    state = replace(pictures.news(), series=(*pictures.news().series, pictures.series(result)))
    assert Fleet(Snapshot(pictures.NOW, (state,)), pictures.NOW).page().verdict.key == "ok"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (RecommenderState("a"), "no readable rows"),
        (RecommenderState("a", error="no such file"), "cannot run"),
        (replace(pictures.news(), series=()), "lateness"),
    ],
)
def test_an_empty_page_says_why(state, reason):
    view = recommender_page(Snapshot(pictures.NOW, (state,)), state.name, pictures.NOW).recommender
    assert view.empty.startswith("No window has been judged yet: ")
    assert reason in view.empty


def test_an_old_picture_says_that_it_is_old():
    fresh = Fleet(pictures.full(), pictures.NOW + timedelta(minutes=14)).page()
    old = Fleet(pictures.full(), pictures.NOW + timedelta(minutes=20)).page()
    assert fresh.frame.stale == ""
    assert "20 min ago" in old.frame.stale


def test_foreign_text_is_made_visible_in_every_place():
    (log, *_) = [log for log in shop_view().logs if log.skipped]
    assert log.skipped[1][0] == "logs/<b>odd</b>[LF]name.csv"
    assert log.lost == (("logs/<i>lost</i>[LF].csv", "1,200 rows: the file is <u>gone</u>"),)
    assert log.unlisted == (("logs/<s>folder</s>", "Permission denied"),)
    assert [row.name for row in shop_view().slices[0].rows][2] == 'we"ird\\ [LF]<scene>'


def test_the_evidence_keeps_every_column_and_tells_null_from_empty():
    page = rule_page(pictures.full(), "shop", "blacklist", pictures.NOW)
    assert page is not None
    assert page.columns == (
        "request_id",
        "user_id",
        "ts",
        "item_id",
        "position",
        "score",
        "list_version",
    )
    assert page.rows[0][3] == pictures.HOSTILE
    assert page.rows[3][5] is None
    assert page.rows[3][3] == "safe[U+202E]gnp.exe"
    assert page.rows[5][3] == "x" * 300 + "… (5,000 characters)"
    assert page.total == "17"
    assert (page.owner, page.runbook) == ("shop-oncall", "https://runbooks.example.org/blacklist")


def test_a_runbook_without_a_web_address_is_not_a_link():
    page = rule_page(pictures.full(), "shop", "brand_new", pictures.NOW)
    assert page is not None
    assert page.runbook == ""
    assert page.runbook_path.startswith("javascript:")
    assert page.empty == "No window has been judged by this rule yet."


def test_the_evidence_of_an_older_window_is_shown_as_older():
    state = pictures.shop()
    newest, standing = state.series[0], state.series[1]
    earlier = replace(newest.result, evidence=pictures.evidence()[:2])
    window = standing.past[2].window
    changed = replace(standing, violation=Violation(window, earlier))
    snapshot = Snapshot(pictures.NOW, (replace(state, series=(changed,)),))
    page = rule_page(snapshot, "shop", "duplicate_item", pictures.NOW)
    assert page is not None
    assert page.evidence_is_older
    assert len(page.rows) == 2
    assert page.evidence_window == "2026-03-09 10:00 to 11:00 UTC"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (Status.OK, "No row of this window violates the rule."),
        (Status.UNDEFINED, "The rule does not apply to this log, so no row was judged."),
        (Status.LATE, "No row so far violates the rule, but rows of this window may be missing."),
        (Status.NO_DATA, "There was nothing to judge in this window."),
    ],
)
def test_only_a_judged_window_is_said_to_have_no_violation(status, why):
    result = pictures.rule("a", Kind.SOFT, status, threshold=0.1)
    state = RecommenderState("shop", series=(pictures.series(result, recommender="shop", check="rules"),))
    page = rule_page(Snapshot(pictures.NOW, (state,)), "shop", "a", pictures.NOW)
    assert page is not None
    assert page.empty == why


@pytest.mark.parametrize(("recommender", "rule"), [("shop", "nope"), ("nope", "blacklist")])
def test_an_unknown_rule_has_no_page(recommender, rule):
    assert rule_page(pictures.full(), recommender, rule, pictures.NOW) is None


def test_a_sparkline_breaks_where_a_value_is_missing_and_says_so_in_words():
    drawn = sparkline(pictures.past([0.1, 0.2, None, 0.4], {3: Status.VIOLATED}), str, threshold=0.3)
    assert drawn is not None
    assert drawn.label == "last 4 windows: lowest 0.1, highest 0.4, 1 violated, 1 without a value"
    assert len(drawn.lines) == 1
    assert [dot.status for dot in drawn.dots] == ["violated"]
    assert len(drawn.gaps) == 1
    assert drawn.threshold is not None
    top, bottom = drawn.dots[0].y, float(drawn.lines[0].split(" ")[0].split(",")[1])
    assert top < drawn.threshold < bottom


def test_a_flat_or_lonely_past_is_drawn_without_dividing_by_zero():
    assert sparkline(pictures.past([0.5]), str) is None
    assert sparkline(pictures.past([None, None]), str) is None
    flat = sparkline(pictures.past([0.5, 0.5]), str)
    assert flat is not None
    assert {point.split(",")[1] for point in flat.lines[0].split(" ")} == {"14"}


def test_a_page_is_out_of_date_if_the_worker_shows_no_life():
    quiet = replace(pictures.full(), worked_at=pictures.NOW - timedelta(minutes=16))
    assert "may be stuck" in Fleet(quiet, pictures.NOW).page().frame.stale
    works = replace(pictures.full(), worked_at=pictures.NOW - timedelta(minutes=14))
    assert Fleet(works, pictures.NOW).page().frame.stale == ""


def test_a_page_is_out_of_date_if_the_clock_was_set_back() -> None:
    later = pictures.NOW + timedelta(hours=2)
    stale = Fleet(replace(pictures.full(), worked_at=later), pictures.NOW).page().frame.stale
    assert stale == (
        "The machine's clock was set back: the monitor's last sign of life has the time "
        "2026-03-09 16:07 UTC. Until then no window is judged, and this page is out of date. "
        "Restart the monitor."
    )
    soon = replace(pictures.full(), worked_at=pictures.NOW + timedelta(minutes=2))
    assert Fleet(soon, pictures.NOW).page().frame.stale == ""


def test_a_recommender_without_rules_needs_no_attention_while_its_log_is_ok():
    measured = [one for one in pictures.news().series if one.result.metric != "rule"]
    rows = pictures.metric("log_rows", value=9.0, samples=9, labels={"log": "exposures"})
    log = pictures.series(rows, recommender="news", check="logs")
    state = replace(pictures.news(), series=(*measured, log))
    page = Fleet(Snapshot(pictures.NOW, (state,)), pictures.NOW).page()
    assert (page.verdict.key, page.summary) == ("ok", "All is well with news")
    empty = replace(log, result=replace(rows, status=Status.NO_DATA), standing=Status.NO_DATA)
    silent = Snapshot(pictures.NOW, (replace(state, series=(*measured, empty)),))
    page = Fleet(silent, pictures.NOW).page()
    assert (page.verdict.key, page.summary) == ("no_data", "news needs attention")


@pytest.mark.parametrize(
    ("runbook", "link"),
    [
        (
            "docs/runbooks/rules/black list.md#now",
            "https://git.test/main/docs/runbooks/rules/black%20list.md#now",
        ),
        ("https://runbooks.test/x", "https://runbooks.test/x"),
        ("javascript:alert(1)", ""),
        ("//evil.test/x", ""),
        ("/etc/passwd", ""),
        ("docs/../../other", ""),
        ("", ""),
    ],
)
def test_a_runbook_that_is_a_path_is_a_link_below_the_docs(runbook, link):
    state = replace(pictures.broken(), rules=(RuleInfo("blacklist", Kind.HARD, runbook=runbook),))
    snapshot = Snapshot(pictures.NOW, (state,))
    page = rule_page(snapshot, "video", "blacklist", pictures.NOW, "https://git.test/main")
    assert page is not None
    assert (page.runbook, page.runbook_path) == (link, "" if link else runbook)
    plain_page = rule_page(snapshot, "video", "blacklist", pictures.NOW)
    assert plain_page is not None
    assert plain_page.runbook == (link if runbook.startswith("https") else "")
