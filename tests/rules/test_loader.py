"""Rule files: what loads, what is refused in which words, and what operators can change."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from otelmon.checks.registry import Check
from otelmon.rules.loader import builtin_rules_dir, load_rule, load_rules, with_params
from otelmon.vocabulary.config import RuleConfig
from otelmon.vocabulary.errors import UserError
from tests.rules.helpers import Limit

GOOD = """\
id: too_dear
title: A call costs more than allowed
status: stable
severity: medium
family: policy
description: Somebody paid too much.
check: too_dear
scope: run
params: {limit: 50}
needs: [arguments]
wins_over: []
tags: [owasp.asi02]
references: [https://example.com/]
false_positives: [A big shop.]
runbook: |
  ## Meaning
  a
  ## Impact
  b
  ## Diagnosis
  c
  ## Mitigation
  d
tests:
  - name: above
    events: [{tool: pay, args: {amount: 51}}]
    fires: [1]
  - name: not above
    events: [{tool: pay, args: {amount: 50}, repeat: 2}]
    fires: []
"""

pytestmark = pytest.mark.usefixtures("too_dear_check")


def write(folder: Path, text: str = GOOD, name: str = "too_dear") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def messages(path: Path) -> list[str]:
    with pytest.raises(UserError) as caught:
        load_rule(path, "r.yaml")
    return [str(p) for p in caught.value.problems]


def test_a_rule_is_loaded_with_everything_in_it(tmp_path: Path, too_dear_check: Check) -> None:
    rule = load_rule(write(tmp_path))
    assert (rule.id, rule.title, rule.status, rule.severity, rule.family) == (
        "too_dear", "A call costs more than allowed", "stable", "medium", "policy",
    )  # fmt: skip
    assert rule.check is too_dear_check
    assert rule.params == Limit(limit=50)
    assert (rule.scope, rule.needs, rule.tags) == ("run", ("arguments",), ("owasp.asi02",))
    assert [case.name for case in rule.tests] == ["above", "not above"]
    assert rule.path == str(tmp_path / "too_dear.yaml")
    assert not rule.waits


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("severity: medium", "severity: hgih", 'r.yaml:4:1: severity is "hgih"; expected one of info, low, medium, high, critical; did you mean high?'),
        ("title:", "titel:", "r.yaml:1:1: title is missing; expected text"),
        ("title:", "titel:", "r.yaml:2:1: unknown field titel; did you mean title?"),
        ("id: too_dear", "id: too_deer", "r.yaml:1:1: id is too_deer but the file is called too_dear; expected the same; name the file too_deer.yaml"),
        ("id: too_dear", "id: Too-Dear", 'r.yaml:1:1: id is "Too-Dear"; expected 3 to 48 of a-z, 0-9 and _, a letter first'),
        ("check: too_dear", "check: too_deer", "r.yaml:7:1: there is no check called too_deer; did you mean too_dear?"),
        ("{limit: 50}", "{limt: 50}", "r.yaml:9:10: unknown field limt; did you mean limit?"),
        ("{limit: 50}", "{limit: 1:30}", 'r.yaml:9:10: limit is "1:30"; expected a whole number'),
        ("needs: [arguments]", "needs: [arguments, resutl]", 'r.yaml:10:20: needs[1] is "resutl"; expected one of arguments, result, catalogue, user_text, final_message, past_complete, context_complete, run_end; did you mean result?'),
        ("owasp.asi02", "owasp.asi2", "r.yaml:12:8: unknown tag owasp.asi2; did you mean owasp.asi02?"),
        ("owasp.asi02", "mine", "r.yaml:12:8: unknown tag mine; add it to otelmon/data/taxonomy.toml with its source"),
        ("wins_over: []", "wins_over: [too_dear]", "r.yaml:11:13: wins_over names the rule itself; remove it"),
        ("## Impact", "## Effect", "r.yaml:15:1: runbook has the headings Meaning, Effect, Diagnosis, Mitigation; expected ## Meaning, ## Impact, ## Diagnosis, ## Mitigation"),
        ("  b\n", "", "r.yaml:15:1: runbook says nothing under ## Impact; expected at least a sentence"),
        ("fires: [1]", "fires: []", "r.yaml:24:1: no test fires; expected at least one firing and one silent test"),
        ("fires: []", "fires: [1]", "r.yaml:24:1: no test stays silent; expected at least one firing and one silent test"),
        ("name: not above", "name: above", "r.yaml:28:5: two tests are called above; expected another name"),
        ("fires: [1]", "fires: [2]", "r.yaml:27:13: position 2 is not in the test; expected 1 to 1"),
        ("fires: []", "fires: [2, {3: high}]", "r.yaml:30:16: position 3 is not in the test; expected 1 to 2"),
        ("fires: [1]", "fires: [{1: hihg}]", 'r.yaml:27:14: 1 is "hihg"; expected one of info, low, medium, high, critical; did you mean high?'),
        ("fires: [1]", "fires: [no]", 'r.yaml:27:13: fires[0] is "no"; expected a whole number or a map'),
        ("{tool: pay, args: {amount: 51}}", "{tol: pay}", "r.yaml:26:14: the event is not one of the known kinds; expected exactly one of system, user, context, assistant, tool, define; did you mean tool?"),
        ("{tool: pay, args: {amount: 51}}", "{tool: pay, arsg: {}}", "r.yaml:26:26: unknown field arsg; did you mean args?"),
        ("{tool: pay, args: {amount: 51}}", "{tool: pay, user: x}", "r.yaml:26:14: the event is not one of the known kinds; expected exactly one of system, user, context, assistant, tool, define"),
        ("{amount: 50}, repeat: 2}", "{amount: 50}, repeat: 0}", "r.yaml:29:46: repeat is 0; expected 1 to 1000"),
        ("    fires: [1]", "    params: {limit: x}\n    fires: [1]", 'r.yaml:27:14: limit is "x"; expected a whole number'),
        ("    fires: [1]", "    catalogue: {tools: [{name: a, efect: read}]}\n    fires: [1]", "r.yaml:27:35: unknown field efect; did you mean effect?"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_and_a_guess(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert expected in messages(write(tmp_path, GOOD.replace(old, new, 1)))


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    one = write(tmp_path, GOOD.replace("medium", "x").replace("policy", "y"))
    two = write(tmp_path, "a: 1\na: 2", "two")
    with pytest.raises(UserError) as caught:
        load_rules([tmp_path, tmp_path / "nowhere"])
    assert [p.where.partition(":")[0] for p in caught.value.problems] == [
        str(tmp_path / "nowhere"),
        str(one),
        str(one),
        str(two),
    ]


def test_drafts_are_not_loaded(tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace("status: stable", "status: draft"))
    assert load_rules([tmp_path]).rules == {}
    assert list(load_rules([tmp_path], drafts=True).rules) == ["too_dear"]


def test_an_id_can_be_taken_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = write(tmp_path / "a"), write(tmp_path / "b")
    with pytest.raises(UserError) as caught:
        load_rules([tmp_path / "a", tmp_path / "b"])
    assert str(caught.value) == f"{two}: rule too_dear is also in {one}; expected each id once"


def test_the_built_in_rules_are_the_default() -> None:
    assert builtin_rules_dir().name == "rules"
    built_in = load_rules()
    assert built_in == load_rules([builtin_rules_dir()])
    assert built_in.rules


def test_operators_change_severity_and_parameters(tmp_path: Path) -> None:
    write(tmp_path)
    before = load_rules([tmp_path])
    after = load_rules([tmp_path], {"too_dear": RuleConfig(severity="critical", params={"limit": 9})})
    rule = after.rules["too_dear"]
    assert (rule.severity, rule.severity_fixed, rule.params) == ("critical", True, Limit(limit=9))
    assert not before.rules["too_dear"].severity_fixed
    assert rule.version != before.rules["too_dear"].version
    assert after.version != before.version


def test_other_parameters_of_the_file_stay(tmp_path: Path) -> None:
    write(tmp_path)
    rule = load_rules([tmp_path], {"too_dear": RuleConfig(params={"unused": 1})}).rules["too_dear"]
    assert rule.params == Limit(limit=50, unused=1)
    assert not rule.severity_fixed


def test_a_rule_can_be_turned_off(tmp_path: Path) -> None:
    write(tmp_path)
    assert load_rules([tmp_path], {"too_dear": RuleConfig(enabled=False)}).rules == {}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            {"too_deer": RuleConfig()},
            "otelmon.toml:3: rules.too_deer: there is no rule called too_deer; did you mean too_dear?",
        ),
        ({"loop": RuleConfig()}, "rules.loop: there is no rule called loop; see `otelmon rules list`"),
        (
            {"too_dear": RuleConfig(params={"limt": 1})},
            "otelmon.toml:9: rules.too_dear.params: unknown field limt; did you mean limit?",
        ),
        (
            {"too_dear": RuleConfig(params={"limit": "x"})},
            'otelmon.toml:9: rules.too_dear.params: limit is "x"; expected a whole number',
        ),
    ],
)
def test_a_wrong_override_is_told_where_it_was_written(
    tmp_path: Path, override: dict[str, RuleConfig], message: str
) -> None:
    write(tmp_path)
    origins = {"rules.too_deer.enabled": "otelmon.toml:3", "rules.too_dear.params": "otelmon.toml:9"}
    with pytest.raises(UserError) as caught:
        load_rules([tmp_path], override, origins)
    assert str(caught.value) == message


def test_the_version_changes_with_what_can_change_a_finding_only(tmp_path: Path) -> None:
    version = load_rule(write(tmp_path)).version
    for old, new in (("Somebody paid too much.", "x"), ("amount: 51", "amount: 52"), ("[A big shop.]", "[]")):
        assert load_rule(write(tmp_path, GOOD.replace(old, new))).version == version
    for old, new in (("medium", "high"), ("limit: 50", "limit: 40"), ("stable", "test"), ("[arguments]", "[]")):
        assert load_rule(write(tmp_path, GOOD.replace(old, new))).version != version


def test_a_default_written_out_is_not_another_version_of_the_parameters(tmp_path: Path) -> None:
    rule = load_rule(write(tmp_path))
    assert with_params(rule, {"limit": 50}).params == rule.params
    with pytest.raises(UserError):
        with_params(rule, {"limit": "many"})


def test_rules_can_be_compared_and_encoded(tmp_path: Path) -> None:
    rule = load_rule(write(tmp_path))
    assert rule == load_rule(write(tmp_path))
    assert msgspec.to_builtins(rule.params) == {"limit": 50, "unused": 7, "strict": True, "words": ("pay",)}
