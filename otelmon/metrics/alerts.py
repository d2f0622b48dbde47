"""The alerts, as one table: Prometheus rules and runbooks are made from it."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

RUNBOOKS = (
    "http://127.0.0.1:8317/runbooks"  # the monitor shows them itself; rewrite the host where it listens elsewhere
)


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert. `wait` is Prometheus' `for`. The four texts are its runbook."""

    name: str
    expr: str
    severity: str
    summary: str
    wait: str = "0m"
    meaning: str
    impact: str
    diagnosis: str
    mitigation: str


def _finding(
    name: str, families: str, what: str, meaning: str, impact: str, mitigation: str, severity: str = "page"
) -> Alert:
    return Alert(
        name=name,
        expr=f'sum by (rule) (increase(otelmon_findings_total{{{families},status="open",severity=~"high|critical"}}[5m])) > 0',
        severity=severity,
        summary=f"{what} ({{{{ $labels.rule }}}})",
        meaning=meaning,
        impact=impact,
        diagnosis="Run `otelmon incidents list --state open`, then `otelmon incidents show ID`: it shows the calls side by side "
        "with their arguments, results and outcomes. `otelmon explain ID` shows the whole run.",
        mitigation=mitigation,
    )


FINDINGS = (
    _finding(
        "OtelmonDoubleWrite", 'family="effect"', "A write landed twice or may have",
        "The same effect landed more than once, or was sent again while nobody knew whether the first one landed, or the key that should prevent this was changed or used for something else.",
        "A customer may be charged, refunded or written to twice.",
        "Check the backend for both effects and undo the second. Give the tool an idempotency key, or let the agent read state before it repeats.",
    ),
    _finding(
        "OtelmonForbiddenWrite", 'family="policy"', "An agent did what policy forbids",
        "A call that the catalogue's policy forbids, or that needed a confirmation or an earlier step it did not have, was attempted.",
        "Data may be gone, or money spent, without anybody's decision.",
        "Stop the agent if it goes on. Restore what was changed. Take the tool or the permission away from the agent, not only from its prompt.",
    ),
    _finding(
        "OtelmonFalseSuccess", 'family="truth"', "An agent said done, and it was not",
        "A message claims an effect that no successful call produced, or the agent went on as if a failed step had worked.",
        "A person believes something happened that did not, and will act on it.",
        "Tell the person. Do by hand what was promised. Mine the incident (`otelmon golden mine ID`) so that the agent is tested for it.",
    ),
    _finding(
        "OtelmonGraveFinding", 'family!~"effect|policy|truth"', "An agent's call needs a look",
        "A rule of another family found something of severity high or above.",
        "It depends on the rule: its page, linked from the incident, says why it matters.",
        "Follow the runbook of the rule on its page (`otelmon rules show ID`). A false alarm is labelled as one, so that it can be counted.",
        severity="ticket",
    ),
)  # fmt: skip

_HEALTH = "`/readyz` and `otelmon doctor` say what is wrong in words; the log names the stage and the error."
HEALTH = (
    Alert(
        name="OtelmonDown", expr="absent(otelmon_build_info)", wait="2m", severity="page", summary="otelmon is not scraped: nobody watches the agents",
        meaning="Prometheus has had no metrics of otelmon for two minutes.", impact="Nothing is detected and nobody is told.",
        diagnosis="Is the process running? Does `curl http://HOST:8317/healthz` answer? Is the scrape target right?",
        mitigation="Start it again. What senders could not deliver they keep for a while; what was acknowledged is on disk and is judged now.",
    ),
    Alert(
        name="OtelmonStageFailing", expr="otelmon_up_stage == 0", wait="2m", severity="page", summary="stage {{ $labels.stage }} is failing",
        meaning="A stage fails again and again, or has stopped.", impact="Spans are kept but not judged; findings come late.",
        diagnosis=_HEALTH, mitigation="Fix what the error names (disk, broker, store). The stage goes on by itself from what is durable.",
    ),
    Alert(
        name="OtelmonNoSpans", expr="sum(increase(otelmon_spans_received_total[15m])) == 0 and on() sum(increase(otelmon_spans_received_total[1d])) > 0", wait="15m", severity="ticket",
        summary="no spans for half an hour", meaning="Spans arrived within the last day and no longer do.",
        impact="Agents may be running unwatched.", diagnosis="Are agents running? Do their exporters log errors? Was an endpoint, a token or a certificate changed?",
        mitigation="Repair the exporter or the network. If nothing runs at this time of day, silence the alert for these hours.",
    ),
    Alert(
        name="OtelmonLagging", expr="sum by (stage) (otelmon_lag_messages) > 5000", wait="5m", severity="ticket", summary="stage {{ $labels.stage }} is behind",
        meaning="A stage takes messages more slowly than they arrive.", impact="Findings are late; pages come after the harm.",
        diagnosis="Which stage? Is the machine short of CPU, or the disk slow? " + _HEALTH,
        mitigation="Give the process more CPU, or run the stage more often on Kafka. Sample what need not be watched.",
    ),
    Alert(
        name="OtelmonRejectingSpans", expr="sum by (reason) (increase(otelmon_spans_rejected_total[10m])) > 0", severity="ticket", summary="spans are refused: {{ $labels.reason }}",
        meaning="Senders send spans that can not be taken.", impact="These spans are not watched.",
        diagnosis="The reason label says why; the sender's exporter logs the example in the partial success message.",
        mitigation="Fix the instrumentation, or raise the limit that the reason names (`otelmon config show`).",
    ),
    Alert(
        name="OtelmonRefusingRequests", expr='sum by (outcome) (increase(otelmon_requests_total{signal="traces",outcome!~"accepted|busy|disconnected"}[10m])) > 0', severity="ticket", summary="whole requests are refused: {{ $labels.outcome }}",
        meaning="A sender's requests can not be taken at all.", impact="Nothing that this sender's agents do is watched.",
        diagnosis="The outcome label says why: `unauthenticated` is a wrong or missing token, `too_large` a batch above receive.max_request_bytes, the others are bodies that are no OTLP.",
        mitigation="Give the sender the token, lower its batch size, or repair what stands between it and the monitor.",
    ),
    Alert(
        name="OtelmonBackPressure", expr='sum(increase(otelmon_requests_total{outcome="busy"}[5m])) > 0', wait="5m", severity="ticket", summary="senders are told to wait",
        meaning="Spans can not be made durable as fast as they come.", impact="Nothing is lost while senders retry; their queues are finite.",
        diagnosis="Is the disk nearly full (`otelmon_disk_free_bytes`)? Is Kafka reachable? " + _HEALTH,
        mitigation="Free disk space, repair the broker, or add capacity.",
    ),
    Alert(
        name="OtelmonDeadLetters", expr="sum by (topic) (increase(otelmon_dead_letters_total[10m])) > 0", severity="ticket", summary="messages on {{ $labels.topic }} can not be read",
        meaning="A message is not what the topic should hold.", impact="Its spans are kept on the dead-letter topic but not judged.",
        diagnosis="Who else writes to the topic? Is a Collector's Kafka exporter set to otlp_proto?", mitigation="Fix the writer, then send the messages again.",
    ),
    Alert(
        name="OtelmonCheckFailing", expr="sum by (rule) (increase(otelmon_check_errors_total[10m])) > 0", severity="ticket", summary="the check of {{ $labels.rule }} raises",
        meaning="A check raised an error: a bug of the check.", impact="This rule misses what it met; the others go on.",
        diagnosis="`otelmon doctor` says what was raised, and where.", mitigation="Report it with the trace; switch the rule off in the configuration until it is fixed.",
    ),
    Alert(
        name="OtelmonRulesRefused", expr="otelmon_rules_last_reload_success == 0", wait="2m", severity="ticket", summary="an older set of rules is in force than the files say",
        meaning="Rules, catalogue or suppressions were changed and hold mistakes, so nothing of the change is in force.", impact="The monitor works, by the set before: what the change was meant to find or to accept is not.",
        diagnosis="`otelmon doctor`, the pages and the log name every mistake with file, line and column.", mitigation="Correct the files; they are read again by themselves. `otelmon rules test` tells before they are put in place.",
    ),
    Alert(
        name="OtelmonEvictingRuns", expr='sum by (reason) (increase(otelmon_traces_closed_total{reason=~"evicted|span_limit"}[10m])) > 0 or sum by (reason) (increase(otelmon_runs_closed_total{reason="evicted"}[10m])) > 0', severity="ticket", summary="runs leave memory before they end: {{ $labels.reason }}",
        meaning="More runs are open at once than the limits allow, or one run is very long.", impact="Rules that need a whole run are not evaluable for these.",
        diagnosis="`otelmon_runs_open`, `otelmon_traces_open`, `otelmon_detect_bytes` against the limits in `otelmon config show`.",
        mitigation="Raise assemble.max_open_traces, detect.max_conversations or detect.max_bytes; look for instrumentation that never ends its root span.",
    ),
    Alert(
        name="OtelmonDiskNearlyFull", expr="otelmon_disk_free_bytes < 2e9", wait="1m", severity="page", summary="the disk of the monitor is nearly full",
        meaning="Less than 2 GB are free where the spool and the database lie.", impact="Intake stops soon; senders keep what they can.",
        diagnosis="What grows? `otelmon_store_bytes`, the spool folder, or something else on the disk.",
        mitigation="Free space, lower store.retention_days, store.max_bytes or spool.retain_bytes, or give it a larger disk.",
    ),
)  # fmt: skip
ALERTS = FINDINGS + HEALTH


def rules_yaml() -> str:
    """The Prometheus rule file."""
    groups = [
        {"name": "otelmon-findings", "rules": [_rule(alert) for alert in FINDINGS]},
        {"name": "otelmon-health", "rules": [_rule(alert) for alert in HEALTH]},
    ]
    head = "# Generated by `otelmon build` from otelmon/metrics/alerts.py.\n"
    return head + yaml.safe_dump({"groups": groups}, sort_keys=False, width=120)


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.wait,
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.meaning + " " + alert.impact,
            "runbook_url": f"{RUNBOOKS}/{alert.name}",
        },
    }


def runbook(alert: Alert) -> str:
    """The runbook page of an alert."""
    parts = (("Meaning", alert.meaning), ("Impact", alert.impact), ("Diagnosis", alert.diagnosis), ("Mitigation", alert.mitigation))  # fmt: skip
    body = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in parts)
    return f"# {alert.name}\n\nFires when, for {alert.wait}:\n\n```promql\n{alert.expr}\n```\n\n{body}\n"
