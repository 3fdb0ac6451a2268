"""What the rules of an Alertmanager's config hold back; that it does so itself is seen in its own tests."""

from __future__ import annotations

import pytest

from benchmarks.scoreboard.inhibition import Inhibition

PAGE = {"severity": "page", "recommender": "a"}
TICKET = {"severity": "ticket", "recommender": "a"}
RULE = Inhibition.read(
    {
        "source_matchers": ['severity = "page"', 'recommender != ""'],
        "target_matchers": ['severity="ticket"', 'alertname !~ "Loud|Louder"'],
        "equal": ["recommender"],
    }
)


@pytest.mark.parametrize(
    ("labels", "firing", "held"),
    [
        (TICKET, [], False),
        (TICKET, [PAGE], True),
        (TICKET, [TICKET], False),
        (TICKET, [PAGE | {"recommender": "b"}], False),
        ({"severity": "ticket"}, [{"severity": "page"}], False),
        (TICKET | {"alertname": "Louder"}, [PAGE], False),
        (TICKET | {"alertname": "Loudest"}, [PAGE], True),
        (PAGE, [PAGE], False),
    ],
)
def test_an_alert_is_inhibited_by_a_matching_alert(
    labels: dict[str, str], firing: list[dict[str, str]], held: bool
) -> None:
    assert RULE.holds_back(labels, firing) is held


def test_alerts_on_both_sides_of_a_rule_do_not_inhibit_each_other() -> None:
    rule = Inhibition.read({"source_matchers": ['a =~ "1|2"'], "target_matchers": ['a =~ "2|3"']})
    assert rule.holds_back({"a": "2"}, [{"a": "1"}])
    assert not rule.holds_back({"a": "2"}, [{"a": "2"}])
    assert rule.holds_back({"a": "3"}, [{"a": "2"}])


@pytest.mark.parametrize("text", ["severity", "severity = page", 'severity == "page"', ""])
def test_a_matcher_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no matcher"):
        Inhibition.read({"source_matchers": [text], "target_matchers": []})
