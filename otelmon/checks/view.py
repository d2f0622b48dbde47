"""What a check sees: one conversation in order, and the catalogue in force for each of its calls."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

from otelmon.checks.lib.effects import EffectOf, business_arguments, effect_key, effect_of, idempotency_key_of
from otelmon.checks.lib.identity import identifying_values
from otelmon.checks.lib.replay import says_replayed
from otelmon.vocabulary.catalogue import Catalogue, Tool
from otelmon.vocabulary.event import (
    AssistantMessage,
    Event,
    Run,
    SystemMessage,
    Timeline,
    ToolCall,
    ToolDefinition,
    UserMessage,
)

NO_CATALOGUE = Catalogue(version=1, complete=False)


class ToolsInForce(msgspec.Struct, frozen=True):
    """The tools that exist for a run. `complete` false: there may be others (also where only the calls
    of the run show definitions, of their own tools). `source` is "run"
    (definitions seen in the run), "operator" (the catalogue file) or "none"."""

    tools: dict[str, tuple[Tool, ...]]
    complete: bool
    source: str


class View:
    """One conversation and its catalogue. Everything is ordered; nothing here reads a clock. `trusted`
    services may lower a severity by their own hints; `trust_approvals`: what spans say of approvals counts
    from every service."""

    def __init__(
        self,
        timeline: Timeline,
        catalogue: Catalogue | None = None,
        trusted: frozenset[str] = frozenset(),
        trust_approvals: bool = False,
    ):
        self.timeline = timeline
        self.catalogue = catalogue or NO_CATALOGUE
        self.has_operator_catalogue = catalogue is not None and bool(catalogue.tools)
        self.trusted = trusted
        self.trust_approvals = trust_approvals
        self.conversation_id = timeline.conversation_id
        self.events: tuple[Event, ...] = timeline.events
        self.runs: tuple[Run, ...] = timeline.runs
        self._run_by_id = {run.run_id: run for run in timeline.runs}
        self._tools: dict[str, ToolsInForce] = {}
        self._effects: dict[str, EffectOf] = {}
        self._effect_keys: dict[str, str] = {}
        self._business: dict[str, dict[str, object]] = {}
        self._identifying: dict[str, tuple[str, ...]] = {}
        self._remembered: dict[Hashable, Any] = {}

    def remembered(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` gives, made once a view: what a check would else work out again for every call."""
        if key not in self._remembered:
            self._remembered[key] = make()
        return self._remembered[key]

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """All calls of the conversation, in order."""
        return tuple(e for e in self.events if isinstance(e, ToolCall))

    @cached_property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """All tool definitions that were seen, in order."""
        return tuple(e for e in self.events if isinstance(e, ToolDefinition))

    @cached_property
    def finals(self) -> tuple[AssistantMessage, ...]:
        """The last messages of the runs that have one, in order."""
        return tuple(e for e in self.events if isinstance(e, AssistantMessage) and e.final)

    @cached_property
    def call_by_key(self) -> dict[str, ToolCall]:
        return {call.key: call for call in self.calls}

    def run_of(self, event: Event) -> Run:
        return self._run_by_id[event.run_id]

    def run_events(self, run_id: str) -> Sequence[Event]:
        return self._events_by_run.get(run_id, ())

    def run_calls(self, run_id: str) -> Sequence[ToolCall]:
        return self._calls_by_run.get(run_id, ())

    @cached_property
    def _calls_by_run(self) -> dict[str, list[ToolCall]]:
        by_run: dict[str, list[ToolCall]] = {}
        for call in self.calls:
            by_run.setdefault(call.run_id, []).append(call)
        return by_run

    @cached_property
    def _events_by_run(self) -> dict[str, list[Event]]:
        by_run: dict[str, list[Event]] = {}
        for event in self.events:
            by_run.setdefault(event.run_id, []).append(event)
        return by_run

    def before(self, event: Event) -> Sequence[Event]:
        """Everything that came before the event."""
        return self.events[: event.position]

    def after(self, event: Event) -> Sequence[Event]:
        """Everything that came after the event."""
        return self.events[event.position + 1 :]

    def calls_before(self, event: Event) -> Iterator[ToolCall]:
        """Calls that came before the event, oldest first."""
        return (call for call in self.calls if call.position < event.position)

    def user_messages(self) -> Iterator[UserMessage]:
        return iter(self._user_messages)

    @cached_property
    def _user_messages(self) -> tuple[UserMessage, ...]:
        return tuple(e for e in self.events if isinstance(e, UserMessage))

    @cached_property
    def system_messages(self) -> tuple[SystemMessage, ...]:
        """All instructions of the conversation, in order."""
        return tuple(e for e in self.events if isinstance(e, SystemMessage))

    def latest_user_message(self, event: Event) -> UserMessage | None:
        """What the user said last before the event."""
        messages = self._user_messages
        after = bisect_left(messages, event.position, key=lambda m: m.position)
        return messages[after - 1] if after else None

    def final_message(self, run_id: str) -> AssistantMessage | None:
        """The last message of the run, when it asked for nothing more."""
        last = self._last_messages.get(run_id)
        return last if last is not None and last.final else None

    @cached_property
    def _batches(self) -> Counter[tuple[str, int]]:
        return Counter((call.run_id, call.batch) for call in self.calls)

    def asked_beside(self, call: ToolCall) -> int:
        """How many other calls the message that asked for this one asked for."""
        return self._batches[call.run_id, call.batch] - 1

    @cached_property
    def _asking(self) -> dict[str, str]:
        """By key of a call: the text of the message that asked for it, where one is seen."""
        texts: dict[str, str] = {}
        latest: AssistantMessage | None = None
        for event in self.events:
            if isinstance(event, AssistantMessage):
                latest = event
            elif (
                isinstance(event, ToolCall) and latest is not None and latest.run_id == event.run_id and latest.requests
            ):
                texts[event.key] = latest.text
        return texts

    def message_beside(self, call: ToolCall) -> str:
        """What the agent said in the message that asked for this call; "" when nothing, or when it is not seen."""
        return self._asking.get(call.key, "")

    @cached_property
    def _last_messages(self) -> dict[str, AssistantMessage]:
        return {event.run_id: event for event in self.events if isinstance(event, AssistantMessage)}

    # -- the catalogue ---------------------------------------------------------------------------
    def tools_in_force(self, run_id: str) -> ToolsInForce:
        """Definitions seen in the run, with the operator's fields laid over; else the operator's."""
        found = self._tools.get(run_id)
        if found is None:
            found = self._tools[run_id] = self._resolve_tools(run_id)
        return found

    def _resolve_tools(self, run_id: str) -> ToolsInForce:
        seen = [e for e in self.run_events(run_id) if isinstance(e, ToolDefinition)]
        operator: dict[str, list[Tool]] = {}
        for tool in self.catalogue.tools:
            operator.setdefault(tool.name, []).append(tool)
        if not seen:
            tools = {name: tuple(same) for name, same in operator.items()}
            return ToolsInForce(tools, self.catalogue.complete and bool(tools), "operator" if tools else "none")
        merged: dict[str, list[Tool]] = {}
        for definition in seen:
            merged.setdefault(definition.name, []).append(_overlay(definition, operator.get(definition.name, ())))
        listed = any(not definition.of_call for definition in seen)
        complete = self.catalogue.complete if self.has_operator_catalogue else listed
        if self.has_operator_catalogue:
            for name, same in operator.items():
                merged.setdefault(name, list(same))
        return ToolsInForce({name: tuple(same) for name, same in merged.items()}, complete, "run")

    def tool(self, call: ToolCall) -> Tool | None:
        """The definition in force for this call, or None. Of several servers' tools with one name,
        the one of the call's server when the call names it."""
        same = self.tools_in_force(call.run_id).tools.get(call.tool_name, ())
        for tool in same:
            if call.server and tool.server == call.server:
                return tool
        return same[0] if same else None

    # -- effects ---------------------------------------------------------------------------------
    def effect(self, call: ToolCall) -> EffectOf:
        """What this call does, whether twice is two, and how we know."""
        found = self._effects.get(call.key)
        if found is None:
            tool, trusted = self.tool(call), call.service_name in self.trusted
            found = self._effects[call.key] = effect_of(call, tool, trusted)
        return found

    def writes(self, call: ToolCall) -> bool:
        """True when the call changes something or talks to the outside, as far as is known."""
        return self.effect(call).effect in ("write", "destructive", "external_send")

    def effect_key(self, call: ToolCall) -> str:
        """What makes two writes the same effect: scope + tool + canonical business arguments."""
        found = self._effect_keys.get(call.key)
        if found is None:
            found = self._effect_keys[call.key] = effect_key(call, self.business_arguments(call))
        return found

    @cached_property
    def _writes_by_effect(self) -> dict[str, list[ToolCall]]:
        by_key: dict[str, list[ToolCall]] = {}
        for call in self.calls:
            if self.writes(call):
                by_key.setdefault(self.effect_key(call), []).append(call)
        return by_key

    @cached_property
    def _landed_by_effect(self) -> dict[str, list[ToolCall]]:
        return {
            key: [c for c in calls if c.outcome == "succeeded" and not says_replayed(c.result)]
            for key, calls in self._writes_by_effect.items()
        }

    def landed_before(self, call: ToolCall) -> list[ToolCall]:
        """Earlier writes with the effect key of this write that took effect, oldest first."""
        same = self._landed_by_effect.get(self.effect_key(call), [])
        return same[: bisect_left(same, call.position, key=lambda c: c.position)]

    @cached_property
    def requests_by_call_id(self) -> Counter[str]:
        """How often the model's messages ask for a call with this id."""
        messages = (e for e in self.events if isinstance(e, AssistantMessage))
        return Counter(r.tool_call_id for m in messages for r in m.requests if r.tool_call_id)

    def times_written(self, call: ToolCall) -> int:
        """How many writes of the conversation have the effect key of this write."""
        return len(self._writes_by_effect.get(self.effect_key(call), ()))

    @cached_property
    def denials(self) -> tuple[ToolCall, ...]:
        """Writes that a person or a policy refused, in order."""
        return tuple(call for call in self.calls if call.outcome == "denied" and self.writes(call))

    @cached_property
    def removals(self) -> tuple[ToolCall, ...]:
        """Calls that took something away and succeeded: deletions, cancellations."""
        return tuple(c for c in self.calls if self.removes(c))

    def removes(self, call: ToolCall) -> bool:
        """True when the call took something away and succeeded."""
        return call.outcome == "succeeded" and _removes(self.effect(call))

    @cached_property
    def _writes_by_tool(self) -> dict[str, list[ToolCall]]:
        by_tool: dict[str, list[ToolCall]] = {}
        for call in self.calls:
            if self.writes(call):
                by_tool.setdefault(call.tool_name, []).append(call)
        return by_tool

    def same_tool_before(self, call: ToolCall) -> list[ToolCall]:
        """Earlier writes with this write's tool, oldest first."""
        writes = self._writes_by_tool.get(call.tool_name, [])
        return writes[: bisect_left(writes, call.position, key=lambda c: c.position)]

    def business_arguments(self, call: ToolCall) -> dict[str, object]:
        """The arguments that say what the effect is: all but volatile ones and the key."""
        found = self._business.get(call.key)
        if found is None:
            found = self._business[call.key] = business_arguments(call, self.tool(call))
        return found

    def identifying_values(self, call: ToolCall) -> tuple[str, ...]:
        """The values of the business arguments that name a record (ids, references, accounts)."""
        found = self._identifying.get(call.key)
        if found is None:
            found = self._identifying[call.key] = tuple(identifying_values(self.business_arguments(call)))
        return found

    def idempotency_key(self, call: ToolCall) -> str | None:
        """The key the call was sent with: from the shim, an argument, or an HTTP header."""
        return idempotency_key_of(call, self.tool(call))


def _removes(effect: EffectOf) -> bool:
    return effect.effect == "destructive" and effect.repeat == "absolute"


def _overlay(definition: ToolDefinition, operator: Sequence[Tool]) -> Tool:
    mine = next((t for t in operator if t.server in (None, definition.server)), None)
    base = mine or Tool(name=definition.name)
    return msgspec.structs.replace(
        base,
        server=definition.server or base.server,
        description=definition.description or base.description,
        input_schema=definition.input_schema if definition.input_schema is not None else base.input_schema,
        annotations=definition.annotations or base.annotations,
    )
