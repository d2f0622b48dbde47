"""Freeze an incident as a golden task: what the user wanted, what the tools answered, what must not happen again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from otelmon.checks.lib.provenance_roles import leaves
from otelmon.checks.lib.sources import argument_path, plain_form
from otelmon.golden.model import Call, Effect, GoldenTask, Matcher, Message, Source, Stub, ToolSpec
from otelmon.golden.privacy import Replacer
from otelmon.store.results import (
    CallDetail,
    ConversationDetail,
    FindingDetail,
    IncidentDetail,
    MessageDetail,
    ToolVersion,
)
from otelmon.vocabulary.canonical import short_hash

REPEATS = frozenset(("duplicate_write", "unsafe_retry", "duplicate_run", "idempotency_key_changed"))
FORBIDS = frozenset(
    (
        "forbidden_write",
        "missing_confirmation",
        "ungrounded_argument",
        "near_miss_id",
        "schema_violation",
        "unparseable_arguments",
        "unknown_tool",
        "unknown_argument",
        "wrong_source",
        "wrong_record",
    )
)
ROLES = ("system", "user", "assistant")
LANDED = ("succeeded", "unknown", "pending")
WRITES = ("write", "destructive", "external_send")


def mine(incident: IncidentDetail, conversation: ConversationDetail, versions: Sequence[ToolVersion]) -> GoldenTask:
    """The task of the incident's first open finding and all others of its run.

    `conversation` is the one that finding lies in, `versions` the tool definitions seen in traffic.
    """
    findings = [f for f in incident.findings if f.finding.status == "open"] or list(incident.findings)
    run_id = findings[0].finding.run_id
    mine_ = [f for f in findings if f.finding.run_id == run_id]
    others = [f for f in conversation.findings if f.finding.run_id == run_id and f.finding.status == "open"]
    builder = _Builder(conversation, run_id, _unique([*mine_, *others]))
    return builder.task(incident, tuple(f.finding.finding_id for f in mine_), versions)


def _unique(found: Iterable[FindingDetail]) -> list[FindingDetail]:
    return list({f.finding.finding_id: f for f in found}.values())


class _Builder:
    def __init__(self, conversation: ConversationDetail, run_id: str, findings: list[FindingDetail]) -> None:
        self._findings = findings
        end = max((i for i, item in enumerate(conversation.timeline) if _run_of(item) == run_id), default=-1)
        timeline = conversation.timeline[: end + 1]
        self._messages = [item for item in timeline if isinstance(item, MessageDetail)]
        self._calls = [item for item in timeline if isinstance(item, CallDetail)]
        self._mine = [item for item in self._calls if item.call.run_id == run_id]
        self._run_id = run_id
        self._run = next((run for run in conversation.runs if run.run_id == run_id), None)
        self._replacer = Replacer()
        for item in self._calls:
            for data in (item.call.arguments, _result(item)):
                self._replacer.learn(data)

    def task(
        self, incident: IncidentDetail, finding_ids: tuple[str, ...], versions: Sequence[ToolVersion]
    ) -> GoldenTask:
        first, last_user = self._split()
        flagged = self._flagged()
        clean = [item for item in self._mine if item.call.key not in flagged]
        return GoldenTask(
            id="golden-" + short_hash(incident.incident.incident_id, self._run_id)[:12],
            title=self._replacer.text(incident.incident.title),
            source=Source(incident_id=incident.incident.incident_id, finding_ids=finding_ids, run_id=self._run_id),
            agent=(self._run.agent_name if self._run else None) or "",
            user=self._replacer.text(self._run.principal) if self._run and self._run.principal else None,
            input=last_user,
            conversation=first,
            tools=self._tools(versions),
            stubs=tuple(self._stub(item) for item in self._calls),
            expected_calls=tuple(
                self._call(item) for item in clean if item.effect in WRITES and item.call.outcome == "succeeded"
            ),
            optional_calls=tuple(
                self._call(item, at_least=0, at_most=None) for item in clean if item.effect not in WRITES
            ),
            forbidden_calls=tuple(
                self._forbidden(item, flagged[item.call.key])
                for item in self._mine
                if flagged.get(item.call.key, ("",))[0] == "forbid"
            ),
            expected_effects=self._effects(flagged),
            rules=tuple(sorted({f.finding.rule_id for f in self._findings})),
        )

    def _split(self) -> tuple[tuple[Message, ...], str]:
        """The conversation before the run's last user message, and that message."""
        at = [i for i, m in enumerate(self._messages) if m.role == "user"]
        if not at:
            return (), ""
        before = [m for m in self._messages[: at[-1]] if m.role in ROLES and m.text]
        messages = tuple(Message(role=m.role, content=self._replacer.text(m.text)) for m in before)  # type: ignore[arg-type]
        return messages, self._replacer.text(self._messages[at[-1]].text)

    def _flagged(self) -> dict[str, tuple[str, str]]:
        """{call key: (what it means, rule)}: "repeat" for a second effect, "forbid" for a call that
        must not be made."""
        flagged: dict[str, tuple[str, str]] = {}
        by_span = {span: item.call.key for item in self._mine for span in (item.call.span_ids or (item.call.span_id,))}
        for found in self._findings:
            finding = found.finding
            key = by_span.get(finding.span_ids[0]) if finding.span_ids and finding.tool_name else None
            if key is None:
                continue
            if finding.rule_id in REPEATS:
                flagged.setdefault(key, ("repeat", finding.rule_id))
            elif finding.rule_id in FORBIDS:
                flagged[key] = ("forbid", finding.rule_id)
        return flagged

    def _effects(self, flagged: dict[str, tuple[str, str]]) -> tuple[Effect, ...]:
        """What was repeated must have happened once."""
        effects: dict[str, Effect] = {}
        for item in self._mine:
            if flagged.get(item.call.key, ("",))[0] == "repeat":
                effects.setdefault(
                    item.call.tool_name, Effect(tool=item.call.tool_name, arguments=self._matchers(item), times=1)
                )
        return tuple(effects.values())

    def _call(self, item: CallDetail, at_least: int = 1, at_most: int | None = 1) -> Call:
        arguments = {**self._matchers(item), **self._from_calls(item)}
        return Call(tool=item.call.tool_name, arguments=arguments, at_least=at_least, at_most=at_most)

    def _from_calls(self, item: CallDetail) -> dict[str, Matcher]:
        """Arguments that an earlier call gave: what it gives then is right, not what it gave once."""
        found: dict[str, Matcher] = {}
        given = {other.call.key: other for other in self._calls}
        arguments = item.call.arguments if isinstance(item.call.arguments, dict) else {}
        for origin in item.lineage:
            source = given.get(origin.anchor)
            if origin.source != "result" or not origin.sure or source is None or origin.path not in arguments:
                continue
            value = arguments[origin.path]
            wanted = plain_form(value)
            field = next((path for path, _, leaf in leaves(_result(source)) if plain_form(leaf) == wanted), "")
            if field:
                found[origin.path] = Matcher(
                    kind="from_call", value=self._replacer.data(value), tool=source.call.tool_name,
                    field=argument_path(field),
                )  # fmt: skip
        return found

    def _forbidden(self, item: CallDetail, flag: tuple[str, str]) -> Call:
        """Which arguments make the call wrong: those the evidence names, else all of them."""
        named: set[str] = set()
        for found in self._findings:
            if found.finding.rule_id == flag[1] and found.finding.span_ids[:1] == item.call.span_ids[:1]:
                named |= _names(found.finding.evidence)
        matchers = self._matchers(item)
        chosen = {name: matcher for name, matcher in matchers.items() if name in named} or matchers
        return Call(tool=item.call.tool_name, arguments=chosen, at_least=0, at_most=0, why=flag[1])

    def _matchers(self, item: CallDetail) -> dict[str, Matcher]:
        key = item.call.idempotency_key
        arguments = item.call.arguments if isinstance(item.call.arguments, dict) else {}
        return {
            name: Matcher(kind="any") if key and value == key else _matcher(self._replacer.data(value))
            for name, value in arguments.items()
        }

    def _stub(self, item: CallDetail) -> Stub:
        return Stub(
            tool=item.call.tool_name,
            arguments=self._replacer.data(item.call.arguments),
            result=self._replacer.data(_result(item)),
            outcome=item.call.outcome,
            error_type=item.call.error_type,
        )

    def _tools(self, versions: Sequence[ToolVersion]) -> tuple[ToolSpec, ...]:
        service = self._run.service_name if self._run else ""
        effects = {item.call.tool_name: item.effect for item in self._calls}
        newest = {v.tool_name: v for v in versions if v.service_name == service}
        named = sorted(newest.keys() | effects.keys())
        return tuple(
            ToolSpec(
                name=name,
                description=newest[name].description if name in newest else "",
                parameters=newest[name].input_schema if name in newest else None,
                effect=effects.get(name, "unknown"),
            )
            for name in named
        )


def _run_of(item: MessageDetail | CallDetail) -> str:
    return item.call.run_id if isinstance(item, CallDetail) else item.run_id


def _result(item: CallDetail) -> Any:
    """The answer the agent saw: decoded when it is JSON, else its text; an error's text."""
    call = item.call
    if call.result is not None:
        return call.result
    return call.result_text if call.result_text is not None else call.error_message


def _matcher(value: Any) -> Matcher:
    if isinstance(value, bool) or value is None:
        return Matcher(value=value)
    if isinstance(value, int | float):
        return Matcher(kind="number", value=value, tolerance=0.005 if isinstance(value, float) else 0.0)
    return Matcher(kind="normalised" if isinstance(value, str) else "exact", value=value)


def _names(evidence: dict[str, Any]) -> set[str]:
    """Top-level argument names that the evidence says are wrong, under any key called path or
    argument; where the good values came from and the other call of a pair are not looked at."""
    found: set[str] = set()
    waiting: list[Any] = [evidence]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            found |= {
                str(item[key]).strip("/$.").split(".")[0].split("/")[0].split("[")[0]
                for key in ("path", "argument")
                if isinstance(item.get(key), str)
            }
            waiting.extend(value for key, value in item.items() if key not in ("lineage", "other"))
        elif isinstance(item, list | tuple):
            waiting.extend(item)
    return found
