"""What is counted when a run closes: the reference-free rates, once per run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from otelmon.detect.engine import Judgement
from otelmon.vocabulary.event import EndReason, ToolCall

Counters = Counter[tuple[str, ...]]


def count_closed(counters: Counters, judgement: Judgement, ended: Mapping[str, EndReason]) -> None:
    """Add the runs that just closed, their calls by tool, effect and outcome, and what could not be
    evaluated. Keys are (metric, labels...); labels are bounded by the exporter."""
    if not ended:
        return
    runs = {run.run_id: run for run in judgement.timeline.runs}
    for run_id, reason in ended.items():
        counters["runs_closed", reason] += 1
        agent = runs[run_id].agent_name or ""
        counters["runs", agent] += 1
        for rule_id, why in judgement.not_evaluable.get(run_id, {}).items():
            counters["not_evaluable", rule_id, why, agent] += 1
    for event in judgement.timeline.events:
        if isinstance(event, ToolCall) and event.run_id in ended:
            effect = judgement.call_effects[event.key][0]
            counters["tool_calls", event.tool_name, effect, event.outcome, event.agent_name or ""] += 1
