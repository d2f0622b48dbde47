"""What is fuzzed. A target takes bytes and raises only when the code has a bug: input that is refused by its own
error is fine. Every target also holds the laws that what it reads can be stored and sent on."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from otelmon.app.offline import Checker
from otelmon.assemble import values
from otelmon.assemble.bodies import errors_in_body
from otelmon.assemble.history import History
from otelmon.assemble.readings import carries_agent_content, read_log_record, read_span
from otelmon.assemble.transcripts import is_transcript, read_transcript
from otelmon.checks.lib import asking, claims, confirmation, provenance_index, provenance_match, wording
from otelmon.checks.lib import values as texts
from otelmon.checks.lib.expressions import compile_when, expression_mistakes
from otelmon.checks.lib.provenance_roles import constants, leaves, role_of, schema_at
from otelmon.checks.lib.schema import NotEvaluableError, violations
from otelmon.checks.lib.shelltext import classify_shell
from otelmon.checks.lib.sqltext import classify_sql
from otelmon.checks.lib.verbs import classify_name
from otelmon.detect.engine import Laws
from otelmon.receive import otlp
from otelmon.receive.files import World
from otelmon.rules.catalogue import catalogue_problems
from otelmon.rules.loader import builtin_rules_dir, load_rule, load_rules
from otelmon.rules.yaml_source import parse_yaml, refuse_if
from otelmon.vocabulary.config import Config, ReceiveConfig
from otelmon.vocabulary.errors import InputError, UserError
from otelmon.vocabulary.reading import Reading
from otelmon.vocabulary.span import LogRecord, Scope, Span, SpanEvent
from tests.fuzz.take import Take

NOW = 1_790_000_000_000_000_000
LIMITS = ReceiveConfig(max_request_bytes=1 << 20, max_span_bytes=1 << 16)
DIALECTS = Path(values.__file__).parent / "dialects"


def _storable(value: Any) -> None:
    """What the bus and the store do with a value: it must be strict JSON and survive the way."""
    packed = msgspec.msgpack.encode(value)
    assert msgspec.msgpack.encode(msgspec.msgpack.decode(packed, type=type(value))) == packed
    msgspec.json.encode(value).decode("utf-8")


def _decoded(body: bytes, content_type: str) -> None:
    for shape in (otlp.TRACES, otlp.LOGS):
        try:
            parsed = otlp.read(body, content_type, LIMITS, shape)
        except InputError:
            continue
        again = shape.request.FromString(parsed.request.SerializeToString())
        assert again == parsed.request or "nan" in str(again)  # NaN differs from itself
        items = otlp.spans(parsed.request, NOW) if shape is otlp.TRACES else otlp.log_records(parsed.request, NOW)
        kept = 0
        for item in items:
            kept += 1
            _read(item)
        assert kept <= parsed.received


def _read(item: Span | LogRecord) -> None:
    """Read a span or a log record in our words, as the assemble stage does."""
    history = History()
    if isinstance(item, Span):
        _storable(read_span(item, history))
        _storable(read_span(item, history))
        return
    found = read_log_record(item, history)
    if found is not None:
        assert carries_agent_content(item)
        _storable(found)


def protobuf(data: bytes) -> None:
    """OTLP requests in protobuf, whole and field by field."""
    _decoded(data, otlp.PROTOBUF)


def json_bodies(data: bytes) -> None:
    """OTLP requests in JSON."""
    _decoded(data, otlp.JSON)


@cache
def keys() -> tuple[str, ...]:
    """Every word of the dialects that looks like the name of an attribute or an event."""
    found = set()
    for file in DIALECTS.glob("*.py"):
        found |= set(re.findall(r'"([a-z][A-Za-z0-9_]*(?:[.][A-Za-z0-9_]+)+[.]?)"', file.read_text()))
    return (*sorted(found), "gen_ai.prompt.0.role", "llm.input_messages.0.message.role", "x")


KINDS = ("chat", "execute_tool", "invoke_agent", "TOOL", "LLM", "AGENT", "tool", "workflow", "generation", "tools/call")


def _content(take: Take) -> Any:
    """A value as instrumentations write content: JSON in text, a repr, or as it is."""
    kind = take.below(5)
    value = _messages(take) if take.below(2) else take.value()
    if kind == 0:
        return take.one(KINDS)
    if kind < 3:
        return json.dumps(value)
    return repr(value) if kind == 3 else values.plain(value)


def _messages(take: Take) -> Any:
    """Something like messages, with members that may be anything."""
    names = (
        "role",
        "content",
        "parts",
        "tool_calls",
        "type",
        "id",
        "name",
        "arguments",
        "response",
        "function",
        "text",
        "result",
    )
    words = (
        "user",
        "assistant",
        "tool",
        "system",
        "text",
        "tool_call",
        "tool_call_response",
        "function",
        "issue_refund",
        "c1",
    )
    return [
        {take.one(names): take.one(words) if take.below(2) else take.value(3) for _ in range(take.below(6))}
        for _ in range(take.below(4))
    ]


def _attributes(take: Take) -> dict[str, Any]:
    return {take.one(keys()): _content(take) for _ in range(take.below(10))}


def _span(take: Take, number: int) -> Span:
    """A span of one of two traces, below one of the earlier spans, below none, or below one never seen."""
    start = take.one((NOW, 0, NOW + take.below(60_000) * 1_000_000, 2**63 - 2))
    return Span(
        trace_id=f"{1 + take.below(2):032x}",
        span_id=f"{number + 1:016x}",
        parent_span_id=take.one(("", f"{1 + take.below(4):016x}", "f" * 16)),
        name=take.one((take.text(), "execute_tool issue_refund", "chat m", "invoke_agent a")),
        kind=take.below(6),
        start_time_unix_nano=start,
        end_time_unix_nano=take.one((start + 1_000_000, start, 0)),
        status_code=take.below(3),
        status_message=take.text(),
        attributes=_attributes(take),
        events=tuple(
            SpanEvent(take.one((*keys()[:3], "exception", "gen_ai.choice", "gen_ai.tool.message")), NOW, _attributes(take))
            for _ in range(take.below(3))
        ),
        resource={"service.name": take.text()},
        scope=Scope(take.one(("", "logfire", "langfuse-sdk", "strands.telemetry.tracer", "openinference.instrumentation.x"))),
        received_unix_nano=NOW,
        digest=f"{number}",
        dropped_attributes_count=take.below(2),
    )  # fmt: skip


def dialects(data: bytes) -> None:
    """Arbitrary attributes through every dialect that takes them."""
    take = Take(data)
    history = History()
    for number in range(1 + take.below(3)):
        reading = read_span(_span(take, number), history)
        assert isinstance(reading, Reading)
        _storable(reading)
    record = LogRecord(
        "1" * 32, "1" * 16, take.one(keys()), NOW, _content(take), _attributes(take), {}, Scope(), NOW, "d"
    )
    _read(record)


@cache
def _laws() -> Laws:
    return Laws(load_rules(), None)


def _judged(world: World | None, spans: list[Span]) -> None:
    checker = Checker(_laws(), Config())
    if world is not None:
        checker.add(world)
    checker.add_spans(spans)
    report = checker.finish()
    assert report.check_errors == {}, report.check_errors
    for finding in report.findings:
        _storable(finding)


def whole(data: bytes) -> None:
    """Spans with arbitrary attributes through assemble, every rule and the ledger."""
    take = Take(data)
    _judged(None, [_span(take, number) for number in range(1 + take.below(6))])


def content(data: bytes) -> None:
    """Decoding of arguments and results: JSON, JSON in JSON, reprs, cut and hidden text."""
    take = Take(data)
    text = take.rest().decode("utf-8", "replace") if take.byte() < 200 else take.text(surrogates=True)
    text, escaped = values.clean_text(text), json.dumps(text)  # texts of spans are Unicode, what they hold may not be
    for raw in (text, escaped, take.value()):
        for cut in (False, True):
            _storable(values.decode_arguments(raw, cut=cut, scalar=cut))
    _storable(values.plain(values.decode_payload(text)))
    values.looks_cut(text, [len(text), 7], 0)
    values.hidden(text)
    _storable(values.clean_text(text))
    value = take.value()
    schema = take.value()
    values.bind(value, schema if isinstance(schema, dict) else None)
    assert values.stable_bytes(values.plain(value)) == values.stable_bytes(values.plain(values.plain(value)))


def transcripts(data: bytes) -> None:
    """Chat transcripts, read and judged."""
    take = Take(data)
    record: Any = {"id": take.text(), "messages": _messages(take) or take.value(), "tools": take.value()}
    if take.below(4) == 0:
        record = take.value()
    record = values.plain(record)
    if is_transcript(record):
        for reading in read_transcript(record, NOW):
            _storable(reading)
        _judged(World(source="fuzz", transcript=record), [])


@cache
def _rule_text() -> list[str]:
    return [file.read_text() for file in sorted(builtin_rules_dir().glob("*.yaml"))]


def rule_files(data: bytes) -> None:
    """Rule files: arbitrary, and built-in ones with a piece of text put over another."""
    take = Take(data)
    if take.below(2):
        text = take.one(_rule_text())
        for _ in range(1 + take.below(3)):
            at = take.below(len(text)) if text else 0
            text = text[:at] + take.text() + text[at + take.below(40) :]
    else:
        text = take.rest().decode("utf-8", "replace")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "duplicate_write.yaml"
        file.write_bytes(text.encode("utf-8", "replace"))
        try:
            load_rule(file)
        except UserError:
            return


def catalogues(data: bytes) -> None:
    """Operators' catalogues, policies and their conditions."""
    take = Take(data)
    if take.below(2):
        text = take.rest().decode("utf-8", "replace")
    else:
        tool = {
            "name": take.text(),
            take.one(("effect", "sources", "identity", "inputSchema", "claims", "server")): take.value(),
        }
        policy = {
            "id": "p",
            "action": take.one(("forbid", "confirm", "after", "limit")),
            "when": take.text(),
            take.text(): take.value(),
        }
        text = json.dumps({"version": 1, "tools": [tool, take.value()], "policy": [policy]})
    try:
        source = parse_yaml(text)
        refuse_if(catalogue_problems(source, ()))
    except UserError:
        pass
    word = take.text()
    if not expression_mistakes(word):
        compile_when(word)


def bodies(data: bytes) -> None:
    """Errors in results."""
    take = Take(data)
    text = take.rest().decode("utf-8", "replace") if take.byte() < 128 else take.text()
    for value in (None, values.decode_payload(text), values.plain(take.value())):
        found = errors_in_body(value, text)
        if found is not None:
            _storable(found)


def words(data: bytes) -> None:
    """What is read out of free text: claims, denials, dates, numbers, agreement, commands, queries."""
    take = Take(data)
    text = (
        take.rest().decode("utf-8", "replace")
        if take.byte() < 128
        else " ".join(take.text() for _ in range(take.below(40)))
    )
    read = claims.read_message(text)
    assert read == claims.read_message(text)
    for function in (
        wording.agrees, wording.asked_count, wording.is_status_question, wording.only_thanks, confirmation.demands,
        asking.name_tokens, classify_sql, classify_shell, classify_name, texts.words_of, texts.numbers_of, texts.days_of,
        texts.number_forms, texts.any_date, texts.to_decimal,
    ):  # fmt: skip
        function(text)


def provenance(data: bytes) -> None:
    """Where values come from."""
    take = Take(data)
    index = provenance_index.Index()
    for position in range(1 + take.below(4)):
        index.learn(take.text() + " " + take.text(), take.one(("user", "result", "argument", "system")), position)
    index.propose(take.text(), 5)
    index.confirm()
    schema = take.value()
    schema = schema if isinstance(schema, dict) else {}
    for path, name, value in leaves(values.plain(take.value())):
        part = schema_at(schema, path)
        constants(part)
        role = role_of(name, value, part)
        if role not in ("constant", "free", "setting", "generated"):
            provenance_match.match(role, value, index, NOW)


def schemas(data: bytes) -> None:
    """Tool schemas and instances, both from outside."""
    take = Take(data)
    names = (
        "type",
        "properties",
        "$ref",
        "$defs",
        "pattern",
        "items",
        "allOf",
        "enum",
        "minimum",
        "format",
        "additionalProperties",
    )
    refs = ("#", "#/$defs/a", "#/nowhere", "http://127.0.0.1:9/x", "file:///etc/passwd", "(a+)+$", "object", "integer")
    schema = {take.one(names): take.one(refs) if take.below(2) else take.value(2) for _ in range(take.below(6))}
    try:
        for violation in violations(schema, values.plain(take.value())):
            _storable(violation)
    except NotEvaluableError:
        pass


def crash(data: bytes) -> None:
    """Crashes, to prove that crashes are kept."""
    if data[:1] == b"M":
        raise AssertionError("found a byte that is 77")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "protobuf": protobuf,
    "json": json_bodies,
    "dialects": dialects,
    "whole": whole,
    "content": content,
    "transcripts": transcripts,
    "rule_files": rule_files,
    "catalogues": catalogues,
    "bodies": bodies,
    "words": words,
    "provenance": provenance,
    "schemas": schemas,
}
