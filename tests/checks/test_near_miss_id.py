"""near_miss_id beyond its inline tests: what is near, what is named, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib import nearness
from otelmon.checks.near_miss_id import Params, near_miss_id
from otelmon.checks.ungrounded_argument import Params as Ungrounded
from otelmon.checks.ungrounded_argument import ungrounded_argument
from otelmon.checks.view import View
from otelmon.rules.evaluate import evaluate
from otelmon.rules.loader import builtin_rules_dir, load_rule
from otelmon.vocabulary.finding import Evidence
from tests.checks.build import view


def evidence(seen: View, **params: Any) -> list[Evidence]:
    return [found for call in seen.calls for found in near_miss_id(call, seen, Params(**params))]


def cancel(**arguments: Any) -> dict[str, Any]:
    return {"tool": "cancel_order", "args": arguments, "result": {"ok": True}}


def test_all_near_ids_are_named_as_they_were_written_nearest_first() -> None:
    seen = view({"user": "Orders #A-48213, (A-48214) and B-90000, please."}, cancel(order_id="A-48212"))
    [found] = evidence(seen)
    assert [known["known"] for known in found.details["known"]] == ["A-48213", "A-48214"]
    assert {known["edits"] for known in found.details["known"]} == {1}
    assert "'A-48213', 'A-48214'" in found.summary


@pytest.mark.parametrize("written", ["A-48213", "a48213", "#A-48213", "A 48213", "A_48213"])
def test_formatting_is_no_difference(written: str) -> None:
    assert evidence(view({"user": "Cancel order A-48213."}, cancel(order_id=written))) == []


def test_only_what_was_known_before_the_call_is_near() -> None:
    seen = view(cancel(order_id="A-48212"), {"user": "I meant A-48213."})
    assert evidence(seen) == []


def test_a_slip_replaces_the_invented_value_and_other_invented_values_stay() -> None:
    rules = [load_rule(builtin_rules_dir() / f"{name}.yaml") for name in ("near_miss_id", "ungrounded_argument")]
    asked = {"user": "Cancel order A-48213."}
    alone = evaluate(rules, view(asked, cancel(order_id="A-48212")))
    both = evaluate(rules, view(asked, cancel(order_id="A-48212", fee=731.55)))
    assert [f.rule_id for f in alone.findings] == ["near_miss_id"]
    assert sorted(f.rule_id for f in both.findings) == ["near_miss_id", "ungrounded_argument"]
    [invented] = ungrounded_argument(both_call(), both_view(), Ungrounded())
    assert invented.details["argument"] == "fee"


def both_view() -> View:
    return _BOTH


_BOTH = view({"user": "Cancel order A-48213."}, cancel(order_id="A-48212", fee=731.55))


def both_call() -> Any:
    return _BOTH.calls[0]


def test_a_conversation_of_invented_values_is_compared_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearness, "MAX_LOOKUPS", 3)
    calls = [cancel(order_id=f"A-4821{n}") for n in range(4, 9)]
    seen = view({"user": "Cancel order A-48213."}, *calls)
    assert len(evidence(seen)) == 3


@given(st.text(alphabet="ab-0123", min_size=1, max_size=12), st.text(alphabet="ab-0123", min_size=1, max_size=12))
def test_what_the_user_said_is_never_a_slip(said: str, other: str) -> None:
    seen = view({"user": f"Cancel {said} and {other}."}, cancel(order_id=said))
    assert [e for e in evidence(seen) if e.details["known"][0]["edits"]] == []
