"""A log whose items are records in a list, from the config to the verdict of a blacklist."""

from __future__ import annotations

import json
from datetime import timedelta

import pandas as pd
import pytest

from tests.cli.conftest import CONFIG, START, run_monitor

REQUESTS, ITEMS = 200, 5
PATHS = "request_id: reqId, user_id: uid, position: 'recs[].rank', score: 'recs[].pctr', exp: ab.exp"
RULES = "[{pack: blacklist, parameters: {blacklist: blacklist.csv}}]"


def line(number):
    """One request of the log."""
    recs = [
        {"iid": f"i{(number + k) % 30}", "rank": k + 1, "pctr": round(0.9 / (k + 1), 3)} for k in range(ITEMS)
    ]
    ts = (START + timedelta(seconds=number)).isoformat()
    exp = {"exp": "AB"[number % 2]}
    return {"reqId": f"r{number}", "uid": f"u{number % 17}", "ts": ts, "recs": recs, "ab": exp}


@pytest.fixture(params=["jsonl", "parquet"])
def nested(request, tmp_path):
    """A folder with the log, a blacklist that holds every shown item, and how a config is written there."""
    kind = request.param
    lines = [line(number) for number in range(REQUESTS)]
    if kind == "parquet":
        pd.DataFrame(lines).to_parquet(tmp_path / "log.parquet")
    else:
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    (tmp_path / "blacklist.csv").write_text("item_id\n" + "".join(f"i{n}\n" for n in range(30)), "utf-8")

    def check(item_id):
        log = f"log.{kind}, columns: {{item_id: '{item_id}', {PATHS}}}"
        text = CONFIG.format(log=log, rules=RULES) + "    slices: {by: [exp]}\n"
        (tmp_path / "shop.yaml").write_text(text, "utf-8")
        return run_monitor("check", "--config", "shop.yaml", "--format", "json", cwd=tmp_path)

    return check


def test_every_item_of_the_records_is_held_against_the_blacklist(nested):
    ran = nested("recs[].iid")
    assert ran.code == 1, ran
    found = json.loads(ran.out)
    (rule,) = (one for one in found if one["labels"].get("rule") == "blacklist")
    assert (rule["status"], rule["violations"], rule["samples"]) == ("violated", 1000, 1000)
    assert {row["item_id"] for row in rule["evidence"]} <= {f"i{n}" for n in range(30)}
    sliced = {one["labels"]["value"] for one in found if one["labels"].get("dimension") == "exp"}
    assert {"A", "B"} <= sliced


def test_a_list_of_records_as_the_item_is_never_ok(nested):
    ran = nested("recs")
    assert ran.code in (2, 3), ran
    assert '"status": "ok"' not in ran.out
    assert "recs[].iid" in ran.out + ran.err
