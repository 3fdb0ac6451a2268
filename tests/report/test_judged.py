"""What `check` prints for machines, whatever a log holds."""

from __future__ import annotations

from xml.etree import ElementTree

from monitor.report.judged import Judged, as_junit
from tests.service import pictures


def test_junit_is_xml_whatever_the_value_of_a_slice_is():
    value = 'home\x00\x1b\ufffe<&>"'
    sliced = pictures.metric("coverage", "pv", value=0.5, labels={"dimension": "scene", "value": value})
    root = ElementTree.fromstring(as_junit([Judged("shop", "exposure", pictures.LAST, sliced)]))
    (case,) = root.iter("testcase")
    assert 'value=home\ufffd\ufffd\ufffd<&>"' in str(case.get("name"))
