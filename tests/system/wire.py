"""One variant of a wire case: send its requests to a served monitor, and look at what must hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tests.system.monitor import ServedMonitor

PROTOBUF, JSON = "application/x-protobuf", "application/json"
TIMEOUT_S = 60.0


class Sent(list[tuple[int, int, str]]):
    """(status, refused spans, message) of every request, in order."""


class WireRun:
    """What happened to one variant. `marks` are the metrics after each step that is no request."""

    def __init__(self, monitor: ServedMonitor, folder: Path, variant: dict[str, Any], encoding: str) -> None:
        self.monitor, self.variant = monitor, variant
        self.sent = Sent()
        self.marks: list[dict[str, float]] = []
        self.opened: list[int] = []
        self._folder, self._encoding = folder, encoding

    def play(self) -> None:
        """Send everything. A pause waits until the monitor is through instead of its time: what the case
        waits for is that runs are judged, and times of the data are those of the data."""
        spans = 0
        for step in self.variant["sequence"]:
            if "action" in step:
                self._settle(spans)
                continue
            name = step.get(self._encoding) or step.get("pb") or step.get("json")
            self.sent.append(
                post(self.monitor, (self._folder / name).read_bytes(), PROTOBUF if name.endswith(".pb") else JSON)
            )
            spans += step["spans"] - self.sent[-1][1]
        self._settle(spans)

    def _settle(self, spans: int) -> None:
        self.monitor.wait_until_taken(spans)
        self.marks.append(self.monitor.metrics())
        incidents = [i for i in self.monitor.read("incidents", limit=1000)["incidents"] if _calls_somebody(i)]
        details = [self.monitor.read("incident", id=incident["incident_id"]) for incident in incidents]
        self.opened.append(sum(entry["action"] in ("opened", "reopened") for d in details for entry in d["history"]))

    # -- what is asked of it -----------------------------------------------------------------------
    def accounts(self, kind: str) -> int:
        """Spans of an account, all partitions together."""
        return sum(a[kind] for a in self.monitor.read("accounts") if a["topic"] == "otelmon.spans")

    def findings(self, trace_id: str | None = None) -> list[dict[str, Any]]:
        """Open findings, those of a trace only."""
        found = [item["finding"] for item in self.monitor.read("findings", status="open", limit=100_000)]
        return [finding for finding in found if trace_id in (None, finding["trace_id"])]

    def calls(self, trace_id: str | None = None) -> Iterator[dict[str, Any]]:
        """Every tool call."""
        for summary in self.monitor.read("runs", limit=1000, **({"trace": trace_id} if trace_id else {})):
            detail = self.monitor.read("run", id=summary["run"]["run_id"])
            yield from (item["call"] for item in detail["timeline"] if item["type"] == "call")


def _calls_somebody(incident: dict[str, Any]) -> bool:
    """Grave ones of these families; the others wait until somebody looks."""
    return incident["severity"] in ("high", "critical") and incident["family"] in ("effect", "policy", "truth")


def post(monitor: ServedMonitor, body: bytes, content_type: str, **headers: str) -> tuple[int, int, str]:
    """(status, refused spans, message) of the answer to a body."""
    response = httpx.post(
        f"{monitor.endpoint}/v1/traces", content=body, headers={"content-type": content_type, **headers},
        trust_env=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    if response.status_code != httpx.codes.OK:
        return response.status_code, 0, response.text
    if content_type.startswith(JSON):
        partial = response.json().get("partialSuccess", {})
        return response.status_code, int(partial.get("rejectedSpans", 0)), partial.get("errorMessage", "")
    answer = ExportTraceServiceResponse.FromString(response.content).partial_success
    return response.status_code, answer.rejected_spans, answer.error_message


# -- one function a key of "assert"; each raises AssertionError ----------------------------------------
def _http_status(run: WireRun, wanted: int) -> None:
    assert {status for status, _, _ in run.sent} == {wanted}


def _accepted_spans(run: WireRun, wanted: int) -> None:
    assert run.accounts("received") == wanted


def _rejected_spans(run: WireRun, wanted: list[int]) -> None:
    assert [refused for _, refused, _ in run.sent] == wanted


def _rejected_message(run: WireRun, wanted: bool) -> None:
    assert all(bool(message) == wanted for _, refused, message in run.sent if refused)


def _stored_spans(run: WireRun, wanted: int) -> None:
    assert run.accounts("stored") - run.accounts("conflict") == wanted


def _duplicates(run: WireRun, wanted: int) -> None:
    assert run.accounts("duplicate") == wanted


def _conflicts(run: WireRun, wanted: int) -> None:
    assert run.accounts("conflict") == wanted


def _runs(run: WireRun, wanted: int) -> None:
    assert run.monitor.read("sizes")["rows"]["runs"] == wanted


def _executions(run: WireRun, wanted: int) -> None:
    assert run.monitor.read("sizes")["rows"]["tool_calls"] == wanted, list(run.calls())


def _run_complete(run: WireRun, wanted: bool) -> None:
    runs = [summary["run"] for summary in run.monitor.read("runs")]
    assert runs
    assert all((r["root_seen"] and not r["gaps"]) == wanted for r in runs)


def _no_findings(run: WireRun, rules: list[str]) -> None:
    assert [f for f in run.findings() if f["rule_id"] in rules] == []


def _no_findings_in_trace(run: WireRun, wanted: list[dict[str, Any]]) -> None:
    for each in wanted:
        assert [f for f in run.findings(each["trace_id"]) if f["rule_id"] in each["rules"]] == []


def _findings(run: WireRun, wanted: list[dict[str, Any]]) -> None:
    found = run.findings()
    for each in wanted:
        traces = {f["trace_id"] for f in found if f["rule_id"] in each["rule"]}
        traces &= {each["trace_id"]} if "trace_id" in each else traces
        assert len(traces) == each.get("count", len(traces) or 1), each


def _failed_calls(run: WireRun, wanted: dict[str, bool]) -> None:
    assert {trace: [c["outcome"] == "failed" for c in run.calls(trace)] for trace in wanted} == {
        trace: [failed] for trace, failed in wanted.items()
    }


def _arguments(run: WireRun, wanted: dict[str, Any]) -> None:
    found = {call["tool_call_id"]: call["arguments"] for call in run.calls()}
    assert {id_: found.get(id_) for id_ in wanted} == wanted


def _result(run: WireRun, wanted: dict[str, Any]) -> None:
    found = {call["tool_call_id"]: call["result"] for call in run.calls()}
    assert {id_: found.get(id_) for id_ in wanted} == wanted


def _names(run: WireRun, wanted: list[str]) -> None:
    assert set(wanted) <= {call["tool_name"] for call in run.calls()}


def _min_duration_ns(run: WireRun, wanted: int) -> None:
    durations = [call["end_time_unix_nano"] - call["start_time_unix_nano"] for call in run.calls()]
    assert min(durations) >= wanted


def _alerts_max(run: WireRun, wanted: int | dict[str, int]) -> None:
    if isinstance(wanted, int):
        assert run.opened[-1] <= wanted
        return
    # A phase ends where a pause is; what was opened in it is what is new after it.
    phases = [after - before for before, after in zip([0, *run.opened], run.opened, strict=False)]
    assert all(new <= most for new, most in zip(phases, wanted.values(), strict=False)), phases
    assert sum(phases) <= sum(wanted.values())


def _series_growth_max(run: WireRun, wanted: int) -> None:
    last, before = run.marks[-2], run.marks[0]
    assert len(last) - len(before) <= wanted, sorted(last.keys() - before.keys())


def _forbidden_strings_in_metrics(run: WireRun, wanted: list[str]) -> None:
    text = "\n".join(run.marks[-1])
    assert [word for word in wanted if word in text] == []


def _outputs(run: WireRun) -> Iterator[bytes]:
    web = run.monitor.web
    for path in ("/metrics", "/", "/runs", "/api/v1/incidents", "/api/v1/runs", "/api/v1/findings"):
        yield httpx.get(web + path, trust_env=False).content
    for summary in run.monitor.read("runs"):
        yield httpx.get(f"{web}/api/v1/run", params={"id": summary["run"]["run_id"]}, trust_env=False).content
    yield (run.monitor.folder / "log").read_bytes()


def _forbidden_strings(run: WireRun, wanted: list[str]) -> None:
    everything = b"\n".join(_outputs(run)).decode()
    assert [word for word in wanted if word in everything] == []


def _strict_json(run: WireRun, wanted: bool) -> None:
    def refuse(word: str) -> float:
        raise AssertionError(word)

    outputs = [output for output in _outputs(run) if output[:1] in (b"{", b"[")]
    assert (len(outputs) > 3) == wanted
    for output in outputs:
        json.loads(output.decode("utf-8", "strict"), parse_constant=refuse).__repr__().encode("utf-8", "strict")


ASSERTS: dict[str, Callable[[WireRun, Any], None]] = {
    "http_status": _http_status,
    "accepted_spans": _accepted_spans,
    "rejected_spans": _rejected_spans,
    "rejected_message": _rejected_message,
    "stored_spans": _stored_spans,
    "duplicates": _duplicates,
    "conflicts": _conflicts,
    "runs": _runs,
    "executions": _executions,
    "run_complete": _run_complete,
    "no_findings": _no_findings,
    "no_findings_in_trace": _no_findings_in_trace,
    "findings": _findings,
    "failed_calls": _failed_calls,
    "arguments": _arguments,
    "result": _result,
    "names": _names,
    "min_duration_ns": _min_duration_ns,
    "alerts_max": _alerts_max,
    "series_growth_max": _series_growth_max,
    "forbidden_strings": _forbidden_strings,
    "forbidden_strings_in_metrics": _forbidden_strings_in_metrics,
    "strict_json": _strict_json,
}
