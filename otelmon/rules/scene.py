"""Builds the conversations of an inline test: events, runs and views made directly, without spans."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.assemble.outcome import Verdict, derive_outcome
from otelmon.checks.view import View
from otelmon.rules.notation import (
    AnyStep,
    AssistantStep,
    ContextStep,
    Define,
    DefineStep,
    SystemStep,
    TestCase,
    ToolStep,
    UserStep,
    steps_of,
)
from otelmon.vocabulary.canonical import sha256, short_hash
from otelmon.vocabulary.catalogue import Catalogue
from otelmon.vocabulary.event import (
    AssistantMessage,
    ContextMessage,
    Event,
    Run,
    RunEnd,
    SystemMessage,
    Timeline,
    ToolCall,
    ToolDefinition,
    UserMessage,
)
from otelmon.vocabulary.reading import Approval, RequestedCall, ToolFields

_NOON = 1_767_268_800_000_000_000  # 2026-01-01T12:00:00Z
_SECOND = 1_000_000_000
_RUN_FIELDS = {
    "agent": "agent_name",
    "environment": "environment",
    "service": "service_name",
    "namespace": "service_namespace",
    "host": "host",
    "principal": "principal",
    "trigger": "trigger",
    "model": "model",
}


class Scene(msgspec.Struct, frozen=True):
    """The conversations of a test, and by span id the position (from 1) that each event was written at;
    the span of a run's agent stands at the last event of the run."""

    views: tuple[View, ...]
    positions: dict[str, int]


class _Talk:
    """A conversation while it is written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.trace_id = ""
        self.run_id = ""
        self.turn = 0
        self.batch = 0
        self.asked = 0
        self.runs: dict[str, dict[str, Any]] = {}
        self.events: list[Event] = []


def build(case: TestCase, catalogue: Catalogue | None) -> Scene:
    """The scene of a test, from its (validated) steps."""
    return _Builder(case, catalogue).scene()


class _Builder:
    def __init__(self, case: TestCase, catalogue: Catalogue | None) -> None:
        self.case, self.catalogue = case, catalogue
        self.content = case.content == "on"
        self.talks: dict[str, _Talk] = {}
        self.positions: dict[str, int] = {}
        self.now = _NOON
        self.traces = self.spans = 0

    def scene(self) -> Scene:
        name = "main"
        for position, step in enumerate(steps_of(self.case), 1):
            name = step.conversation or name
            talk = self.talks.setdefault(name, _Talk(name))
            self._place(talk, step)
            self.now += round(step.after * _SECOND)
            event = self._event(talk, step)
            if event is not None:
                talk.events.append(event)
                self.positions[event.span_id] = position
                self.positions[talk.run_id.rpartition(":")[2]] = position
        views = tuple(self._view(talk) for talk in self.talks.values())
        return Scene(views, self.positions)

    def _place(self, talk: _Talk, step: AnyStep) -> None:
        if step.trace or not talk.trace_id:
            self.traces += 1
            talk.trace_id = f"{self.traces:032x}"
        if step.trace or step.run or not talk.run_id:
            talk.run_id = f"{talk.trace_id}:{self._span()}"
            talk.runs[talk.run_id] = {}
        facts = talk.runs[talk.run_id]
        for said, field in _RUN_FIELDS.items():
            if getattr(step, said) is not None:
                facts.setdefault(field, getattr(step, said))

    def _span(self) -> str:
        self.spans += 1
        return f"{self.spans:016x}"

    def _event(self, talk: _Talk, step: AnyStep) -> Event | None:
        base: dict[str, Any] = {
            "position": 0,
            "trace_id": talk.trace_id,
            "span_id": self._span(),
            "run_id": talk.run_id,
            "start_time_unix_nano": self.now,
            "end_time_unix_nano": self.now + round(step.took * _SECOND),
        }
        if isinstance(step, ToolStep):
            return self._call(talk, step, base)
        if isinstance(step, DefineStep):
            return _definition(step.define, base)
        if isinstance(step, UserStep):
            talk.turn += 1
        if isinstance(step, AssistantStep):
            talk.batch += 1
            talk.asked = len(step.calls)
        return _message(talk, step, base) if self.content else None

    def _call(self, talk: _Talk, step: ToolStep, base: dict[str, Any]) -> ToolCall:
        if talk.asked > 0:
            talk.asked -= 1
        elif not step.parallel:
            talk.batch += 1
        identity = f"{base['trace_id']}:{base['span_id']}"
        verdict = _verdict(step, self.content)
        facts = {said: getattr(step, said) for said in ("principal", "host", "environment", "trigger", "model")}
        return ToolCall(
            **base,
            **_payload(step, self.content),
            **{k: v for k, v in facts.items() if v is not None},
            key=f"derived:{short_hash(identity)}" if step.derived else identity,
            tool_name=step.tool,
            raw_name=step.tool,
            tool_call_id=step.id,
            derived=step.derived,
            span_ids=(base["span_id"],),
            outcome=verdict.outcome,
            outcome_source=verdict.source,
            error_type=verdict.error_type,
            error_message=verdict.error_message,
            server=step.server,
            idempotency_key=step.key,
            attempt=step.attempt,
            retry_of=step.retry_of,
            approval=Approval(step.approval) if isinstance(step.approval, str) else step.approval,
            effect_hint=step.effect,
            annotations=step.annotations,
            http=step.http,
            nested_calls=step.nested_calls,
            turn=talk.turn,
            batch=talk.batch,
            agent_name=step.agent,
        )

    def _view(self, talk: _Talk) -> View:
        runs = {run_id: self._run(talk, run_id) for run_id in talk.runs}
        last = list(runs)[-1]
        events: list[Event] = []
        for run_id, run in runs.items():
            own = [e for e in talk.events if e.run_id == run_id]
            events.extend(_finish(own, run))
            if run_id != last or self.case.closed:
                events.append(_run_end(run))
        placed = tuple(msgspec.structs.replace(e, position=i) for i, e in enumerate(events))
        timeline = Timeline(f"conversation-{talk.name}", tuple(runs.values()), placed)
        return View(timeline, self.catalogue, frozenset(self.case.trusted))

    def _run(self, talk: _Talk, run_id: str) -> Run:
        own = [e for e in talk.events if e.run_id == run_id]
        start = own[0].start_time_unix_nano if own else self.now
        end = max((e.end_time_unix_nano for e in own), default=self.now)
        closed = self.case.closed or run_id != list(talk.runs)[-1]
        gaps = self.case.gaps if self.content else (*self.case.gaps, "content_off")
        return Run(
            **talk.runs[run_id],
            run_id=run_id,
            trace_id=run_id.split(":")[0],
            conversation_id=f"conversation-{talk.name}",
            start_time_unix_nano=start,
            end_time_unix_nano=end,
            last_received_unix_nano=end,
            spans=len(own) + 1,
            root_seen=closed,
            closed="root" if closed else None,
            gaps=tuple(dict.fromkeys(gaps)),
        )


def _payload(step: ToolStep, content: bool) -> dict[str, Any]:
    """Arguments and result as the call would show them."""
    if not content:
        return {"arguments_fidelity": "absent", "result_fidelity": "absent"}
    seen: dict[str, Any] = {"arguments_fidelity": step.fidelity, "result_fidelity": step.result_fidelity}
    if step.fidelity not in ("absent", "hashed"):
        text = isinstance(step.args, str)
        seen["arguments"] = None if text else step.args
        seen["arguments_text"] = step.args if text else msgspec.json.encode(step.args).decode()
    if step.fidelity != "absent":
        seen["arguments_hash"] = sha256(step.args)
    result = step.result if step.result is not None else step.error
    if result is not None and step.result_fidelity not in ("absent", "hashed"):
        seen["result"] = result
        seen["result_text"] = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    return seen


def _message(talk: _Talk, step: AnyStep, base: dict[str, Any]) -> Event:
    if isinstance(step, UserStep):
        return UserMessage(**base, text=step.user, turn=talk.turn)
    if isinstance(step, SystemStep):
        return SystemMessage(**base, text=step.system)
    if isinstance(step, ContextStep):
        return ContextMessage(**base, text=step.context)
    calls = step.calls if isinstance(step, AssistantStep) else ()
    text = step.assistant if isinstance(step, AssistantStep) else ""
    requests = tuple(RequestedCall(c.tool, c.id, c.args) for c in calls)
    return AssistantMessage(**base, text=text, requests=requests, agent_name=step.agent)


def _verdict(step: ToolStep, content: bool) -> Verdict:
    """The outcome as the test says it, else as the result tells it."""
    wrong = step.error is not None or bool(step.error_type)
    if step.outcome or wrong or step.result is None or not content:
        kind = step.error_type or ("error" if step.error is not None else None)
        return Verdict(step.outcome or ("failed" if wrong else "succeeded"), "test", kind, step.error)
    text = step.result if isinstance(step.result, str) else None
    fields = ToolFields(step.tool, step.tool, result=step.result, result_text=text, result_fidelity="exact")
    return derive_outcome(fields, derived=step.derived)


def _definition(define: Define, base: dict[str, Any]) -> ToolDefinition:
    shown = msgspec.to_builtins(define)
    return ToolDefinition(
        **base,
        name=define.name,
        description=define.description,
        input_schema=define.input_schema,
        annotations=define.annotations,
        server=define.server,
        schema_hash=sha256(define.input_schema),
        definition_hash=sha256(shown),
    )


def _finish(events: list[Event], run: Run) -> list[Event]:
    """What is only known with the whole run: its last message is final; a call says where it ran."""
    finished: list[Event] = []
    last = next((e for e in reversed(events) if isinstance(e, AssistantMessage | ToolCall)), None)
    for event in events:
        if isinstance(event, AssistantMessage):
            final = event is last and not event.requests
            event = msgspec.structs.replace(event, final=final, agent_name=event.agent_name or run.agent_name)
        elif isinstance(event, ToolCall):
            event = _in_run(event, run)
        finished.append(event)
    return finished


def _in_run(call: ToolCall, run: Run) -> ToolCall:
    return msgspec.structs.replace(
        call,
        agent_name=call.agent_name or run.agent_name,
        agent_version=run.agent_version,
        model=call.model or run.model,
        principal=call.principal or run.principal,
        service_name=run.service_name,
        service_namespace=run.service_namespace,
        environment=call.environment or run.environment,
        host=call.host or run.host,
        trigger=call.trigger or run.trigger,
    )


def _run_end(run: Run) -> RunEnd:
    return RunEnd(
        position=0,
        trace_id=run.trace_id,
        span_id=run.run_id.split(":")[1],
        run_id=run.run_id,
        start_time_unix_nano=run.end_time_unix_nano,
        end_time_unix_nano=run.end_time_unix_nano,
        agent_name=run.agent_name,
        reason="root",
        root_seen=True,
    )
