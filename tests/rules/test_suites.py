"""Suite files: what is read, what is refused, and where the mistakes are said to be."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from pydantic import ValidationError

from monitor.core.results import Kind
from monitor.rules.packs import pack_names, pack_path
from monitor.rules.rule import SuiteErrors
from monitor.rules.suites import load_rules
from monitor.settings.rules import RuleSettings

ROOT = Path(__file__).resolve().parents[2]

GOOD = """
  - type: expect_column_values_to_be_between
    kwargs: {column: score, min_value: 0, mostly: 0.999}
    severity: warning
    meta: {rule: score-low, kind: soft, owner: me, runbook: docs/x.md, table: exposures}
"""


def suite(folder: Path, entries: str, head: str = "name: ours\n", name: str = "ours.yaml") -> RuleSettings:
    text = head + "expectations:\n" + textwrap.indent(textwrap.dedent(entries).strip("\n"), "  ")
    (folder / name).write_text(text)
    return RuleSettings(suite=name)


def problems(*sources: RuleSettings, base: Path) -> list[str]:
    with pytest.raises(SuiteErrors) as caught:
        load_rules(sources, base)
    return [str(one) for one in caught.value.problems]


def entry(
    meta: str = "rule: r, kind: hard", kwargs: str = "column: score, min_value: 0", more: str = ""
) -> str:
    return f"""
    - type: expect_column_values_to_be_between
      kwargs: {{{kwargs}}}
      meta: {{{meta}}}
      {more}
    """


def test_a_teams_own_suite_becomes_rules(tmp_path):
    (rule,) = load_rules([suite(tmp_path, GOOD)], tmp_path)
    assert (rule.name, rule.kind, rule.table, rule.severity) == (
        "score-low",
        Kind.SOFT,
        "exposures",
        "warning",
    )
    assert (rule.threshold, rule.owner, rule.runbook) == (0.001, "me", "docs/x.md")
    assert rule.columns == ("score",)


def test_a_rule_without_a_table_looks_at_exposures_and_without_a_severity_is_critical(tmp_path):
    (rule,) = load_rules([suite(tmp_path, entry())], tmp_path)
    assert (rule.table, rule.severity, rule.threshold) == ("exposures", "critical", 0)


def test_parameters_come_from_the_config_before_the_suites_defaults(tmp_path):
    source = suite(
        tmp_path,
        entry(kwargs="column: score, min_value: {$PARAMETER: low}, max_value: {$PARAMETER: high}"),
        head="name: ours\nmeta: {parameters: {low: 1, high: 2}}\n",
    )
    (rule,) = load_rules([source.model_copy(update={"parameters": {"high": 5}})], tmp_path)
    assert (rule.kwargs["min_value"], rule.kwargs["max_value"]) == (1, 5)


def test_the_name_of_a_parameter_may_be_a_number(tmp_path):
    given = suite(
        tmp_path,
        entry(kwargs="column: score, max_value: {$PARAMETER: 90}"),
        head="meta: {parameters: {90: 0.5}}\n",
    )
    assert load_rules([given], tmp_path)[0].kwargs["max_value"] == 0.5
    misspelt = given.model_copy(update={"parameters": {"91": 1}})
    assert problems(misspelt, base=tmp_path) == ["rules[0].parameters.91: ours.yaml has no such parameter"]


def test_a_null_parameter_leaves_its_rule_out(tmp_path):
    source = suite(
        tmp_path,
        entry(kwargs="column: {$PARAMETER: col}, min_value: 0") + entry(meta="rule: other, kind: hard"),
        head="meta: {parameters: {col: null}}\n",
    )
    assert [rule.name for rule in load_rules([source], tmp_path)] == ["other"]
    given = source.model_copy(update={"parameters": {"col": "score"}})
    assert [rule.name for rule in load_rules([given], tmp_path)] == ["r", "other"]


def test_a_disabled_rule_is_left_out_with_its_missing_parameters(tmp_path):
    pack = RuleSettings(pack="blacklist", disable=("blacklist",))
    assert load_rules([pack], tmp_path) == ()


def test_list_files_are_relative_to_the_config(tmp_path):
    pack = RuleSettings(pack="blacklist", parameters={"blacklist": "lists/bad.csv"})
    (rule,) = load_rules([pack], tmp_path)
    assert rule.kwargs["list_path"] == str(tmp_path / "lists/bad.csv")


def test_the_definition_follows_what_is_counted_and_nothing_else(tmp_path):
    def definition(text: str, base: Path = tmp_path) -> str:
        base.mkdir(exist_ok=True)
        (rule,) = load_rules([suite(base, text)], base)
        return rule.definition

    first = definition(entry())
    assert definition(entry(more="severity: info")) == first
    assert definition(entry(meta="rule: r, kind: hard, owner: you")) == first
    assert definition(entry(kwargs="column: score, min_value: 1")) != first
    assert definition(entry(meta="rule: r, kind: hard, table: arrivals")) != first
    assert definition(entry(), tmp_path / "elsewhere") == first


def test_the_extra_keys_of_the_form_that_gx_writes_are_accepted(tmp_path):
    (rule,) = load_rules([suite(tmp_path, entry(more="id: 123e4567-e89b-12d3-a456-426614174000"))], tmp_path)
    assert rule.name == "r"


def test_every_mistake_of_every_suite_is_reported_at_once_with_its_place(tmp_path):
    first = suite(
        tmp_path,
        entry(meta="rule: Bad Name, kind: firm, table: exposure")
        + entry(meta="rule: a, kind: hard", kwargs="column: score, min_value: 0, mostly: 0.9")
        + entry(meta="rule: b, kind: soft")
        + entry(meta="rule: c, kind: hard", kwargs="column: score, min_value: 0, mostly: lots")
        + entry(meta="rule: d, kind: hard", kwargs="column: score, min_valu: 0")
        + entry(meta="rule: e, kind: hard", kwargs="column: score, min_value: {$PARAMETER: low}")
        + entry(meta="rule: f, kind: hard", more="severity: fatal")
        + entry(meta="rule: g, kind: hard", more="wibble: 1")
        + """
    - type: expect_column_values_to_be_betwen
      meta: {rule: h, kind: hard}
    - just a word
    - type: expect_column_values_to_be_finite
      kwargs: {column: score}
    """,
    )
    second = suite(tmp_path, entry(meta="rule: twice, kind: hard") * 2, name="second.yaml")
    found = problems(first, second, RuleSettings(pack="blaklist"), base=tmp_path)
    expected = [
        "ours.yaml: expectations[0].meta.rule: 'Bad Name' is no name",
        "ours.yaml: expectations[0].meta.kind: 'firm' is not one of hard, soft, numeric",
        "ours.yaml: expectations[0].meta.table: there is no table 'exposure'; did you mean 'exposures'?",
        "ours.yaml: expectations[1].kwargs.mostly: a hard rule allows no violation",
        "ours.yaml: expectations[2].kwargs.mostly: a soft rule needs `mostly` below 1",
        "ours.yaml: expectations[3].kwargs.mostly: 'lots' is not a number",
        "ours.yaml: expectations[4].kwargs.min_valu: ",
        "ours.yaml: expectations[5].kwargs.min_value: needs the parameter 'low'; "
        "give it in rules[0].parameters.low",
        "ours.yaml: expectations[6].severity: 'fatal' is not one of critical, warning, info",
        "ours.yaml: expectations[7].wibble: unknown key",
        "ours.yaml: expectations[8].type: there is no expectation 'expect_column_values_to_be_betwen'; "
        "did you mean 'expect_column_values_to_be_between'?",
        "ours.yaml: expectations[9]: must be a mapping",
        "ours.yaml: expectations[10].meta: must say at least `rule`",
        "second.yaml: expectations[1].meta.rule: the name 'twice' is taken by second.yaml: expectations[0]",
        "rules[2].pack: there is no pack 'blaklist'; did you mean 'blacklist'?",
    ]
    missing = [one for one in expected if not any(text.startswith(one) for text in found)]
    assert not missing, "\n".join(found)


def test_one_name_in_two_suites_is_a_mistake(tmp_path):
    first = suite(tmp_path, entry(), name="one.yaml")
    second = suite(tmp_path, entry(), name="two.yaml")
    assert problems(first, second, base=tmp_path) == [
        "two.yaml: expectations[0].meta.rule: the name 'r' is taken by one.yaml: expectations[0]"
    ]


def test_a_parameter_or_disabled_rule_that_the_suite_does_not_have_is_a_mistake(tmp_path):
    pack = RuleSettings(pack="lists", parameters={"max_lenght": 5}, disable=("duplicat_item",))
    assert problems(pack, base=tmp_path) == [
        "rules[0].parameters.max_lenght: lists.yaml has no such parameter; did you mean 'max_length'?",
        "rules[0].disable[0]: lists.yaml has no rule 'duplicat_item'; did you mean 'duplicate_item'?",
    ]


@pytest.mark.parametrize("parameters", ["5", "[low]", "low"])
def test_parameters_of_a_suite_that_are_no_mapping_are_a_mistake(tmp_path, parameters):
    head = f"name: ours\nmeta: {{parameters: {parameters}}}\n"
    assert problems(suite(tmp_path, entry(), head), base=tmp_path) == [
        "ours.yaml: meta.parameters: must be a mapping"
    ]


BOMB = b"a0: &a0 [x, x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "ours.yaml: cannot be read: No such file or directory"),
        (b"a: [1, 2", "ours.yaml: line 1, column 4: is not YAML"),
        (b"\xff\xfe\x00", "ours.yaml: line 1: is not UTF-8 text"),
        (
            b"name: x\nexpectations: []\nexpectations: []\n",
            "ours.yaml: line 3, column 1: the key 'expectations'",
        ),
        (BOMB, "values after its aliases are expanded"),
        (b"", "ours.yaml: must be a mapping"),
        (b"- a\n- b\n", "ours.yaml: must be a mapping"),
        (b"name: x\n", "ours.yaml: expectations: must be a list"),
        (b"expectatons: []\nexpectations: []\n", "expectatons: unknown key; did you mean 'expectations'?"),
        (b"!!python/object/apply:os.system ['true']", "ours.yaml: line 1, column 1: tags are not allowed"),
    ],
)
def test_a_file_that_is_no_suite_is_reported_with_the_reason(tmp_path, content, says):
    if content is not None:
        (tmp_path / "ours.yaml").write_bytes(content)
    found = problems(RuleSettings(suite="ours.yaml"), base=tmp_path)
    assert any(says in text for text in found), found


@pytest.mark.parametrize("kind", ["soft", "numeric"])
def test_a_rule_that_could_never_be_violated_is_a_mistake(tmp_path, kind):
    text = f"""
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {{column: price, min_value: 0, mostly: 0}}
    meta: {{rule: price, kind: {kind}}}
"""
    (tmp_path / "ours.yaml").write_text(text)
    (found,) = problems(RuleSettings(suite="ours.yaml"), base=tmp_path)
    assert "mostly: with 0 the rule can never be violated" in found


def test_a_bound_that_is_not_a_number_is_a_mistake(tmp_path):
    text = """
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: price, min_value: .nan, max_value: .inf}
    meta: {rule: price, kind: hard}
"""
    (tmp_path / "ours.yaml").write_text(text)
    (found,) = problems(RuleSettings(suite="ours.yaml"), base=tmp_path)
    assert "kwargs.min_value: NaN is no bound: no value is above or below it" in found


def test_a_source_is_either_a_pack_or_a_suite():
    for wrong in ({}, {"pack": "blacklist", "suite": "x.yaml"}, {"pack": "blacklist", "wibble": 1}):
        with pytest.raises(ValidationError):
            RuleSettings(**wrong)


NEEDED = {"blacklist": {"blacklist": "x.csv"}, "category": {"max_per_category": 5}}


@pytest.mark.parametrize("name", pack_names())
def test_every_pack_loads_and_its_rules_have_description_and_runbook_and_the_recommenders_owner(
    name, tmp_path
):
    rules = load_rules([RuleSettings(pack=name, parameters=NEEDED.get(name, {}))], tmp_path)
    assert rules
    for rule in rules:
        assert rule.owner == ""
        assert rule.description.endswith(".")
        assert (ROOT / rule.runbook).is_file(), rule.runbook


def test_no_rule_name_occurs_in_two_packs(tmp_path):
    sources = [RuleSettings(pack=name, parameters=NEEDED.get(name, {})) for name in pack_names()]
    assert len(load_rules(sources, tmp_path)) >= 16


def test_a_pack_name_cannot_lead_out_of_the_folder():
    assert pack_path("../alerts/rules") is None
