"""Whether a part of a list is used as the whole: by a write, or by what a message says."""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite

from otelmon.checks.lib.asking import request_text
from otelmon.checks.lib.claims import sentences
from otelmon.checks.lib.claims_language import language_of
from otelmon.checks.lib.paging import (
    Listing,
    asked_for,
    contents,
    limit_of,
    listing_key,
    patterns,
    sorted_by,
    unfinished,
)
from otelmon.checks.lib.provenance_roles import leaves
from otelmon.checks.lib.records import data_of, is_id_name, lists_of
from otelmon.checks.lib.values import compact, fold, numbers_of
from otelmon.checks.lib.verbs import classify_name, name_words
from otelmon.checks.view import View
from otelmon.vocabulary.event import AssistantMessage, ToolCall

_SHORTEST = 2  # characters of a value that tells anything
_MAX_VALUES = 200


def says_any(section: str, kind: str, text: str) -> re.Match[str] | None:
    """The first place where a folded text has a wording of the kind."""
    return next((found for pattern in patterns(section, kind) if (found := pattern.search(text))), None)


# -- writes ------------------------------------------------------------------------------------------
def derived_from(listing: Listing, call: ToolCall, view: View) -> str:
    """Why the write rests on the listing being complete; "" when it does not."""
    page = listing.pages[-1]
    if page.turn != call.turn or (not call.turn and page.run_id != call.run_id):
        return ""
    sent = {compact(str(value)) for _, _, value in leaves(call.arguments)}
    if _missing_there(listing, call, sent, view):
        return "what was looked for is not on the pages that were fetched"
    if _all_of_it(listing, call, sent, view):
        return "it was meant for all of them"
    return ""


def _missing_there(listing: Listing, call: ToolCall, sent: set[str], view: View) -> bool:
    """The write makes what was looked for and not found."""
    looked_for = {compact(value) for _, value in asked_for(listing.pages[-1]) if len(compact(value)) >= _SHORTEST}
    there = contents(listing, view)
    if not (looked_for & sent) or looked_for & sent & there:
        return False
    if listing.seen == 0 and view.effect(call).repeat == "additive":
        return True
    return _on_condition(call, view)


def _on_condition(call: ToolCall, view: View) -> bool:
    """The user wants it only if there is none, or the assistant has just said that there is none."""
    if says_any("user", "unless", fold(request_text(call, view))):
        return True
    said = [e for e in view.before(call)[-6:] if isinstance(e, AssistantMessage) and e.run_id == call.run_id]
    return bool(said) and says_any("message", "none", fold(said[-1].text)) is not None


def _all_of_it(listing: Listing, call: ToolCall, sent: set[str], view: View) -> bool:
    """The user wants it done to all, and this is the last write to something of the listing."""
    asked = fold(request_text(call, view))
    if not says_any("user", "all", asked) or says_any("user", "part", asked):
        return False
    if not contents(listing, view) & {value for value in sent if len(value) > _SHORTEST}:
        return False
    later = (c for c in view.calls[_after(call, view) :] if c.tool_name == call.tool_name and c.turn == call.turn)
    return not any(view.writes(c) for c in later) and _never_finished(listing, call, view)


def _never_finished(listing: Listing, call: ToolCall, view: View) -> bool:
    """True when the rest was not fetched until the end of the run either."""
    end, key = view.run_events(call.run_id)[-1].position + 1, listing_key(listing.pages[-1])
    return any(listing_key(still.pages[-1]) == key for still in unfinished(end, view))


def _after(call: ToolCall, view: View) -> int:
    low, high = 0, len(view.calls)
    while low < high:
        middle = (low + high) // 2
        if view.calls[middle].position <= call.position:
            low = middle + 1
        else:
            high = middle
    return low


# -- messages ----------------------------------------------------------------------------------------
def treated_as_whole(listing: Listing, message: AssistantMessage, view: View) -> str:
    """The sentence that speaks of all there is, from a part of it; "" when there is none, or when the message
    says that it is a part, or the user wanted no more."""
    tongue, text = language_of(message.text), fold(message.text).replace("’", "'")
    if says_any("message", "hedged", text) or _names_total(listing, text) or _wanted_a_part(listing, message, view):
        return ""
    things = _things(listing, message, view)
    for _, sentence in sentences(text, tongue):
        if sentence.rstrip().endswith("?") or not _about(sentence, things):
            continue
        if _whole(sentence, listing, things):
            return sentence
    return ""


def _whole(sentence: str, listing: Listing, things: frozenset[str]) -> bool:
    if numbers_of(sentence).numbers & _sums(listing):
        return True
    for pattern in patterns("message", "count"):
        found = pattern.search(sentence)
        number = next(filter(None, found.groupdict().values()), "") if found else ""
        if listing.seen > 0 and str(listing.seen) in numbers_of(number).numbers:
            return True
    all_ = says_any("message", "all", sentence)
    if says_any("message", "none", sentence) or (all_ and _about(_phrase(sentence[all_.start() :]), things)):
        return True
    return not sorted_by(listing.pages[-1]) and says_any("message", "most", sentence) is not None


def _sums(listing: Listing) -> frozenset[str]:
    """What the values of a field come to over the pages that were fetched, where no single value is as large."""
    values: dict[str, list[Decimal]] = {}
    for page in listing.pages:
        for records in lists_of(data_of(page)):
            for field, name, value in (scalar for record in records for scalar in record.fields):
                countable = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
                if countable and not is_id_name(name):
                    values.setdefault(field, []).append(Decimal(str(value)))
    sums = (sum(each) for each in values.values() if len(each) > 1 and max(each) < sum(each))
    return frozenset(f"{total.normalize():f}" for total in sums if total)


def _phrase(text: str) -> str:
    """What `all` or `every` is said of: the next words, as far as an `of` in their midst."""
    words = text.split()[:7]
    end = next((n for n, word in enumerate(words) if n > 1 and word in ("of", "de", "von")), len(words))
    return " ".join(words[:end])


def _names_total(listing: Listing, text: str) -> bool:
    total = listing.part.total
    return total is not None and re.search(rf"(?<![\w.,]){total}(?![\w]|[.,]\d)", text.replace(",", "")) is not None


def _wanted_a_part(listing: Listing, message: AssistantMessage, view: View) -> bool:
    asked = view.latest_user_message(message)
    text = fold(asked.text) if asked else ""
    if says_any("user", "part", text) and not says_any("user", "all", text):
        return True
    limit = limit_of(listing.pages[-1])
    return limit is not None and re.search(rf"(?<!\w){limit}(?!\w)", text) is not None


def _things(listing: Listing, message: AssistantMessage, view: View) -> frozenset[str]:
    """Beginnings of the words that say what is listed: of the tool's name and of what the user asked."""
    named = [w for w in name_words(listing.pages[-1].tool_name) if classify_name(w).effect == "unknown"]
    asked = view.latest_user_message(message)
    said = re.findall(r"[^\W\d_]{4,}", fold(asked.text)) if asked else []
    return frozenset(w[:4] for w in (*named, *said[:_MAX_VALUES]) if len(w) > 3)


def _about(sentence: str, things: frozenset[str]) -> bool:
    return any(w[:4] in things for w in re.findall(r"[^\W\d_]{4,}", sentence))
