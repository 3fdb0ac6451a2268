"""`recsys-monitor replay` as a person runs it: a real log, a real server, and every way to end."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from tests.cli.conftest import clean_environment, run_monitor
from tests.forked import Forked
from tests.replay.endpoint import running

START = datetime(2026, 1, 5, 10, tzinfo=UTC)
SECRET = "sesame-open-4711"
CONFIG = """\
state: ./state
engine: {{threads: 1}}
recommenders:
  - name: shop
    logs: {{exposures: {{path: log.parquet}}, feedback: {{path: clicks.parquet}}}}
    window: 1d
    replay:
      allowed_hosts: [127.0.0.1]
      {further}
      targets:
        - name: candidate
          url: {url}
          secret_headers: {{Authorization: "Bearer ${{file:token}}"}}
          body:
            user_id: "{{{{ user_id }}}}"
            request: "{{{{ request_id }}}}"
            scene: "{{{{ scene }}}}"
            n: 3
            {now}
          response: {{scores: "$.items[*].score", user: $.user_id, model: $.model}}
          version: v7
          rate: {rate}
          ramp_up: 0s
          {settings}
"""
READING = """\
  - name: {name}
    logs: {{exposures: {{path: "replays/{run}/log/*.parquet"}}, feedback: {{path: clicks.parquet}}}}
    window: 1d
    metrics: {{k: [3]}}
"""


@pytest.fixture
def endpoint():
    with running() as server:
        yield server


class Shop:
    """A folder with a log, a config and the command."""

    def __init__(self, folder, endpoint, requests=30):
        self.folder, self.endpoint = folder, endpoint
        rows = [
            {"request_id": f"r{n}", "user_id": f"u{n % 10}", "ts": START + timedelta(minutes=n),
             "scene": "home" if n % 3 else "feed", "item_id": f"i{item}", "position": item + 1}
            for n in range(requests) for item in range(4)
        ]  # fmt: skip
        self.log(rows)
        self.clicks([("r1", "u1", "i1"), ("r2", "u2", "i19")])
        (folder / "token").write_text(f"{SECRET}\n")
        self.config()

    def log(self, rows):
        pd.DataFrame(rows).to_parquet(self.folder / "log.parquet")

    def clicks(self, actions):
        rows = [
            {"request_id": request, "user_id": user, "item_id": item, "event": "click",
             "ts": START + timedelta(minutes=20)}
            for request, user, item in actions
        ]  # fmt: skip
        pd.DataFrame(rows).to_parquet(self.folder / "clicks.parquet")

    def config(self, mode="good", url="", now="", rate=500, settings="", further="", more=""):
        url = url or f"{self.endpoint.base}/recommend/{mode}"
        now = 'now: "{{ now }}"' if now else ""
        text = CONFIG.format(url=url, now=now, rate=rate, settings=settings, further=further)
        (self.folder / "shop.yaml").write_text(text + more)

    def run(self, *arguments):
        return run_monitor("replay", "candidate", "--config", "shop.yaml", *arguments, cwd=self.folder)

    def start(self, *arguments):
        return Forked(
            ["replay", "candidate", "--config", "shop.yaml", *arguments],
            cwd=self.folder,
            env=clean_environment(),
            out=self.folder / "started.out",
            err=self.folder / "started.err",
        )

    def rows(self, run):
        return pd.read_parquet(self.folder / "replays" / run / "log")

    def compared(self, a, b):
        return json.loads(self.command("compare", a, b, "--metric", "ever_shown", "--format", "json").out)

    def command(self, *arguments):
        return run_monitor(*arguments, "--config", "shop.yaml", cwd=self.folder)


@pytest.fixture
def shop(tmp_path, endpoint):
    return Shop(tmp_path, endpoint)


def test_every_answer_becomes_rows_of_an_exposure_log(shop):
    done = shop.run("--run", "first")
    assert (done.code, done.err) == (0, "")
    assert "done: 30 of 30 requests of 10 users sent" in done.out
    rows = shop.rows("first")
    assert len(rows) == 90
    assert rows.request_id.nunique() == 30
    one = rows[rows.request_id == "r4"]
    answer = shop.endpoint.answer({"user_id": "u4", "n": 3})
    assert one.item_id.tolist() == [item["id"] for item in answer["items"]]
    assert one.score.tolist() == [item["score"] for item in answer["items"]]
    assert one.position.tolist() == [1, 2, 3]
    first = one.iloc[0]
    assert (first.user_id, first.scene, first.ts) == (
        "u4",
        "home",
        pd.Timestamp(START + timedelta(minutes=4)),
    )
    assert (first.target, first.version, first.run, first.model) == ("candidate", "v7", "first", "m7")
    assert (first.status, first.http_status, first.attempts, first.now_passed) == ("ok", 200, 1, False)
    assert 0 < first.latency < 30
    assert datetime.now(UTC) - first.replayed_at < timedelta(minutes=30)
    # i0 to i3 is all that the log has ever shown to anybody.
    assert rows.ever_shown.tolist() == rows.item_id.isin(["i0", "i1", "i2", "i3"]).tolist()
    assert shop.endpoint.headers[0]["Authorization"] == f"Bearer {SECRET}"


def test_a_dry_run_shows_requests_with_masked_secrets_and_sends_and_writes_nothing(shop):
    done = shop.run("--dry-run", "--users", "3")
    assert done.code == 0
    assert "Authorization: ***" in done.out
    assert '"scene": "' in done.out
    assert "9 requests would be sent" in done.out
    assert SECRET not in done.out + done.err
    assert shop.endpoint.received == []
    assert not (shop.folder / "replays").exists()
    shown = json.loads(shop.run("--dry-run", "--format", "json").out)
    assert shown["first"][0]["headers"] == {"Content-Type": "application/json", "Authorization": "***"}
    assert (shown["requests"], len(shown["first"])) == (30, 3)


def test_no_secret_is_in_any_file_or_message(shop):
    shop.config(settings='headers: {X-Key: "${file:token}"}')
    done = shop.run("--run", "first")
    dry = shop.run("--dry-run")
    assert SECRET not in done.out + done.err + dry.out + dry.err
    assert shop.endpoint.headers[0]["X-Key"] == SECRET
    for path in (shop.folder / "replays").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()


def test_a_run_that_is_done_sends_nothing_again(shop):
    shop.run("--run", "first")
    before = shop.rows("first")
    again = shop.run("--run", "first")
    assert again.code == 0
    assert "30 of 30 requests of 10 users sent, none of them now" in again.out
    assert set(shop.endpoint.count().values()) == {1}
    pd.testing.assert_frame_equal(before, shop.rows("first"))


@pytest.mark.parametrize("round_", range(3))
def test_a_killed_run_goes_on_and_nothing_is_sent_twice(shop, round_):
    Shop(shop.folder, shop.endpoint, requests=400)
    shop.config("late", rate=150 + 50 * round_, settings="concurrency: 8")
    process = shop.start("--run", "first")
    deadline = time.monotonic() + 120
    while len(shop.endpoint.received) < 60 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    sent_before = len(shop.endpoint.received)
    assert 60 <= sent_before < 400
    done = shop.run("--run", "first")
    counts = shop.endpoint.count()
    assert set(counts.values()) == {1}  # nothing was sent twice
    rows = shop.rows("first").drop_duplicates("request_id")
    assert len(rows) == 400  # and every request has an outcome
    statuses = Counter(rows.status)
    assert set(statuses) <= {"ok", "interrupted"}
    assert done.code == (3 if statuses["interrupted"] else 0)
    # A request that was begun may not have left the process, but what left was begun.
    assert 400 - statuses["interrupted"] <= len(counts) <= 400
    assert statuses["interrupted"] <= 8 + 1 + 0.1 * (150 + 50 * round_)  # under way, and the newest burst
    assert "they may have arrived" in " ".join(done.out.split()) or not statuses["interrupted"]
    refused = shop.run("--run", "first", "--send-interrupted")
    assert refused.code == 2
    assert "`idempotent: true`" in refused.err


def test_what_was_interrupted_is_sent_again_if_the_target_is_idempotent_and_somebody_asks(shop):
    shop.config(settings="idempotent: true")
    shop.run("--run", "first")
    answers = shop.folder / "replays" / "first" / "journal" / "answers-0001.jsonl"
    answers.write_text("".join(answers.read_text().splitlines(keepends=True)[:-4]))
    assert Counter(shop.endpoint.count().values()) == {1: 30}
    assert shop.run("--run", "first").code == 3  # nobody knows how four of them ended
    assert Counter(shop.endpoint.count().values()) == {1: 30}
    assert (shop.rows("first").status == "interrupted").sum() == 4
    assert shop.run("--run", "first", "--send-interrupted").code == 0
    assert Counter(shop.endpoint.count().values()) == {1: 26, 2: 4}
    assert (shop.rows("first").status == "ok").all()


def test_a_run_goes_on_only_with_the_same_question(shop):
    shop.run("--run", "first")
    for arguments, what in (
        (("--users", "5"), "--users has changed (then 'all', now '5')"),
        (("--seed", "9"), "--seed has changed"),
        (("--to", "2026-01-06"), "--to has changed"),
    ):
        other = shop.run("--run", "first", *arguments)
        assert other.code == 2
        assert what in other.err
    shop.config(settings="method: PUT")
    other = shop.run("--run", "first")
    assert other.code == 2
    assert "the settings of the target have changed" in other.err
    assert len(shop.endpoint.received) == 30


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", b"null", "run.json is not the description of a run; choose another --run"),
        ("run.json", b'{"run": "first"', "run.json is not the description of a run; choose another --run"),
        ("plan.parquet", b"", "plan.parquet is missing or damaged"),
        ("plan.parquet", None, "plan.parquet is missing or damaged"),
    ],
)
def test_a_run_with_a_damaged_file_says_so_and_sends_nothing(shop, name, content, message):
    shop.run("--run", "first")
    path = shop.folder / "replays" / "first" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    again = shop.run("--run", "first")
    assert (again.code, message in " ".join(again.err.split())) == (2, True)
    assert len(shop.endpoint.received) == 30


def test_two_processes_never_write_one_run(shop):
    Shop(shop.folder, shop.endpoint, requests=400)
    shop.config("late", rate=5)
    process = shop.start("--run", "first")
    deadline = time.monotonic() + 120
    while not shop.endpoint.received and time.monotonic() < deadline:
        time.sleep(0.01)
    other = shop.run("--run", "first")
    assert other.code == 2
    assert "another process is replaying the run" in other.err
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 130
    assert set(shop.endpoint.count().values()) == {1}
    assert (shop.rows("first").status == "ok").all()
    shop.config("late", rate=500)
    assert "400 of 400" in shop.run("--run", "first").out
    assert Counter(shop.endpoint.count().values()) == {1: 400}


def test_an_endpoint_that_is_down_is_a_clear_state_and_its_requests_can_be_sent_later(shop):
    shop.config(url="http://127.0.0.1:9/", settings="retries: 0\n          abort: {errors: 0.2, of: 10}")
    done = shop.run("--run", "first")
    assert done.code == 3
    assert "10 of the newest 10 requests failed; the limit is 20 %" in " ".join(done.out.split())
    rows = shop.rows("first")
    assert set(rows.status) == {"refused"}
    assert rows.item_id.isna().all()
    assert 10 <= len(rows) < 30
    again = shop.run("--run", "first")
    assert again.code == 3
    assert shop.rows("first").request_id.is_unique


def test_refused_requests_are_not_sent_and_the_same_command_goes_on(tmp_path):
    with running() as endpoint:
        shop = Shop(tmp_path, endpoint, requests=12)
        shop.config(settings="retries: 0\n          abort: {errors: 1.0}")
        assert shop.run("--run", "first").code == 0
    path = shop.folder / "replays" / "first" / "journal" / "answers-0001.jsonl"
    answers = [json.loads(line) for line in path.read_text().splitlines()]
    refused = [one | {"status": "refused", "items": [], "scores": None} for one in answers[1:]]
    path.write_text("".join(json.dumps(one) + "\n" for one in (answers[0], *refused)))
    again = shop.run("--run", "first")  # the endpoint is down
    text = " ".join(again.out.split())
    assert again.code == 3
    assert "incomplete: 1 of 12 requests of 10 users sent, 11 refused, none now" in text
    assert "The same command with --run first goes on." in text
    assert "refused: no connection was made, so these requests never arrived." in text
    content = json.loads(shop.run("--run", "first", "--format", "json").out)
    assert (content["state"], content["sent"], content["not_sent"]) == ("incomplete", 1, 11)
    assert content["this_call"]["sent"] == 0
    assert content["statuses"] == {"ok": 1, "refused": 11}


def test_a_limit_that_is_passed_aborts_with_1_and_the_answers_stay(shop):
    shop.config("mixed", settings="abort: {errors: 0.3, of: 10}\n          concurrency: 2")
    done = shop.run("--run", "first", "--format", "json")
    content = json.loads(done.out)
    assert done.code == 1
    assert content["state"] == "aborted"
    assert content["reason"].endswith("of the newest 10 requests failed; the limit is 30 %")
    assert content["sent"] + content["not_sent"] == 30
    assert sum(content["statuses"].values()) == content["sent"] == len(shop.endpoint.received)
    assert content["statuses"]["ok"] > 0
    assert json.loads((shop.folder / "replays" / "first" / "summary.json").read_text()) == content


def test_failures_are_rows_of_their_own_and_no_empty_lists(shop):
    shop.config("mixed", settings="abort: {errors: 1.0}", more=READING.format(name="replayed", run="first"))
    done = shop.run("--run", "first", "--format", "json")
    assert done.code == 0
    assert json.loads(done.out)["statuses"] == {"ok": 15, "error": 9, "garbage": 3, "wrong_user": 3}
    results = {
        (one["metric"], one["labels"].get("by")): one
        for one in json.loads(shop.command("check", "-r", "replayed", "--format", "json").out)
    }
    assert results["answer_errors", None]["value"] == 0.5
    assert results["answer_errors", None]["samples"] == 30
    assert results["failure", "pv"]["value"] == 0.2  # three empty lists of fifteen answers
    assert results["coverage", "pv"]["samples"] == 15
    of_run = {(one["metric"], one["labels"].get("by")): one for one in json.loads(done.out)["results"]}
    for key in (("answer_errors", None), ("failure", "pv"), ("latency", "p90"), ("ever_shown", None)):
        assert of_run[key]["value"] == results[key]["value"]


def test_rules_see_the_lists_and_not_the_failed_requests(shop):
    reading = READING.format(name="replayed", run="first") + "    rules: [{pack: lists}]\n"
    shop.config("mixed", settings="abort: {errors: 1.0}", more=reading)
    shop.run("--run", "first")
    checked = json.loads(shop.command("check", "-r", "replayed", "--format", "json").out)
    samples = {one["labels"]["rule"]: one["samples"] for one in checked if one["metric"] == "rule"}
    assert samples["list_too_short"] == 15  # twelve lists of three and three empty ones, of 30 requests
    assert samples["duplicate_item"] == 12


def test_ids_that_are_numbers_join_as_well(shop):
    rows = [
        {"request_id": 100 + n, "user_id": n % 4, "ts": START, "scene": "home", "item_id": n + place,
         "position": place}
        for n in range(8) for place in (1, 2)
    ]  # fmt: skip
    shop.log(rows)
    shop.clicks([(101, 1, 3)])
    shop.endpoint.lists = {100 + n: [n + 2, n + 50] for n in range(8)}
    shop.config("table", more=READING.format(name="replayed", run="first"))
    assert shop.run("--run", "first").code == 0
    assert {type(one["user_id"]) for one in shop.endpoint.received} == {int}
    found = {
        (one["metric"], one["labels"].get("by", "")): one["value"]
        for one in json.loads(shop.command("check", "-r", "replayed", "--format", "json").out)
    }
    # The first item of each list was shown to its user, the other one never.
    assert found["ever_shown", ""] == 0.5
    assert found["recall", "macro"] == 1.0


def test_ids_that_are_numbers_are_sent_as_numbers_although_another_log_has_text(shop):
    rows = [
        {"request_id": 100 + n, "user_id": n % 4, "ts": START, "scene": "home", "item_id": f"i{n}",
         "position": 1}
        for n in range(8)
    ]  # fmt: skip
    shop.log(rows)
    shop.clicks([("101", "1", "i1"), ("101", "nobody", "i1")])
    shop.endpoint.lists = {100 + n: [f"i{n}", "i50"] for n in range(8)}
    shop.config("table", more=READING.format(name="replayed", run="first"))
    assert shop.run("--run", "first").code == 0
    assert {type(one[name]) for one in shop.endpoint.received for name in ("user_id", "request")} == {int}
    found = {
        (one["metric"], one["labels"].get("by", "")): one["value"]
        for one in json.loads(shop.command("check", "-r", "replayed", "--format", "json").out)
    }
    assert found["ever_shown", ""] == 0.5
    assert found["recall", "macro"] == 1.0


def test_metrics_on_the_logged_feedback_are_those_worked_by_hand(shop):
    rows = [
        {
            "request_id": request,
            "user_id": user,
            "ts": START,
            "scene": "home",
            "item_id": item,
            "position": place,
        }
        for request, user, items in (("r1", "u1", "bz"), ("r2", "u2", "xd"))
        for place, item in enumerate(items, 1)
    ]
    shop.log(rows)
    shop.clicks([("r1", "u1", "b"), ("r2", "u2", "x")])
    shop.endpoint.lists = {"r1": list("abc"), "r2": list("def")}
    shop.config("table", more=READING.format(name="replayed", run="first"))
    assert shop.run("--run", "first").code == 0
    found = {
        (one["metric"], one["labels"].get("by", "")): one["value"]
        for one in json.loads(shop.command("check", "-r", "replayed", "--format", "json").out)
    }
    assert found["precision", "macro"] == pytest.approx((1 / 3 + 0) / 2)
    assert found["recall", "macro"] == pytest.approx((1 + 0) / 2)
    assert found["ndcg", ""] == pytest.approx(1 / math.log2(3) / 2)
    # b has the score 1/2. Of the five other items, c and f have less, and e has as much.
    assert found["auc", ""] == pytest.approx(2.5 / 5)
    # b was shown to u1, and d to u2.
    assert found["ever_shown", ""] == pytest.approx(2 / 6)


def test_two_runs_are_compared_by_request_and_judged_by_a_gate(shop):
    gate = """\
    gate:
      against: current
      conditions:
        - {name: fast, owner: ops, reason: Users wait., metric: latency, labels: {by: p50}, max: 30}
        - {name: answers, owner: ops, reason: No page is empty., metric: answer_errors, max: 0.2}
        - {name: slow, owner: ops, reason: Few samples., metric: latency, labels: {by: p99}, max: 30}
"""
    more = READING.format(name="current", run="one") + READING.format(name="new", run="two") + gate
    shop.config("good", more=more)
    assert shop.run("--run", "one").code == 0
    assert shop.run("--run", "two").code == 0
    compared = shop.compared("current", "new")
    assert compared["lists"]["requests"] == {"a": 30, "b": 30, "common": 30}
    gated = json.loads(
        run_monitor("gate", "new", "--config", "shop.yaml", "--format", "json", cwd=shop.folder).out
    )
    outcomes = {one["name"]: one["outcome"] for one in gated["conditions"]}
    assert outcomes == {"fast": "passed", "answers": "passed", "slow": "not_known"}


def test_runs_without_a_common_request_share_no_list(shop):
    more = READING.format(name="current", run="one") + READING.format(name="new", run="two")
    shop.config("good", more=more)
    shop.run("--run", "one", "--to", "2026-01-05T10:10:00")
    shop.run("--run", "two", "--from", "2026-01-05T10:10:00")
    compared = shop.compared("current", "new")
    assert compared["lists"]["requests"] == {"a": 10, "b": 20, "common": 0}
    assert compared["lists"]["overlap"] is None


def test_cases_are_every_combination_of_their_values(shop):
    shop.config(further="cases: {user_id: [new-1, null], scene: [home, feed], device: [app, web, tv]}")
    done = shop.run("--cases", "--run", "cold")
    assert done.code == 0
    asked = {(one["user_id"], one["scene"]) for one in shop.endpoint.received}
    assert asked == {(user, scene) for user in ("new-1", None) for scene in ("home", "feed")}
    rows = shop.rows("cold").drop_duplicates("request_id")
    assert len(rows) == 12
    assert Counter(rows.device) == {"app": 4, "web": 4, "tv": 4}
    assert rows.ever_shown.isna().all()
    assert "time travel" not in done.out
    assert shop.run("--cases", "--run", "cold").code == 0
    shop.config(further="cases: {user_id: [new-1, null], scene: [home, feed], device: [app, web, car]}")
    other = shop.run("--cases", "--run", "cold")
    assert other.code == 2
    assert "the cases have changed; write the same" in other.err
    assert len(shop.endpoint.received) == 12


def test_a_log_of_requests_without_answers_can_be_replayed(shop):
    lines = [
        {"rid": f"q{n}", "user": f"u{n % 3}", "time": (START + timedelta(minutes=n)).isoformat(),
         "where": "home", "device": "tv"}
        for n in range(8)
    ]  # fmt: skip
    (shop.folder / "requests.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    columns = "{request_id: rid, user_id: user, ts: time, scene: where}"
    shop.config(
        further=f"requests: {{path: requests.jsonl, columns: {columns}}}\n      keep: [scene, device]"
    )
    assert shop.run("--run", "first").code == 0
    assert Counter(one["request"] for one in shop.endpoint.received) == Counter(f"q{n}" for n in range(8))
    rows = shop.rows("first")
    assert set(rows.device) == {"tv"}
    assert rows.ever_shown.any()  # the exposures say what was shown to u0 to u2


def test_a_request_without_a_user_is_no_user(shop):
    rows = pd.read_parquet(shop.folder / "log.parquet")
    rows.loc[rows.request_id.isin(["r1", "r2", "r11"]), "user_id"] = None
    shop.log(rows)
    done = shop.run("--run", "first", "--format", "json")
    plan = json.loads(done.out)["plan"]
    assert (plan["requests"], plan["users"], plan["log_users"], plan["without_user"]) == (30, 10, 10, 3)
    said = " ".join(shop.run("--run", "first").out.split())
    assert "done: 30 of 30 requests of 10 users (3 without a user) sent" in said
    rows["user_id"] = None
    shop.log(rows)
    assert "30 of 30 requests (30 without a user) sent" in " ".join(shop.run("--run", "second").out.split())


def test_what_is_left_out_of_a_log_is_counted(shop):
    times = [
        "2026-01-05T10:00:00Z",
        "2199-01-01T00:00:00Z",
        "-0100-01-01T00:00:00Z",
        "0500-01-01T00:00:00Z",
        "",
    ]
    lines = ["request_id,user_id,ts,scene", *(f"r{n},u{n},{at},home" for n, at in enumerate(times))]
    (shop.folder / "requests").mkdir()
    (shop.folder / "requests" / "a.csv").write_text("\n".join([*lines, ",u9,2026-01-05T10:00:00Z,home", ""]))
    (shop.folder / "requests" / "b.csv.gz").write_bytes(b"no gzip")
    os.utime(shop.folder / "requests" / "b.csv.gz", (0, 1_600_000_000))
    shop.config(further='requests: {path: "requests/*"}')
    done = shop.run("--run", "first")
    said = " ".join(done.err.split())
    assert (done.code, shop.endpoint.count()) == (0, Counter({"r0": 1}))
    assert "shop: requests: 1 of 2 files are skipped, such as " in said
    assert "shop: requests: 4 rows are left out, without a request_id or a ts" in said
    assert "shop: requests: 1 row is left out, for the time is in the future" in said


def test_the_time_of_a_request_is_passed_if_the_endpoint_takes_it_and_else_the_run_says_so(shop):
    done = shop.run("--run", "without")
    assert "the endpoint is not told their time" in " ".join(done.out.split())
    assert not shop.rows("without").now_passed.any()
    summary = json.loads((shop.folder / "replays" / "without" / "summary.json").read_text())
    assert summary["time_travel"]["now_passed"] is False
    assert "may be too good" in summary["time_travel"]["note"]
    shop.endpoint.received.clear()
    shop.config(now="yes")
    done = shop.run("--run", "with")
    assert "Each request carries its own time" in " ".join(done.out.split())
    assert shop.rows("with").now_passed.all()
    assert {one["request"]: one["now"] for one in shop.endpoint.received}["r3"] == "2026-01-05T10:03:00Z"


def test_requests_that_cannot_be_written_are_counted_and_the_others_are_sent(shop):
    rows = pd.read_parquet(shop.folder / "log.parquet")
    rows.loc[rows.request_id.isin(["r1", "r2"]), "scene"] = None
    rows.to_parquet(shop.folder / "log.parquet")
    shop.config(url=f"{shop.endpoint.base}/recommend/good?scene={{{{ scene }}}}")
    done = shop.run("--run", "first")
    assert done.code == 0
    text = " ".join(done.out.split())
    assert (
        "Not in the plan, since the templates cannot write them: 2 requests; a value in the url is null"
        in text
    )
    assert len(shop.endpoint.received) == 28


def test_hostile_values_of_a_log_stay_values(shop):
    hostile = "u\"\x1b[31m'}}{{ 7*7 }}\u202e<b>/../?x=1&"
    shop.log(
        [
            {
                "request_id": hostile,
                "user_id": hostile,
                "ts": START,
                "scene": hostile,
                "item_id": "i0",
                "position": 1,
            }
        ]
    )
    shop.config(url=f"{shop.endpoint.base}/recommend/good?u={{{{ user_id }}}}")
    done = shop.run("--run", "first")
    assert done.code == 0
    assert shop.endpoint.received[0]["user_id"] == hostile
    assert shop.rows("first").scene.iloc[0] == hostile
    assert "\x1b" not in shop.run("--dry-run").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--users", "many"), "neither a number as 500 nor a share as 10%"),
        (("--users", "0"), "neither a number"),
        (("--users", "101%"), "neither a number"),
        (("--run", "../x"), "not a name of letters, digits"),
        (("--cases",), "has no replay.cases in the config"),
        (("--cases", "--users", "5"), "--users chooses requests of a log; --cases sends all cases"),
        (("--cases", "--to", "2026-01-06"), "--to chooses requests of a log"),
        (("--cases", "--seed", "2"), "--seed chooses requests of a log"),
        (("--send-interrupted",), "may not get a request twice"),
        (("-r", "sop"), "no recommender is called 'sop'"),
    ],
)
def test_wrong_usage_says_what_to_do(shop, arguments, message):
    done = shop.run(*arguments)
    assert done.code == 2
    assert message in " ".join(done.err.replace("│", " ").split())
    assert "Traceback" not in done.err
    assert shop.endpoint.received == []


def test_an_unknown_target_and_an_unknown_column_are_named(shop):
    done = run_monitor("replay", "candidat", "--config", "shop.yaml", cwd=shop.folder)
    assert done.code == 2
    assert "did you mean candidate?" in " ".join(done.err.replace("│", " ").split())
    shop.config(settings="headers: {X-Scene: '{{ scne }}'}")
    done = shop.run()
    assert done.code == 2
    text = " ".join(done.err.split())
    assert "uses 'scne', which is no column; did you mean 'scene'? The log of exposures has: " in text
    shop.config(settings="headers: {X-Scene: '{{ q }}'}")
    assert "uses 'q', which is no column. The log of exposures has: " in " ".join(shop.run().err.split())
    assert shop.endpoint.received == []


def test_too_many_requests_are_refused_before_anything_is_sent(shop):
    shop.config(further="max_requests: 20")
    done = shop.run()
    assert done.code == 2
    assert "that is 30 requests, and replay.max_requests is 20; choose fewer users, as --users 6" in done.err
    assert shop.endpoint.received == []


def test_a_span_or_a_log_without_requests_has_nothing_to_send(shop):
    done = shop.run("--from", "2026-02-01")
    assert (done.code, "the log has no request in this span" in done.err) == (3, True)
    (shop.folder / "log.parquet").unlink()
    done = shop.run()
    assert done.code == 3
    assert "shop: exposures: there is no file " in done.err
    assert not list((shop.folder / "replays").glob("*"))  # what could not be planned leaves nothing behind
