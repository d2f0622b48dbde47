"""A run is an agent span around its calls, with what was said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otelmon import instrument
from otelmon.instrument import setup
from otelmon.instrument.capture import Capture
from tests.instrument.conftest import Spans


@instrument.tool(effect="read")
def look_up(order: str) -> str:
    """Look an order up."""
    return order


def test_calls_belong_to_the_run_and_inherit_who_and_what_for(spans: Spans) -> None:
    with instrument.run(agent="desk", conversation_id="c-1", user="u-1", user_text="Where is W-1?") as run:
        look_up("W-1")
        run.answer("On its way.")
    call, root = spans()
    found: dict[str, Any] = dict(call.attributes or {})
    assert call.parent is not None
    assert root.context is not None
    assert call.parent.span_id == root.context.span_id
    assert (found["gen_ai.conversation.id"], found["user.id"], found["gen_ai.agent.name"]) == ("c-1", "u-1", "desk")
    told = dict(root.attributes or {})
    assert json.loads(str(told["gen_ai.input.messages"]))[0]["parts"][0]["content"] == "Where is W-1?"
    assert json.loads(str(told["gen_ai.output.messages"]))[0]["parts"][0]["content"] == "On its way."
    assert "look_up" in {tool["name"] for tool in json.loads(str(told["gen_ai.tool.definitions"]))}
    assert found["otelmon.run.id"] == told["otelmon.run.id"] == run.run_id


def test_an_exception_ends_the_run_and_passes_through(spans: Spans) -> None:
    with pytest.raises(RuntimeError, match="model down"), instrument.run(agent="desk"):
        raise RuntimeError("model down")
    assert dict(spans()[-1].attributes or {})["error.type"] == "RuntimeError"


def test_without_full_capture_no_message_is_written(spans: Spans) -> None:
    setup.settings.capture = Capture(level="hash")
    with instrument.run(agent="desk", user_text="my secret", system="policy") as run:
        run.answer("told")
    assert "secret" not in str(dict(spans()[-1].attributes or {}))
    assert dict(spans()[-1].attributes or {})["otelmon.content.capture"] == "hash"
