"""A write on another record than the one that was asked for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.asking import proposal_before
from otelmon.checks.lib.choice import (
    Choice,
    Target,
    about,
    choices,
    description,
    known_to_user,
    listed,
    requests,
    says,
    targets,
    written_too,
)
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.provenance_roles import leaves
from otelmon.checks.lib.recordkind import kind_of, kinds_of, shown_by
from otelmon.checks.lib.records import data_of, scalars
from otelmon.checks.lib.repeats import spans
from otelmon.checks.lib.sameness import plain_name
from otelmon.checks.lib.values import chunks, compact, fold
from otelmon.checks.lib.wording import agrees, only_thanks
from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ContextMessage, ToolCall
from otelmon.vocabulary.finding import Evidence

_LENGTHS = 2  # characters that ids of one kind may differ by
_LOOK_BACK, _NAMED = 200, 3
_LONG_ANSWER = 200  # characters; a longer yes asks for something of its own


class _Meant(msgspec.Struct, frozen=True):
    """The record the user asked for: its naming value, the words that name it, and where they were said."""

    value: str
    words: tuple[str, ...]
    position: int
    text: str
    choice: Choice | None = None


@check(on="call")
def wrong_record(call: ToolCall, view: View, params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """The user named one record, and the write went to another known one of the same kind.

    Why it matters: every id is valid, every answer is 200, and the wrong customer's order is gone.
    """
    if not view.writes(call) or call.outcome in ("failed", "denied"):
        return
    for target in targets(call, view):
        if known_to_user(target.value, call, view):
            continue
        meant = _named(target, call, view) or _described(target, call, view)
        if meant is None or _explained(meant, target, call, view):
            continue
        yield Evidence(
            summary=f"{call.tool_name} went to {target.path}={target.value!r}; the user asked for {meant.value!r} "
            f"({', '.join(meant.words)})"[:400],
            anchor=call.key,
            key=target.path,
            span_ids=spans(call, *((meant.choice.call,) if meant.choice else ())),
            details={
                "argument": target.path,
                "value": target.value,
                "asked_for": meant.value,
                "words": list(meant.words),
                "said_at": meant.position,
                "this": call_facts(call),
            },
        )
        return


def _named(target: Target, call: ToolCall, view: View) -> _Meant | None:
    """An id of the kind of the target, in what the user asked for last, or in the ticket that he handed over."""
    for position, text in _requests(call, view):
        words = [w.strip(".:?!") for w in chunks(text) if any(map(str.isdigit, w)) and len(compact(w)) > 2]
        ids = [w for w in words if _of_kind(w, target, call, view)]
        if ids:
            return _Meant(ids[0], (ids[0],), position, text) if len({compact(w) for w in ids}) == 1 else None
    return None


def _of_kind(word: str, target: Target, call: ToolCall, view: View) -> bool:
    """An id of the same kind of thing: under the same name in calls and results, or beside it in one list."""
    first, second = compact(word), compact(target.value)
    if abs(len(first) - len(second)) > _LENGTHS or first[:1].isalpha() != second[:1].isalpha():
        return False
    both = kinds_of(word, view) & (kinds_of(target.value, view) | {kind_of(target.name)})
    if not both:
        return False
    return any(both) or any(choice.place(word) is not None for choice in choices(target.value, call, view))


def _requests(call: ToolCall, view: View) -> Iterator[tuple[int, str]]:
    """Where the record may be named: the user's latest request and what he said before it that he has since only
    agreed to; text that was handed to the agent; and the text of what the user named, a ticket say."""
    latest = None
    for message in requests(call, view):
        latest = latest or message
        yield message.position, message.text
        answers = bool(proposal_before(message, view)) and (agrees(message.text) or only_thanks(message.text))
        if not answers or len(message.text) > _LONG_ANSWER:
            break
    handed = [e for e in view.before(call)[-_LOOK_BACK:] if isinstance(e, ContextMessage)]
    yield from ((message.position, message.text) for message in handed[:-3:-1])
    for word in list(_id_words(latest.text))[:_NAMED] if latest else ():
        for read in about(word, view)[:_NAMED]:
            if read.position < call.position and read.outcome == "succeeded" and not view.writes(read):
                texts = [str(v) for _, _, v in scalars(data_of(read)) if isinstance(v, str) and len(v.split()) > 3]
                yield read.position, "\n".join(texts)


def _id_words(text: str) -> Iterator[str]:
    return (w.strip(".:?!") for w in chunks(text[:20_000]) if any(map(str.isdigit, w)))


def _described(target: Target, call: ToolCall, view: View) -> _Meant | None:
    """The only record of the list that the user's words fit, where nothing he said fits the target."""
    choice = next(choices(target.value, call, view), None)
    place = choice.place(target.value) if choice else None
    if choice is None or place is None:
        return None
    message = next(iter(requests(call, view)), None)
    if message is None:
        return None
    fits = [description(message.text) & tokens for tokens in choice.tokens]
    best = max(fits, key=len)
    more, first = best - fits[place], fits.index(best)
    if not fits[place] < best or fits.count(best) != 1 or not _telling(more, first, choice):
        return None
    words = tuple(sorted(w.partition(":")[2] or w for w in more))
    return _Meant(choice.records[first].ids[0][1], words, message.position, message.text, choice)


def _telling(fit: frozenset[str], place: int, choice: Choice) -> bool:
    """A day, a number, a name or a whole value tells a record from others, or several words."""
    if len(fit) > 1 or any(w.startswith(("day:", "no:")) for w in fit):
        return True
    fields = choice.records[place].fields
    named = [fold(str(v)) for _, name, v in fields if plain_name(name) in listed("name_fields")]
    whole = {compact(str(v)) for _, _, v in fields}
    return any(w in whole or any(w in text for text in named) for w in fit)


def _explained(meant: _Meant, target: Target, call: ToolCall, view: View) -> bool:
    """True when the words except something, the record asked for leads to the other one, or is written too."""
    text = fold(meant.text)
    if says("except", text) or says("left", text) or says("all", text):
        return True
    if compact(meant.value) in {compact(str(v)) for _, _, v in leaves(call.arguments)}:
        return True
    if written_too({meant.value}, call, view):
        return True
    leads = {c.key for c in about(meant.value, view) if c.position < call.position and c.outcome == "succeeded"}
    return bool(leads & shown_by(target.value, view))
