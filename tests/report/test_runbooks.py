"""The runbooks as pages: every one of them can be read, every link in them leads somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from monitor.report.runbook_page import rendered, runbook_page
from monitor.report.runbooks import INDEX, own_address, runbook_address, runbook_names, runbook_text
from monitor.rules.packs import pack_names
from tests.conftest import ROOT
from tests.service import pictures


class Links(HTMLParser):
    """The elements, ids and links of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.ids: set[str] = set()
        self.hrefs: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        given = dict(attrs)
        self.ids |= {given["id"]} if given.get("id") else set()
        self.hrefs += [given["href"]] if "href" in given else []


def page_of(name: str) -> Links:
    return Links(rendered(runbook_text(name) or "", name)[1])


def test_every_runbook_of_the_repository_has_a_name():
    files = {
        path.relative_to(ROOT / "docs/runbooks").as_posix() for path in ROOT.glob("docs/runbooks/**/*.md")
    }
    assert {f"{name}.md" for name in runbook_names()} == files
    assert len(files) > 60


def test_every_link_between_runbooks_leads_to_a_heading_that_exists():
    pages = {name: page_of(name) for name in runbook_names()}
    followed = 0
    for name, page in pages.items():
        for href in page.hrefs:
            target = urlsplit(urljoin(f"http://m/{own_address(name)}", href))
            if target.netloc != "m":
                continue
            other = target.path.removeprefix("/runbooks/") or INDEX
            assert other in pages, f"{name}: {href}"
            assert not target.fragment or target.fragment in pages[other].ids, f"{name}: {href}"
            followed += 1
    assert followed > 100


def test_no_runbook_shows_its_markup():
    for name in runbook_names():
        title, html = rendered(runbook_text(name) or "", name)
        assert title, name
        text = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", html, flags=re.DOTALL)
        assert not re.search(r"\]\(|^\||^#|\*\*", re.sub(r"<[^>]*>", "", text), re.MULTILINE), name


def test_links_out_of_the_runbooks_need_the_address_of_the_documents():
    text = "See [bands](../bands.md#how) and [the code](../../../etc/passwd)."
    assert Links(rendered(text, "RecsysDrift")[1]).hrefs == []
    linked = Links(rendered(text, "RecsysDrift", "https://git.test/main")[1]).hrefs
    assert linked == ["https://git.test/main/docs/bands.md#how"]


@pytest.mark.parametrize(
    "text",
    [
        pictures.HOSTILE,
        f"# {pictures.HOSTILE}\n\n`{pictures.HOSTILE}`",
        "[a](javascript:alert(1)) [b](<data:text/html,<script>alert(1)</script>>)",
        "[a](//evil.test/x) ![i](http://evil.test/x.png)",
        "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
        '[a](http://ok.test/"onmouseover="alert(1))',
    ],
)
def test_nothing_in_a_runbook_becomes_an_element_of_its_own(text):
    page = Links(rendered(text)[1])
    assert page.elements <= {"h1", "p", "code", "a", "table", "thead", "tbody", "tr", "th", "td"}
    assert all(href.startswith("http://") for href in page.hrefs), page.hrefs


@pytest.mark.parametrize("name", ["../README", "rules/../../../README", "/etc/passwd", "causes", "nothing"])
def test_a_name_that_is_no_runbook_has_no_page(name):
    assert runbook_page(pictures.full(), name, pictures.NOW) is None


def test_a_runbook_of_a_rule_is_the_teams_own_if_it_has_said_where():
    path = "docs/runbooks/rules/blacklist.md"
    assert runbook_address(path) == "runbooks/rules/blacklist"
    assert runbook_address(path, "https://git.test/x") == f"https://git.test/x/{path}"
    assert runbook_address("docs/runbooks/rules/of_ours.md") == ""


@pytest.mark.parametrize("pack", pack_names())
def test_the_runbook_of_every_pack_is_served(pack):
    named = re.findall(r"runbook: (\S+)", (ROOT / f"rules/business/{pack}.yaml").read_text())
    assert named
    for path in named:
        assert runbook_address(path).startswith("runbooks/rules/")


def test_the_wheel_has_the_runbooks_and_serves_them_without_the_repository(tmp_path: Path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    command = (
        "from monitor.core.shipped import shipped; from monitor.report.runbooks import runbook_names; "
        "print(shipped('runbooks'), len(runbook_names()))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", command],
        cwd=tmp_path / "installed", check=True, capture_output=True, text=True, timeout=120,
    ).stdout.split()  # fmt: skip
    assert shown == [str(tmp_path / "installed/monitor/shipped/runbooks"), str(len(runbook_names()))]
    shutil.rmtree(tmp_path / "installed")
