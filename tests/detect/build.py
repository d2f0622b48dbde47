"""Conversations for the tests of detect, and what is last said about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from otelmon.app.laws import load_laws
from otelmon.detect.conversations import Clock, ConversationTable
from otelmon.detect.emission import Output
from otelmon.detect.engine import Laws
from otelmon.detect.ledger import LedgerTable
from otelmon.detect.snapshot import Snapshot
from otelmon.vocabulary.config import AssembleConfig, Config, DetectConfig
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import ReadingBatch, Verdict
from otelmon.vocabulary.reading import Reading
from tests.assemble.builders import SECOND, Spans, assistant, call, ns, response, user

SETTLE, IDLE = 10, 300


@cache
def laws() -> Laws:
    """All rules that are built in, no catalogue."""
    return load_laws(Config())


def table(**limits: float) -> ConversationTable:
    """A table with the built-in rules; `limits` are fields of DetectConfig."""
    config = DetectConfig(**limits)  # type: ignore[arg-type]
    return ConversationTable(laws(), config, AssembleConfig(settle_seconds=SETTLE, idle_seconds=IDLE))


def at(seconds: float) -> Clock:
    """A clock that stands still in every partition."""
    return lambda partition: ns(seconds)


def batch(readings: Sequence[Reading], conversation: str = "conv", epoch: int = 1) -> ReadingBatch:
    return ReadingBatch(
        conversation_id=conversation, epoch=epoch, trace_id=readings[0].trace_id, readings=tuple(readings)
    )


# -- stories -------------------------------------------------------------------------------------
def refunded(trace: str = "refund", times: int = 1, start: float = 0, order: str = "OR-771") -> Spans:
    """A user asks for one refund; the agent makes it `times` times."""
    span = Spans(trace)
    root = span.agent(start, start + 9)
    asked = user(f"Refund 18.50 on {order}.")
    said = assistant(*(call("issue_refund", f"{trace}-{n}", order=order, amount=18.5) for n in range(times)))
    span.model([asked], [said], start, start + 1, parent=root)
    answers = []
    for n in range(times):
        result = {"ref": f"RF-{trace}-{n}"}
        span.tool(
            "issue_refund", start + 1 + n, start + 2 + n, parent=root, call_id=f"{trace}-{n}", result=result,
            order=order, amount=18.5,
        )  # fmt: skip
        answers.append(response(result, f"{trace}-{n}"))
    done = assistant(f"Refunded 18.50 on {order}.")
    span.model([asked, said, *answers], [done], start + 7, start + 8, parent=root)
    return span


def invented(trace: str = "invented", start: float = 0) -> Spans:
    """The agent refunds an order that nobody named: found only when the run is over."""
    span = Spans(trace)
    root = span.agent(start, start + 9)
    asked, wish = user("My parcel arrived broken."), assistant(call("issue_refund", "i1", order="OR-9931", amount=120))
    span.model([asked], [wish], start, start + 1, parent=root)
    result = {"ref": "RF-1"}
    span.tool("issue_refund", start + 1, start + 2, parent=root, call_id="i1", result=result, order="OR-9931", amount=120)  # fmt: skip
    span.model([asked, wish, response(result, "i1")], [assistant("Done.")], start + 2, start + 3, parent=root)
    return span


def retried(trace: str = "retried", start: float = 0) -> Spans:
    """A payment timed out and is sent again without a look."""
    span = Spans(trace)
    root = span.agent(start, start + 40)
    asked = user("Pay 75 to AC-3.")
    first, second = (assistant(call("create_payout", f"p{n}", account="AC-3", amount=75)) for n in (1, 2))
    span.model([asked], [first], start, start + 1, parent=root)
    timeout = {"error_type": "timeout", "outcome_hint": "unknown", "signals": ("timeout",)}
    span.tool("create_payout", start + 1, start + 31, parent=root, call_id="p1", fields=timeout, account="AC-3", amount=75)  # fmt: skip
    lost = response("timeout", "p1")
    span.model([asked, first, lost], [second], start + 31, start + 32, parent=root)
    result = {"id": "PO-2"}
    span.tool("create_payout", start + 32, start + 33, parent=root, call_id="p2", result=result, account="AC-3", amount=75)  # fmt: skip
    span.model([asked, first, lost, second, response(result, "p2")], [assistant("Paid 75.")], start + 34, start + 35, parent=root)  # fmt: skip
    return span


def stories() -> list[ReadingBatch]:
    """Four conversations with six traces: right ones and wrong ones, and one effect made in two conversations."""
    return [
        batch(refunded("a", times=2).readings, "conv-a"),
        batch(invented("b", start=50).readings, "conv-a"),
        batch(retried("c").readings, "conv-c"),
        batch(refunded("d", start=20, order="OR-1").readings, "conv-d"),
        batch(refunded("e", start=100, order="OR-88").readings, "conv-e"),
        batch(refunded("f", start=200, order="OR-88").readings, "conv-f"),
    ]


# -- what came out --------------------------------------------------------------------------------
class Said:
    """What the store would hold: the last verdict of every owner, with a ledger behind the table."""

    def __init__(self) -> None:
        self.verdicts: dict[str, Verdict] = {}
        self.sent: list[Verdict] = []
        self.memory: dict[tuple[str, str, int], Snapshot] = {}
        self.ledger = LedgerTable(laws(), DetectConfig())

    def take(self, output: Output) -> Output:
        for record in output.records:
            if isinstance(record, Verdict):
                self._say(record)
        for effects in output.effects:
            self.ledger.feed(effects, 0)
        for conversation, trace, part, snapshot in output.memory:
            self.memory.pop((conversation, trace, part), None)
            if snapshot is not None:
                self.memory[conversation, trace, part] = snapshot
        for verdict in self.ledger.judge_dirty():
            self._say(verdict)
        return output

    def _say(self, verdict: Verdict) -> None:
        self.sent.append(verdict)
        known = self.verdicts.get(verdict.owner)
        if known is None or verdict.epoch >= known.epoch:
            self.verdicts[verdict.owner] = verdict

    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """Findings by owner, where there are any."""
        return {owner: verdict.findings for owner, verdict in self.verdicts.items() if verdict.findings}

    def rules(self) -> list[str]:
        return sorted(finding.rule_id for found in self.findings().values() for finding in found)


def judged(batches: Iterable[ReadingBatch], **limits: float) -> Said:
    """Feed all, judge once, let everything end."""
    held, said = table(**limits), Said()
    for offset, one in enumerate(batches):
        held.feed(one, 0, offset)
    said.take(held.judge_dirty(at(100_000)))
    return said


def seconds(span: Spans) -> float:
    """When the last reading of a trace was received."""
    return (max(r.received_unix_nano for r in span.readings) - ns(0)) / SECOND
