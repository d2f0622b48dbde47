"""Which rules can be evaluated for each agent, which can not and why, and the setting that would change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec
from starlette.requests import Request

from otelmon.assemble.dialects import Dialect, dialects
from otelmon.rules.model import Need, Rule
from otelmon.store.results import AgentRuns, NotEvaluableCount
from otelmon.vocabulary.errors import Problem, UserError

Evaluated = Literal["always", "partly", "never", "not asked yet"]
FIELDS: dict[Need, tuple[str, ...]] = {
    "arguments": ("arguments",),
    "result": ("results",),
    "catalogue": ("definitions",),
    "user_text": ("user_text",),
    "final_message": ("final_message",),
    "past_complete": ("user_text", "arguments", "results"),
    "context_complete": ("user_text", "arguments", "results"),
    "run_end": (),
}
"""What a need of a rule asks of the spans, in the words of a dialect's Shows."""
GENERAL = {
    "truncated": "unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT and OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT where the agent runs, or set them higher",
    "hashed": "send the content itself: what hides it before it is sent (the shim's capture level, a Collector's processor) must leave it, or replace it with tokens that stay equal",
    "sampled": "OTEL_TRACES_SAMPLER=parentbased_always_on, and no sampling of single spans on the way",
    "prior_turns_unseen": "raise detect.memory_seconds, detect.max_conversations or detect.conversation_bytes of the monitor, when it forgot the earlier turns; turns before it was connected stay unseen",
    "incomplete_run": "export the agent's own span and its model spans, and raise assemble.idle_seconds of the monitor when runs pause longer than that",
    "no_catalogue": "give the monitor a catalogue: catalogue = \"FILE\" in otelmon.toml, or --set catalogue=FILE",
}  # fmt: skip
"""What helps against a reason, whatever the instrumentation."""


class Reason(msgspec.Struct, frozen=True):
    """Why a rule could not be evaluated, in how many runs, and what would change it, a line each."""

    reason: str
    runs: int
    settings: tuple[str, ...]


class RuleCoverage(msgspec.Struct, frozen=True):
    """One rule for one agent. `reasons` are the most frequent first."""

    rule_id: str
    title: str
    evaluated: Evaluated
    runs: int
    reasons: tuple[Reason, ...] = ()


class AgentCoverage(msgspec.Struct, frozen=True):
    """All rules for one agent ("" has no name). `runs` are those that are over."""

    agent_name: str
    runs: int
    dialects: tuple[str, ...]
    instrumentations: tuple[str, ...]
    rules: tuple[RuleCoverage, ...]

    def amount(self, evaluated: Evaluated) -> int:
        """Rules that are evaluated so."""
        return sum(rule.evaluated == evaluated for rule in self.rules)


def coverage(
    rules: Iterable[Rule], agents: Iterable[AgentRuns], counts: Iterable[NotEvaluableCount]
) -> tuple[AgentCoverage, ...]:
    """The coverage of every agent, by name."""
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for count in counts:
        reasons.setdefault((count.agent_name, count.rule_id), Counter())[count.reason] += count.amount
    known = {dialect.name: dialect for dialect in dialects()}
    ordered = sorted(rules, key=lambda rule: rule.id)
    found = []
    for agent in sorted(agents, key=lambda agent: agent.agent_name):
        spoken = [known[name] for name in agent.dialects if name in known]
        of_rules = (_rule(rule, agent, spoken, reasons.get((agent.agent_name, rule.id), Counter())) for rule in ordered)
        titles = tuple(dialect.shows.instrumentation for dialect in spoken)
        found.append(AgentCoverage(agent.agent_name, agent.closed, agent.dialects, titles, tuple(of_rules)))
    return tuple(found)


def of_agent(found: Iterable[AgentCoverage], name: str) -> AgentCoverage:
    """The coverage of one agent. Raises UserError when none of this name was seen."""
    every = {agent.agent_name: agent for agent in found}
    if name not in every:
        names = ", ".join(repr(known) for known in every) or "none yet"
        raise UserError(Problem(f"agent {name}", "no run of it is stored", f"one of: {names}"))
    return every[name]


def _rule(rule: Rule, agent: AgentRuns, spoken: list[Dialect], reasons: Mapping[str, int]) -> RuleCoverage:
    missed = sum(reasons.values())
    evaluated: Evaluated = "always"
    if agent.closed == 0:
        evaluated = "not asked yet"
    elif missed >= agent.closed:
        evaluated = "never"
    elif missed:
        evaluated = "partly"
    told = tuple(
        Reason(reason, runs, _settings(rule, reason, spoken))
        for reason, runs in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    )
    return RuleCoverage(rule.id, rule.title, evaluated, agent.closed - min(missed, agent.closed), told)


def _settings(rule: Rule, reason: str, spoken: list[Dialect]) -> tuple[str, ...]:
    """What would change it, the instrumentation's own setting first."""
    needed: list[str] = []
    if reason == "content_off":
        needed = [field for need in rule.needs for field in FIELDS[need] if need != "catalogue"]
    elif reason == "no_catalogue":
        needed = list(FIELDS["catalogue"])
    lines = [line for dialect in spoken for line in _of_dialect(dialect, needed)]
    if reason in GENERAL:
        lines.append(GENERAL[reason])
    return tuple(dict.fromkeys(lines))


def _of_dialect(dialect: Dialect, needed: Iterable[str]) -> Iterable[str]:
    shows = dialect.shows
    for field in dict.fromkeys(needed):
        amount = getattr(shows, field)
        what = field.replace("_", " ")
        if amount in ("yes", "setting") and shows.setting:
            yield f"{shows.instrumentation}: {shows.setting}"
        elif amount == "no":
            yield f"{shows.instrumentation} never carries {what}: add an instrumentation that does" + _note(shows.note)
        else:
            yield f"{shows.instrumentation} carries {what}: look for what takes it away before it is sent" + _note(
                shows.note
            )


def _note(note: str) -> str:
    return f" ({note.rstrip('.')})" if note else ""


def page(
    rules: Callable[[], Iterable[Rule]], read: Callable[..., Any]
) -> Callable[[Request], tuple[str, dict[str, Any]]]:
    """What the page shows: every agent, or the one that `agent` names in the query."""

    def build(request: Request) -> tuple[str, dict[str, Any]]:
        found = coverage(rules(), read("agents"), read("not_evaluable"))
        chosen = request.query_params.get("agent")
        shown = found if chosen is None else (of_agent(found, chosen),)
        return "coverage.html", {"agents": shown, "chosen": chosen}

    return build
