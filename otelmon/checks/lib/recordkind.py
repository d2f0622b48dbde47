"""Under which names ids stand in calls and results, and which ids belong together."""

from __future__ import annotations

from functools import lru_cache
from weakref import WeakKeyDictionary

from otelmon.checks.lib.provenance_roles import name_words
from otelmon.checks.lib.records import data_of, is_id_name, scalars
from otelmon.checks.lib.values import compact
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall

MAX_IDS = 50_000  # ids of one conversation that are remembered
_LONGEST = 80  # characters of an id
_GENERIC = frozenset(("id", "number", "no", "nr", "ref", "reference", "key", "code", "uuid", "guid", "new", "old"))


class _Ids:
    """The ids of a conversation: the kinds of things they name, and the calls whose results hold them."""

    def __init__(self, view: View) -> None:
        self.kinds: dict[str, set[str]] = {}
        self.shown: dict[str, set[str]] = {}
        for call in view.calls:
            for _, name, value in scalars(call.arguments):
                self._learn(name, value, None)
            if call.outcome == "succeeded" and len(self.kinds) < MAX_IDS:
                for _, name, value in scalars(data_of(call), 2_000):
                    self._learn(name, value, call)

    def _learn(self, name: str, value: object, call: ToolCall | None) -> None:
        if isinstance(value, bool) or not isinstance(value, str | int) or len(self.kinds) >= MAX_IDS:
            return
        if len(text := str(value)) > _LONGEST or not any(map(str.isdigit, text)):
            return
        body = compact(text)
        if call is not None:
            self.shown.setdefault(body, set()).add(call.key)
        if is_id_name(name):
            self.kinds.setdefault(body, set()).add(kind_of(name))


_REMEMBERED: WeakKeyDictionary[View, _Ids] = WeakKeyDictionary()


def _known(view: View) -> _Ids:
    known = _REMEMBERED.get(view)
    if known is None:
        known = _REMEMBERED[view] = _Ids(view)
    return known


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str:
    """What kind of thing an id of this name belongs to: `order_id`, `orderIds` -> order; "" for a bare `id`."""
    return " ".join(w for w in name_words(name) if w not in _GENERIC)


def kinds_of(value: str, view: View) -> set[str]:
    """The kinds of things a value names in calls and results; empty when none names it."""
    return _known(view).kinds.get(compact(value), set())


def shown_by(value: str, view: View) -> set[str]:
    """Keys of the calls whose results hold a value."""
    return _known(view).shown.get(compact(value), set())
