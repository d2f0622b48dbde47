"""Whether a server answered a repeat from memory instead of doing it again."""

from __future__ import annotations

from typing import Any

from otelmon.checks.lib.sameness import plain_name
from otelmon.checks.lib.verbs import name_words, words
from otelmon.vocabulary.event import ToolCall

_MARKERS = words(
    """replayed replay idempotentreplay idempotentreplayed isreplay duplicate isduplicate deduplicated deduped
    alreadyexists alreadyprocessed alreadydone alreadysent cached fromcache"""
)
_ID_KEYS = frozenset(("id", "uuid", "guid", "ref", "reference"))


def says_replayed(result: Any) -> bool:
    """True when a result carries a mark such as `"replayed": true` at its top."""
    if not isinstance(result, dict):
        return False
    return any(plain_name(str(key)) in _MARKERS and value in (True, "true", 1) for key, value in result.items())


def same_creation(first: ToolCall, second: ToolCall) -> bool:
    """True when both results name the same created record: the second made nothing new."""
    mine, theirs = _created_ids(first), _created_ids(second)
    return bool(mine) and mine == theirs


def _created_ids(call: ToolCall) -> dict[str, str]:
    """Ids that the server made up: named like one, and not handed in with the arguments."""
    if not isinstance(call.result, dict):
        return {}
    things = {w.removesuffix("s") for w in name_words(call.tool_name)}
    found: dict[str, str] = {}
    for key, value in call.result.items():
        name = name_words(str(key))
        named = bool(name) and (name[-1] in _ID_KEYS and (len(name) == 1 or name[0] in things))
        if named and isinstance(value, str | int) and not isinstance(value, bool):
            found[str(key)] = str(value)
    given = repr(call.arguments) if found else ""
    return {key: value for key, value in found.items() if value not in given}
