"""The picture of the trade-off: a line for each method, at the shares that were measured."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.real_traffic.picture import Compared, picture, picture_name
from benchmarks.scoreboard.rates import Share

SVG = "{http://www.w3.org/2000/svg}"


def lines_of(text: str) -> list[list[tuple[float, float]]]:
    found = ElementTree.fromstring(text).iter(f"{SVG}polyline")
    return [[tuple(map(float, one.split(","))) for one in each.attrib["points"].split()] for each in found]


def test_each_method_has_a_line_from_few_false_alarms_to_many() -> None:
    compared = [
        Compared(method, false, {"half": Share(hits, 10)})
        for method, hits_of in (("bands", (10, 10)), ("a <peer>", (0, 5)))
        for false, hits in zip((0.0, 2.0), hits_of, strict=True)
    ]
    text = picture(compared)
    ours, peer = lines_of(text)
    assert [x for x, _ in ours] == [x for x, _ in peer] == [50.0, 270.0]
    assert {y for _, y in ours} == {40.0}  # all of them, at the top
    assert [y for _, y in peer] == [170.0, 105.0]  # none, and half
    words = [one.text for one in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert {"half of all requests are gone for a day", "bands", "a <peer>", "100 %"} <= set(words)


@pytest.mark.parametrize(
    "compared",
    [[], [Compared("bands", 0.0, None)], [Compared("bands", 0.0, {})]],
)
def test_without_a_measured_share_there_is_no_picture(compared: list[Compared]) -> None:
    assert picture(compared) == ""


def test_a_method_without_such_a_bound_has_a_shorter_line() -> None:
    compared = [Compared("bands", 0.0, None), Compared("bands", 1.0, {"half": Share(1, 2)})]
    assert lines_of(picture(compared)) == [[(160.0, 105.0)]]


def test_a_picture_lies_beside_the_page() -> None:
    assert picture_name("taxi-large from week 6") == "real-traffic-taxi-large-from-week-6.svg"
