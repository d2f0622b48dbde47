"""What is counted when a run closes: the reference-free rates, once per run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from otelmon.detect.engine import Judgement
from otelmon.vocabulary.event import EndReason, ToolCall, ToolDefinition
from otelmon.vocabulary.labels import LIMITS, OTHER, Labels

RUNS = ("agent",)
NOT_EVALUABLE = ("rule", "reason", "agent")
TOOL_CALLS = ("tool", "effect", "outcome", "agent")


class Rates:
    """Counts under (metric, labels...). Tool and agent names come from data, so they are bounded here
    already: what counts must not grow with them either."""

    def __init__(self, counters: Counter[tuple[str, ...]]) -> None:
        self._counters = counters
        self._labels = Labels()
        self._tools: set[str] = set()

    def count_closed(
        self, judgement: Judgement, ended: Mapping[str, EndReason], catalogue: Collection[str] = ()
    ) -> None:
        """Add the runs that just closed, their calls by tool, effect and outcome, what could not be
        evaluated, and what was found and is accepted. `catalogue` names the operator's tools."""
        if not ended:
            return
        runs = {run.run_id: run for run in judgement.timeline.runs}
        for run_id, reason in ended.items():
            self._counters["runs_closed", reason] += 1
            agent = runs[run_id].agent_name or ""
            self._add("runs", RUNS, agent)
            for rule_id, why in judgement.not_evaluable.get(run_id, {}).items():
                self._add("not_evaluable", NOT_EVALUABLE, rule_id, why, agent)
        for one in judgement.suppressed:
            if one.finding.run_id in ended:
                self._counters["findings_suppressed", one.finding.rule_id] += 1
        self._learn(judgement)
        for event in judgement.timeline.events:
            if isinstance(event, ToolCall) and event.run_id in ended:
                effect = judgement.call_effects[event.key][0]
                tool = event.tool_name if event.tool_name in self._tools or event.tool_name in catalogue else OTHER
                self._add("tool_calls", TOOL_CALLS, tool, effect, event.outcome, event.agent_name or "")

    def _learn(self, judgement: Judgement) -> None:
        """A model can ask for any name: one becomes a label when it was defined, or has worked once."""
        for event in judgement.timeline.events:
            if len(self._tools) >= LIMITS["tool"][0]:
                return
            if isinstance(event, ToolDefinition):
                self._tools.add(event.name)
            elif isinstance(event, ToolCall) and event.outcome == "succeeded":
                self._tools.add(event.tool_name)

    def _add(self, metric: str, names: tuple[str, ...], *values: str) -> None:
        self._counters[metric, *self._labels.bound(metric, names, values)] += 1
