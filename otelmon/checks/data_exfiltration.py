"""A call that sends out or writes a value because a text said so, or a secret that is nobody else's."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.following import Act, following, past_known
from otelmon.checks.lib.secrets import Leak, leaks
from otelmon.checks.lib.unrequested import unrequested
from otelmon.checks.registry import check
from otelmon.checks.tool_poisoning import described
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`directed`: also calls that a directing text steers, not only those with a secret; `plain_orders`: also
    those that carry out an order in ordinary prose, where the user asked for nothing of the kind.
    `secrets`: what looks like a password, a token or a private key; `protected_tools` (globs) and
    `protected_fields` (names in results): what the operator calls a secret besides."""

    directed: bool = True
    plain_orders: bool = True
    secrets: bool = True
    protected_tools: tuple[str, ...] = ()
    protected_fields: tuple[str, ...] = ()


@check(on="call")
def data_exfiltration(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """The call writes, or talks to the outside, with a value that entered only through a text that directs the
    agent: the address a mail told it to send to, the page it was told to open.

    Why it matters: this is the moment at which data or money leaves.
    """
    if params.directed:
        acts = [
            act
            for act in following(view).by_call.get(call.key, ())
            if act.sink and act.how != "tool" and not act.direction.expected
        ]
        if acts:
            yield _directed(call, acts, view, "in text that directs the agent", not any(act.sure for act in acts))
    if params.plain_orders:
        for act in unrequested(view).by_call.get(call.key, ()):
            yield _directed(call, [act], view, "in an order that the user did not give", act.excused)
    yield from _leaked(call, view, params)


def _leaked(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """A secret leaves: by a call to the outside or to another server; anywhere, once a text directs the agent or
    where the operator says so."""
    steered = bool(following(view).directions)
    declared = bool(params.protected_tools or params.protected_fields)
    found = leaks(view, params.protected_tools, params.protected_fields, params.secrets)
    for leak in found.get(call.key, ()):
        writes = view.effect(call).effect != "read"
        if leak.outside or ((leak.other_server or steered or declared) and writes):
            yield _leak_evidence(leak, view, steered)


def _leak_evidence(leak: Leak, view: View, steered: bool) -> Evidence:
    source = leak.secret.call
    sure = past_known(view, leak.call.run_id) and not leak.named
    return Evidence(
        summary=f"{leak.call.tool_name} carries {leak.secret.kind} that {source.tool_name} returned, in {leak.path!r}",
        anchor=leak.call.key,
        key=f"secret:{leak.path}",
        severity="critical" if sure and (leak.outside or steered) else "high" if sure else "medium",
        span_ids=(source.span_id,),
        details={
            "other": source.key, "source": "secret", "secret": leak.secret.kind, "argument": leak.path,
            "destination_named_by_user": leak.named,
        },
    )  # fmt: skip


def _directed(call: ToolCall, acts: list[Act], view: View, how: str, unsure: bool = False) -> Evidence:
    act = next((a for a in acts if a.how == "destination"), acts[0])
    goes = "goes to" if act.how == "destination" else "carries"
    source = act.direction
    place = (
        f"the result of {source.tool_name}" if source.where == "result" else f"the description of {source.tool_name}"
    )
    other = view.call_by_key.get(source.anchor)
    return Evidence(
        summary=f"{call.tool_name} {goes} {act.value[:80]!r}, which only {place} said, {how}",
        anchor=call.key,
        key=act.path,
        severity="high" if past_known(view, call.run_id) and not unsure else "medium",
        span_ids=(other.span_id,) if other else (),
        details={
            "other": source.anchor,
            "source": source.where,
            "quote": source.passage.quote,
            "signs": sorted(source.passage.kinds),
            "acts": [described(a) for a in acts[:5]],
        },
    )
