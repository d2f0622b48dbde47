"""Events from what was put in order: messages, calls, definitions, ends of runs."""

from __future__ import annotations

from typing import Any

from otelmon.assemble.derive import Called
from otelmon.assemble.occurrences import ContextText, DefinitionSeen, Item, Occurrence, SystemText
from otelmon.assemble.outcome import derive_outcome
from otelmon.assemble.runs import Place, RunDraft
from otelmon.assemble.slots import hash_of
from otelmon.vocabulary.event import (
    AssistantMessage,
    ContextMessage,
    EndReason,
    Event,
    RunEnd,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    UserMessage,
)
from otelmon.vocabulary.reading import Reading


class RunFacts:
    """What the readings of a run say about all of it: the root's word first, then the first other."""

    def __init__(self, run: RunDraft) -> None:
        readings = [run.root, *run.readings] if run.root else run.readings
        self.agent_name = next((r.agent_name for r in readings if r.agent_name), None)
        self.agent_version = next((r.agent_version for r in readings if r.agent_version), None)
        self.model = next((r.model for r in readings if r.model), None)
        self.principal = next((r.principal for r in readings if r.principal), None)
        self.trigger = next((r.trigger for r in readings if r.trigger), None)
        self.service_name = next((r.service_name for r in readings if r.service_name), "")
        self.service_namespace = next((r.service_namespace for r in readings if r.service_namespace), "")
        self.environment = next((r.environment for r in readings if r.environment), "")
        self.host = next((r.host for r in readings if r.host), "")


class Writer:
    """Makes events with their positions. One conversation, used once."""

    def __init__(self, facts: dict[str, RunFacts]) -> None:
        self._facts = facts
        self.events: list[Event] = []

    def _base(self, place: Place, start: int, end: int) -> dict[str, Any]:
        reading = place.reading
        return {
            "position": len(self.events),
            "trace_id": reading.trace_id,
            "span_id": reading.span_id,
            "run_id": place.run.run_id,
            "start_time_unix_nano": start,
            "end_time_unix_nano": end,
            "agent_name": self.agent_name(place),
        }

    def agent_name(self, place: Place) -> str | None:
        """The nearest agent's name, else what the span says itself, else the run's."""
        near = place.agent.agent_name if place.agent else None
        name: str | None = near or place.reading.agent_name or self._facts[place.run.run_id].agent_name
        return name

    def item(self, item: Item, turn: int, final: bool) -> None:
        """The event of a message or definition; a tool message that answers a call has none."""
        base = self._base(item.place, item.time, item.time)
        if isinstance(item, DefinitionSeen):
            self.events.append(_definition(item, base))
        elif isinstance(item, SystemText):
            self.events.append(SystemMessage(text=item.text, **base))
        elif isinstance(item, ContextText):
            self.events.append(ContextMessage(text=item.text, **base))
        elif item.message is not None:
            self._message(item, base, turn, final)

    def _message(self, item: Occurrence, base: dict[str, Any], turn: int, final: bool) -> None:
        message = item.message
        if message is None:
            return
        if message.role == "assistant" and not item.aside:
            made = item.generated
            if made is not None:
                base["start_time_unix_nano"] = made.reading.start_time_unix_nano
                base["end_time_unix_nano"] = made.reading.end_time_unix_nano
            self.events.append(AssistantMessage(text=message.text, requests=message.requests, final=final, **base))
        elif message.role == "user" and not item.aside and item.place.tool is None:
            self.events.append(UserMessage(text=message.text, turn=turn, **base))
        elif message.role == "tool" and not item.answers:
            text = "\n".join(response.text for response in message.responses)
            self.events.append(ContextMessage(text=text, **base))
        elif message.role in ("user", "assistant"):
            self.events.append(ContextMessage(text=message.text, **base))

    def call(self, called: Called, key: str, turn: int, batch: int, nested: int | None) -> None:
        """The event of one call."""
        place = place_of(called)
        reading, fields = place.reading, called.fields
        start, end = times_of(called)
        execution = called.execution
        http = tuple(execution.http) if execution else ()
        verdict = derive_outcome(fields, http, reading.status_error, execution is None)
        facts = self._facts[place.run.run_id]
        arguments = fields.arguments
        self.events.append(
            ToolCall(
                **self._base(place, start, end),
                key=key,
                tool_name=fields.name,
                raw_name=fields.raw_name or fields.name,
                tool_call_id=fields.call_id,
                derived=execution is None,
                span_ids=tuple(m.reading.span_id for m in execution.members) if execution else (reading.span_id,),
                arguments=arguments,
                arguments_text=fields.arguments_text,
                arguments_fidelity=fields.arguments_fidelity,
                arguments_hash=fields.arguments_hash or (hash_of(arguments) if arguments is not None else ""),
                result=fields.result,
                result_text=fields.result_text,
                result_fidelity=fields.result_fidelity,
                outcome=verdict.outcome,
                outcome_source=verdict.source,
                error_type=verdict.error_type,
                error_message=verdict.error_message,
                server=fields.server,
                idempotency_key=fields.idempotency_key or _header_key(called),
                attempt=fields.attempt,
                retry_of=fields.retry_of,
                approval=fields.approval,
                effect_hint=fields.effect_hint,
                annotations=fields.annotations,
                http=http,
                nested_calls=nested,
                turn=turn,
                batch=batch,
                model=_model(called, reading) or facts.model,
                principal=reading.principal or (place.agent.principal if place.agent else None) or facts.principal,
                agent_version=(place.agent.agent_version if place.agent else None) or facts.agent_version,
                service_name=reading.service_name,
                service_namespace=reading.service_namespace,
                environment=reading.environment,
                host=reading.host,
                trigger=reading.trigger or facts.trigger,
            )
        )

    def end(self, run: RunDraft, reason: EndReason, error_type: str | None) -> None:
        """The end of a closed run."""
        first = run.root or run.readings[0]
        self.events.append(
            RunEnd(
                position=len(self.events),
                trace_id=run.trace_id,
                span_id=first.span_id,
                run_id=run.run_id,
                start_time_unix_nano=run.end,
                end_time_unix_nano=run.end,
                agent_name=self._facts[run.run_id].agent_name,
                reason=reason,
                root_seen=run.root_seen,
                error_type=error_type,
            )
        )


def place_of(called: Called) -> Place:
    """The span a call points at: its own, or that of the model that asked for it."""
    if called.execution is not None:
        return called.execution.place
    if called.slot is None:
        raise ValueError("a call without execution and request")
    return called.slot.node.generated or called.slot.node.place


def times_of(called: Called) -> tuple[int, int]:
    """Start and end. A derived call lies between the request and the message with its response."""
    if called.execution is not None:
        reading = called.execution.reading
        return reading.start_time_unix_nano, reading.end_time_unix_nano
    start = called.slot.node.time if called.slot else 0
    answer = called.slot.answer if called.slot else None
    return start, max(start, answer.time if answer else start)


def _model(called: Called, reading: Reading) -> str | None:
    asked = called.slot.node.generated if called.slot else None
    return (asked.reading.model if asked else None) or reading.model


def _header_key(called: Called) -> str | None:
    http = called.execution.http if called.execution else []
    return next((h.idempotency_key for h in http if h.idempotency_key), None)


def _definition(item: DefinitionSeen, base: dict[str, Any]) -> ToolDefinition:
    d = item.definition
    return ToolDefinition(
        name=d.name,
        description=d.description,
        input_schema=d.input_schema,
        annotations=d.annotations,
        server=d.server,
        schema_hash=d.schema_hash,
        definition_hash=d.definition_hash,
        of_call=item.place.reading.kind == "tool",
        **base,
    )
