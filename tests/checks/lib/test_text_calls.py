"""Tool calls that are only written down."""

from __future__ import annotations

import pytest

from otelmon.checks.lib.text_calls import MAX_FOUND, text_calls

TOOLS = {"get_order", "send-mail"}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('{"name": "get_order", "arguments": {"id": 1}}', "json"),
        ('```json\n{\n  "action": "get_order",\n  "action_input": {"id": 1}\n}\n```', "json"),
        ('{"function_call": {"parameters": {"id": 1}, "name": "get_order"}}', "json"),
        ("{'tool': 'functions.get_order', 'input': '1'}", "json"),
        ('<invoke name="get_order">', "markup"),
        ("<function=send-mail>{}</function>", "markup"),
        ("I look it up.\nget_order(id=1)", "code"),
        ("```python\nprint(tools.get_order({'id': 1}))\n```", "code"),
    ],
)
def test_written_calls_are_found(text: str, form: str) -> None:
    (found,) = text_calls(text, TOOLS)
    assert found.form == form


@pytest.mark.parametrize(
    "text",
    [
        "I used get_order to look it up.",
        "You can write get_order(id=1) there.",
        '{"name": "get_order", "description": "Looks up an order"}',
        '{"name": "get_price", "arguments": {"id": 1}}',
        "<b>get_order</b>",
        '{"status": "get_order"}',
    ],
)
def test_what_calls_nothing(text: str) -> None:
    assert text_calls(text, TOOLS) == []


def test_many_are_cut() -> None:
    assert len(text_calls("get_order()\n" * (MAX_FOUND + 5), TOOLS)) == MAX_FOUND


@pytest.mark.parametrize("text", ["get_order(id=" * 3000, '"args": {' * 3000, "a = get_order('" + "x" * 20_000])
def test_hostile_texts_come_to_an_end(text: str) -> None:
    assert len(text_calls(text, TOOLS)) <= 1
