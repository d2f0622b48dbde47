"""schema_violation, unparseable_arguments and unknown_tool beyond their inline tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otelmon.checks.registry import NoParams
from otelmon.checks.schema_violation import schema_violation
from otelmon.checks.unknown_tool import Params, unknown_tool
from otelmon.checks.unparseable_arguments import unparseable_arguments
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, Timeline, ToolCall
from otelmon.vocabulary.reading import RequestedCall
from tests.checks.build import view

NOTES = {"define": {"name": "find", "inputSchema": {
    "type": "object",
    "properties": {"q": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "object", "properties": {"x": {"type": "number"}}}},
    "required": ["q"],
}}}  # fmt: skip


def changed(seen: View, **fields: Any) -> View:
    """The view with its first call (or message with requests) changed."""
    events = []
    for event in seen.events:
        if isinstance(event, ToolCall):
            event = msgspec.structs.replace(event, **{k: v for k, v in fields.items() if k != "requests"})
        elif isinstance(event, AssistantMessage) and "requests" in fields:
            event = msgspec.structs.replace(event, requests=fields["requests"])
        events.append(event)
    return View(Timeline(seen.conversation_id, seen.runs, tuple(events)), seen.catalogue)


def broken(seen: View) -> list[dict[str, Any]]:
    return [e.details for e in schema_violation(seen.calls[0], seen, NoParams())]


def unread(seen: View) -> list[dict[str, Any]]:
    return [e.details for e in unparseable_arguments(seen.calls[0], seen, NoParams())]


def test_all_violations_of_a_call_are_one_piece_of_evidence() -> None:
    (details,) = broken(view(NOTES, {"tool": "find", "args": {"n": "5", "o": {"x": "y"}}, "error": "refused"}))
    assert {(v["path"], v["keyword"]) for v in details["violations"]} == {
        ("/n", "type"),
        ("/o/x", "type"),
        ("", "required"),
    }
    assert not details["accepted"]


def test_text_that_holds_the_object_is_encoded_twice() -> None:
    seen = changed(view(NOTES, {"tool": "find", "error": "missing q"}), arguments='{"q": "a"}')
    (details,) = broken(seen)
    assert details["violations"][0]["keyword"] == "type"


def test_a_recorder_may_flatten_what_the_server_took_but_not_what_it_refused() -> None:
    flat = {"tool": "find", "args": {"q": "a", "o": '{"x": 1.5}', "n": "5"}, "fidelity": "decoded"}
    assert broken(view(NOTES, {**flat, "result": [1]})) == []
    assert len(broken(view(NOTES, {**flat, "error": "n is not an integer"}))) == 1
    assert len(broken(view(NOTES, {**flat, "args": {"q": "a", "n": "five"}, "result": [1]}))) == 1


@pytest.mark.parametrize("fidelity", ["redacted", "truncated", "hashed", "absent"])
def test_what_was_not_seen_whole_is_not_judged(fidelity: str) -> None:
    assert broken(view(NOTES, {"tool": "find", "args": {"n": "5"}, "fidelity": fidelity, "error": "x"})) == []


def test_a_broken_request_that_ran_with_nothing() -> None:
    seen = view(
        {"user": "Find it."},
        {"assistant": "", "calls": [{"tool": "find", "id": "c1"}]},
        {"tool": "find", "args": {}, "id": "c1", "result": []},
    )
    request = RequestedCall("find", "c1", None, '{"q": "pum', "exact")
    (details,) = unread(changed(seen, requests=(request,)))
    assert (details["where"], details["kind"]) == ("request", "cut before its end")
    assert unread(changed(seen, requests=(msgspec.structs.replace(request, fidelity="truncated"),))) == []
    assert unread(changed(seen, requests=(msgspec.structs.replace(request, tool_call_id="c2"),))) == []
    assert unread(changed(seen, requests=(RequestedCall("find", "c1", {}),))) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"q": "pum', "cut before its end"),
        ('["a", ', "cut before its end"),
        ('{"q": "a}', "an open quotation"),
        ('{"q": a}', "broken"),
        ('{"q": "a}"" }', "an open quotation"),
        ('"{\\"q\\": ', "encoded twice, past repair"),
    ],
)
def test_what_is_wrong_is_named(text: str, kind: str) -> None:
    (details,) = unread(view({"tool": "find", "args": text, "error": "invalid"}))
    assert details["kind"] == kind


def test_a_text_as_long_as_a_usual_limit_was_cut_by_the_recorder() -> None:
    text = '{"q": "' + "x" * 2000
    for length, fires in ((1024, False), (1023, True), (128, False)):
        assert bool(unread(view({"tool": "find", "args": text[:length], "error": "x"}))) is fires


def test_text_arguments_that_do_not_decode_past_repair() -> None:
    seen = view({"tool": "find", "error": "x"})
    assert unread(changed(seen, arguments='{"q": '))
    assert unread(changed(seen, arguments="plain words")) == []


def nearest(called: str, *known: str) -> list[str]:
    seen = view(*({"define": {"name": name}} for name in known), {"tool": called, "error": "unknown tool"})
    (evidence,) = unknown_tool(seen.calls[0], seen, Params())
    names: list[str] = evidence.details["nearest"]
    return names


def test_the_nearest_names_are_shown_and_far_ones_are_not() -> None:
    assert nearest("get_ordr", "get_order", "send_mail") == ["get_order"]
    assert nearest("xyzzy", "get_order") == []


def test_a_builtin_that_failed_is_unknown_all_the_same() -> None:
    params = Params(builtin=("web_*",))
    for more, fires in (({"result": [1]}, False), ({"error": "unknown tool web_search"}, True)):
        seen = view({"define": {"name": "get_order"}}, {"tool": "web_search", **more})
        assert bool(list(unknown_tool(seen.calls[0], seen, params))) is fires


@pytest.mark.parametrize(
    ("error", "fires"),
    [
        ("Unknown tool: get_parcel", True),
        ("no such function get_parcel", True),
        ("Tool get_parcel not found", True),
        ("Error: tool 'get_parcel' does not exist.", True),
        ("parcel not found", False),
        ("timeout", False),
    ],
)
def test_with_a_part_of_the_catalogue_the_refusal_must_say_so(error: str, *, fires: bool) -> None:
    catalogue = {"complete": False, "tools": [{"name": "get_order"}]}
    seen = view({"tool": "get_parcel", "error": error}, catalogue=catalogue)
    assert bool(list(unknown_tool(seen.calls[0], seen, Params()))) is fires
