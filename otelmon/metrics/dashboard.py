"""The Grafana dashboard, from the table of metrics."""

from __future__ import annotations

import json
from typing import Any

import msgspec

WIDTH, HEIGHT = 12, 8


class Panel(msgspec.Struct, frozen=True):
    """One panel: what it asks, how each line is called, and the unit of its values."""

    title: str
    expr: str
    legend: str
    unit: str = "short"
    kind: str = "timeseries"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    ("What agents did wrong", (
        Panel("Findings", 'sum by (rule) (increase(otelmon_findings_total{status="open"}[$__rate_interval]))', "{{rule}}"),
        Panel("High and critical findings in the last day", 'sum by (rule) (increase(otelmon_findings_total{status="open",severity=~"high|critical"}[1d]))', "{{rule}}", kind="bargauge"),
        Panel("Incidents nobody has resolved", "sum by (family, severity) (otelmon_incidents_open) > 0", "{{family}} {{severity}}"),
        Panel("Calls by outcome", "sum by (outcome) (rate(otelmon_tool_calls_total[$__rate_interval]))", "{{outcome}}", "ops"),
        Panel("Share of calls that did not succeed", 'sum by (tool) (rate(otelmon_tool_calls_total{outcome!="succeeded"}[$__rate_interval])) / sum by (tool) (rate(otelmon_tool_calls_total[$__rate_interval]))', "{{tool}}", "percentunit"),
        Panel("Writes", 'sum by (tool) (rate(otelmon_tool_calls_total{effect=~"write|destructive|external_send"}[$__rate_interval]))', "{{tool}}", "ops"),
        Panel("Runs", "sum by (agent) (rate(otelmon_runs_total[$__rate_interval]))", "{{agent}}", "ops"),
        Panel("What could not be decided", "sum by (rule, reason) (increase(otelmon_not_evaluable_total[$__rate_interval]))", "{{rule}}: {{reason}}"),
        Panel("From the last span to the finding, 99 %", "histogram_quantile(0.99, sum by (le) (rate(otelmon_detection_delay_seconds_bucket[$__rate_interval])))", "p99", "s"),
    )),
    ("How the monitor is", (
        Panel("Stages", "otelmon_up_stage", "{{stage}}"),
        Panel("Spans received", "sum(rate(otelmon_spans_received_total[$__rate_interval]))", "spans", "ops"),
        Panel("Spans refused", "sum by (reason) (rate(otelmon_spans_rejected_total[$__rate_interval]))", "{{reason}}", "ops"),
        Panel("Requests refused or put off", 'sum by (outcome) (rate(otelmon_requests_total{outcome!="accepted"}[$__rate_interval]))', "{{outcome}}", "ops"),
        Panel("Messages waiting", "sum by (stage) (otelmon_lag_messages)", "{{stage}}"),
        Panel("Spans by dialect", "sum by (dialect) (rate(otelmon_spans_read_total[$__rate_interval]))", "{{dialect}}", "ops"),
        Panel("Runs open", "otelmon_runs_open", "runs"),
        Panel("Runs closed early", 'sum by (reason) (increase(otelmon_runs_closed_total{reason!="root"}[$__rate_interval]))', "{{reason}}"),
        Panel("Database and free disk", '{__name__=~"otelmon_store_bytes|otelmon_disk_free_bytes"}', "{{__name__}}", "bytes"),
    )),
)  # fmt: skip


def panels() -> list[Panel]:
    """All panels."""
    return [panel for _, row in ROWS for panel in row]


def dashboard_json() -> str:
    """The dashboard as Grafana imports it."""
    items: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS:
        items.append(
            {"id": len(items) + 1, "type": "row", "title": title, "gridPos": {"h": 1, "w": 24, "x": 0, "y": top}}
        )
        top += 1
        for place, panel in enumerate(row):
            at = {"h": HEIGHT, "w": WIDTH, "x": WIDTH * (place % 2), "y": top + HEIGHT * (place // 2)}
            items.append(_panel(len(items) + 1, panel, at))
        top += HEIGHT * ((len(row) + 1) // 2)
    return json.dumps(_dashboard(items), indent=1) + "\n"


def _dashboard(items: list[dict[str, Any]]) -> dict[str, Any]:
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "uid": "otelmon",
        "title": "otelmon",
        "schemaVersion": 39,
        "tags": ["otelmon", "agents"],
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [source]},
        "panels": items,
    }


def _panel(number: int, panel: Panel, at: dict[str, int]) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": source,
        "gridPos": at,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [{"refId": "A", "datasource": source, "expr": panel.expr, "legendFormat": panel.legend}],
    }
