"""The short notation of inline tests: one-line maps that stand for events (described in rules/README.md)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from otelmon.vocabulary.catalogue import Annotations
from otelmon.vocabulary.event import NotEvaluable, Outcome
from otelmon.vocabulary.finding import Severity
from otelmon.vocabulary.reading import Approval, Fidelity, HttpFields


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What any event may say. Times in seconds: `after` since the event before, `took` its length.

    `run: new` starts a run in the same trace, `trace: new` one in a new trace, `conversation` changes
    to the conversation of that name. The other fields hold for the whole run they stand in.
    """

    after: float = 1.0
    took: float = 0.5
    repeat: int = 1
    run: Literal["new"] | None = None
    trace: Literal["new"] | None = None
    conversation: str | None = None
    agent: str | None = None
    environment: str | None = None
    service: str | None = None
    namespace: str | None = None
    host: str | None = None
    principal: str | None = None
    trigger: str | None = None
    model: str | None = None


class SystemStep(Step, frozen=True, kw_only=True):
    """Instructions to the model."""

    system: str


class UserStep(Step, frozen=True, kw_only=True):
    """What the user says; it begins a turn."""

    user: str


class ContextStep(Step, frozen=True, kw_only=True):
    """Other text that the model sees."""

    context: str


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call that an assistant message asks for."""

    tool: str
    args: Any = None
    id: str | None = None


class AssistantStep(Step, frozen=True, kw_only=True):
    """What the model says. With `calls` it asks for them; the tool events that follow are their batch."""

    assistant: str
    calls: tuple[Request, ...] = ()


class ToolStep(Step, frozen=True, kw_only=True):
    """One execution of a tool. Arguments that are text could not be decoded."""

    tool: str
    args: Any = msgspec.field(default_factory=dict)
    result: Any = None
    outcome: Outcome | None = None
    error: str | None = None
    error_type: str | None = None
    id: str | None = None
    key: str | None = None
    server: str | None = None
    approval: str | Approval | None = None
    http: tuple[HttpFields, ...] = ()
    attempt: int | None = None
    retry_of: str | None = None
    effect: str | None = None
    annotations: Annotations | None = None
    derived: bool = False
    parallel: bool = False
    nested_calls: int | None = None
    fidelity: Fidelity = "exact"
    result_fidelity: Fidelity = "exact"


class Define(msgspec.Struct, frozen=True, kw_only=True, rename={"input_schema": "inputSchema"}, forbid_unknown_fields=True):  # fmt: skip
    """A tool definition, in MCP's shape."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] | None = None
    annotations: Annotations | None = None
    server: str | None = None


class DefineStep(Step, frozen=True, kw_only=True):
    """A tool definition that the run shows."""

    define: Define


AnyStep = SystemStep | UserStep | ContextStep | AssistantStep | ToolStep | DefineStep
KINDS: dict[str, type[AnyStep]] = {
    "system": SystemStep,
    "user": UserStep,
    "context": ContextStep,
    "assistant": AssistantStep,
    "tool": ToolStep,
    "define": DefineStep,
}


class TestCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One inline test as written. `fires`: positions from 1 in the list of events with `repeat` written
    out; `{4: high}` says the severity too. `closed: false` leaves the last run open; `gaps` are the
    reasons why the runs' context is not complete; `content: off` takes all texts and payloads away.
    `not_evaluable` is the reason expected for at least one run."""

    __test__ = False  # not a test class of pytest

    name: str
    events: tuple[dict[str, Any], ...]
    fires: tuple[int | dict[str, Severity], ...]
    catalogue: dict[str, Any] | None = None
    params: dict[str, Any] = {}
    content: Literal["on", "off"] = "on"
    closed: bool = True
    gaps: tuple[NotEvaluable, ...] = ()
    trusted: tuple[str, ...] = ()
    not_evaluable: NotEvaluable | None = None

    def expected(self) -> dict[int, Severity | None]:
        """The severity expected by position, None where the test does not say."""
        wanted: dict[int, Severity | None] = {}
        for item in self.fires:
            if isinstance(item, int):
                wanted[item] = None
            else:
                wanted.update({int(position): severity for position, severity in item.items()})
        return wanted


def kind_of(step: dict[str, Any]) -> type[AnyStep] | None:
    """The kind of event that a map stands for, or None."""
    found = [kind for word, kind in KINDS.items() if word in step]
    return found[0] if len(found) == 1 else None


def steps_of(case: TestCase) -> list[AnyStep]:
    """The events of a test with `repeat` written out. The case must have been validated by the loader."""
    steps: list[AnyStep] = []
    for item in case.events:
        kind = kind_of(item)
        if kind is None:
            raise ValueError(f"not one event: {item}")
        step = msgspec.convert(item, kind)
        again = msgspec.structs.replace(step, run=None, trace=None, repeat=1)
        steps.extend([step] + [again] * (step.repeat - 1))
    return steps
