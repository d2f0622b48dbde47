"""A message says that something was done, and no call did it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from otelmon.checks.lib.claims import Claim, Reading, read_message
from otelmon.checks.lib.claims_judge import Verdict, judge
from otelmon.checks.lib.turns import last_words
from otelmon.checks.lib.values import fold
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, Run, ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`untried`: also claims of effects that no call even tried; `every_turn`: judge the last message
    of each user turn, not only of the run; `sub_agents`: judge what agents without calls report."""

    untried: bool = True
    every_turn: bool = True
    sub_agents: bool = True


@check(on="run", name="false_success")
def claimed_in_messages(run: Run, view: View, params: Params) -> Iterator[Evidence]:
    """The agent tells the user that an effect happened (or that none did), and the calls say otherwise.

    Why it matters: everybody downstream believes the message; nobody looks at the call that failed.
    """
    for message in last_words(run, view, params.every_turn):
        reading = read_message(message.text)
        verdicts = [v for claim in reading.claims if (v := judge(claim, reading, message, view, params.untried))]
        if verdicts:
            yield _evidence(message, verdicts)


@check(on="call", name="false_success")
def claimed_by_sub_agent(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A sub-agent reports work, and no tool was called under it."""
    if not params.sub_agents or call.nested_calls != 0 or call.outcome != "succeeded" or not call.result_text:
        return
    reading = read_message(call.result_text)
    said = _work_reported(reading)
    if said:
        yield Evidence(
            summary=f"{call.tool_name} reports work ({said[:80]!r}) but no tool was called under it",
            anchor=call.key,
            severity="medium",
            span_ids=call.span_ids,
            details={"claim": said, "nested_calls": 0, "task": view.business_arguments(call)},
        )


def _work_reported(reading: Reading) -> str:
    if reading.reads:
        return reading.reads
    return next((c.sentence for c in reading.claims if c.form == "strong" and not c.denies and not c.reported), "")


def _evidence(message: AssistantMessage, verdicts: Sequence[Verdict]) -> Evidence:
    first = verdicts[0]
    severity = "critical" if any(v.destructive for v in verdicts) else "high"
    return Evidence(
        summary=f"the message claims {_as_written(message.text, first.claim.sentence)[:100]!r}, but {first.why}",
        anchor=message.span_id,
        span_ids=(message.span_id,),
        severity="critical" if severity == "critical" else "high",
        details={"claims": [_details(message, verdict) for verdict in verdicts]},
    )


def _details(message: AssistantMessage, verdict: Verdict) -> dict[str, Any]:
    claim: Claim = verdict.claim
    return {
        "claim": _as_written(message.text, claim.sentence),
        "verb": claim.verb,
        "classes": sorted(claim.classes),
        "denies": claim.denies,
        "why": verdict.why,
        "missing_files": list(verdict.missing_files),
        "tried": [
            {
                "tool": call.tool_name,
                "tool_call_id": call.tool_call_id,
                "outcome": call.outcome,
                "span_id": call.span_id,
            }
            for call in verdict.tried
        ],
        "other": verdict.tried[-1].key if verdict.tried else None,
    }


def _as_written(text: str, sentence: str) -> str:
    """The folded sentence as the message has it, for people; folded where folding changed lengths."""
    folded = fold(text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    at = folded.find(sentence) if len(folded) == len(text) else -1
    return text[at : at + len(sentence)] if at >= 0 else sentence
