"""The texts of a conversation that direct the agent: in results of calls and in definitions of tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

import msgspec

from otelmon.checks.lib.instructions import MAX_DESCRIPTION, Passage, read, read_description, texts_of
from otelmon.checks.lib.instructions_language import deeds
from otelmon.checks.lib.provenance_roles import leaves
from otelmon.checks.lib.values import compact, runs
from otelmon.checks.lib.verbs import name_words
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall, ToolDefinition

RESULT_WEIGHT = 2  # of a passage in a result that is followed up; what is reported alone is the rule's to say
SURE_WEIGHT = 3  # from which a passage is an attack, whatever the user asked for
DEFINITION_WEIGHT = 4  # of a description: it is meant for the model, so more is needed than in a result
_SCHEMA_LEAVES = 400
_SAYING = frozenset(("description", "title", "default", "$comment", "example"))
# What the signs weigh in a description: it may speak to the model, and of its task.
_IN_DEFINITIONS = {
    "override": 4, "secrecy": 3, "template": 3, "hidden": 3, "secret_paths": 2, "feeding": 2, "capture": 3, "authority": 1,
    "address": 1, "role": 1, "before": 1, "standing": 1, "stealth": 1, "secrets": 1, "voice": 1, "markup": 1, "urgency": 1,
}  # fmt: skip
_CORE = frozenset(
    ("override", "secrecy", "template", "hidden", "secret_paths", "other_tools", "destination", "capture")
)
_PLACE = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,60}|https?://[\w.-]{4,80}|\b[a-z]{2}\d{2}[a-z0-9]{11,30}\b")


_TOOL_NAME = re.compile(r"[A-Za-z][\w.-]{3,80}\w")


class Direction(msgspec.Struct, frozen=True):
    """A passage that directs, and where it stands: in the result of a call (`key` that of the call) or in the
    definition of a tool (`key` "tool:<name>"). `anchor` is what evidence points at; `compact` all that it
    says in letters and digits, `ordered` its orders alone; `stems` the stems of its words, one set an order; `expected`:
    the result of a tool that is there to instruct the agent, or of another agent."""

    key: str
    anchor: str
    where: Literal["result", "definition"]
    tool_name: str
    position: int
    passage: Passage
    compact: str
    ordered: str
    stems: tuple[frozenset[str], ...]
    expected: bool = False

    @property
    def weak(self) -> bool:
        """True when people write so too: it is an attack only where the user did not ask for the deed."""
        return self.passage.plain or self.passage.weight < SURE_WEIGHT

    def orders_tool(self, name: str, words: set[str]) -> bool:
        """True when it names a tool as such, or in one order all the words of the tool's name."""
        if len(name) > 5 and ("_" in name or "-" in name) and name.lower() in self.passage.told:
            return True
        return len(words) > 1 and any(words <= order for order in self.stems)


def directions_of_result(call: ToolCall) -> tuple[Direction, ...]:
    """The directing passages of a result."""
    text = result_text(call)
    found = read(text)
    if not found:
        return ()
    expected = _instructs(call)
    own = compact(texts_of(call.arguments)) if call.arguments else ""  # what the agent wrote itself comes back
    return tuple(
        _direction(f"{call.key}#{n}", call.key, "result", call.tool_name, call.position, passage, expected)
        for n, passage in enumerate(found)
        if passage.weight >= RESULT_WEIGHT and compact(passage.quote)[:60] not in own
    )


def result_text(call: ToolCall) -> str:
    """What came back, as text: the strings of structured data one by one."""
    return texts_of(call.result) if isinstance(call.result, (dict, list)) else call.result_text or ""


def plain_direction(call: ToolCall, order: str) -> Direction:
    """An order in a result that speaks to nobody in particular."""
    passage = Passage(("order",), 0, True, (order,), order, order[:240], 0, len(order))
    return _direction(f"{call.key}#order", call.key, "result", call.tool_name, call.position, passage)


class _Said(msgspec.Struct, frozen=True):
    """What a definition says, read: its one passage, the kinds that count with their weights, the names it uses."""

    passage: Passage
    kinds: dict[str, int]
    names: frozenset[str]


class _Once:
    """A definition that is read once for all runs that show it."""

    def __init__(self, definition: ToolDefinition) -> None:
        self.definition = definition

    def __hash__(self) -> int:
        return hash(self.definition.definition_hash)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Once) and other.definition.definition_hash == self.definition.definition_hash


def directions_of_definition(definition: ToolDefinition, view: View) -> tuple[Direction, ...]:
    """The directing passages of a tool's description and of what its schema says of the arguments."""
    said = _read_once(_Once(definition)) if definition.definition_hash else _read(definition)
    if said is None:
        return ()
    kinds = dict(said.kinds)
    steered = _steers_others(said.names, definition, view)
    if steered == 2 or (steered and "destination" in kinds):
        kinds["other_tools"] = steered * (2 if "displacing" in said.passage.kinds else 1)
    if not _CORE.intersection(kinds) or sum(kinds.values()) < DEFINITION_WEIGHT:
        return ()
    passage = msgspec.structs.replace(said.passage, kinds=tuple(kinds), weight=sum(kinds.values()), plain=False)
    key = f"tool:{definition.name}"
    return (_direction(key, key, "definition", definition.name, definition.position, passage),)


@lru_cache(maxsize=4096)
def _read_once(once: _Once) -> _Said | None:
    return _read(once.definition)


def _read(definition: ToolDefinition) -> _Said | None:
    text = definition.description
    if definition.input_schema:
        text = f"{text}\n\n{_schema_texts(definition.input_schema)}"
    passage = read_description(text)
    if passage is None:
        return None
    kinds = {kind: _IN_DEFINITIONS[kind] for kind in passage.kinds if kind in _IN_DEFINITIONS}
    if any(_PLACE.search(order) for order in passage.orders):
        kinds["destination"] = 2
    return _Said(passage, kinds, frozenset(_TOOL_NAME.findall(text[:MAX_DESCRIPTION])))


def _schema_texts(schema: dict[str, Any]) -> str:
    """What a schema says in words: descriptions, titles, defaults, examples."""
    return "\n\n".join(_words_of_schema(schema))


def _words_of_schema(schema: dict[str, Any]) -> Iterator[str]:
    stack: list[Any] = [schema]
    left = _SCHEMA_LEAVES
    while stack and left:
        here = stack.pop()
        if isinstance(here, dict):
            for name, value in here.items():
                if isinstance(value, str):
                    if name in _SAYING and len(value) > 8:
                        left -= 1
                        yield value
                else:
                    stack.append(value)
        elif isinstance(here, list):
            stack.extend(here)


def _steers_others(names: frozenset[str], definition: ToolDefinition, view: View) -> int:
    """2 when the text names a tool of another server: what that does is not this tool's to say. 1 when it names
    another tool, and nobody knows whose it is."""
    found = 0
    tools = view.tools_in_force(definition.run_id).tools
    for name in names:
        same = tools.get(name, ()) if name != definition.name else ()
        if same and all(tool.server != definition.server for tool in same):
            return 2
        found = 1 if same and definition.server is None else found
    return found


def _instructs(call: ToolCall) -> bool:
    """A tool that returns instructions on purpose, or another agent."""
    words = deeds()
    if call.nested_calls is not None or words.instructing & set(name_words(call.tool_name)):
        return True
    if not isinstance(call.arguments, dict):
        return False
    named = [
        str(value).lower() for _, _, value in leaves(call.arguments) if isinstance(value, str) and len(value) < 300
    ]
    return any(value.endswith(words.instructing_files) for value in named)


def _direction(
    key: str,
    anchor: str,
    where: Literal["result", "definition"],
    tool: str,
    position: int,
    passage: Passage,
    expected: bool = False,
) -> Direction:
    stems = tuple(frozenset(stem(word) for word in runs(order)) for order in passage.orders[:40])
    return Direction(
        key,
        anchor,
        where,
        tool,
        position,
        passage,
        compact(passage.told),
        compact("\n".join(passage.orders)),
        stems,
        expected,
    )


def stem(word: str) -> str:
    """A word without the endings of number and tense."""
    for ending in ("ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending)
    return word
