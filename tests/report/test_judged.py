"""What `check` prints for machines, whatever a log holds."""

from __future__ import annotations

from xml.etree import ElementTree

from monitor.core.results import Status
from monitor.report.judged import Judged, as_junit
from tests.service import pictures


def test_junit_is_xml_whatever_the_value_of_a_slice_is():
    value = 'home\x00\x1b\ufffe<&>"'
    sliced = pictures.metric("coverage", "pv", value=0.5, labels={"dimension": "scene", "value": value})
    root = ElementTree.fromstring(as_junit([Judged("shop", "exposure", pictures.LAST, sliced)]))
    (case,) = root.iter("testcase")
    assert 'value=home\ufffd\ufffd\ufffd<&>"' in str(case.get("name"))


def test_junit_says_why_in_the_message_and_in_the_text():
    why = "the file a\udcff\x00.csv cannot be read"
    (node,) = _nodes(pictures.metric("coverage", "pv", status=Status.ERROR, detail=why))
    assert node.tag == "error"
    assert node.get("message") == node.text == "the file a\ufffd\ufffd.csv cannot be read"


def test_junit_shows_the_evidence_below_the_reason():
    evidence = ({"item_id": "i3"},)
    detail = "1 of 4 violate the rule"
    (node,) = _nodes(pictures.rule("blacklist", status=Status.VIOLATED, detail=detail, evidence=evidence))
    assert node.text.splitlines()[0] == "1 of 4 violate the rule"
    assert '"item_id": "i3"' in node.text


def _nodes(result):
    root = ElementTree.fromstring(as_junit([Judged("shop", "exposure", pictures.LAST, result)]))
    return [node for case in root.iter("testcase") for node in case]
