"""What a call does to the world: its class, whether twice is two, and what makes two writes one effect."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from otelmon.checks.lib.entries import effect_entry
from otelmon.checks.lib.sameness import business_arguments, comparable, effect_key, idempotency_key_of
from otelmon.checks.lib.shelltext import classify_argv, classify_shell, http_method
from otelmon.checks.lib.sqltext import classify_sql
from otelmon.checks.lib.verbs import (
    STRENGTH,
    UNKNOWN,
    VerbClass,
    begins_with_verb,
    classify_description,
    classify_name,
    name_words,
    words,
)
from otelmon.vocabulary.catalogue import Annotations, Effect, EffectSource, Repeat, Tool
from otelmon.vocabulary.event import ToolCall

__all__ = [
    "EffectOf", "business_arguments", "comparable", "effect_entry", "effect_key", "effect_of", "effect_of_tool",
    "idempotency_key_of", "stronger",
]  # fmt: skip

_SQL_ARGUMENTS = ("sql", "statement", "sql_query", "sqlQuery", "query_sql", "query", "command", "code", "text", "q")
_SQL_CLEAR = frozenset(_SQL_ARGUMENTS[:5])
_SQL_TOOLS = words(
    "sql database db postgres postgresql mysql sqlite bigquery snowflake duckdb mssql oracle clickhouse redshift"
)
_SHELL_ARGUMENTS = ("command", "cmd", "shell_command", "commandLine", "command_line", "bash", "script", "input")
_SHELL_TOOLS = words("bash shell command commands terminal exec execute run cmd powershell ssh console sh")
_METHOD_ARGUMENTS = ("method", "http_method", "httpMethod", "verb")
_ACTION_ARGUMENTS = ("action", "operation", "op", "method", "command")
_LONGEST_ACTION, _MOST_ACTIONS = 40, 50
_ADDRESS_ARGUMENTS = frozenset(("url", "uri", "path", "endpoint", "href", "address"))
_TELLING = frozenset((*_SQL_ARGUMENTS, *_SHELL_ARGUMENTS, *_METHOD_ARGUMENTS))
_ASKED = _TELLING | frozenset(_ACTION_ARGUMENTS)
_EFFECTS = frozenset(("read", "write", "destructive", "external_send"))


class EffectOf(msgspec.Struct, frozen=True):
    """The effect of one call. `source` is the strongest source that decided: operator > hint > verb >
    description; "call" when the call itself (SQL verb, HTTP method, shell command) refined it. `repeat` is what
    sending it twice means. `known` is false when nothing but a guess stands behind `effect`."""

    effect: Effect
    repeat: Repeat
    source: EffectSource
    known: bool = True


def stronger(one: Effect, other: Effect) -> Effect:
    """The one that weighs more: read < unknown < write < external_send < destructive."""
    return one if STRENGTH[one] >= STRENGTH[other] else other


def effect_of(call: ToolCall, tool: Tool | None, trusted: bool = False) -> EffectOf:
    """The effect of a call, from the weakest source to the strongest: the description, name verbs, hints, operator;
    then refined by what this call says. Hints of a service that is not trusted never lower it."""
    verb = classify_name(call.tool_name)
    hints = (tool.annotations if tool else None) or call.annotations
    found, source = _with_hints(verb, hints, call.effect_hint, trusted)
    if found.effect == "unknown" and tool and tool.description:
        described = classify_description(tool.description)
        found, source = described, "description" if described.effect != "unknown" else "none"
    if tool and tool.effect:
        found, source = VerbClass(tool.effect, found.repeat), "operator"
    refined = _refine(call) or (_by_action(call, tool, found) if source != "operator" else None)
    if refined and refined.effect != "unknown":
        found, source = refined, "call"
    repeat = tool.repeat if tool and tool.repeat else found.repeat
    return EffectOf(found.effect, repeat, source, known=found.effect != "unknown" and source != "none")


def effect_of_tool(tool: Tool, trusted: bool = False) -> EffectOf:
    """What calls of the tool do, as far as that can be said before there is one."""
    found, source = _with_hints(classify_name(tool.name), tool.annotations, None, trusted)
    if tool.effect:
        found, source = VerbClass(tool.effect, found.repeat), "operator"
    repeat = tool.repeat or found.repeat
    return EffectOf(found.effect, repeat, source, known=found.effect != "unknown" and source != "none")


def hidden_effect(call: ToolCall, tool: Tool | None) -> bool:
    """True when only the arguments could say what this call does (a SQL text, a command, an HTTP
    method), and they were not captured: then the tool's own class is no ground for an accusation."""
    if call.arguments_fidelity not in ("absent", "hashed", "truncated"):
        return False
    properties = (tool.input_schema or {}).get("properties") if tool else None
    return isinstance(properties, dict) and bool(_TELLING & {str(name).lower() for name in properties})


@lru_cache(maxsize=4096)
def _with_hints(
    verb: VerbClass, hints: Annotations | None, span_says: str | None, trusted: bool
) -> tuple[VerbClass, EffectSource]:
    source: EffectSource = "verb" if verb.effect != "unknown" else "none"
    hinted = _hinted_effect(hints)
    if span_says in _EFFECTS:
        hinted = stronger(hinted, span_says) if hinted else span_says  # type: ignore[arg-type, assignment]
    effect = verb.effect
    # An unknown tool that calls itself a reader is believed: there is nothing that it would lower.
    if hinted and (trusted or effect == "unknown" or STRENGTH[hinted] > STRENGTH[effect]):
        effect, source = hinted, "hint"
    repeat = verb.repeat
    if hints and hints.idempotent_hint and (trusted or verb.effect in ("unknown", "write")):
        repeat = "absolute"
    return VerbClass(effect, repeat), source


def _hinted_effect(hints: Annotations | None) -> Effect | None:
    """What MCP hints say. A set of all four defaults was filled in by a library and says nothing."""
    if hints is None or (hints.read_only_hint is None and hints.destructive_hint is None):
        return None
    if hints.read_only_hint:
        return "read"
    defaults = (hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint) == (True, False, True)
    if defaults and hints.read_only_hint is False:
        return None
    return "destructive" if hints.destructive_hint else "write"


def _refine(call: ToolCall) -> VerbClass | None:
    """What the call itself says: a SQL text, a shell command, an HTTP method."""
    arguments = call.arguments
    if not isinstance(arguments, dict) or _TELLING.isdisjoint(arguments):
        return None
    named = frozenset(name_words(call.tool_name)) | frozenset(name_words(call.server or ""))
    return _by_sql(arguments, named) or _by_shell(arguments, named) or _by_method(arguments)


def _by_action(call: ToolCall, tool: Tool | None, found: VerbClass) -> VerbClass | None:
    """What a tool of many actions was asked for: `issue_write(method="delete")`. Words count that are clearly verbs;
    beside a name that says something only where the schema lists them, `POST` is no verb of a tool, and nothing makes a destroyer harmless."""
    arguments = call.arguments
    if not isinstance(arguments, dict) or found.effect == "destructive" or _ASKED.isdisjoint(arguments):
        return None
    for name in _ACTION_ARGUMENTS:
        text = arguments.get(name)
        if not isinstance(text, str) or not 0 < len(text) <= _LONGEST_ACTION or text.isupper():
            continue
        if _lists_actions(tool, name) or (found.effect == "unknown" and begins_with_verb(text)):
            asked = classify_name(text)
            return asked if asked.effect != "unknown" else None
    return None


def _lists_actions(tool: Tool | None, name: str) -> bool:
    """Whether the schema offers several actions for this argument."""
    properties = (tool.input_schema or {}).get("properties") if tool else None
    schema = properties.get(name) if isinstance(properties, dict) else None
    offered = schema.get("enum") if isinstance(schema, dict) else None
    if not isinstance(offered, list) or len(offered) > _MOST_ACTIONS:
        return False
    return sum(isinstance(each, str) and begins_with_verb(each) for each in offered) > 1


def _by_sql(arguments: dict[str, Any], named: frozenset[str]) -> VerbClass | None:
    for name in _SQL_ARGUMENTS:
        text = arguments.get(name)
        if isinstance(text, str) and (name in _SQL_CLEAR - {"query"} or named & _SQL_TOOLS):
            found = classify_sql(text)
            if found:
                return found
    return None


def _by_shell(arguments: dict[str, Any], named: frozenset[str]) -> VerbClass | None:
    for name in _SHELL_ARGUMENTS:
        text = arguments.get(name)
        if not (named & _SHELL_TOOLS or name in ("shell_command", "bash")):
            continue
        if isinstance(text, str) and text.strip():
            return classify_shell(text)
        if isinstance(text, list) and text and all(isinstance(w, str) for w in text):
            return classify_argv(text)
    return None


def _by_method(arguments: dict[str, Any]) -> VerbClass | None:
    if not _ADDRESS_ARGUMENTS & arguments.keys():
        return None
    for name in _METHOD_ARGUMENTS:
        text = arguments.get(name)
        if isinstance(text, str):
            return http_method(text) or UNKNOWN
    return None
