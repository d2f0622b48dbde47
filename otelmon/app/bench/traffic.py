"""Synthetic traffic of the two mixes throughput is measured on. Deterministic."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

START = 1_767_603_600 * 10**9
SECOND = 10**9
WORDS = [
    "order",
    "refund",
    "address",
    "parcel",
    "invoice",
    "branch",
    "window",
    "delivery",
    "account",
    "voucher",
    "driver",
    "depot",
    "pallet",
]


class Traffic:
    """Requests (protobuf bytes) of about `per_request` spans, and how many spans they hold."""

    def __init__(self, seed: int, per_request: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable text, not a secret
        self._per_request = per_request
        self._count = 0

    def tool_spans(self, spans: int) -> Iterator[tuple[bytes, int]]:
        """Runs of one agent span and sixteen tool spans of about 1.5 KB."""
        yield from self._requests(self._tool_runs(), spans)

    def histories(self, spans: int) -> Iterator[tuple[bytes, int]]:
        """Conversations whose every model span carries the whole history, as real agents send it."""
        yield from self._requests(self._conversations(), spans)

    def _requests(self, made: Iterator[Span], total: int) -> Iterator[tuple[bytes, int]]:
        request, scope = _request()
        for number, span in enumerate(made, 1):
            scope.spans.append(span)
            done = number >= total and not span.parent_span_id  # roots come last: only whole traces
            if len(scope.spans) >= self._per_request or done:
                yield request.SerializeToString(), len(scope.spans)
                request, scope = _request()
            if done:
                return

    def _tool_runs(self) -> Iterator[Span]:
        while True:
            trace, root = self._id(16), self._id(8)
            for place in range(16):
                order = f"W-{self._random.randrange(10**6):06d}"
                result = {"order_id": order, "items": [self._item() for _ in range(9)], "status": "delivered"}
                yield self._tool(trace, root, place, "get_order", {"order_id": order, "note": self._text(10)}, result)
            yield self._agent(trace, root, f"Look at my orders. {self._text(8)}", "Here they are.", None)

    def _conversations(self) -> Iterator[Span]:
        while True:
            history: list[dict[str, Any]] = [_message("user", self._text(60))]
            trace, root, conversation = self._id(16), self._id(8), self._id(8).hex()
            for place in range(14):
                order = f"W-{self._random.randrange(10**6):06d}"
                call = {"type": "tool_call", "id": f"c{place}", "name": "get_order", "arguments": {"order_id": order}}
                answer = {"role": "assistant", "parts": [call]}
                yield self._model(trace, root, place, conversation, history, answer)
                result = {"order_id": order, "items": [self._item() for _ in range(40)]}
                yield self._tool(trace, root, place, "get_order", {"order_id": order}, result, f"c{place}")
                response = {"type": "tool_call_response", "id": f"c{place}", "response": json.dumps(result)}
                history = [*history, answer, {"role": "tool", "parts": [response]}]
            final = _message("assistant", "These are your orders.")
            yield self._model(trace, root, 14, conversation, history, final)
            yield self._agent(trace, root, self._text(60), "These are your orders.", conversation)

    # -- spans ---------------------------------------------------------------------------------------
    def _tool(self, trace: bytes, parent: bytes, place: int, name: str, arguments: Any, result: Any, call_id: str = "") -> Span:  # fmt: skip
        return self._span(trace, self._id(8), parent, f"execute_tool {name}", place, {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id or f"call_{self._count}",
            "gen_ai.agent.name": "bench",
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.tool.call.result": json.dumps(result),
        })  # fmt: skip

    def _model(self, trace: bytes, parent: bytes, place: int, conversation: str, history: Any, answer: Any) -> Span:
        return self._span(trace, self._id(8), parent, "chat model", place, {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "model",
            "gen_ai.conversation.id": conversation,
            "gen_ai.input.messages": json.dumps(history),
            "gen_ai.output.messages": json.dumps([answer]),
        })  # fmt: skip

    def _agent(self, trace: bytes, root: bytes, wish: str, answer: str, conversation: str | None) -> Span:
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "bench",
            "gen_ai.input.messages": json.dumps([_message("user", wish)]),
            "gen_ai.output.messages": json.dumps([_message("assistant", answer)]),
        }
        if conversation:
            attributes["gen_ai.conversation.id"] = conversation
        return self._span(trace, root, b"", "invoke_agent bench", 20, attributes)

    def _span(self, trace: bytes, span_id: bytes, parent: bytes, name: str, place: int, attributes: dict[str, str]) -> Span:  # fmt: skip
        start = START + place * SECOND
        span = Span(trace_id=trace, span_id=span_id, parent_span_id=parent, name=name, kind=Span.SPAN_KIND_INTERNAL,
                    start_time_unix_nano=START if not parent else start, end_time_unix_nano=start + SECOND // 2)  # fmt: skip
        for key, value in attributes.items():
            span.attributes.add(key=key).value.string_value = value
        return span

    def _id(self, size: int) -> bytes:
        self._count += 1
        return hashlib.blake2b(f"{self._random.random()}{self._count}".encode(), digest_size=size).digest()

    def _item(self) -> dict[str, Any]:
        return {
            "sku": f"K{self._random.randrange(10**5)}",
            "title": self._text(5),
            "price": round(self._random.random() * 90, 2),
        }

    def _text(self, words: int) -> str:
        return " ".join(self._random.choices(WORDS, k=words))


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _request() -> tuple[ExportTraceServiceRequest, Any]:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    resource_spans.resource.attributes.add(key="service.name").value.string_value = "bench"
    return request, resource_spans.scope_spans.add()
