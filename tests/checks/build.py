"""Conversations for tests of checks, in the short notation of the rules' inline tests."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.checks.view import View
from otelmon.rules.notation import TestCase
from otelmon.rules.scene import build
from otelmon.vocabulary.catalogue import Catalogue
from otelmon.vocabulary.event import ToolCall


def view(*events: dict[str, Any], catalogue: dict[str, Any] | None = None, **case: Any) -> View:
    """The first conversation that the events make (see rules/README.md for their keys)."""
    given = msgspec.convert({"name": "test", "events": list(events), "fires": [], **case}, TestCase)
    tools = msgspec.convert({"version": 1, **catalogue}, Catalogue) if catalogue is not None else None
    return build(given, tools).views[0]


def call(name: str = "tool", arguments: Any = None, **more: Any) -> ToolCall:
    """One execution of a tool, outside of any conversation."""
    fields: dict[str, Any] = {
        "position": 0, "trace_id": "t", "span_id": "s", "run_id": "t:", "start_time_unix_nano": 0,
        "end_time_unix_nano": 1, "key": "t:s", "tool_name": name, "raw_name": name,
        "arguments": {} if arguments is None else arguments,
    }  # fmt: skip
    return ToolCall(**{**fields, **more})
