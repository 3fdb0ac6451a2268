"""The journal survives any end of its process, and says which requests must not be sent."""

from __future__ import annotations

import json

import pytest

from monitor.replay.journal import Journal, JournalError, answer_files, begun_files


def answered(number, status="ok"):
    return {"number": number, "status": status}


def test_a_begun_request_without_an_answer_is_interrupted(tmp_path):
    with Journal(tmp_path) as journal:
        journal.begin([0, 1, 2])
        journal.answer(answered(1))
    with Journal(tmp_path) as journal:
        assert journal.outcomes == {0: "interrupted", 1: "ok", 2: "interrupted"}
        assert journal.settled(but=()) == {0, 1, 2}
        assert journal.settled(but=("interrupted",)) == {1}


def test_what_was_refused_may_be_sent_again_and_the_later_session_counts(tmp_path):
    with Journal(tmp_path) as journal:
        journal.begin([0, 1])
        journal.answer(answered(0, "refused"))
        journal.answer(answered(1, "refused"))
    with Journal(tmp_path) as journal:
        assert journal.settled(but=("refused",)) == set()
        journal.begin([0, 1])
        journal.answer(answered(0))
    with Journal(tmp_path) as journal:
        assert journal.outcomes == {0: "ok", 1: "interrupted"}


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_line_that_a_crash_cut_off_is_removed(tmp_path, cut):
    with Journal(tmp_path) as journal:
        journal.begin([7, 12345])
        journal.answer(answered(7))
    (begun,), (answers,) = begun_files(tmp_path), answer_files(tmp_path)
    whole = begun.read_bytes() + b"67890\n"
    begun.write_bytes(whole[: -min(cut, 6)])
    line = json.dumps(answered(12345)) + "\n"
    answers.write_bytes(answers.read_bytes() + line.encode()[:-cut])
    with Journal(tmp_path) as journal:
        assert journal.outcomes == {7: "ok", 12345: "interrupted"}
    for path in (*begun_files(tmp_path), *answer_files(tmp_path)):
        assert path.read_bytes() == b"" or path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    ("name", "content"), [("begun", "7\nx\n8\n"), ("answers", "{}\n"), ("answers", "nonsense\n")]
)
def test_a_damaged_journal_sends_nothing(tmp_path, name, content):
    with Journal(tmp_path) as journal:
        journal.begin([7])
    (begun,), (answers,) = begun_files(tmp_path), answer_files(tmp_path)
    (begun if name == "begun" else answers).write_text(content)
    with pytest.raises(JournalError, match="is damaged, so nobody knows what was sent"):
        Journal(tmp_path)


def test_each_process_writes_files_of_its_own(tmp_path):
    for _ in range(3):
        Journal(tmp_path).close()
    assert [one.name for one in begun_files(tmp_path)] == [
        "begun-0001.txt",
        "begun-0002.txt",
        "begun-0003.txt",
    ]


def test_answers_are_on_the_disk_after_a_flush_without_a_close(tmp_path):
    journal = Journal(tmp_path)
    journal.begin([0])
    journal.answer(answered(0))
    assert Journal(tmp_path).outcomes == {0: "interrupted"}
    journal.flush()
    assert Journal(tmp_path).outcomes == {0: "ok"}
