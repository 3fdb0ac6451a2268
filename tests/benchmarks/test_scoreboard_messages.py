"""When groups of alerts send, at the pace that Alertmanager has."""

from __future__ import annotations

import pytest

from benchmarks.scoreboard.groups import paces
from benchmarks.scoreboard.messages import Change, Group, Labels, Message, Pace, sent

PACES = {"ticket": Pace(5, 60, 600), "page": Pace(1, 5, 240)}  # in minutes, for the eye
TICKET: Group = ("ticket", (("recommender", "a"),))
PAGE: Group = ("page", (("recommender", "a"),))
A: Labels = (("alertname", "A"),)
B: Labels = (("alertname", "B"),)
Changes = list[tuple[int, dict[Labels, bool | None]]]
HEARD, HELD = True, False


def change(at: int, states: dict[Group, dict[Labels, bool | None]]) -> Change:
    """Alerts that are heard, held back, or (None) over and held back."""
    firing = {
        group: [one for one, how in state.items() if how is not None] for group, state in states.items()
    }
    held = [one for state in states.values() for one, how in state.items() if not how]
    return Change(at, {group: some for group, some in firing.items() if some}, lambda one: one not in held)


def alert_text(changes: Changes, end: int = 500, group: Group = TICKET) -> list[tuple[float, str]]:
    """When messages are sent, and the names of the alerts that they tell of."""
    found = sent([change(at, {group: state}) for at, state in changes], PACES, end)
    return [(one.moment, "".join(labels[0][1] for labels in one.told)) for one in found]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], []),
        ([(10, {A: HEARD})], [(15, "A")]),
        ([(10, {A: HEARD}), (13, {A: HEARD, B: HEARD})], [(15, "AB")]),
        ([(10, {A: HEARD}), (14, {})], []),  # over before the group has waited
        ([(10, {A: HEARD}), (15, {})], []),  # and at that very moment
        ([(10, {A: HEARD}), (16, {})], [(15, "A")]),  # that it is over is no message here
        ([(10, {A: HEARD}), (20, {A: HEARD, B: HEARD})], [(15, "A"), (75, "B")]),
        ([(10, {A: HEARD}), (20, {B: HEARD})], [(15, "A"), (75, "B")]),
        ([(10, {A: HEARD}), (20, {}), (30, {A: HEARD})], [(15, "A")]),  # it was never seen to be over
        ([(10, {A: HEARD}), (20, {}), (80, {A: HEARD})], [(15, "A"), (85, "A")]),  # it was, and comes again
        (
            [(10, {A: HEARD, B: HEARD}), (20, {A: HEARD}), (90, {A: HEARD, B: HEARD})],
            [(15, "AB"), (135, "B")],
        ),
    ],
)
def test_a_group_sends_new_alerts_at_its_next_flush(
    changes: Changes, expected: list[tuple[float, str]]
) -> None:
    assert alert_text(changes) == expected


def test_an_inhibited_alert_is_sent_at_the_first_flush_after_the_inhibition() -> None:
    assert alert_text([(10, {A: HELD}), (30, {})]) == []
    assert alert_text([(10, {A: HELD}), (30, {A: HEARD})]) == [(75, "A")]
    assert alert_text([(10, {A: HEARD, B: HELD}), (100, {A: HELD, B: HEARD})]) == [(15, "A"), (135, "B")]


def test_an_alert_that_resolves_while_inhibited_is_not_sent_again() -> None:
    over: Changes = [(10, {A: HEARD}), (20, {A: HELD}), (30, {A: None}), (80, {}), (100, {A: HEARD})]
    assert alert_text(over) == [(15, "A")]
    heard: Changes = [(10, {A: HEARD}), (20, {A: HELD}), (30, {A: None}), (70, {}), (100, {A: HEARD})]
    assert alert_text(heard) == [(15, "A"), (105, "A")]  # what held it back was gone when the group looked


def test_an_alert_that_keeps_firing_is_repeated() -> None:
    assert alert_text([(0, {A: HEARD})], end=1500) == [(5, "A"), (665, "A"), (1325, "A")]
    assert alert_text([(0, {A: HEARD})], end=500, group=PAGE) == [(1, "A"), (246, "A"), (491, "A")]


def test_nothing_is_sent_after_the_end_and_each_group_has_its_own_clock() -> None:
    assert alert_text([(0, {A: HEARD})], end=4) == []
    assert alert_text([(0, {A: HEARD})], end=5) == [(5, "A")]
    both = [change(0, {TICKET: {A: HELD}, PAGE: {B: HEARD}}), change(3, {TICKET: {A: HEARD}})]
    assert sent(both, PACES, 500) == [Message(1, *PAGE, (B,)), Message(5, *TICKET, (A,))]


def test_the_pace_comes_from_the_shipped_config() -> None:
    found = paces()
    assert found["page"] == Pace(30, 300, 4 * 3600)
    assert found["ticket"] == Pace(300, 600, 3 * 86400)
    assert found["nobody"] == found["ticket"]
