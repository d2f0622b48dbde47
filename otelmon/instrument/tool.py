"""`@tool`: one `execute_tool` span for every execution, with what is really known of its effect."""

from __future__ import annotations

import functools
import inspect
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from otelmon import __version__
from otelmon.instrument import attributes as key
from otelmon.instrument.capture import input_schema, plain, text
from otelmon.instrument.outcome import Outcome, Pending, of_exception, of_result
from otelmon.instrument.setup import settings, tracer

P = ParamSpec("P")
R = TypeVar("R")
Effect = Literal["read", "write", "destructive", "external_send"]
Key = str | Callable[[Mapping[str, Any]], str | None] | None

_current: ContextVar[CurrentCall | None] = ContextVar("otelmon_call", default=None)
_definitions: dict[str, dict[str, Any]] = {}


class _Tool:
    """What `@tool` was told."""

    def __init__(self, function: Callable[..., Any], name: str, effect: Effect | None, key_of: Key, server: str | None):
        self.name, self.effect, self.key_of, self.server = name, effect, key_of, server
        self.signature = inspect.signature(function)
        self.definition = _definition(function, name, effect, server)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name; a call the function itself will refuse keeps what could be named."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError:
            return {**{str(i): value for i, value in enumerate(args)}, **kwargs}
        bound.apply_defaults()
        return {name: value for name, value in bound.arguments.items() if name not in ("self", "cls")}

    def idempotency_key(self, arguments: Mapping[str, Any]) -> str | None:
        if self.key_of is None:
            return None
        value = self.key_of(arguments) if callable(self.key_of) else arguments.get(self.key_of)
        return None if value is None else str(value)


class CurrentCall:
    """The call under way, for tools that know more: the key they really sent, which attempt it is."""

    def __init__(self, span: trace.Span, call_id: str) -> None:
        self._span, self.call_id = span, call_id

    def sent_idempotency_key(self, value: str) -> None:
        """The idempotency key that went to the backend with this attempt."""
        self._span.set_attribute(key.IDEMPOTENCY_KEY, value)

    def attempt(self, number: int) -> None:
        """Which attempt this is, from 1."""
        self._span.set_attribute(key.ATTEMPT, number)

    def approved(self, *, by: str, source: str = "user", approval_id: str = "") -> None:
        """A person or a policy approved exactly this call."""
        self._approval("approved", by, source, approval_id)

    def rejected(self, *, by: str, source: str = "user", approval_id: str = "") -> None:
        """A person or a policy rejected this call."""
        self._approval("rejected", by, source, approval_id)

    def _approval(self, decision: str, by: str, source: str, approval_id: str) -> None:
        for name, value in (("decision", decision), ("by", by), ("source", source), ("id", approval_id)):
            if value:
                self._span.set_attribute(key.APPROVAL + name, value)


def current_call() -> CurrentCall | None:
    """The tool call this code runs in, None outside of one."""
    return _current.get()


@overload
def tool(function: Callable[P, R]) -> Callable[P, R]: ...


@overload
def tool(
    *, name: str | None = None, effect: Effect | None = None, idempotency_key: Key = None, server: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    *,
    name: str | None = None,
    effect: Effect | None = None,
    idempotency_key: Key = None,
    server: str | None = None,
) -> Any:
    """Trace a function as a tool. For functions and coroutine functions, with or without arguments:
    `@tool` or `@tool(effect="write", ...)`.

    `effect` is what a call does when it lands. `idempotency_key` names the argument that holds the
    key sent to the backend, or computes it from the arguments. The function's results and
    exceptions pass through unchanged; a result wrapped in `Pending` is unwrapped.
    """

    def decorate(wrapped: Callable[P, R]) -> Callable[P, R]:
        if inspect.isgeneratorfunction(wrapped) or inspect.isasyncgenfunction(wrapped):
            raise TypeError(
                f"@tool {wrapped.__name__}: it is a generator; "
                "expected a function or a coroutine function; return a list, or trace the consumer"
            )
        told = _Tool(wrapped, name or wrapped.__name__, effect, idempotency_key, server)
        _definitions[told.name] = told.definition
        traced = _traced_async(told, wrapped) if inspect.iscoroutinefunction(wrapped) else _traced(told, wrapped)
        return cast(Callable[P, R], functools.wraps(wrapped)(traced))

    return decorate if function is None else decorate(function)


def _traced(told: _Tool, wrapped: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with _Execution(told, told.bind(args, kwargs)) as execution:
            return execution.returned(wrapped(*args, **kwargs))

    return call


def _traced_async(told: _Tool, wrapped: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with _Execution(told, told.bind(args, kwargs)) as execution:
            return execution.returned(await wrapped(*args, **kwargs))

    return call


class _Execution(AbstractContextManager["_Execution"]):
    """The span of one execution."""

    def __init__(self, told: _Tool, arguments: dict[str, Any]) -> None:
        from otelmon.instrument.run import current_run

        self._told, self._result, self._has_result = told, None, False
        self._arguments = settings.capture.arguments(arguments)
        self._call_id = f"call_{uuid.uuid4().hex[:16]}"
        run = current_run()
        start = {
            key.SHIM_VERSION: __version__,
            key.OPERATION: "execute_tool",
            key.TOOL_NAME: told.name,
            key.TOOL_CALL_ID: self._call_id,
            key.TOOL_TYPE: "function",
            key.AGENT_NAME: run.agent if run else settings.agent,
            key.CONVERSATION: run.conversation_id if run else None,
            key.USER: run.user if run else None,
            key.RUN_ID: run.run_id if run else None,
            key.TOOL_EFFECT: told.effect,
            key.TOOL_EFFECT_SOURCE: "declared" if told.effect else None,
            "otelmon.mcp.server": told.server,
            key.IDEMPOTENCY_KEY: told.idempotency_key(arguments),
            **self._content(),
        }
        self._span = tracer().start_span(
            f"execute_tool {told.name}",
            kind=SpanKind.INTERNAL,
            attributes={k: v for k, v in start.items() if v is not None},
        )

    def _content(self) -> dict[str, Any]:
        capture = settings.capture
        if capture.level == "none":
            return {key.CONTENT_CAPTURE: "none"}
        hashed = {key.ARGUMENTS_HASH: capture.digest(self._arguments)}
        if capture.level == "hash":
            return {**hashed, key.CONTENT_CAPTURE: "hash"}
        fidelity = "redacted" if capture.redact else "exact"
        return {**hashed, key.TOOL_ARGUMENTS: text(self._arguments), key.ARGUMENTS_FIDELITY: fidelity}

    def __enter__(self) -> _Execution:
        self._scope = trace.use_span(
            self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        )
        self._scope.__enter__()
        self._token = _current.set(CurrentCall(self._span, self._call_id))
        return self

    def returned(self, result: Any) -> Any:
        """Keep the result for the span; what the caller is to get."""
        self._result, self._has_result = result, True
        return result.result if isinstance(result, Pending) else result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        outcome = of_exception(error) if error is not None else of_result(self._result)
        try:
            self._write(outcome, error)
        finally:
            _current.reset(self._token)
            self._scope.__exit__(None, None, None)
            self._span.end()

    def _write(self, outcome: Outcome, error: BaseException | None) -> None:
        span, capture = self._span, settings.capture
        span.set_attribute(key.OUTCOME, outcome.outcome)
        span.set_attribute(key.OUTCOME_SOURCE, outcome.source)
        if outcome.error_type:
            span.set_attribute(key.ERROR_TYPE, outcome.error_type)
            span.set_status(Status(StatusCode.ERROR, str(error) if capture.level == "full" else ""))
        if not self._has_result or capture.level == "none":
            return
        value = plain(self._result.result if isinstance(self._result, Pending) else self._result)
        span.set_attribute(key.RESULT_HASH, capture.digest(value))
        if capture.level == "full":
            span.set_attribute(key.TOOL_RESULT, value if isinstance(value, str) else text(value))


def _definition(function: Callable[..., Any], name: str, effect: Effect | None, server: str | None) -> dict[str, Any]:
    definition: dict[str, Any] = {"type": "function", "name": name}
    if function.__doc__:
        definition["description"] = inspect.cleandoc(function.__doc__)
    definition["parameters"] = input_schema(function)
    if effect:
        definition["annotations"] = {"readOnlyHint": effect == "read", "destructiveHint": effect == "destructive"}
    if server:
        definition["server"] = server
    return definition


def definitions() -> list[dict[str, Any]]:
    """Definitions of all tools declared in this process, by name."""
    return [_definitions[name] for name in sorted(_definitions)]
