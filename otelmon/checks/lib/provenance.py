"""Where the arguments of a call came from: one index of seen values per conversation, read in order."""

from __future__ import annotations

from typing import Any, Literal
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.provenance_index import Found, Index, SourceKind
from otelmon.checks.lib.provenance_match import match
from otelmon.checks.lib.provenance_roles import Role, is_placeholder, leaves, name_words, role_of, schema_at
from otelmon.checks.lib.sameness import is_volatile
from otelmon.checks.lib.values import runs
from otelmon.checks.view import View
from otelmon.vocabulary.catalogue import Tool
from otelmon.vocabulary.event import (
    AssistantMessage,
    ContextMessage,
    Event,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    UserMessage,
)

Source = Literal[SourceKind, "none"]
_CONTACT: frozenset[Role] = frozenset(("id", "code", "email", "phone", "url"))
# Words of the name of an argument that may be the idempotency key; `order_id` is none, whatever its value.
_KEY_WORDS = frozenset(
    ("key", "token", "nonce", "id", "uuid", "guid", "ref", "reference", "idempotency", "idempotent", "idem", "dedup",
     "dedupe", "deduplication", "client", "request", "retry", "attempt", "unique", "operation", "transaction",)
)  # fmt: skip


class Lineage(msgspec.Struct, frozen=True):
    """Where one argument came from.

    `path` in the arguments; `role` what the argument is for; `source` what kind of text had it
    ("none": nothing did), `position` the event that had it first, None for constants;
    `transformation` how the value was derived ("verbatim" when it was not); `sure` false when the
    match, or its absence, rests on a rule of thumb (a sum, a range of days, no stated date).
    """

    path: str
    value: Any
    role: Role
    source: Source
    position: int | None = None
    transformation: str = "verbatim"
    sure: bool = True


_REMEMBERED: WeakKeyDictionary[View, tuple[dict[str, tuple[Lineage, ...]], Index]] = WeakKeyDictionary()


def lineage(call: ToolCall, view: View) -> tuple[Lineage, ...]:
    """The lineage of every scalar argument of a call, in the order of the arguments."""
    return _known(view)[0].get(call.key, ())


def index_of(view: View) -> Index:
    """Every value of the conversation with the first event that had it; what was known before an event is what
    has an earlier position."""
    return _known(view)[1]


def _known(view: View) -> tuple[dict[str, tuple[Lineage, ...]], Index]:
    known = _REMEMBERED.get(view)
    if known is None:
        known = _REMEMBERED[view] = _walk(view)
    return known


def _walk(view: View) -> tuple[dict[str, tuple[Lineage, ...]], Index]:
    """Read the conversation once, in order: look up each call's arguments, then learn its result."""
    index = Index()
    for run in view.runs:
        index.learn(run.principal or "", "run", 0)  # who the run acts for is known from the start
    found: dict[str, tuple[Lineage, ...]] = {}
    for event in view.events:
        if isinstance(event, ToolCall):
            found[event.key] = _trace(event, view, index)
            _learn_call(event, found[event.key], index)
        else:
            _learn_message(event, index)
    return found, index


def _trace(call: ToolCall, view: View, index: Index) -> tuple[Lineage, ...]:
    if not isinstance(call.arguments, dict):
        return ()
    tool = view.tool(call)
    schema = tool.input_schema if tool else None
    key = view.idempotency_key(call)
    lines: list[Lineage] = []
    for path, name, value in leaves(call.arguments):
        role = "generated" if _minted(name, value, tool, key) else role_of(name, value, schema_at(schema, path))
        if role == "constant":
            lines.append(Lineage(path, value, role, "schema"))
        elif role in ("free", "setting", "generated"):
            lines.append(Lineage(path, value, role, "composed"))
        else:
            hit = match(role, value, index, call.start_time_unix_nano) or _missing(role, value, index)
            lines.append(Lineage(path, value, role, hit.source, hit.position, hit.transformation, hit.sure))
    return tuple(lines)


def _minted(name: str, value: Any, tool: Tool | None, key: str | None) -> bool:
    """An argument that the agent itself is meant to make up: the idempotency key, a request id, a nonce."""
    if is_volatile(name) or (tool is not None and name in tool.volatile):
        return True
    if tool is not None and tool.idempotency_key is not None and tool.idempotency_key.argument == name:
        return True
    return key is not None and str(value) == key and _KEY_WORDS.issuperset(name_words(name))


def _missing(role: Role, value: Any, index: Index) -> Found:
    """No source. Not sure of a day when nothing states today (the agent may have a clock of its own), of what
    only stands in for a value, and of an address that was put together from known names."""
    if role == "date":
        return Found("none", None, "", index.today is not None)
    if is_placeholder(str(value)):
        return Found("none", None, "a placeholder", False)
    if role == "email" and all(part in index.words for part in runs(str(value).rpartition(".")[0])):
        return Found("none", None, "guessed from known names", False)
    return Found("none", None, "")


def _learn_message(event: Event, index: Index) -> None:
    if isinstance(event, ToolDefinition):  # most events of short runs are definitions
        index.learn_definition(event)
    elif isinstance(event, AssistantMessage):
        index.propose(event.text, event.position)
    elif isinstance(event, UserMessage):
        index.confirm()
        index.learn(event.text, "user", event.position)
    elif isinstance(event, SystemMessage):
        index.learn(event.text, "system", event.position)
    elif isinstance(event, ContextMessage):
        index.learn(event.text, "context", event.position)


def result_words(call: ToolCall) -> str:
    """What came back for a call as text, "" when nothing did."""
    if call.result_text or call.result is None:
        return call.result_text or ""
    return msgspec.json.encode(call.result).decode("utf-8", "replace")


def _learn_call(call: ToolCall, lines: tuple[Lineage, ...], index: Index) -> None:
    """A result is a source of values. What a failed call merely echoes of its own is not."""
    invented = [line.value for line in lines if line.source in ("none", "tool_description")]
    text = result_words(call)
    if call.outcome != "succeeded":
        text = " ".join(part for part in (text, call.error_message or "") if part)
        index.learn(text, "result", call.position, except_values=invented)
        return
    index.learn(text, "result", call.position)
    for line in lines:
        if line.role not in _CONTACT or line.source not in ("none", "tool_description"):
            index.learn(str(line.value), "argument", call.position)
