"""The check of the logs themselves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitor.core.results import Status
from tests.shop import DAY, HOUR, Shop, hour, one, rows


def test_a_window_with_rows_is_ok_and_one_without_is_no_data(shop: Shop) -> None:
    shop.write("logs/a.parquet", rows(0))
    shop.write("logs/c.parquet", rows(2))
    full, empty = shop.judge(hour(0)), shop.judge(hour(1))
    assert (one(full, "log_rows", log="exposures").status, one(full, "log_rows", log="exposures").value) == (
        Status.OK,
        20.0,
    )
    found = one(empty, "log_rows", log="exposures")
    assert (found.status, found.value, found.samples) == (Status.NO_DATA, 0.0, 0)
    assert found.detail


def test_feedback_may_be_rare_so_an_empty_window_of_it_is_ok(shop: Shop) -> None:
    shop.config["logs"]["feedback"] = {"path": str(shop.folder / "feedback" / "*")}
    shop.write("logs/a.parquet", rows(0))
    shop.write("feedback/a.parquet", rows(5, event="click"))
    assert one(shop.judge(hour(0)), "log_rows", log="feedback").status is Status.OK


@pytest.mark.parametrize(
    ("written", "status"),
    [(hour(0).start, Status.ERROR), (hour(0).start - timedelta(seconds=1), Status.OK)],
)
def test_a_skipped_file_is_an_error_of_the_windows_it_may_contain(
    shop: Shop, written: object, status: Status
) -> None:
    shop.write("logs/a.parquet", rows(0))
    shop.write("logs/b.parquet", b"PAR1 no parquet at all", written)  # type: ignore[arg-type]
    evaluation = shop.judge(hour(0))
    found = one(evaluation, "log_skipped_files", log="exposures")
    assert found.status is status
    assert ("b.parquet" in found.detail) == (status is Status.ERROR)
    assert one(evaluation, "log_rows", log="exposures").value == 20.0


def test_the_same_rows_delivered_twice_are_counted_once_and_are_no_error(shop: Shop) -> None:
    shop.write("logs/a.parquet", rows(0))
    shop.write("logs/b.parquet", rows(0))
    evaluation = shop.judge(hour(0))
    assert one(evaluation, "log_rows", log="exposures").value == 20.0
    found = one(evaluation, "log_skipped_files", log="exposures")
    assert (found.status, found.value, found.samples) == (Status.OK, 1.0, 2)


@pytest.mark.parametrize(
    ("log", "status"), [("exposures", Status.OK), ("feedback", Status.OK), ("catalog", Status.ERROR)]
)
def test_a_file_that_is_just_being_written_is_no_error_of_a_window_except_of_a_catalog(
    shop: Shop, log: str, status: Status
) -> None:
    for name in ("feedback", "catalog"):
        shop.config["logs"][name] = {"path": str(shop.folder / name / "*")}
    shop.write("logs/a.parquet", rows(0))
    cut = "request_id,user_id,ts,item_id,event\nr,u,2026-03-02 05:10:00,i1,click\nr,u,2026-03"
    shop.write(f"{'logs' if log == 'exposures' else log}/growing.csv", cut, DAY + 30 * HOUR)
    found = one(shop.judge(hour(0)), "log_skipped_files", log=log)
    assert (found.status, found.value) == (status, 1.0)


def test_values_that_cannot_be_read_are_counted_in_their_window(shop: Shop) -> None:
    content = (
        "request_id,user_id,ts,item_id,score\nr,u,2026-03-01 00:10:00,a,0.5\nr,u,2026-03-01 00:10:01,b,high\n"
    )
    shop.write("logs/a.csv", content)
    assert one(shop.judge(hour(0)), "log_bad_values", log="exposures").value == 1.0


def test_a_log_that_cannot_be_listed_is_an_error_and_the_other_checks_go_on(shop: Shop) -> None:
    shop.config["logs"]["feedback"] = {"path": "nosuchprotocol://somewhere/*"}
    shop.write("logs/a.parquet", rows(0))
    evaluation = shop.judge(hour(0))
    assert one(evaluation, "log_rows", log="feedback").status is Status.ERROR
    assert one(evaluation, "log_rows", log="exposures").status is Status.OK
    assert one(evaluation, "coverage", by="pv").status is Status.OK
    logs, *others = evaluation.runs
    assert (logs.check, logs.status) == ("logs", Status.ERROR)
    assert {run.status for run in others} == {Status.OK}


def test_a_late_window_keeps_what_the_log_check_found(shop: Shop) -> None:
    shop.write("logs/a.parquet", rows(0), DAY + HOUR)
    evaluation = shop.judge(hour(0), late="the log has stopped")
    assert one(evaluation, "log_rows", log="exposures").status is Status.OK
    assert one(evaluation, "coverage", by="pv").status is Status.LATE


def test_an_unreadable_catalog_is_an_error_regardless_of_its_age(shop: Shop) -> None:
    shop.config["logs"]["catalog"] = {"path": str(shop.folder / "catalog.csv")}
    shop.write("logs/a.parquet", rows(5))
    shop.write("catalog.csv", "sku\n1\n", DAY - 100 * HOUR)
    found = one(shop.judge(hour(5)), "log_skipped_files", log="catalog")
    assert found.status is Status.ERROR
    assert "item_id" in found.detail


def test_a_log_whose_files_are_older_than_their_rows_says_why_it_is_empty(shop: Shop) -> None:
    shop.write("logs/a.parquet", rows(5, count=1), DAY - 100 * HOUR)
    found = one(shop.judge(hour(5)), "log_rows", log="exposures")
    assert found.status is Status.NO_DATA
    assert "; 1 row with a time after the file was written, as in /" in found.detail


def test_a_column_to_slice_by_that_no_file_of_its_log_has_is_an_error(shop: Shop) -> None:
    for name in ("catalog", "users"):
        shop.config["logs"][name] = {"path": str(shop.folder / f"{name}.csv")}
    shop.config["slices"] = {"by": ["scene", "arm", "catalog.brand", "new_item", "users.plan", "hour"]}
    shop.write("catalog.csv", "item_id,category\ni1,x\n")
    shop.write("users.csv", "user_id,plan\nu1,paid\n")
    shop.write("logs/0.parquet", rows(0, scene="home"))
    shop.write("logs/1.parquet", rows(1, arm="a"))
    found = shop.judge(hour(0))
    assert one(found, "log_lacks_slices", log="exposures").status is Status.OK  # another hour has arms
    assert one(found, "log_lacks_slices", log="users").status is Status.OK
    lacking = one(found, "log_lacks_slices", log="catalog")
    assert (lacking.status, lacking.value, lacking.samples) == (Status.ERROR, 2.0, 2)
    assert "brand, created_at" in lacking.detail
    sliced = {r.labels["dimension"] for r in found.results if "dimension" in r.labels}
    assert sliced == {"scene", "arm", "users.plan", "hour"}


@pytest.mark.parametrize(("log", "key"), [("catalog", "item_id"), ("users", "user_id")])
def test_rows_of_a_catalog_and_of_users_without_an_id_are_counted(shop: Shop, log: str, key: str) -> None:
    shop.config["logs"][log] = {"path": str(shop.folder / log / "*")}
    shop.write("logs/a.parquet", rows(0))
    for name, ids in (("a.csv", "i1,x\n,x\n"), ("b.csv", "nan,x\ni2,x\n")):
        shop.write(f"{log}/{name}", f"{key},brand\n{ids}")
    for window in (hour(0), hour(1)):
        found = one(shop.judge(window), "log_bad_values", log=log)
        assert (found.value, found.samples, found.status) == (2.0, 4, Status.OK)


def test_a_row_of_a_catalog_is_counted_once_and_its_other_values_too(shop: Shop) -> None:
    shop.config["logs"]["catalog"] = {"path": str(shop.folder / "catalog" / "*")}
    shop.write("logs/a.parquet", rows(0))
    shop.write("catalog/a.csv", "item_id,created_at\ni1,soon\n,soon\ni2,2026-01-01\n")
    assert one(shop.judge(hour(0)), "log_bad_values", log="catalog").value == 2.0
