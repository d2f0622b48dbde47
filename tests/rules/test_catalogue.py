"""The operator's catalogue file: everything it can say, and every mistake with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otelmon.rules.catalogue import catalogue_of, load_catalogue
from otelmon.rules.yaml_source import read_yaml
from otelmon.vocabulary.catalogue import Annotations, IdempotencyKey, Policy, Tool
from otelmon.vocabulary.errors import UserError

FULL = """\
version: 1
complete: false
tools:
  - name: issue_refund
    server: billing
    title: Refund
    description: Pays money back.
    inputSchema: {type: object, properties: {order_id: {type: string}}}
    outputSchema: {type: object}
    annotations: {destructiveHint: true, idempotentHint: false}
    effect: destructive
    repeat: additive
    identity: [order_id, amount]
    volatile: [request_id]
    idempotency_key: {argument: key}
    max_attempts: 3
    poll_ok: false
    sources: {amount: "get_order.items[].amount"}
    claims: [refunded, "money back"]
policy:
  - id: freeze
    tools: [run_sql, "delete_*"]
    effects: [write, destructive]
    when: "call.arguments.sql.contains('prod')"
    action: forbid
    unless_approved: true
    reason: code freeze
  - {id: read-first, action: after, tools: [update_ticket], calls: [get_ticket]}
  - {id: few, action: limit, max: 3, window_seconds: 60, severity: low}
"""


def write(tmp_path: Path, text: str, name: str = "c.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_everything_that_a_file_can_say(tmp_path: Path) -> None:
    catalogue = load_catalogue(write(tmp_path, FULL))
    assert not catalogue.complete
    assert catalogue.tools == (
        Tool(
            name="issue_refund",
            server="billing",
            title="Refund",
            description="Pays money back.",
            input_schema={"type": "object", "properties": {"order_id": {"type": "string"}}},
            output_schema={"type": "object"},
            annotations=Annotations(destructive_hint=True, idempotent_hint=False),
            effect="destructive",
            repeat="additive",
            identity=("order_id", "amount"),
            volatile=("request_id",),
            idempotency_key=IdempotencyKey(argument="key"),
            max_attempts=3,
            sources={"amount": "get_order.items[].amount"},
            claims=("refunded", "money back"),
        ),
    )
    assert catalogue.policy[0] == Policy(
        id="freeze",
        action="forbid",
        tools=("run_sql", "delete_*"),
        effects=("write", "destructive"),
        when="call.arguments.sql.contains('prod')",
        unless_approved=True,
        reason="code freeze",
    )
    assert [p.action for p in catalogue.policy] == ["forbid", "after", "limit"]


def test_json_says_the_same(tmp_path: Path) -> None:
    yaml = write(tmp_path, FULL)
    text = json.dumps(read_yaml(yaml).data, indent="\t")
    assert load_catalogue(write(tmp_path, text, "c.json")) == load_catalogue(yaml)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("tools: []", ["1:1: version is missing; expected 1"]),
        ("version: 2", ["1:1: version is 2; expected 1"]),
        ("version: 1\ntool: []", ["2:1: unknown field tool; did you mean tools?"]),
        ("version: 1\ntools:\n  - {nam: x}", ["3:5: name is missing; expected text", "3:6: unknown field nam; did you mean name?"]),
        ("version: 1\ntools: [{name: a, effect: wirte}]", ['2:19: effect is "wirte"; expected one of read, write, destructive, external_send, unknown; did you mean write?']),
        ("version: 1\ntools: [{name: a, input_schema: {}}]", ["2:19: unknown field input_schema; did you mean inputSchema?"]),
        ("version: 1\ntools: [{name: a}, {name: a}]", ["2:21: tool a is given twice; expected each tool once"]),
        ("version: 1\ntools: [{name: a, server: s}, {name: a, server: s}]", ["2:32: tool a of server s is given twice; expected each tool once"]),
        ("version: 1\ntools: [{name: a, idempotency_key: {}}]", ["2:19: idempotency_key names no place, or two; expected argument or attribute"]),
        ("version: 1\ntools: [{name: a, idempotency_key: {argument: a, attribute: b}}]", ["2:19: idempotency_key names no place, or two; expected argument or attribute"]),
        ("version: 1\ntools: [{name: a, max_attempts: 0}]", ["2:19: max_attempts is 0; expected 1 or more"]),
        ("version: 1\npolicy: [{id: a, action: forbid}, {id: a, action: confirm}]", ["2:36: policy a is given twice; expected each id once"]),
        ("version: 1\npolicy: [{id: a, action: alow}]", ['2:18: action is "alow"; expected one of forbid, confirm, after, limit']),
        ("version: 1\npolicy: [{id: a, action: after}]", ["2:10: policy a: calls is missing; expected the tools that must come before"]),
        ("version: 1\npolicy: [{id: a, action: limit}]", ["2:10: policy a: max is missing; expected the largest number of calls"]),
        ("version: 1\npolicy: [{id: a, action: forbid, severity: hi}]", ['2:34: severity is "hi"; expected one of info, low, medium, high, critical']),
        ("version: 1\npolicy:\n  - id: a\n    action: forbid\n    when: call.argumens.x == 1\n  - id: b\n    action: forbid\n    when: 'x >'", [
            "5:5: when: call has no field argumens; did you mean arguments?",
            "8:5: when: is not CEL at column 4: mismatched input '<EOF>'; see the CEL language definition",
        ]),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, messages: list[str]) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load_catalogue(path)
    assert [str(p) for p in caught.value.problems] == [f"{path}:{message}" for message in messages]


def test_two_servers_may_have_a_tool_of_one_name(tmp_path: Path) -> None:
    text = "version: 1\ntools: [{name: a, server: s}, {name: a, server: t}, {name: a}]"
    assert len(load_catalogue(write(tmp_path, text)).tools) == 3


def test_tests_may_leave_the_version_out() -> None:
    assert catalogue_of({"tools": [{"name": "a"}]}).tools == (Tool(name="a"),)
