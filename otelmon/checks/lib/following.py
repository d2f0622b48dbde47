"""What the agent did because a text told it to: directing texts, and the calls that carry what only they said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.directing import Direction, directions_of_definition, directions_of_result, stem
from otelmon.checks.lib.instructions import delegates, flatten
from otelmon.checks.lib.instructions_language import deeds
from otelmon.checks.lib.provenance_roles import Role, leaves, name_words, role_of, schema_at
from otelmon.checks.lib.values import EMAIL, URL, compact, runs, words_of
from otelmon.checks.lib.verbs import name_words as tool_words
from otelmon.checks.view import View
from otelmon.vocabulary.event import (
    AssistantMessage,
    ContextMessage,
    Event,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    UserMessage,
)

How = Literal["destination", "value", "phrase", "tool"]
MAX_DIRECTIONS = 5_000  # of one conversation: as many as it may have calls; later ones go unsaid
MAX_CONTACTS = 60  # contacts looked at in one long argument
MAX_SAID = 20_000  # characters of what the user said that are asked for deeds
_PHRASE = 16  # letters of wording that are nobody's own by chance
_CONTACT = re.compile(r"""[^\s"'<>()\[\]{},;|]{5,200}""")
_URL_WORDS = frozenset(("url", "uri", "link", "href", "endpoint", "website", "site", "webhook", "host", "domain", "address", "page"))  # fmt: skip
_COMMANDS = frozenset(("command", "cmd", "script", "code", "shell", "bash", "commandline"))
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:[\w-]+@)?((?:[\w-]+\.)+[a-z]{2,}|\d{1,3}(?:\.\d{1,3}){3})(?:[:/?#]\S*)?", re.IGNORECASE)  # fmt: skip


class Act(msgspec.Struct, frozen=True):
    """A call that carries out what a directing text says. `how`: a value that only the text had, as the place it
    goes to ("destination") or otherwise ("value"), its wording ("phrase"), or a tool that it names ("tool").
    `sink`: the call writes or talks to the outside. `excused`: what the user asked for may be what was
    done: the work was handed over, or something was to be done and no other place was named for it."""

    call: ToolCall
    direction: Direction
    how: How
    path: str
    value: str
    sink: bool
    excused: bool = False

    @property
    def sure(self) -> bool:
        """True when only the text can be what the agent followed."""
        return not self.direction.expected and not (self.direction.weak and self.excused)


class Following(msgspec.Struct, frozen=True):
    """All directing texts of a conversation in order, and the acts by the key of the text and of the call."""

    directions: tuple[Direction, ...]
    by_anchor: dict[str, tuple[Direction, ...]]
    by_direction: dict[str, tuple[Act, ...]]
    by_call: dict[str, tuple[Act, ...]]


_REMEMBERED: WeakKeyDictionary[View, Following] = WeakKeyDictionary()


def following(view: View) -> Following:
    """The directing texts of a conversation and what was done on them; read once."""
    known = _REMEMBERED.get(view)
    if known is None:
        known = _REMEMBERED[view] = _Walk(view).result()
    return known


def past_known(view: View, run_id: str) -> bool:
    """Whether all that the user and the instructions said before could be seen: else they may have said it."""
    gaps = next((run.gaps for run in view.runs if run.run_id == run_id), ())
    return not set(gaps) - {"incomplete_run"} and any(True for _ in view.user_messages())


class _Walk:
    """Reads a conversation in order. `told`: words that a directing text says, with the first such text;
    `clean`: words that another source had before."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.directions: list[Direction] = []
        self.told: dict[str, Direction] = {}
        self.clean: set[str] = set()
        self.users = ""
        self.asked: set[str] = set()
        self.delegated = False
        self.said = ""
        self.user_words: set[str] = set()
        self.pending: list[str] = []
        self.used: set[str] = set()
        self.acts: list[Act] = []

    def result(self) -> Following:
        if not self._any_direction():
            return Following((), {}, {}, {})
        for event in self.view.events:
            self._see(event)
        by_anchor: dict[str, list[Direction]] = {}
        for direction in self.directions:
            by_anchor.setdefault(direction.anchor, []).append(direction)
        by_direction: dict[str, list[Act]] = {}
        by_call: dict[str, list[Act]] = {}
        for act in self.acts:
            by_direction.setdefault(act.direction.key, []).append(act)
            by_call.setdefault(act.call.key, []).append(act)
        return Following(
            tuple(self.directions),
            {key: tuple(same) for key, same in by_anchor.items()},
            {key: tuple(acts) for key, acts in by_direction.items()},
            {key: tuple(acts) for key, acts in by_call.items()},
        )

    def _see(self, event: Event) -> None:
        match event:
            case UserMessage():
                self._hear(event.text)
            case SystemMessage() | ContextMessage():
                self.clean |= words_of(event.text).words
                self.users += "\n" + compact(event.text[:20_000])
            case AssistantMessage():
                self.pending.append(event.text)
            case ToolDefinition():
                for direction in self.found.get(_definition_key(event), ()):
                    self._direct(direction)
            case ToolCall():
                self._call(event)

    def _any_direction(self) -> bool:
        """Find the texts that direct first: most conversations have none, and nothing more is to be done."""
        self.found: dict[str, tuple[Direction, ...]] = {}
        for event in self.view.events:
            if isinstance(event, ToolCall):
                directions = directions_of_result(event)
                if directions:
                    self.found[event.key] = directions
            elif isinstance(event, ToolDefinition):
                directions = directions_of_definition(event, self.view)
                if directions:
                    self.found[_definition_key(event)] = directions
        return bool(self.found)

    # -- learning ---------------------------------------------------------------------------------
    def _hear(self, text: str) -> None:
        """What the user says, and what was put before the user and answered, is the user's."""
        for said in (*self.pending[-3:], text):
            self.user_words |= words_of(said).words
            self.users += "\n" + compact(said[:20_000])
        self.clean |= self.user_words
        self.pending.clear()
        self.said = f"{self.said}\n{flatten(text[:MAX_SAID])}"[-MAX_SAID:]
        self.asked |= {stem(word) for word in runs(text)}
        self.delegated = self.delegated or delegates(text)

    def _direct(self, direction: Direction) -> None:
        if len(self.directions) >= MAX_DIRECTIONS:
            return
        self.directions.append(direction)
        for word in words_of(direction.passage.told).words:
            self.told.setdefault(word, direction)

    def _call(self, call: ToolCall) -> None:
        if self.directions and isinstance(call.arguments, dict):
            self.acts.extend(self._weighed(call))
        self.used.add(call.tool_name)
        if call.key in self.found:
            for direction in self.found[call.key]:
                self._direct(direction)
            return  # the rest of a text that directs is no witness for what the text says
        text = call.result_text or ""
        if text:
            self.clean |= words_of(text).words

    def _weighed(self, call: ToolCall) -> Iterator[Act]:
        """Each act with whether the user's own words can explain it."""
        for act in self._acts(call):
            opens = act.how == "destination" and is_url(act.value)
            asked = self.delegated or asks_for(deed_of(call, opens), self.said)
            if act.how == "tool" and asked:
                continue
            alone = act.how in ("destination", "tool") and wants_to_know(self.said) and not (opens and asked)
            elsewhere = act.how == "destination" and names_another(act.value, self.said)
            yield msgspec.structs.replace(act, excused=self.delegated or not (alone or elsewhere))

    # -- judging ----------------------------------------------------------------------------------
    def _acts(self, call: ToolCall) -> Iterator[Act]:
        effect = self.view.effect(call).effect
        tool = self.view.tool(call)
        schema = tool.input_schema if tool else None
        found = False
        for path, name, value in leaves(call.arguments):
            if isinstance(value, bool) or value is None or value == "":
                continue
            role = role_of(name, value, schema_at(schema, path))
            for act in self._of_value(call, path, name, role, str(value), effect):
                found = True
                yield act
        if not found:
            direction = self._named(call)
            if direction is not None:
                yield Act(call, direction, "tool", "", call.tool_name, effect not in ("read", "unknown"))

    def _of_value(self, call: ToolCall, path: str, name: str, role: Role, value: str, effect: str) -> Iterator[Act]:
        writes = effect not in ("read", "unknown")
        address = is_address(name, role, value)
        if len(value) > 120 or (role == "free" and len(value.split()) > 2):
            yield from self._of_text(call, path, value, writes, bool(_COMMANDS & set(name_words(name))))
            return
        direction = self._only_told(value, address)
        if direction is not None and role not in ("constant", "setting", "amount", "quantity", "date", "status"):
            goes = address or role in ("email", "phone", "id", "code")
            if not goes and compact(value) not in direction.ordered:
                return  # a name that the text mentions in passing
            sink = writes or (address and role != "path") or (effect == "unknown" and goes)
            yield Act(call, direction, "destination" if goes else "value", path, value, sink)

    def _of_text(self, call: ToolCall, path: str, value: str, writes: bool, command: bool) -> Iterator[Act]:
        """Contacts that a composed text carries, names of things in a `command`, or wording that it repeats."""
        for chunk in _CONTACT.findall(value)[:MAX_CONTACTS]:
            chunk = chunk.strip(".,:!?")
            named = command and len(chunk) > 7 and len(runs(chunk)) > 1
            if named or "@" in chunk or "." in chunk or sum(c.isdigit() for c in chunk) >= 5:
                direction = self._only_told(chunk, bool(_HOST.fullmatch(chunk)))
                if direction is not None:
                    yield Act(call, direction, "destination" if command else "value", path, chunk, writes or command)
                    return
        key = compact(value)
        if _PHRASE <= len(key) <= 400 and key not in self.users:
            for direction in self.directions[-10:]:
                if key in direction.compact:
                    yield Act(call, direction, "phrase", path, value, writes)
                    return

    def _only_told(self, value: str, address: bool) -> Direction | None:
        """The text that says a value, when nothing else does."""
        key = compact(value)
        if len(key) < 5 and not (len(key) > 2 and any(c.isdigit() for c in key)):
            return None
        direction = self._of_word(key)
        if direction is None and address:
            host = _HOST.fullmatch(value.strip())
            name = host.group(1).lower().removeprefix("www.") if host else ""
            direction = self._of_word(compact(name)) or self._of_word(compact("www." + name)) if name else None
            if direction is not None and not self.clean.isdisjoint((compact(name), compact("www." + name))):
                return None
        if direction is None and len(runs(value)) > 1:
            return self._of_words(key, value)
        return direction

    def _of_word(self, key: str) -> Direction | None:
        return self.told.get(key) if key not in self.clean else None

    def _of_words(self, key: str, value: str) -> Direction | None:
        """A name of several words, as it stands in the text."""
        parts = runs(value)
        first = next((self.told[p] for p in parts if p in self.told and p not in self.clean), None)
        return first if first is not None and len(key) >= 8 and key in first.compact else None

    def _named(self, call: ToolCall) -> Direction | None:
        """The text that names this tool, or its deed, where the user asked for nothing of the kind."""
        words = {stem(word) for word in tool_words(call.tool_name)}
        if call.tool_name in self.used or words <= self.asked:
            return None
        for direction in reversed(self.directions[-10:]):
            if direction.tool_name != call.tool_name and direction.orders_tool(call.tool_name, words):
                return direction
        return None


def deed_of(call: ToolCall, opens: bool) -> str:
    """The kind of deed a call is: "send", "visit" (it `opens` an address) or "change"."""
    name = " ".join(tool_words(call.tool_name)).encode("ascii", "replace")
    if deeds().classes["send"].search(name):
        return "send"
    return "visit" if opens else "change"


def asks_for(deed: str, said: str) -> bool:
    """True when folded words of the user ask for such a deed."""
    return deeds().asking[deed].search(said.encode("ascii", "replace")) is not None


def names_another(value: str, said: str) -> bool:
    """True when the user named a place of the kind of the value, which was the one that was meant; not when the
    words of the value are the user's as well."""
    host = _HOST.fullmatch(value.strip())
    own = host.group(1).rpartition(".")[0] if host and "@" not in value else value.split("@")[0]
    names = {word for word in runs(own) if len(word) > 3 and word.isalpha()}
    if not names.isdisjoint(runs(said)):
        return False
    for pattern in (EMAIL, URL):
        if pattern.fullmatch(value.strip()):
            return bool(pattern.search(said))
    shape = compact(value)
    digits = sum(c.isdigit() for c in shape)
    if digits < 3:
        return False
    return any(len(w) >= len(shape) - 3 and sum(c.isdigit() for c in w) >= digits - 3 for w in words_of(said).words)


def wants_to_know(said: str) -> bool:
    """True when folded words of the user ask for an answer, and for nothing to be done."""
    data = said.encode("ascii", "replace")
    return bool(deeds().informing.search(data)) and not deeds().acting.search(data)


def is_url(value: str) -> bool:
    """True when a value is the address of a page or a host."""
    return bool(URL.fullmatch(value.strip()))


def is_address(name: str, role: Role, value: str) -> bool:
    """True when an argument says which place outside is talked to."""
    if role == "url":
        return True
    return (
        bool(_URL_WORDS & set(name_words(name))) and bool(_HOST.fullmatch(value.strip())) and not EMAIL.fullmatch(value)
    )


def _definition_key(event: ToolDefinition) -> str:
    return f"{event.run_id}:{event.position}"
