"""From a write in a conversation to its entry in the effect ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otelmon.checks.lib.asking import request_text
from otelmon.checks.lib.histories import history_keys
from otelmon.checks.lib.pairs import bounded
from otelmon.checks.lib.replay import says_replayed
from otelmon.checks.lib.sameness import comparable
from otelmon.checks.lib.state import undone_before
from otelmon.checks.lib.wording import asked_count, says
from otelmon.vocabulary.canonical import sha256, short_hash
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.messages import EffectEntry

if TYPE_CHECKING:
    from otelmon.checks.view import View


def effect_entry(call: ToolCall, view: View) -> EffectEntry | None:
    """The ledger's entry of a write that landed or may have landed; None for any other call."""
    effect = view.effect(call)
    if not view.writes(call) or call.outcome not in ("succeeded", "unknown") or not comparable(call):
        return None
    if says_replayed(call.result):
        return None
    arguments = view.business_arguments(call)
    request = request_text(call, view)
    run = view.run_of(call)
    return EffectEntry(
        effect_key=view.effect_key(call),
        anchor=call.key,
        trace_id=call.trace_id,
        span_id=call.span_id,
        run_id=call.run_id,
        conversation_id=view.conversation_id,
        tool_name=call.tool_name,
        tool_call_id=call.tool_call_id,
        effect=effect.effect,
        repeat=effect.repeat,
        outcome=call.outcome,
        idempotency_key=view.idempotency_key(call),
        arguments=bounded(arguments),
        arguments_hash=call.arguments_hash or sha256(arguments),
        result_digest=sha256(call.result if call.result is not None else call.result_text),
        request_digest=short_hash(request) if request else "",
        turn=call.turn,
        asked=max(
            asked_count(request, call.tool_name, arguments), 2 if says("again", request) or says("more", request) else 1
        ),
        identifying=bool(view.identifying_values(call)),
        state_changed=undone_before(call, view),
        trigger=call.trigger or run.trigger,
        host=call.host or run.host,
        agent_name=call.agent_name,
        service_name=call.service_name,
        environment=call.environment,
        start_time_unix_nano=call.start_time_unix_nano,
        end_time_unix_nano=call.end_time_unix_nano,
        histories=history_keys(call, view),
        run_failed=bool(run.error_type),
        run_start_time_unix_nano=run.start_time_unix_nano,
    )
