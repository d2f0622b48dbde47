"""A write on one of several records that the user's words fit equally, without asking which."""

from __future__ import annotations

import re
from collections.abc import Iterator

from otelmon.checks.lib.choice import (
    Choice,
    Target,
    choices,
    description,
    is_undecided,
    known_to_user,
    listed,
    looked_at_since,
    policy_says,
    requests,
    says,
    targets,
    written_too,
)
from otelmon.checks.lib.pairs import call_facts
from otelmon.checks.lib.provenance_roles import leaves
from otelmon.checks.lib.repeats import spans
from otelmon.checks.lib.sameness import plain_name
from otelmon.checks.lib.values import chunks, compact, fold
from otelmon.checks.lib.verbs import name_words
from otelmon.checks.registry import NoParams, check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence, Severity

_DEFINITE = (
    r"(?:the|my|our|his|her|their|your|this|that|el|la|mi|su|tu|der|die|das|den|mein|meine|meinen|meiner|unser\w*)"
)
_STATES = frozenset(
    ("status", "state", "stage", "active", "open", "closed", "type", "kind", "estado", "tipo", "zustand", "typ")
)

_LOOK_BACK, _MAX_TEXT = 40, 2_000  # events, and characters of a text, that are read


@check(on="call")
def ambiguous_selection(call: ToolCall, view: View, params: NoParams) -> Iterator[Evidence]:  # noqa: ARG001
    """A look-up gave several records that fit what the user said, and the agent took one without asking.

    Why it matters: the first hit is somebody else's record as often as not.
    """
    if not view.writes(call) or call.outcome in ("failed", "denied"):
        return
    for target in targets(call, view):
        asked = _undecided_text(target, call, view)
        if asked is not None:
            yield _evidence(target, _ids_like(target.value, asked.result_text or ""), asked, call, None)
            return
        choice = next(choices(target.value, call, view), None)
        if choice is None or choice.call.turn != call.turn or (not call.turn and choice.call.run_id != call.run_id):
            continue
        equal, sure = _equal_matches(choice, target, call, view)
        if equal:
            yield _evidence(target, equal, choice.call, call, None if sure else "medium")
            return


def _evidence(target: Target, equal: list[str], asked: ToolCall, call: ToolCall, severity: Severity | None) -> Evidence:
    return Evidence(
        summary=f"{call.tool_name} took {target.path}={target.value!r}, one of {len(equal)} that {asked.tool_name} "
        "found for the same words, and nobody was asked",
        anchor=call.key,
        key=target.path,
        span_ids=spans(call, asked),
        severity=severity,
        details={
            "argument": target.path,
            "value": target.value,
            "matches": equal,
            "this": call_facts(call),
            "other": call_facts(asked),
        },
    )


def _undecided_text(target: Target, call: ToolCall, view: View) -> ToolCall | None:
    """The look-up just before that says in plain text that it found several, this one among them."""
    latest = view.latest_user_message(call)
    for event in reversed(view.before(call)[-_LOOK_BACK:]):
        if latest is None or event.position < latest.position:
            return None
        if not isinstance(event, ToolCall) or isinstance(event.result, dict | list):
            continue
        text = (event.result_text or "")[:_MAX_TEXT]
        if not view.writes(event) and says("undecided", fold(text)) and len(_ids_like(target.value, text)) > 1:
            chosen = says("left", fold(latest.text)) or known_to_user(target.value, call, view) or policy_says(view)
            return None if chosen else event
    return None


def _ids_like(value: str, text: str) -> list[str]:
    """The ids of a text that look like a value, which is one of them; else none."""
    shape = re.sub(r"\d", "0", compact(value))
    found = [w.strip(".:") for w in chunks(text) if re.sub(r"\d", "0", compact(w)) == shape]
    return list(dict.fromkeys(found)) if any(compact(w) == compact(value) for w in found) else []


def _equal_matches(choice: Choice, target: Target, call: ToolCall, view: View) -> tuple[list[str], bool]:
    """The naming values of the records that fit as well as the one taken, empty when the choice was no guess; and
    whether they bear one name, or the result says that it is undecided."""
    said = requests(call, view)[:1]
    place = choice.place(target.value)
    if not said or place is None:
        return [], False
    text = fold(said[0].text)
    if says("left", text) or says("all", text) or known_to_user(target.value, call, view) or policy_says(view):
        return [], False
    if is_undecided(choice):
        rivals = _undecided(choice, place, said[0].text)
    else:
        rivals = _namesakes(choice, place, said[0].text, proper=_makes_something(call, view))
    sure = len(rivals) > 1
    rivals = rivals if sure else _described(choice, place, said[0].text)
    if _named_exactly(choice, place, text):
        return [], False
    others = {compact(v) for n in rivals if n != place for _, v in choice.records[n].ids[:1]}
    if (
        not others
        or _indefinite(choice, text)
        or looked_at_since(choice, call, view)
        or written_too(others, call, view)
    ):
        return [], False
    return [choice.records[n].ids[0][1] for n in rivals], sure


def _undecided(choice: Choice, place: int, text: str) -> list[int]:
    """All of what the result hesitates between, unless the user's words fit the one taken best."""
    fits = [len(_told_apart(choice, n, text)) for n in range(len(choice.records))]
    return [] if fits[place] == max(fits) and fits.count(max(fits)) == 1 else list(range(len(fits)))


def _makes_something(call: ToolCall, view: View) -> bool:
    """A new thing made of one of a kind: what is ordered may be any of it, unless it has a name of its own."""
    effect = view.effect(call)
    return effect.repeat == "additive" and effect.effect != "external_send"


def _namesakes(choice: Choice, place: int, text: str, proper: bool) -> list[int]:
    """The records of which the name has the words that were looked for, and that nothing else tells apart."""
    asked = {compact(str(v)) for _, _, v in leaves(choice.call.arguments)}
    wanted = {w for w in description(text) if any(w in value for value in asked) and w.isalpha()}
    if proper and not any(re.search(rf"(?<=[a-z,] ){w.capitalize()}", text) for w in wanted):
        return []
    named = [n for n, record in enumerate(choice.records) if wanted and _bears(record.fields, wanted, asked)]
    if place not in named or len(named) < 2:
        return []
    mine = _told_apart(choice, place, text)
    return [n for n in named if _told_apart(choice, n, text) >= mine]


def _described(choice: Choice, place: int, text: str) -> list[int]:
    """The records that `my order` fits equally: of one kind and in one state."""
    things = {w.removesuffix("s") for w in name_words(choice.call.tool_name) if len(w) > 3}
    if not any(re.search(rf"\b{_DEFINITE}\s+(?:[\w-]+\s+){{0,2}}{re.escape(w)}\b(?!-)", fold(text)) for w in things):
        return []
    mine, state = _told_apart(choice, place, text), _state(choice, place)
    fits = [
        n for n in range(len(choice.records)) if _told_apart(choice, n, text) >= mine and _state(choice, n) == state
    ]
    better = any(_told_apart(choice, n, text) > mine for n in range(len(choice.records)))
    return [] if better else fits


def _state(choice: Choice, place: int) -> list[str]:
    return sorted(str(v) for _, name, v in choice.records[place].fields if set(name_words(name)) & _STATES)


def _named_exactly(choice: Choice, place: int, text: str) -> bool:
    """Of all names in the list only that of the record taken stands in the text as a whole."""
    names = [
        [fold(str(v)) for _, name, v in r.fields if plain_name(name) in listed("name_fields")] for r in choice.records
    ]
    told = [any(re.search(rf"(?<!\w){re.escape(n)}(?![\w@])", text) for n in mine if len(n) > 2) for mine in names]
    return told[place] and told.count(True) == 1


def _bears(fields: tuple[tuple[str, str, object], ...], wanted: set[str], asked: set[str]) -> bool:
    """A name that has all the words, or an address that is what was looked for."""
    texts = [fold(str(v)) for _, name, v in fields if plain_name(name) in listed("name_fields")]
    if any("@" in text and compact(text) in asked for text in texts):
        return True
    return wanted <= set(re.findall(r"[^\W_]+", " ".join(text for text in texts if "@" not in text)))


def _told_apart(choice: Choice, place: int, text: str) -> frozenset[str]:
    """What the user said that fits this record and not every one."""
    return description(text) & choice.tokens[place]


def _indefinite(choice: Choice, text: str) -> bool:
    """`a hotel`, `some driver`: any of the kind will do."""
    things = {w.removesuffix("s") for w in name_words(choice.call.tool_name) if len(w) > 3}
    return any(
        re.search(rf"\b(?:an?|some|any|un|una|ein|eine|einen)\s+(?:[\w-]+\s+){{0,2}}{re.escape(w)}", text)
        for w in things
    )
