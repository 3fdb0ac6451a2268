"""Bodies of answers: what is read from them, and why they are not an answer."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.replay.answers import Answer, AnswerReader, path_problem
from monitor.settings.replay import TargetSettings


def reader(most=1000, **response):
    settings = {"name": "it", "url": "http://127.0.0.1/", "response": response, "max_items": most}
    return AnswerReader(TargetSettings.model_validate(settings))


def read(content, asked="u1", **response):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return reader(**response).read(body, asked)


FULL = {
    "scores": "$.items[*].score",
    "positions": "$.items[*].rank",
    "user": "$.user",
    "model": "$.meta.model",
}


def test_items_scores_positions_and_model_are_at_their_paths():
    items = [{"id": "a", "score": 0.5, "rank": 2}, {"id": 7, "score": None, "rank": 1}]
    content = {"user": "u1", "meta": {"model": "m7"}, "items": items}
    assert read(content, **FULL) == Answer("ok", ["a", "7"], [0.5, None], [2, 1], "m7")


@pytest.mark.parametrize(
    ("path", "content", "items"),
    [
        ("$.items[*].id", {"items": []}, []),
        ("$.items[*].id", {"items": [{"id": "a"}]}, ["a"]),
        ("$.ids", {"ids": ["a", "b"]}, ["a", "b"]),
        ("$.ids", {"ids": []}, []),
        ("$[*].id", [], []),
        ("$", ["a", "b", "a"], ["a", "b", "a"]),
        (
            "$.shelves[*].items[*].id",
            {"shelves": [{"items": [{"id": 1}]}, {"items": [{"id": 2}]}]},
            ["1", "2"],
        ),
        ("$.items[?(@.ok == true)].id", {"items": [{"id": 1, "ok": True}, {"id": 2, "ok": False}]}, ["1"]),
        ("$.items[?(@.ok == true)].id", {"items": [{"id": 1, "ok": False}]}, []),
        ("$.items[?(@.ok == true)]", {"items": [{"id": 1, "ok": False}]}, []),
        ("$.items[2:].id", {"items": [{"id": 1}]}, []),
        (r"$.items[\score][?(@.score > 9)].id", {"items": [{"id": 1, "score": 2}]}, []),
        ("$.shelves[?(@.on == true)].items[*].id", {"shelves": [{"on": False, "items": [{"id": 1}]}]}, []),
    ],
)
def test_lists_of_many_shapes_are_read(path, content, items):
    assert read(content, items=path) == Answer("ok", items)


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"", "the body is empty"),
        (b"\xff\xfe", "the body is not JSON"),
        (b"NaN", "the body is not JSON"),
        (b'{"items": [{"id": "a", "score": Infinity}]}', "the body is not JSON"),
        (b"[" * 100_000, "the JSON is nested too deep"),
        (b'{"items": ' + b"9" * 10_000 + b"}", "the body is not JSON"),
        ([], "nothing is at the path of the items"),
        (None, "nothing is at the path of the items"),
        ({"items": None}, "nothing is at the path of the items"),
        ({"items": [{"sku": "a"}]}, "nothing is at the path of the items"),
        ({"items": [{"id": "a"}, {"sku": "b"}, {"id": "c"}]}, "1 of 3 items have no id"),
        ({"items": [{"id": None}]}, "an item's id is null"),
        ({"items": [{"id": True}]}, "an item's id is true or false"),
        ({"items": [{"id": 1.5}]}, "an item's id is '1.5'"),
        ({"items": [{"id": ""}]}, "an item's id is ''"),
        ({"items": [{"id": {"a": 1}}]}, "an item's id is an object"),
        ({"items": [{"id": "\ud800"}]}, "an item's id has a character that no file can hold"),
        ({"items": [{"id": "a\0"}]}, "an item's id has a character that no file can hold"),
        ({"items": [{"id": "x" * 1001}]}, "an item's id has 1,001 characters"),
    ],
)
def test_what_is_not_an_answer_is_garbage_with_its_reason(content, detail):
    assert read(content) == Answer("garbage", detail=detail)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("$.items[?(@.ok == true)].id", {}),
        ("$.items[?(@.ok == true)].id", {"items": None}),
        ("$.items[?(@.ok == true)].id", {"items": "text"}),
        ("$.items[?(@.ok == true)].id", {"items": {"id": 1, "ok": False}}),
        ("$.items[?(@.ok == true)].id", {"items": [{"sku": 1, "ok": True}]}),
        ("$.items[:2].id", {"items": [{"sku": 1}]}),
        ("$.items[0].id", {"items": []}),
    ],
)
def test_no_list_to_choose_from_is_garbage(path, content):
    assert read(content, items=path).detail == "nothing is at the path of the items"


@pytest.mark.parametrize(
    ("path", "items"),
    [
        (r"$.items[\score].id", [{"id": "a", "score": 1}, {"id": "b", "score": None}]),
        (r"$.items[\score][*].id", {"id": "a", "score": 1}),
        (r"$.items[\score][*].id", None),
        ("$.items.`sorted`", ["a", 1]),
        ("$.items.`sorted`", "a"),
    ],
)
def test_a_path_that_cannot_be_applied_to_an_answer_makes_it_garbage(path, items):
    assert read({"items": items}, items=path) == Answer(
        "garbage", detail="the path cannot be applied to the answer"
    )
    content = {"ids": ["a"], "items": items}
    assert read(content, items="$.ids", scores=path).status == "garbage"
    assert read(content, items="$.ids", user=path).status == "garbage"


@given(st.deferred(lambda: values), st.sampled_from(["[\\score]", ".`sorted`", "[?(@.id > 1)]", "[::2]"]))
def test_any_json_gives_a_status_for_any_path(content, step):
    found = read(content, items=f"$.items{step}[*].id", scores=f"$.items{step}")
    assert found.status in ("ok", "garbage")


@pytest.mark.parametrize(
    ("scores", "detail"),
    [
        ([0.1], "1 scores for 2 items"),
        ([0.1, "high"], "a score is 'high'"),
        ([0.1, True], "a score is true or false"),
        ([0.1, 1e308 * 10], "the body is not JSON"),
        ([0.1, 10**400], "a score is beyond the range of float64"),
    ],
)
def test_scores_that_belong_to_no_item_or_are_no_numbers_are_garbage(scores, detail):
    assert read({"ids": ["a", "b"], "scores": scores}, items="$.ids", scores="$.scores").detail == detail


def test_a_number_beyond_float64_in_the_text_is_garbage():
    assert read(b'{"ids": ["a"], "scores": [1e999]}', items="$.ids", scores="$.scores").status == "garbage"


@pytest.mark.parametrize("position", [1.5, "1", True, 2**40, None])
def test_a_position_that_is_no_place_is_garbage(position):
    content = {"items": [{"id": "a", "rank": position}]}
    assert read(content, positions="$.items[*].rank").status == "garbage"


def test_missing_scores_are_garbage_and_not_zero():
    assert read({"items": [{"id": "a"}]}, scores="$.items[*].score").detail == "0 scores for 1 items"


@pytest.mark.parametrize(
    ("answered", "asked", "status"),
    [
        ("u1", "u1", "ok"), ("u2", "u1", "wrong_user"), (7, 7, "ok"), ("7", 7, "ok"), (None, None, "ok"),
        (None, "u1", "wrong_user"), ("u1", None, "wrong_user"), ("u1 ", "u1", "wrong_user"),
    ],
)  # fmt: skip
def test_an_answer_for_another_user_is_not_used(answered, asked, status):
    found = read({"user": answered, "items": [{"id": "a"}]}, asked, user="$.user")
    assert found.status == status
    assert list(found.items) == (["a"] if status == "ok" else [])


def test_an_answer_that_names_no_user_is_garbage():
    assert read({"items": []}, user="$.user").detail == "the path of the user finds no single value"


def test_too_many_items_are_too_large():
    assert reader(most=2).read(b'{"items": [{"id": 1}, {"id": 2}, {"id": 3}]}', "u") == Answer(
        "too_large", detail="3 items"
    )


def test_hostile_text_is_escaped_in_details_and_models():
    found = read({"ids": ["a"], "scores": ["\x1b[31m" * 99]}, items="$.ids", scores="$.scores")
    assert "\x1b" not in found.detail
    assert len(found.detail) < 100
    assert read({"items": [], "model": "a\nb"}, model="$.model").model == "a[LF]b"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["items", "id", "score", "user", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_any_json_gives_a_status_and_never_an_exception(content):
    found = read(content, scores="$.items[*].score", user="$.user")
    assert found.status in ("ok", "garbage", "wrong_user")
    assert bool(found.detail) == (found.status != "ok")
    if found.status == "ok":
        assert len(found.scores) == len(found.items) == len(content["items"])
        assert all(score is None or math.isfinite(score) for score in found.scores)


@given(st.binary(max_size=50))
def test_any_bytes_give_a_status(body):
    assert reader().read(body, "u1").status in ("ok", "garbage")


@pytest.mark.parametrize("path", ["$.[", "", "$.items[", "]"])
def test_a_wrong_path_is_explained(path):
    assert "is not a JSON path such as $.items[*].id" in path_problem(path)


def test_a_right_path_has_no_problem():
    assert path_problem("$.a['b c'][0].d[1:3]") is None
