"""How `otelmon check` prints a report: for people, and in the forms that other tools read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as Xml

import msgspec

from otelmon import __version__
from otelmon.app.offline import Report
from otelmon.cli.common import plain
from otelmon.vocabulary.finding import SEVERITIES, Finding, level

SARIF_LEVEL = {"info": "note", "low": "note", "medium": "warning", "high": "error", "critical": "error"}


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding as the JSON contract names it."""
    fields = ("finding_id", "rule_id", "family", "severity", "status", "trace_id", "conversation_id", "span_ids",
              "tool_call_id", "tool_name", "agent_name", "summary", "evidence")  # fmt: skip
    whole: dict[str, Any] = msgspec.to_builtins(finding, str_keys=True)
    return {field: whole[field] for field in fields}


def as_json(report: Report) -> str:
    """One object, version 1."""
    document = {
        "version": 1,
        "runs": report.runs,
        "spans": report.spans,
        "tool_calls": report.tool_calls,
        "findings": [finding_object(finding) for finding in report.findings],
        "not_evaluable": report.not_evaluable,
        "suppressed": report.suppressed,
        "undecided": report.undecided,
        "check_errors": {
            rule_id: {"times": times, "raised": report.raised.get(rule_id, "")}
            for rule_id, times in sorted(report.check_errors.items())
        },
    }
    return dumps(document) + "\n"


def dumps(document: object) -> str:
    """Strict JSON: characters that UTF-8 can not carry are replaced, NaN does not occur."""
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode("utf-8", "replace").decode()


def as_text(report: Report) -> str:
    """For a person: worst first, one finding a block, then what was and was not judged."""
    lines = []
    for finding in sorted(report.findings, key=lambda f: (-level(f.severity), f.event_time_unix_nano, f.finding_id)):
        where = report.sources.get(finding.trace_id, "")
        lines.append(f"{finding.severity:<8} {finding.rule_id}: {plain(finding.summary)}")
        place = " ".join(
            part for part in (f"call {finding.tool_call_id}" if finding.tool_call_id else "",
                              f"agent {finding.agent_name}" if finding.agent_name else "",
                              f"trace {finding.trace_id}", f"in {where}" if where else "") if part
        )  # fmt: skip
        lines.append(f"         {plain(place)}")
    counts = {severity: sum(f.severity == severity for f in report.findings) for severity in reversed(SEVERITIES)}
    found = ", ".join(f"{n} {severity}" for severity, n in counts.items() if n) or "nothing found"
    lines.append(f"{report.runs} runs, {report.tool_calls} tool calls, {report.spans} spans: {found}")
    for rule_id, reasons in report.not_evaluable.items():
        why = ", ".join(f"{reason} in {runs}" for reason, runs in reasons.items())
        lines.append(f"not evaluable: {rule_id} ({why} runs)")
    for rule_id, number in sorted(report.suppressed.items()):
        lines.append(f"suppressed: {rule_id} ({number} findings that the configuration accepts)")
    for rule_id, times in sorted(report.undecided.items()):
        lines.append(f"undecided: a condition of {rule_id} could not be decided {times} times and counted as false")
    for rule_id, times in sorted(report.check_errors.items()):
        said = plain(report.raised.get(rule_id, "nothing"))
        lines.append(f"failed: the check of {rule_id} raised {said} ({times} times); this is a bug of the check")
    return "\n".join(lines) + "\n"


def as_sarif(report: Report) -> str:
    """SARIF 2.1.0, for code hosts."""
    rules = sorted({finding.rule_id for finding in report.findings})
    results = [
        {
            "ruleId": finding.rule_id,
            "level": SARIF_LEVEL[finding.severity],
            "message": {"text": finding.summary},
            "partialFingerprints": {"findingId": finding.finding_id},
            "locations": [_location(report.sources.get(finding.trace_id, ""))],
            "properties": finding_object(finding),
        }
        for finding in report.findings
    ]
    driver = {"name": "otelmon", "version": __version__, "rules": [{"id": rule_id} for rule_id in rules]}
    return (
        dumps(
            {
                "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
                "version": "2.1.0",
                "runs": [{"tool": {"driver": driver}, "results": results}],
            }
        )
        + "\n"
    )


def _location(source: str) -> dict[str, Any]:
    """A SARIF location of `file:line`, or of a file."""
    file, _, line = source.rpartition(":")
    if not (file and line.isdigit()):
        file, line = source, ""
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(file.encode("utf-8", "surrogateescape"))}}
    if line:
        place["region"] = {"startLine": int(line)}
    return {"physicalLocation": place}


def as_junit(report: Report) -> str:
    """JUnit XML: one test case a finding, failed; one passing case when nothing was found."""
    suite = Xml.Element("testsuite", name="otelmon", tests=str(max(1, len(report.findings))), failures=str(len(report.findings)))  # fmt: skip
    for finding in report.findings:
        case = Xml.SubElement(suite, "testcase", classname=finding.rule_id, name=_xml(f"{finding.trace_id} {finding.tool_call_id or 'final'}"))  # fmt: skip
        failure = Xml.SubElement(case, "failure", type=finding.severity, message=_xml(finding.summary))
        failure.text = _xml(dumps(finding_object(finding)))
    if not report.findings:
        Xml.SubElement(suite, "testcase", classname="otelmon", name=f"{report.runs} runs without findings")
    return Xml.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Text without the characters that XML 1.0 can not carry, nor those that drive a terminal."""
    return "".join(c if c in "\t\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff" else "\ufffd" for c in text)  # fmt: skip


FORMATS: dict[str, Callable[[Report], str]] = {"text": as_text, "json": as_json, "sarif": as_sarif, "junit": as_junit}
