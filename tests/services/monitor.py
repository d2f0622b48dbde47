"""A whole monitor in this process on free ports, and talks of agents to send it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec

from otelmon.app.laws import load_laws
from otelmon.app.runtime import STAGES, Monitor
from otelmon.vocabulary.config import Config

SECOND = 1_000_000_000
WAIT_S = 60.0
CATALOGUE = """\
version: 1
tools:
  - {name: charge_card, effect: destructive, repeat: additive, idempotency_key: {argument: key}, claims: [charged]}
  - {name: issue_refund, effect: destructive, repeat: additive, claims: [refunded]}
  - {name: get_order, effect: read}
  - {name: delete_customer, effect: destructive, repeat: absolute}
policy:
  - {id: hold, tools: ["delete_*"], action: forbid, reason: records are under a legal hold}
"""


class Call(msgspec.Struct, frozen=True):
    """A tool call of a talk. `error` is its error type."""

    tool: str
    arguments: Any = {}
    result: Any = None
    error: str = ""


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what the user said, the calls in order, and what the agent answered."""

    number: int
    user: str = ""
    calls: tuple[Call, ...] = ()
    answer: str = ""
    agent: str = "billing"
    conversation: str = ""
    service: str = "shop"
    root: bool = True
    history: bool = True


def request(*talks: Talk) -> bytes:
    """The talks as one OTLP/JSON request, a resource each."""
    return json.dumps({"resourceSpans": [_resource_spans(talk) for talk in talks]}).encode()


def _resource_spans(talk: Talk) -> dict[str, Any]:
    trace, start = f"{talk.number:032x}", time.time_ns() - 60 * SECOND
    root = f"{1:016x}"
    common = {"gen_ai.agent.name": talk.agent, "gen_ai.conversation.id": talk.conversation}
    spans = []
    for place, call in enumerate(talk.calls):
        attributes = common | {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.call.id": f"call-{talk.number}-{place}",
            "gen_ai.tool.call.arguments": _text(call.arguments),
            "error.type": call.error,
        }
        if call.result is not None:
            attributes["gen_ai.tool.call.result"] = _text(call.result)
        begin = start + (2 * place + 2) * SECOND // 10
        span = _span(trace, f"{place + 2:016x}", root, f"execute_tool {call.tool}", begin, attributes)
        spans.append(span | ({"status": {"code": 2}} if call.error else {}))
    if talk.root:
        attributes = common | {"gen_ai.operation.name": "invoke_agent"}
        if talk.history:
            attributes["gen_ai.input.messages"] = _message("user", talk.user)
            attributes["gen_ai.output.messages"] = _message("assistant", talk.answer)
        length = (2 * len(talk.calls) + 4) * SECOND // 10
        spans.append(_span(trace, root, "", f"invoke_agent {talk.agent}", start, attributes, length))
    resource = [_attribute("service.name", talk.service), _attribute("deployment.environment.name", "prod")]
    return {"resource": {"attributes": resource}, "scopeSpans": [{"scope": {"name": "test"}, "spans": spans}]}


def _span(trace: str, span: str, parent: str, name: str, start: int, attributes: dict[str, str], length: int = SECOND // 10) -> dict[str, Any]:  # fmt: skip
    return {
        "traceId": trace, "spanId": span, "parentSpanId": parent, "name": name, "kind": 1,
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + length),
        "attributes": [_attribute(key, value) for key, value in attributes.items() if value],
    }  # fmt: skip


def _attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def double_write(number: int, **changes: Any) -> Talk:
    """Charges twice though asked once."""
    charge = Call("charge_card", {"customer": "C-80", "amount": 59.9, "order": "W-4417"}, {"charged": 59.9})
    wish = "Please charge customer C-80 59.90 for order W-4417."
    values: dict[str, Any] = {"user": wish, "calls": (charge, charge), "answer": "Customer C-80 was charged 59.90."}
    return Talk(number=number, **(values | changes))


class LiveMonitor:
    """A started monitor and its addresses."""

    def __init__(self, folder: Path, stages: Sequence[str] = STAGES, **changes: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        catalogue = folder / "catalogue.yaml"
        catalogue.write_text(CATALOGUE)
        settings: dict[str, Any] = {
            "data": str(folder / "data"),
            "catalogue": str(catalogue),
            "receive": {"grpc": "", "http": "127.0.0.1:0"},
            "web": {"listen": "127.0.0.1:0"},
            "assemble": {"settle_seconds": 0.5, "idle_seconds": 3},
            "store": {"batch_seconds": 0.1},
            "spool": {"fsync": False},
        }
        config = msgspec.convert(settings | changes, Config)
        self.monitor = Monitor(config, load_laws(config), stages)
        self.monitor.start()
        self.client = httpx.Client(base_url=self.web, trust_env=False, timeout=30)

    @property
    def web(self) -> str:
        assert self.monitor.web is not None
        return f"http://{self.monitor.web.address}"

    def send(self, *talks: Talk) -> None:
        """Send talks in one request; every span must be taken."""
        assert self.monitor.doors is not None
        url = f"http://{self.monitor.doors.http}/v1/traces"
        answer = httpx.post(url, content=request(*talks), headers={"content-type": "application/json"}, trust_env=False)
        assert answer.status_code == 200, answer.text
        assert "rejectedSpans" not in answer.text, answer.text

    def read(self, name: str, **given: object) -> Any:
        """A read of the API."""
        answer = self.client.get(f"/api/v1/{name}", params={k: str(v) for k, v in given.items()})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def judged(self, *talks: Talk) -> None:
        """Send talks and wait until their runs are closed and judged."""
        self.send(*talks)
        ids = {f"{talk.number:032x}" for talk in talks}
        until(lambda: ids <= {r["run"]["trace_id"] for r in self.read("runs", limit=1000) if r["run"]["closed"]})

    def stop(self) -> None:
        self.client.close()
        self.monitor.stop()


def until(done: Callable[[], bool], what: str = "it did not happen") -> None:
    """Return when `done`; fail when that takes very long."""
    end = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.05)
