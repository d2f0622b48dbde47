"""Evidence arranged for people: known forms are read, anything else is shown and never breaks a page."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.provenance import Lineage, Source
from otelmon.store.results import ArgumentOrigin, CallDetail, FindingDetail
from otelmon.web.evidence import MOST, arranged, comparison, fact_text, record_of
from tests.store.build import call, finding

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["arguments", "lineage", "claims", "other", "this", "times", "tried", "anchor", "tool_name"])


def found(evidence: dict[str, Any], *calls: CallDetail) -> FindingDetail:
    detail = msgspec.structs.replace(finding(), evidence=evidence)
    return FindingDetail(
        finding=detail, first_seen_unix_nano=1, retracted_unix_nano=None, incident_id=None, calls=calls
    )


def detail(**fields: Any) -> CallDetail:
    return CallDetail(call(**fields), "destructive", "additive")


def line(source: Source, path: str = "id", **fields: Any) -> Any:
    return msgspec.to_builtins(Lineage(path, "W-1", "id", source, **fields))


@given(st.dictionaries(NAMES | st.text(max_size=5), JSON, max_size=5))
def test_any_evidence_can_be_shown_and_nothing_of_it_is_lost(evidence: dict[str, Any]) -> None:
    shown = arranged(found(evidence))
    names = {name for name, _ in shown.rest}
    for name, value in evidence.items():
        assert name in names or not fact_text(value) or shown.origins or shown.claims or shown.calls


def test_every_source_has_words() -> None:
    for source in get_args(Source):
        [origin] = arranged(found({"lineage": [line(source)]})).origins
        assert origin.origin
        assert not origin.flagged


def test_values_without_a_source_come_first_and_are_marked() -> None:
    evidence = {"arguments": [line("none", "order")], "lineage": [line("user", "who", position=3, transformation="case")]}  # fmt: skip
    first, second = arranged(found(evidence)).origins
    assert (first.path, first.flagged, first.position) == ("order", True, None)
    assert (second.path, second.flagged, second.position, second.how) == ("who", False, 3, "case")
    assert arranged(found(evidence)).rest == ()


def test_half_known_forms_stay_visible() -> None:
    shown = arranged(found({"arguments": [{"path": 1}], "claims": "none", "times": 2, "same_request": False}))
    assert (shown.origins, shown.claims) == ((), ())
    assert dict(shown.rest).keys() == {"arguments", "claims", "times", "same_request"}


def test_a_call_is_shown_unless_it_stands_beside_the_finding() -> None:
    here = detail()
    facts = {"anchor": here.call.key, "tool_name": "charge_card", "outcome": "succeeded", "arguments": {"a": 1}}
    evidence = {"this": facts, "other": facts | {"anchor": "elsewhere", "trace_id": "t"}}
    [other] = arranged(found(evidence, here)).calls
    assert (other.title, other.trace_id) == ("the other call", "t")
    assert len(arranged(found(evidence)).calls) == 2


def test_lists_are_bounded() -> None:
    assert len(arranged(found({"lineage": [line("user")] * 500})).origins) == MOST


def test_the_record_is_what_names_something() -> None:
    calls = [
        detail(arguments={"order_id": "W-1", "amount": 30, "note": "", "customer": {"email": "a@example.com"}})
    ] * 2
    assert record_of(calls) == [("order_id", "W-1"), ("customer.email", "a@example.com")]
    assert record_of([detail(arguments=None), detail(arguments="text"), detail(arguments=[1])]) == []


def test_calls_are_compared_argument_by_argument() -> None:
    one, other = detail(arguments={"a": 1, "key": "x"}), detail(arguments={"a": 1, "key": "y", "more": 1})
    assert comparison([one, one]) == "The arguments are the same."
    assert comparison([one, other]) == "The arguments differ in key, more."
    assert comparison([one, other, one]) == "The arguments differ in key, more."
    assert comparison([one]) == comparison([]) == comparison([one, detail(tool_name="other")]) == ""
    assert comparison([one, detail(arguments=None)]) == ""


def test_where_the_arguments_came_from_is_shown_though_the_evidence_does_not_say() -> None:
    lineage = (
        ArgumentOrigin("order_id", "id", "result", "t:1", "verbatim or formatting", True, "get_order"),
        ArgumentOrigin("amount", "amount", "user", "s", "", False),
        ArgumentOrigin("gone", "id", "argument", "t:1", "", True, "get_order"),
    )
    last = msgspec.structs.replace(detail(), lineage=lineage)
    origins = arranged(found({"times": 2}, detail(), last)).origins
    assert [(o.path, o.value, o.origin, o.sure) for o in origins] == [
        ("order_id", "W-1", "get_order answered it", True),
        ("amount", "30", "the user said it", False),
        ("gone", "", "a call of get_order used it", True),
    ]
    assert not any(o.flagged for o in origins)
    own = arranged(found({"arguments": [line("none")]}, last)).origins
    assert [o.path for o in own] == ["id"]  # what the evidence says goes first
