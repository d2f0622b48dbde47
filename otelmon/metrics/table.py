"""The one table of metrics: docs, dashboards and alerts are made from it and name nothing else."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["counter", "gauge", "histogram"]


class Metric(msgspec.Struct, frozen=True):
    """One metric. `name` without the `otelmon_` prefix and without `_total`. `labels` come from
    closed sets: see labels.py for what bounds the open ones (tool, agent). `stages`: which stage's
    process exposes it."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    stages: str = "all"


METRICS: tuple[Metric, ...] = (
    Metric("build_info", "gauge", "Always 1; which version runs, with which rules.", ("version", "rules"), "all"),
    Metric("up_stage", "gauge", "1 while the stage works, 0 while it is failing or stopped.", ("stage",), "all"),
    Metric("stage_restarts", "counter", "Times a stage failed and was started again.", ("stage",), "all"),
    Metric("lag_messages", "gauge", "Messages of its topics that the stage has not taken yet.", ("stage",), "all"),
    Metric("waiting_messages", "gauge", "Messages taken and not written yet.", ("stage",), "store"),
    Metric("rules_reload", "counter", "Times rules, catalogue and suppressions were read again, by how it ended; after a failure the old set stays.", ("result",), "all"),
    Metric("rules_last_reload_success", "gauge", "1 while what the files say is in force, 0 while an older set is, because they hold mistakes.", (), "all"),
    # receive
    Metric("requests", "counter", "OTLP requests by how they were answered.", ("signal", "outcome"), "receive"),
    Metric("spans_received", "counter", "Spans that arrived at the OTLP doors, kept or not.", (), "receive"),
    Metric("spans_rejected", "counter", "Spans that were refused at the OTLP doors.", ("reason",), "receive"),
    Metric("log_records_received", "counter", "Log records that arrived at the OTLP doors, kept or not.", (), "receive"),
    Metric("log_records_filtered", "counter", "Log records left out at the OTLP doors, because they name no span.", ("reason",), "receive"),
    Metric("received_bytes", "counter", "Bytes of OTLP requests after decompression.", (), "receive"),
    # assemble
    Metric("spans_read", "counter", "Spans read, by the dialect that recognised them.", ("dialect",), "assemble"),
    Metric("log_records_read", "counter", "Log records whose content became part of a span.", (), "assemble"),
    Metric("strays", "counter", "Spans that lay in another partition than their trace id says, and were sent on.", (), "assemble"),
    Metric("traces_open", "gauge", "Traces whose spans are still being joined.", (), "assemble"),
    Metric("traces_closed", "counter", "Traces closed, by why.", ("reason",), "assemble"),
    Metric("span_duplicates", "counter", "Spans that arrived again with the same content.", (), "assemble"),
    Metric("span_conflicts", "counter", "Spans that arrived again with other content; both are kept.", (), "assemble"),
    Metric("spans_late", "counter", "Spans that arrived after their trace was closed; they are judged too.", (), "assemble"),
    Metric("traces_moved", "counter", "Open traces whose conversation id came late: sent again under it.", (), "assemble"),
    Metric("dead_letters", "counter", "Messages that could not be read, by topic.", ("topic",), "all"),
    # detect
    Metric("runs_open", "gauge", "Runs that have not ended yet.", (), "detect"),
    Metric("runs", "counter", "Runs that ended.", ("agent",), "detect"),
    Metric("runs_closed", "counter", "Runs that ended, by why.", ("reason",), "detect"),
    Metric("conversations", "gauge", "Conversations held in memory.", (), "detect"),
    Metric("conversations_left", "counter", "Conversations that left memory, by which limit.", ("reason",), "detect"),
    Metric("traces_forgotten", "counter", "Old traces of long conversations that left memory.", ("reason",), "detect"),
    Metric("handovers", "counter", "Traces that moved to the detector of the conversation they belong to.", (), "detect"),
    Metric("detect_bytes", "gauge", "Estimated memory of conversations in bytes.", (), "detect"),
    Metric("tool_calls", "counter", "Tool calls of runs that ended.", ("tool", "effect", "outcome", "agent"), "detect"),
    Metric("not_evaluable", "counter", "Runs in which a rule could not be decided, by why.", ("rule", "reason", "agent"), "detect"),
    Metric("check_errors", "counter", "Times a check raised; a bug of the check.", ("rule",), "detect"),
    Metric("conditions_undecided", "counter", "Times a condition of a rule or policy could not be decided for a call, and counted as false.", ("rule",), "detect"),
    Metric("findings_suppressed", "counter", "Findings of runs that ended which the configuration accepts for a while.", ("rule",), "detect"),
    Metric("effect_keys", "gauge", "Effects the ledger remembers.", (), "detect"),
    Metric("effects_forgotten", "counter", "Effects older than the ledger remembers.", (), "detect"),
    Metric("tools", "gauge", "Tools whose versions the ledger remembers.", (), "detect"),
    Metric("tool_versions_forgotten", "counter", "Versions of tools that left the ledger or never entered it, by why.", ("reason",), "detect"),
    # store
    Metric("findings", "counter", "Findings, by what became of them: open, retracted, or test (of a rule that is on trial and must not page).", ("rule", "family", "severity", "status"), "store"),
    Metric("detection_delay_seconds", "histogram", "From the last span of a run received to its finding stored.", (), "store"),
    Metric("incidents_open", "gauge", "Incidents nobody has resolved.", ("family", "severity"), "store"),
    Metric("store_batches", "counter", "Transactions written.", (), "store"),
    Metric("store_messages", "counter", "Messages written, by topic.", ("topic",), "store"),
    Metric("store_revoked", "counter", "Times a partition was taken from the store and given to another.", ("topic", "partition"), "store"),
    Metric("store_bytes", "gauge", "Size of the database file in bytes.", (), "store"),
    Metric("disk_free_bytes", "gauge", "Free bytes where the data lies.", (), "store"),
)  # fmt: skip


def full_name(metric: Metric) -> str:
    """The name Prometheus shows."""
    return f"otelmon_{metric.name}" + ("_total" if metric.kind == "counter" else "")
