"""Whether a call was approved: by evidence on its span, or by the user's yes to a proposal of it."""

from __future__ import annotations

import hashlib

import msgspec

from otelmon.checks.lib.asking import names_action, names_call, names_values, proposal_before, user_messages_between
from otelmon.checks.lib.wording import agrees, asks_to_act
from otelmon.checks.view import View
from otelmon.vocabulary.canonical import canonical, sha256
from otelmon.vocabulary.event import AssistantMessage, ToolCall, UserMessage

_MAX_EVENTS = 200  # events before a request in which its record may have been spoken of


class Approved(msgspec.Struct, frozen=True):
    """Who approved a call and how. `source` is the span's word ("user", "policy", "hook") or
    "conversation"."""

    source: str
    by: str = ""
    span_id: str = ""


def approval_of(call: ToolCall, view: View) -> Approved | None:
    """The approval bound to exactly these arguments, or None.

    What a span asserts counts only where the operator trusts the service, or all of them: it is the
    watched party's own word. The user's yes in the conversation counts from anybody."""
    return _span_approval(call, view) or _user_approval(call, view)


def why_not(call: ToolCall, view: View) -> str:
    """Why the approval on the call's span does not count; "" when it has none."""
    approval = call.approval
    if approval is None:
        return ""
    if approval.decision != "approved":
        return f"the decision was {approval.decision}"
    if approval.expires_unix_nano is not None and approval.expires_unix_nano < call.start_time_unix_nano:
        return "the approval had expired"
    if approval.arguments_hash and approval.arguments_hash not in _hashes(call):
        return "the approval was given for other arguments"
    if not view.trust_approvals and call.service_name not in view.trusted:
        return f"only {call.service_name or 'the agent'} itself says so, and it is not in detect.trusted_services"
    return ""


def _span_approval(call: ToolCall, view: View) -> Approved | None:
    if call.approval is None or why_not(call, view):
        return None
    return Approved(call.approval.source or "span", call.approval.by, call.span_id)


def _hashes(call: ToolCall) -> set[str]:
    plain = {sha256(call.arguments), call.arguments_hash}
    plain.add("sha256:" + hashlib.sha256(canonical(call.arguments)).hexdigest())
    return {h for h in plain | {h.removeprefix("sha256:") for h in plain} if h}


def _user_approval(call: ToolCall, view: View) -> Approved | None:
    for message in reversed(user_messages_between(None, call, view)):
        if agrees(message.text) and _proposed(message, call, view):
            return Approved("conversation", "user", message.span_id)
    return None


def _proposed(message: UserMessage, call: ToolCall, view: View) -> bool:
    """True when what the user said yes to names this call: in the message itself or just before it."""
    text = f"{proposal_before(message, view)}\n{message.text}"
    return names_call(text, call, view)


def asked_for(call: ToolCall, view: View) -> bool:
    """True when the user asked in his own words for this action with these values."""
    said = "\n".join(message.text for message in user_messages_between(None, call, view))
    return names_action(said, call) and names_values(said, call, view)


def agreed_just_now(call: ToolCall, view: View) -> bool:
    """True when the user's latest message is a yes to this kind of action, by whatever name he knows the
    record (a route, a date): enough for a rule in words, not for a policy."""
    latest = view.latest_user_message(call)
    if latest is None or not agrees(latest.text):
        return False
    return names_action(f"{proposal_before(latest, view)}\n{latest.text}", call)


def asked_just_now(call: ToolCall, view: View) -> bool:
    """True when the user's latest message asks for this kind of action, and the record was spoken of or
    looked up before that message: enough for a rule in words."""
    latest = view.latest_user_message(call)
    if latest is None or not asks_to_act(latest.text) or not names_action(latest.text, call):
        return False
    before = view.before(latest)[-_MAX_EVENTS:]
    looked_up = (view.identifying_values(e) for e in before if isinstance(e, ToolCall))
    if any(set(values) & set(view.identifying_values(call)) for values in looked_up):
        return True
    spoken = (e.text for e in before if isinstance(e, (UserMessage, AssistantMessage)))
    return names_values("\n".join(spoken), call, view)
