"""Requests to a real server that is slow, down, broken or hostile: each outcome has its own status."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections import Counter

import pytest

from monitor.replay.journal import Journal, JournalError, answer_files
from monitor.replay.plan import Request
from monitor.replay.send import send
from monitor.settings.replay import TargetSettings

BODY = {"user_id": "{{ user_id }}", "request": "{{ request_id }}"}
RESPONSE = {"scores": "$.items[*].score", "user": "$.user_id", "model": "$.model"}


def requests(count=10):
    return [Request(n, f"u{n}", {"user_id": f"u{n}", "request_id": f"r{n}"}) for n in range(count)]


def target(endpoint, mode, **settings):
    standard = {"name": "it", "url": f"{endpoint.base}/recommend/{mode}", "body": BODY, "response": RESPONSE}
    standard |= {"rate": 500, "ramp_up": "0s", "timeout": 5.0, "abort": {"errors": 1.0}}
    return TargetSettings.model_validate(standard | settings)


def replayed(folder, asked, wanted):
    """What was sent, and the recorded answers by number."""
    with Journal(folder) as journal:
        sent = send(asked, wanted, journal)
    records = [json.loads(line) for path in answer_files(folder) for line in path.read_text().splitlines()]
    return sent, {one["number"]: one for one in records}


def test_answers_are_read_with_items_scores_and_model(endpoint, tmp_path):
    sent, answers = replayed(tmp_path, target(endpoint, "good"), requests())
    assert sent.statuses == Counter(ok=10)
    assert sent.begun == len(endpoint.received) == 10
    for number, one in answers.items():
        wanted = endpoint.answer({"user_id": f"u{number}"})
        assert one["items"] == [item["id"] for item in wanted["items"]]
        assert one["scores"] == [item["score"] for item in wanted["items"]]
        assert (one["http_status"], one["attempts"], one["model"], one["detail"]) == (200, 1, "m7", "")
        assert 0 < one["latency"] < 30


def test_an_empty_list_is_an_answer(endpoint, tmp_path):
    _, answers = replayed(tmp_path, target(endpoint, "empty"), requests(1))
    assert (answers[0]["status"], answers[0]["items"]) == ("ok", [])


@pytest.mark.parametrize(
    ("mode", "settings", "status", "http_status", "detail"),
    [
        ("hanging", {"timeout": 0.3}, "timeout", None, "no answer within 0.3 s"),
        ("trickling", {"timeout": 0.3}, "timeout", None, "no answer within 0.3 s"),
        ("broken", {}, "error", 500, "HTTP 500"),
        ("moved", {}, "error", 302, "HTTP 302; redirects are not followed"),
        ("cut", {}, "error", None, "the connection broke: ServerDisconnectedError"),
        ("half", {}, "garbage", 200, "the body is not JSON"),
        ("text", {}, "garbage", 200, "the body is not JSON"),
        ("packed", {}, "garbage", 200, "the answer is compressed, which was not asked for"),
        ("huge", {"max_response": "100KB"}, "too_large", 200, "more than 100,000 bytes"),
        ("huge", {"response": {}}, "garbage", 200, "an item's id has 200,000 characters"),
        ("endless", {}, "too_large", 200, "more than 1,000,000 bytes"),
        ("many", {}, "too_large", 200, "3,000 items"),
        ("others", {}, "wrong_user", 200, "the answer is for another user"),
    ],
)
def test_each_fault_has_its_status_and_is_sent_once(
    endpoint, tmp_path, mode, settings, status, http_status, detail
):
    sent, answers = replayed(tmp_path, target(endpoint, mode, **settings), requests(3))
    assert sent.statuses == Counter({status: 3})
    assert [one["detail"] for one in answers.values()] == [detail] * 3
    assert {one["http_status"] for one in answers.values()} == {http_status}
    assert all(one["items"] == [] and one["attempts"] == 1 for one in answers.values())
    assert endpoint.count() == Counter({"r0": 1, "r1": 1, "r2": 1})


def test_a_fault_of_one_request_leaves_the_others(endpoint, tmp_path):
    sent, answers = replayed(tmp_path, target(endpoint, "mixed"), requests(40))
    assert sent.statuses == Counter(ok=20, error=12, garbage=4, wrong_user=4)
    assert [answers[n]["status"] for n in range(5)] == ["ok", "error", "garbage", "ok", "wrong_user"]
    assert set(endpoint.count().values()) == {1}


def test_what_a_server_says_is_in_no_message(endpoint, tmp_path):
    replayed(tmp_path, target(endpoint, "broken"), requests(1))
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"secret-token-of-the-server" not in path.read_bytes()


def test_no_connection_is_refused_and_tried_again_since_nothing_arrived(endpoint, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/"
    sent, answers = replayed(tmp_path, target(endpoint, "good", url=address, retries=2), requests(2))
    assert sent.statuses == Counter(refused=2)
    assert sent.retries == 4
    assert {one["attempts"] for one in answers.values()} == {3}
    assert answers[0]["detail"] == "no connection: Connection refused"
    assert endpoint.received == []


def test_an_unknown_host_is_refused(endpoint, tmp_path):
    asked = target(endpoint, "good", url="http://nowhere.invalid/", retries=0)
    _, answers = replayed(tmp_path, asked, requests(1))
    assert (answers[0]["status"], answers[0]["detail"]) == ("refused", "no connection: the host is unknown")


def test_a_failed_request_is_sent_again_only_if_the_target_is_idempotent(endpoint, tmp_path):
    for folder in ("once", "again"):
        (tmp_path / folder).mkdir()
    sent, _ = replayed(tmp_path / "once", target(endpoint, "flaky"), requests(4))
    assert sent.statuses == Counter(error=4)
    assert set(endpoint.count().values()) == {1}
    endpoint.received.clear()
    sent, answers = replayed(tmp_path / "again", target(endpoint, "flaky", idempotent=True), requests(4))
    assert sent.statuses == Counter(ok=4)
    assert set(endpoint.count().values()) == {2}
    assert {one["attempts"] for one in answers.values()} == {2}


@pytest.mark.parametrize(("idempotent", "times"), [(False, 1), (True, 3)])
def test_a_timeout_is_sent_again_only_if_the_target_is_idempotent(endpoint, tmp_path, idempotent, times):
    asked = target(endpoint, "hanging", timeout=0.2, idempotent=idempotent, retries=2)
    sent, _ = replayed(tmp_path, asked, requests(2))
    assert sent.statuses == Counter(timeout=2)
    assert set(endpoint.count().values()) == {times}


def test_a_client_error_is_never_sent_again(endpoint, tmp_path):
    asked = target(endpoint, "good", url=f"{endpoint.base}/nothing", idempotent=True)
    sent, answers = replayed(tmp_path, asked, requests(1))
    assert (sent.retries, answers[0]["http_status"]) == (0, 404)


def test_a_get_on_a_connection_that_broke_is_not_sent_again_by_the_library(endpoint, tmp_path):
    url = f"{endpoint.base}/recommend/mixed?user_id={{{{ user_id }}}}&request={{{{ request_id }}}}"
    asked = target(
        endpoint, "", url=url, method="GET", body=None, concurrency=1, response={"user": "$.user_id"}
    )
    sent, _ = replayed(tmp_path, asked, requests(20))
    assert sent.statuses["error"] == 6  # of three modes, twice
    assert set(endpoint.count().values()) == {1}


def test_concurrency_is_bounded_and_used(endpoint, tmp_path):
    sent, _ = replayed(tmp_path, target(endpoint, "late", rate=10_000, concurrency=7), requests(60))
    assert sent.statuses == Counter(ok=60)
    assert endpoint.most_active == 7


def test_the_rate_is_bounded(endpoint, tmp_path):
    replayed(tmp_path, target(endpoint, "good", rate=50, concurrency=50), requests(40))
    passed = endpoint.at[-1] - endpoint.at[0]
    assert passed > 39 / 50 - 0.15  # a burst is a tenth of a second at most


def test_what_is_sent_again_counts_for_the_rate(endpoint, tmp_path):
    asked = target(endpoint, "flaky", rate=50, concurrency=50, idempotent=True)
    sent, _ = replayed(tmp_path, asked, requests(30))
    assert (sent.statuses, sent.retries) == (Counter(ok=30), 30)
    # All first attempts and all but the newest second ones are paid for.
    first = [at for at, body, n in seen(endpoint) if n == 1]
    assert first[-1] - first[0] > (30 + 15) / 50 - 0.3


def seen(endpoint):
    """When each body came, and for the how manyth time."""
    times = Counter()
    for at, body in zip(endpoint.at, endpoint.received, strict=True):
        times[body["request"]] += 1
        yield at, body, times[body["request"]]


def test_a_full_disk_ends_the_run_and_nothing_more_is_sent(endpoint, tmp_path, monkeypatch):
    begin = Journal.begin

    def full(journal, numbers):
        if len(journal.outcomes) >= 5:
            raise JournalError("the disk is full")
        begin(journal, numbers)

    monkeypatch.setattr(Journal, "begin", full)
    with pytest.raises(JournalError, match="the disk is full"):
        replayed(tmp_path, target(endpoint, "good", rate=100), requests(300))
    with Journal(tmp_path) as journal:
        assert set(endpoint.count()) <= {f"r{n}" for n in journal.outcomes}
        assert 5 <= len(journal.outcomes) < 40


def test_errors_above_the_limit_abort_the_run(endpoint, tmp_path):
    asked = target(endpoint, "broken", abort={"errors": 0.2, "of": 10}, concurrency=2)
    sent, answers = replayed(tmp_path, asked, requests(500))
    assert sent.aborted == "10 of the newest 10 requests failed; the limit is 20 %"
    assert 10 <= len(answers) == sent.begun <= 14
    assert len(endpoint.received) == sent.begun


def test_a_latency_above_the_limit_aborts_the_run(endpoint, tmp_path):
    asked = target(endpoint, "late", abort={"latency": 0.02, "of": 10}, concurrency=2)
    sent, answers = replayed(tmp_path, asked, requests(500))
    assert sent.aborted.endswith("took longer than 0.02 s; the limit is a tenth of them")
    assert len(answers) == sent.begun < 20


def test_a_signal_stops_sending_and_waits_for_what_is_under_way(endpoint, tmp_path):
    def interrupt():  # the handler is in place once a request was sent
        while not endpoint.received:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    sent, answers = replayed(tmp_path, target(endpoint, "late", rate=100), requests(5_000))
    assert sent.stopped
    assert 0 < sent.begun < 1_000
    assert len(answers) == sent.begun == len(endpoint.received)
    assert {one["status"] for one in answers.values()} == {"ok"}


def test_cookies_of_one_user_never_go_along_with_another(endpoint, tmp_path):
    replayed(tmp_path, target(endpoint, "good", secret_headers={"Authorization": "Bearer abc"}), requests(5))
    assert all("Cookie" not in one for one in endpoint.headers)
    assert {one["Authorization"] for one in endpoint.headers} == {"Bearer abc"}
    assert {one["Content-Type"] for one in endpoint.headers} == {"application/json"}


def test_each_request_is_on_the_disk_before_it_is_sent(endpoint, tmp_path):
    seen = []
    good = endpoint.good

    async def looking(request, asked):
        numbers = (tmp_path / "journal" / "begun-0001.txt").read_text().split()
        seen.append(asked["request"][1:] in numbers)
        return await good(request, asked)

    endpoint.good = looking
    replayed(tmp_path, target(endpoint, "good"), requests(30))
    assert seen == [True] * 30


def test_a_broken_template_at_the_time_of_sending_is_raised(endpoint, tmp_path):
    with pytest.raises(Exception, match="'user_id' is undefined"), Journal(tmp_path) as journal:
        send(target(endpoint, "good"), [Request(0, "u", {})], journal)
    assert endpoint.received == []
