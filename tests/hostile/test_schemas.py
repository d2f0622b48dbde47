"""Tool definitions and arguments made to hurt whoever validates them."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

from tests.hostile.conftest import SECOND, Target, ident
from tests.receive.build import a_span

pytestmark = pytest.mark.timeout(300)
HONEST = {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]}


def conversation(target: Target, name: str, schema: Any, arguments: str) -> list[dict[str, Any]]:
    """A model span that offers an honest and a hostile tool, and a call of each: the honest one with a mistake."""
    tools = [
        {"type": "function", "name": "hostile", "description": "x", "parameters": schema},
        {"type": "function", "name": "read_page", "description": "Read a page.", "parameters": HONEST},
    ]
    common = {"gen_ai.conversation.id": name}
    call = {**common, "gen_ai.operation.name": "execute_tool"}
    trace, root = ident(name)[:16], ident(name, "root")[:8]
    model = {**common, "gen_ai.operation.name": "chat", "gen_ai.tool.definitions": json.dumps(tools)}
    wrong = {**call, "gen_ai.tool.name": "read_page", "gen_ai.tool.call.arguments": '{"page": "one"}'}
    attack = {**call, "gen_ai.tool.name": "hostile", "gen_ai.tool.call.arguments": arguments}
    return [
        a_span(
            trace=trace, span=ident(name, n)[:8] if n else root, parent=root if n else b"",
            start=target.begin + n * SECOND, end=target.begin + (n + 1) * SECOND, attributes=attributes,
        )
        for n, attributes in enumerate((model, attack, wrong))
    ]  # fmt: skip


def judged(target: Target, name: str, schema: Any, arguments: str) -> list[dict[str, Any]]:
    """Findings on the hostile call, after the honest one's mistake and a neighbour were found."""
    good = target.good(f"beside-{name}")
    answer = target.send(conversation(target, name, schema, arguments), good)
    assert (answer.status, answer.refused) == (200, 0)
    target.assert_unhurt(good)
    found = target.wait_for(name, "schema_violation")
    assert "read_page" in {finding["tool_name"] for finding in found}
    return [finding for finding in found if finding["tool_name"] == "hostile"]


def test_a_remote_reference_is_never_fetched(target: Target) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0.5)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/schema.json"
        assert judged(target, "remote-ref", {"type": "object", "properties": {"a": {"$ref": url}}}, '{"a": 1}') == []
        with pytest.raises(TimeoutError):
            listening.accept()


def test_a_reference_to_a_file_is_never_read(target: Target) -> None:
    assert judged(target, "file-ref", {"$ref": "file:///etc/passwd"}, '{"a": 1}') == []


def test_a_pattern_that_backtracks_for_ever_does_not(target: Target) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    started = time.monotonic()
    found = judged(target, "redos", schema, json.dumps({"a": "a" * 5000 + "!"}))
    assert [finding["tool_name"] for finding in found] == ["hostile"]
    assert time.monotonic() - started < 90


def test_references_that_double_at_every_step_do_not_hang(target: Target) -> None:
    steps: dict[str, Any] = {
        f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}, {"$ref": f"#/$defs/s{n + 1}"}]} for n in range(30)
    }
    schema = {"$defs": {**steps, "s30": {"type": "object"}}, "$ref": "#/$defs/s0"}
    judged(target, "exponential", schema, '{"a": 1}')


def test_a_recursive_schema_with_an_instance_20000_deep_is_not_evaluable(target: Target) -> None:
    schema = {
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "$ref": "#/$defs/node",
    }
    deep = '{"next":' * 20_000 + "{}" + "}" * 20_000
    assert judged(target, "recursive", schema, deep) == []


def test_a_schema_nested_400_deep_is_not_evaluable(target: Target) -> None:
    schema: Any = json.loads('{"not":' * 400 + "{}" + "}" * 400)
    assert judged(target, "deep-schema", schema, '{"a": 1}') == []
