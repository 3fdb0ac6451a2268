"""`init FOLDER` takes the exposures of a folder that holds several kinds of files, and says so."""

from __future__ import annotations

import pandas as pd
import pytest
import yaml

from monitor.config.init.profile import CannotProfile
from monitor.config.init.wizard import Written, write_config
from tests.config.exposure_logs import frame

EXPOSURES = frame(120)
CLICKS = EXPOSURES.iloc[::5][["request_id", "user_id", "item_id", "ts"]].assign(event="click")
# It has more columns than the exposures, among them an id and a time.
CATALOG = pd.DataFrame(
    {"item_id": range(500), "created_at": "2025-01-01", "category": "a", "brand": "b"}
    | dict.fromkeys(("price", "stock", "width", "height", "weight"), 1)
)
USERS = pd.DataFrame({"user_id": [f"u{n}" for n in range(120)], "plan": "free"})


@pytest.fixture
def log(tmp_path):
    """Write tables to a folder by their names, and `init` the folder."""

    def write(**tables: pd.DataFrame) -> Written:
        for name, rows in tables.items():
            path = tmp_path / "log" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".csv"):
                rows.to_csv(path, index=False)
            else:
                rows.to_parquet(path)
        return write_config([str(tmp_path / "log")], tmp_path)

    return write


def _paths(written: Written) -> dict[str, str]:
    logs = yaml.safe_load(written.text)["recommenders"][0]["logs"]
    return {name: log["path"] for name, log in logs.items()}


def test_the_catalog_is_not_taken_for_the_exposures(log):
    written = log(**{"catalog.parquet": CATALOG, "exposures.parquet": EXPOSURES})
    assert _paths(written) == {"exposures": "log/exposures.parquet", "catalog": "log/catalog.parquet"}
    assert written.missing == ()
    assert written.notes == (
        "exposures: took log/exposures.parquet, since its columns sound like request_id, user_id, ts, "
        "item_id, position, score, scene",
        "catalog: took log/catalog.parquet, since its name says so and its ids join the exposures",
    )


def test_one_file_for_each_log_is_four_logs(log):
    tables = {"catalog": CATALOG, "clicks": CLICKS, "impressions": EXPOSURES, "users": USERS}
    written = log(**{f"{name}.csv": rows for name, rows in tables.items()})
    assert _paths(written) == {
        "exposures": "log/impressions.csv",
        "feedback": "log/clicks.csv",
        "catalog": "log/catalog.csv",
        "users": "log/users.csv",
    }


def test_the_exposures_of_several_days_are_one_log_and_the_catalog_is_no_part_of_it(log):
    days = {f"exposures-2026-01-0{n}.csv": EXPOSURES[n::4] for n in range(1, 4)}
    clicks = {f"clicks-2026-01-0{n}.csv": CLICKS[n::4] for n in range(1, 4)}
    assert _paths(log(**days, **clicks, **{"catalog.csv": CATALOG})) == {
        "exposures": "log/exposures-[0-9]*.csv",
        "feedback": "log/clicks-[0-9]*.csv",
        "catalog": "log/catalog.csv",
    }


def test_folders_of_days_that_hold_every_kind(log):
    days = {f"2026-01-0{n}/{name}.csv": rows[n::4] for n in (1, 2, 3)
            for name, rows in (("clicks", CLICKS), ("exposures", EXPOSURES))}  # fmt: skip
    assert _paths(log(**days)) == {
        "exposures": "log/[0-9]*/exposures.csv",
        "feedback": "log/[0-9]*/clicks.csv",
    }


def test_a_folder_for_each_kind_beside_a_file(log):
    parts = {f"{name}/part-0000{n}.csv": rows[n::3] for n in range(3)
             for name, rows in (("clicks", CLICKS), ("shown", EXPOSURES))}  # fmt: skip
    assert _paths(log(**parts, **{"items.csv": CATALOG})) == {
        "exposures": "log/shown/*.csv",
        "feedback": "log/clicks/*.csv",
        "catalog": "log/items.csv",
    }


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_partitions_are_one_log_whatever_types_their_values_have(log, ending):
    hours = {f"day=2026-01-05/hour={n:02d}/part-0.{ending}": EXPOSURES[n::13] for n in (2, 7, 12)}
    written = log(**hours)
    assert _paths(written) == {"exposures": f"log/**/*.{ending}"}
    assert f"# 3 {'Parquet' if ending == 'parquet' else 'CSV'} files when this was written" in written.text
    assert "counted in the whole log, 3 files" in written.text
    assert written.notes == ()


def test_columns_tell_more_than_names(log):
    written = log(**{"a.parquet": CATALOG, "exposures.parquet": CLICKS, "z.parquet": EXPOSURES})
    assert _paths(written) == {"exposures": "log/z.parquet"}
    assert written.notes[-1] == (
        "not used: log/exposures.parquet, log/a.parquet; if the choice is wrong, give the exposures alone as "
        "LOG"
    )


def test_the_actions_of_all_folders_of_the_exposures_are_taken_and_no_others(log):
    shops = {f"{shop}/{name}.csv": rows[n::2] for n, shop in enumerate(("men", "women"))
             for name, rows in (("clicks", CLICKS), ("exposures", EXPOSURES))}  # fmt: skip
    written = log(
        **shops, **{"news/exposures.csv": EXPOSURES[::9].assign(device="tv"), "news/clicks.csv": CLICKS}
    )
    assert _paths(written) == {
        "exposures": ["log/men/exposures.csv", "log/women/exposures.csv"],
        "feedback": ["log/men/clicks.csv", "log/women/clicks.csv"],
    }


def test_several_files_may_be_several_logs(log, tmp_path):
    tables = {"exposures": EXPOSURES, "clicks": CLICKS, "catalog": CATALOG, "users": USERS}
    log(**{f"{name}.csv": rows for name, rows in tables.items()})
    written = write_config([str(tmp_path / "log" / f"{name}.csv") for name in list(tables)[:3]], tmp_path)
    assert _paths(written) == {
        "exposures": "log/exposures.csv",
        "feedback": "log/clicks.csv",
        "catalog": "log/catalog.csv",
    }


@pytest.mark.parametrize(
    ("path", "advice"), [("nowhere/*.csv", "correct the path"), ("~/*.csv", "a ~ in quotes is not expanded")]
)
def test_a_path_that_matches_nothing_gives_advice(path, advice, tmp_path):
    with pytest.raises(CannotProfile, match=f"no file matches .*; {advice}"):
        write_config([path], tmp_path)


def test_scored_samples_are_named_as_such(log):
    rows = EXPOSURES.drop(columns="user_id").assign(label=1, split="train")
    assert log(**{"a.csv": rows}).missing[0].startswith("this looks like scored samples of a model")


@pytest.mark.parametrize(("rows", "name", "one"), [(CATALOG, "catalog", "item"), (USERS, "users", "user")])
def test_a_table_of_items_or_users_is_named_as_such(log, rows, name, one):
    assert log(**{"a.csv": rows}).missing[0] == (
        f"this has one row for each {one} and looks like logs.{name}, not like exposures; give the exposures "
        f"as LOG, and name this file under logs.{name}"
    )


def test_exposures_without_a_request_are_no_catalog(log):
    rows = EXPOSURES.drop(columns="request_id")
    once = rows.drop_duplicates("item_id")
    for each in (rows, once):
        assert "one row for each" not in log(**{"a.csv": each}).missing[0]


def test_folders_with_names_of_their_own_may_be_several_recommenders(log):
    both = {f"{name}/2026-03-0{day}.csv": EXPOSURES[day::3] for name in ("news", "shop") for day in (1, 2)}
    assert log(**both).notes == (
        "exposures: the files in log/news, log/shop have the same columns and became one log; if they are of "
        "several recommenders, give those of one as LOG",
    )


def test_older_files_below_the_folder_are_another_log(log):
    written = log(**{"1.csv": EXPOSURES[::2], "2.csv": EXPOSURES[1::2], "old/1.csv": EXPOSURES})
    assert _paths(written) == {"exposures": "log/*.csv"}


def test_a_glob_over_several_kinds_is_narrowed(log, tmp_path):
    log(**{"catalog.csv": CATALOG, "exposures.csv": EXPOSURES})
    written = write_config([str(tmp_path / "log" / "*.csv")], tmp_path)
    assert _paths(written)["exposures"] == "log/exposures.csv"


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (CLICKS, "'event' is 'click' in every row"),
        (CLICKS.drop(columns="event"), "log/clicks.csv has the name of a log of actions"),
    ],
    ids=["event", "name"],
)
def test_actions_that_are_taken_for_exposures_are_reported(log, rows, why):
    assert log(**{"clicks.csv": rows}).notes == (
        f"warning: {why}, and every row counts as shown; if this is what users did, give the exposures as "
        "LOG, and this log with --feedback",
    )


def test_an_error_names_the_file_that_cannot_be_read(tmp_path):
    EXPOSURES.to_csv(tmp_path / "log-1.csv", index=False)
    with open(tmp_path / "log-2.csv", "w") as file:
        EXPOSURES.to_csv(file, index=False)
        file.write("a,b\n")
    with pytest.raises(CannotProfile, match=r"log-2\.csv cannot be read"):
        write_config([str(tmp_path / "*.csv")], tmp_path)
