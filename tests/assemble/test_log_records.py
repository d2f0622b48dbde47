"""Log records as content: what each form says, and that neither order nor repetition changes a timeline."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otelmon.assemble.history import History
from otelmon.assemble.readings import carries_agent_content, names_agent_event, read_log_record, read_span
from otelmon.assemble.timeline import build, conflicts
from otelmon.assemble.traces import TraceTable
from otelmon.vocabulary.config import AssembleConfig
from otelmon.vocabulary.event import AssistantMessage, Timeline, UserMessage
from otelmon.vocabulary.messages import Handover
from otelmon.vocabulary.reading import Approval, Reading
from otelmon.vocabulary.span import LogRecord, Scope, Span
from tests.assemble.builders import calls
from tests.assemble.dialect_spans import make_span
from tests.assemble.test_readings import VALUES

TRACE = "0" * 31 + "1"
DETAILS = "gen_ai.client.inference.operation.details"
ASKED = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"id": "A-1"}'}}
CALL = {"type": "tool_call", "id": "c1", "name": "refund", "arguments": {"id": "A-1"}}


def record(name: str, body: Any = None, at: int = 1_000, span: str = "a" * 16, **changes: Any) -> LogRecord:
    """A log record; its digest follows from what it says."""
    attributes = changes.pop("attributes", {})
    digest = json.dumps([name, body, attributes, at, span], sort_keys=True)
    fields: dict[str, Any] = {
        "trace_id": TRACE, "span_id": span, "event_name": name, "time_unix_nano": at, "body": body,
        "attributes": attributes, "resource": {}, "scope": Scope(), "received_unix_nano": 1, "digest": digest,
    }  # fmt: skip
    return LogRecord(**(fields | changes))


def read(given: LogRecord) -> Reading:
    """The reading of a record; there must be one."""
    found = read_log_record(given, History())
    assert found is not None
    assert found.supplement
    assert carries_agent_content(given)
    assert names_agent_event(given)
    return found


def said(given: LogRecord) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """(messages as role and text, roles that went in, roles that came out)."""
    found = read(given)
    roles = {m.digest: m.role for m in found.messages}
    return [(m.role, m.text) for m in found.messages], [roles[d] for d in found.input], [roles[d] for d in found.output]


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_a_message_event_is_a_message_that_went_in(role: str) -> None:
    assert said(record(f"gen_ai.{role}.message", {"content": "hi"})) == ([(role, "hi")], [role], [])


def test_the_name_may_be_a_field_an_attribute_and_the_body_structured_or_text() -> None:
    body = {"role": "user", "content": "hi"}
    forms = [
        record("gen_ai.user.message", body),
        record("", body, attributes={"event.name": "gen_ai.user.message"}),
        record("", json.dumps(body), attributes={"event.name": "gen_ai.user.message"}),
    ]
    assert [said(form) for form in forms] == [([("user", "hi")], ["user"], [])] * 3


def test_a_tool_message_answers_its_call_and_a_choice_asks_for_one() -> None:
    for key in ("id", "tool_call_id"):
        [answer] = read(record("gen_ai.tool.message", {"content": "done", key: "c1"})).messages
        assert [(r.tool_call_id, r.text) for r in answer.responses] == [("c1", "done")]
    choice = read(record("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "tool_calls": [ASKED]}}))
    [asked] = choice.messages[0].requests
    assert (asked.tool_name, asked.tool_call_id, asked.arguments) == ("refund", "c1", {"id": "A-1"})
    assert (choice.input, len(choice.output)) == ((), 1)


def test_a_plugin_in_front_of_a_function_is_taken_off_as_on_spans() -> None:
    asked = {**ASKED, "function": {"name": "shop-refund", "arguments": "{}"}}
    scope = Scope("semantic_kernel.utils.telemetry.model_diagnostics.decorators")
    found = read(record("gen_ai.choice", {"message": {"tool_calls": [asked]}}, scope=scope))
    assert found.messages[0].requests[0].tool_name == "refund"


def test_a_details_event_says_the_whole_exchange() -> None:
    attributes = {
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [CALL]}],
        "gen_ai.system_instructions": [{"type": "text", "content": "Be kind."}],
        "gen_ai.tool.definitions": [{"type": "function", "name": "refund", "parameters": {"type": "object"}}],
        "gen_ai.conversation.id": "conv",
        "user.id": "u",
        "gen_ai.agent.name": "support",
    }
    given = record(DETAILS, attributes=attributes)
    found = read(given)
    assert said(given)[1:] == (["system", "user"], ["assistant"])
    assert (found.conversation_id, found.principal, found.agent_name) == ("conv", "u", "support")
    assert [d.name for d in found.definitions] == ["refund"]
    assert found.history_complete
    in_body = record(DETAILS, body=attributes)
    assert said(in_body) == said(given)


SILENT = [
    record("gen_ai.user.message", {}),
    record("gen_ai.user.message", {"content": ""}),
    record("gen_ai.user.message", "no object"),
    record("gen_ai.tool.message", {"id": "c1"}),
    record("gen_ai.choice", {"index": 0, "message": {"role": "assistant"}}),
    record("gen_ai.choice", {"message": {"tool_calls": [{"id": "c1", "function": {"name": "refund"}}]}}),
    record(DETAILS, attributes={"gen_ai.request.model": "m"}),
    record("gen_ai.evaluation.result", {"content": "hi"}),
    record("", "processing 1 tool calls in parallel."),
    record("app.started", {"content": "hi"}),
    record("claude_code.tool_result", attributes={"tool_name": "Bash"}),
    record("tool_result", attributes={"tool_name": "Bash", "tool_use_id": "t1"}),
]


@pytest.mark.parametrize("given", SILENT, ids=lambda r: f"{r.event_name} {r.body}"[:40])
def test_a_record_without_agent_content_says_nothing(given: LogRecord) -> None:
    assert read_log_record(given, History()) is None
    assert not carries_agent_content(given)


NAMES = [
    DETAILS, "claude_code.tool_result", "claude_code.tool_decision", "gen_ai.evaluation.result", "",
    *(f"gen_ai.{kind}" for kind in ("system.message", "user.message", "assistant.message", "tool.message", "choice")),
]  # fmt: skip
RECORD_KEYS = [
    "event.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions",
    "gen_ai.operation.name", "gen_ai.conversation.id", "tool_name", "tool_use_id", "tool_input", "tool_parameters",
    "success", "decision", "decision_type", "source", "error", "user.id",
]  # fmt: skip
BODY_KEYS = ["content", "role", "message", "tool_calls", "id", "function", "name", "arguments", "parts", "type"]
BODIES = st.recursive(
    VALUES, lambda inner: st.dictionaries(st.sampled_from(BODY_KEYS), inner, max_size=4) | st.lists(inner, max_size=3)
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(NAMES),
    BODIES | BODIES.map(lambda body: json.dumps(body, default=str)) | st.sampled_from(NAMES),
    st.dictionaries(
        st.sampled_from(RECORD_KEYS), VALUES | st.sampled_from([*NAMES, "chat", "false", "reject"]), max_size=8
    ),
    st.integers(0, 3),
)
def test_no_record_makes_it_fail(name: str, body: Any, attributes: dict[str, Any], dropped: int) -> None:
    given_record = record("", None, dropped_attributes_count=dropped)
    given_record = msgspec.structs.replace(given_record, event_name=name, body=body, attributes=attributes)
    found = read_log_record(given_record, History())
    assert carries_agent_content(given_record) == (found is not None)
    assert names_agent_event(given_record) or found is None
    if found is not None:
        timeline = build("c", [read_span(SPANS[0], History()), found])
        assert len(timeline.runs) == 1
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Reading) == found


# -- laid over spans -------------------------------------------------------------------------------
def model_span(span_id: str, start: int, end: int, **attributes: Any) -> Span:
    named = {"gen_ai.operation.name": "chat", **attributes}
    return make_span(named, span_id=span_id, parent_span_id="", start_time_unix_nano=start, end_time_unix_nano=end, digest=span_id)  # fmt: skip


SPANS = [model_span("a" * 16, 1_000, 2_000), model_span("b" * 16, 4_000, 5_000)]
USER = {"content": "refund A-1"}
RECORDS = [
    record("gen_ai.user.message", USER, 1_001),
    record("gen_ai.choice", {"message": {"tool_calls": [ASKED]}}, 1_900),
    record("gen_ai.user.message", USER, 4_001, "b" * 16),
    record("gen_ai.assistant.message", {"tool_calls": [ASKED]}, 4_002, "b" * 16),
    record("gen_ai.tool.message", {"content": '{"ok": true}', "id": "c1"}, 4_003, "b" * 16),
    record("gen_ai.choice", {"message": {"content": "Refunded."}}, 4_900, "b" * 16),
]


def through(items: list[Span | LogRecord], size: int = 1, conversation: str | None = None) -> Timeline:
    """The timeline after these arrived so many at a time, as a detector would hold it."""
    table = TraceTable(AssembleConfig())
    held: dict[str, dict[tuple[str, str], Reading]] = {}
    for start in range(0, len(items), size):
        readings = [_read(item, table.history(TRACE)) for item in items[start : start + size]]
        for message in table.feed([r for r in readings if r], 0, 1):
            if isinstance(message, Handover):
                held.pop(message.conversation_id, None)
            else:
                into = held.setdefault(message.conversation_id, {})
                for reading in message.readings:
                    into.setdefault((reading.span_id, reading.digest), reading)
    [(name, readings_held)] = held.items()
    assert conversation is None or name == conversation
    assert conflicts(readings_held.values()) == 0
    return build("same", readings_held.values())


def _read(item: Span | LogRecord, history: History) -> Reading | None:
    return read_span(item, history) if isinstance(item, Span) else read_log_record(item, history)


def test_records_make_the_calls_and_messages_that_spans_do_not_show() -> None:
    timeline = through([*SPANS, *RECORDS])
    [call] = calls(timeline)
    assert (call.tool_name, call.arguments, call.result, call.outcome) == ("refund", {"id": "A-1"}, {"ok": True}, "succeeded")  # fmt: skip
    assert [e.text for e in timeline.events if isinstance(e, UserMessage)] == ["refund A-1"]
    assert [(e.text, e.final) for e in timeline.events if isinstance(e, AssistantMessage)][-1] == ("Refunded.", True)
    assert [run.gaps for run in timeline.runs] == [()]


def test_without_their_records_the_same_spans_are_content_off() -> None:
    [run] = through(list(SPANS)).runs
    assert "content_off" in run.gaps
    assert not calls(through(list(SPANS)))


def test_records_of_spans_that_never_came_make_no_run() -> None:
    assert through(list(RECORDS)) == Timeline("same", (), ())


@settings(max_examples=60, deadline=None)
@given(
    st.permutations([*SPANS, *RECORDS]), st.lists(st.sampled_from([*SPANS, *RECORDS]), max_size=5), st.integers(1, 8)
)
def test_before_after_or_twice_gives_one_timeline(
    items: list[Span | LogRecord], again: list[Span | LogRecord], size: int
) -> None:
    assert through([*items, *again], size) == through([*SPANS, *RECORDS])


@settings(max_examples=60, deadline=None)
@given(st.permutations([*SPANS, *RECORDS]), st.integers(1, 8), st.sampled_from([0, 1, 3]))
def test_a_conversation_id_moves_records_with_their_spans(
    items: list[Span | LogRecord], size: int, bearer: int
) -> None:
    """Whoever bears the id, a span or a record, and whenever it comes."""
    source = [*SPANS, *RECORDS][bearer]
    named = [_named(item) if item is source else item for item in items]
    assert calls(through(named, size, "conv"))[0].arguments == {"id": "A-1"}


def _named(item: Span | LogRecord) -> Span | LogRecord:
    return msgspec.structs.replace(item, attributes={**item.attributes, "gen_ai.conversation.id": "conv"})


def test_what_a_span_shows_itself_counts_more_than_its_records() -> None:
    shown = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "from the span"}]}])
    span = model_span("a" * 16, 1_000, 2_000, **{"gen_ai.input.messages": shown})
    timeline = through([span, *RECORDS[:2]])
    assert [e.text for e in timeline.events if isinstance(e, UserMessage)] == ["from the span"]
    assert [e.requests[0].tool_name for e in timeline.events if isinstance(e, AssistantMessage)] == ["refund"]


def test_what_a_record_lost_is_lost_of_its_span() -> None:
    lossy = [msgspec.structs.replace(item, dropped_attributes_count=2) for item in RECORDS]
    [run] = through([*SPANS, *lossy]).runs
    assert "truncated" in run.gaps


# -- Claude Code -----------------------------------------------------------------------------------
def claude(name: str, **attributes: Any) -> LogRecord:
    attributes = {"tool_name": "mcp__shop__refund", "tool_use_id": "t1", **attributes}
    return record("", f"claude_code.{name}", attributes=attributes, span="c" * 16)


def tool_span() -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "t1"}
    return make_span(attributes, span_id="a" * 16, parent_span_id="")


def test_a_decision_and_a_result_complete_the_tool_span_with_that_call_id() -> None:
    given = json.dumps({"order": "A-1"})
    records = [
        claude("tool_decision", decision="accept", source="user_permanent"),
        claude("tool_result", success="true", tool_input=given, tool_parameters='{"mcp_server_name": "shop"}'),
    ]
    [call] = calls(through([*records, tool_span()]))
    assert (call.arguments, call.arguments_fidelity, call.server) == ({"order": "A-1"}, "exact", "shop")
    assert call.approval == Approval("approved", "user_permanent")
    assert call.outcome == "succeeded"
    [other] = calls(through([tool_span(), claude("tool_result", tool_use_id="t2", tool_input=given)]))
    assert other.arguments_fidelity == "absent"


@pytest.mark.parametrize(
    ("record_", "outcome"),
    [
        (claude("tool_result", success="false", error="disk full"), "failed"),
        (claude("tool_decision", decision="reject", source="user_reject"), "denied"),
    ],
)
def test_a_result_that_failed_and_a_call_that_was_rejected_did_not_happen(record_: LogRecord, outcome: str) -> None:
    [call] = calls(through([tool_span(), record_]))
    assert call.outcome == outcome


def test_arguments_that_were_cut_are_not_taken_as_whole() -> None:
    cut = claude("tool_result", tool_input={"text": "x" * 500 + "…[truncated]"})
    [call] = calls(through([tool_span(), cut]))
    assert call.arguments_fidelity == "truncated"
