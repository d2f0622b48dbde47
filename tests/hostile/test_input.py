"""Broken and hostile requests at the door of a served monitor: the right answer, and no neighbour lost."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from otelmon.receive.wire import framed
from tests.hostile.conftest import JSON, PROTOBUF, SECOND, Target, ident
from tests.receive.build import a_group, a_span, as_json, as_protobuf

pytestmark = pytest.mark.timeout(300)
KIB, MIB = 1024, 1024 * 1024


def tool_span(target: Target, name: str, arguments: Any = "{}", **changes: Any) -> dict[str, Any]:
    """A span of one tool call, in a conversation of its own called as `name`."""
    attributes = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read_page", "gen_ai.conversation.id": name,
        "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": arguments, **changes.pop("more", {}),
    }  # fmt: skip
    times = {"start": target.begin, "end": target.begin + SECOND}
    return a_span(
        **{"trace": ident(name)[:16], "span": ident(name, "span")[:8], "attributes": attributes, **times, **changes}
    )


# -- bodies that are not what they say ------------------------------------------------------------------
def test_bytes_that_are_no_protobuf_are_refused_and_the_next_request_is_taken(target: Target) -> None:
    answer = target.post(b"\xff\xfe\x00garbage" * 100)
    assert answer.status == 400
    assert "invalid" in answer.words or "cut off" in answer.words or "number" in answer.words
    good = target.good("after-garbage")
    assert target.send([], good).refused == 0
    target.assert_unhurt(good)


def test_one_broken_span_in_protobuf_is_refused_alone(target: Target) -> None:
    good = target.good("beside-broken")
    broken = framed(1, framed(2, framed(2, b"\x0a\xff\xff\xff")))
    answer = target.post(broken + as_protobuf([a_group(*good.spans)]), spans=4)
    assert (answer.status, answer.refused) == (200, 1)
    assert "invalid_span" in answer.words
    target.assert_unhurt(good)


def test_a_body_that_is_cut_off_is_refused_whole_and_taken_when_sent_again(target: Target) -> None:
    good = target.good("cut-off")
    body = as_protobuf([a_group(*good.spans)])
    assert target.post(body[:-7]).status == 400
    assert target.post(body, spans=3).status == 200
    target.assert_unhurt(good)


def test_an_empty_request_is_fine(target: Target) -> None:
    for body, kind in (
        (b"", PROTOBUF),
        (b"{}", JSON),
        (b'{"resourceSpans": null}', JSON),
        (b'{"resourceSpans": []}', JSON),
    ):
        answer = target.post(body, kind)
        assert (answer.status, answer.refused) == (200, 0)
    target.assert_well()


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "", "application/grpc", "x" * 5000])
def test_a_wrong_content_type_is_refused_by_name(target: Target, kind: str) -> None:
    answer = target.post(as_protobuf([a_group(a_span())]), kind)
    assert answer.status == 415
    target.assert_well()


def test_protobuf_sent_as_json_and_json_sent_as_protobuf_are_refused(target: Target) -> None:
    good = target.good("mixed-up")
    groups = [a_group(*good.spans)]
    assert target.post(as_protobuf(groups), JSON).status == 400
    assert target.post(as_json(groups), PROTOBUF).status == 400
    assert target.post(as_json(groups), JSON, 3).status == 200
    target.assert_unhurt(good)


def test_a_gzip_bomb_is_refused_without_being_held(target: Target) -> None:
    bomb = gzip.compress(bytes(1 << 30), 9)
    assert len(bomb) < 2 * MIB
    before = target.monitor.peak_bytes()
    assert target.post(bomb, content_encoding="gzip").status == 413
    assert target.monitor.peak_bytes() - before < 300 * MIB
    good = target.good("after-bomb")
    assert (
        target.post(gzip.compress(as_protobuf([a_group(*good.spans)])), spans=3, content_encoding="gzip").status == 200
    )
    target.assert_unhurt(good)


def test_a_bomb_in_a_bomb_and_broken_gzip_are_refused(target: Target) -> None:
    inner = gzip.compress(gzip.compress(bytes(1 << 26)))
    assert target.post(inner, content_encoding="gzip").status == 400
    assert target.post(b"not gzip", content_encoding="gzip").status == 400
    assert target.post(gzip.compress(b"x" * 1000)[:-9], content_encoding="gzip").status == 400
    assert target.post(b"x", content_encoding="br").status == 415
    target.assert_well()


# -- spans that are not right -----------------------------------------------------------------------------
def test_base64_ids_in_json_are_refused_by_name_alone(target: Target) -> None:
    good = target.good("beside-base64")
    document = json.loads(as_json([a_group(a_span(), *good.spans)]))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = "W47/5gAAAABbjv/mAAAAAA=="
    answer = target.post(json.dumps(document).encode(), JSON, 4)
    assert (answer.status, answer.refused) == (200, 1)
    assert "base64" in answer.words
    target.assert_unhurt(good)


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_zero_ids_are_refused_alone(target: Target, kind: str) -> None:
    good = target.good(f"beside-zero-{kind}")
    answer = target.send([a_span(trace=bytes(16)), a_span(span=bytes(8))], good, kind)
    assert (answer.status, answer.refused) == (200, 2)
    assert "invalid_trace_id 1" in answer.words
    assert "invalid_span_id 1" in answer.words
    target.assert_unhurt(good)


def test_an_attribute_of_3_mb_is_kept_and_one_beyond_the_limit_is_refused_alone(target: Target) -> None:
    good = target.good("beside-large")
    large = json.dumps({"text": "x" * 3_000_000})
    spans = [tool_span(target, "large", large), tool_span(target, "too-large", "y" * (5 * MIB))]
    answer = target.send(spans, good)
    assert (answer.status, answer.refused) == (200, 1)
    assert "span_too_large" in answer.words
    target.assert_unhurt(good)
    [call] = target.calls("large")
    assert len(call["arguments"]["text"]) == 3_000_000
    assert target.calls("too-large") == []


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize("kind", [JSON])
def test_an_attribute_nested_100_deep_is_refused_alone(target: Target, kind: str) -> None:
    good = target.good(f"beside-deep-{kind}")
    answer = target.send(
        [tool_span(target, f"deep-{kind}", nested(100)), tool_span(target, f"flat-{kind}", nested(20))], good, kind
    )
    assert (answer.status, answer.refused) == (200, 1)
    assert "too_deep" in answer.words
    target.assert_unhurt(good)
    assert target.calls(f"deep-{kind}") == []
    [call] = target.calls(f"flat-{kind}")
    assert call["arguments"] == nested(20)


def test_protobuf_nested_beyond_what_parsers_carry_is_refused_alone(target: Target) -> None:
    value = framed(1, b"bottom")
    for _ in range(100):
        value = framed(5, framed(1, value))  # AnyValue.array_value.values
    span = framed(1, ident("deep")[:16]) + framed(2, ident("deep")[:8]) + framed(9, framed(1, b"a") + framed(2, value))
    good = target.good("beside-deep-protobuf")
    answer = target.post(framed(1, framed(2, framed(2, span))) + as_protobuf([a_group(*good.spans)]), spans=4)
    assert (answer.status, answer.refused) == (200, 1)
    assert "too_deep" in answer.words
    target.assert_unhurt(good)


@pytest.mark.parametrize("levels", [100, 20_000])
def test_json_text_nested_too_deep_is_kept_as_text(target: Target, levels: int) -> None:
    good, name = target.good(f"beside-deep-text-{levels}"), f"deep-text-{levels}"
    answer = target.send([tool_span(target, name, '{"a":' * levels + "1" + "}" * levels)], good)
    assert (answer.status, answer.refused) == (200, 0)
    target.assert_unhurt(good)
    [call] = target.calls(name)
    assert call["arguments_fidelity"] == "truncated"


def test_nan_is_stored_and_every_output_stays_strict_json(target: Target) -> None:
    good = target.good("beside-nan")
    spans = [
        tool_span(target, "nan", '{"amount": NaN, "rate": -Infinity, "n": 1e999}', more={"temperature": float("nan")})
    ]
    answer = target.send(spans, good)
    assert (answer.status, answer.refused) == (200, 0)
    target.assert_unhurt(good)
    [call] = target.calls("nan")
    assert call["arguments"]["amount"] in ("NaN", "nan")
    target.assert_strict("nan")


def test_a_bare_nan_in_a_json_body_is_refused_with_its_place(target: Target) -> None:
    body = as_json([a_group(a_span(attributes={"x": 1.5}))]).replace(b"1.5", b"NaN")
    answer = target.post(body, JSON)
    assert answer.status == 400
    assert "body:1:" in answer.words
    target.assert_well()


def test_lone_surrogates_are_replaced_and_lose_nothing_else(target: Target) -> None:
    good = target.good("beside-surrogate")
    span = tool_span(target, "surrogate", '{"text": "@@@", "kept": "\\\\ud83e"}')
    body = as_json([a_group(span, *good.spans)]).replace(b"@@@", b"\\ud83e half")
    answer = target.post(body, JSON, 4)
    assert (answer.status, answer.refused) == (200, 0)
    target.assert_unhurt(good)
    [call] = target.calls("surrogate")
    assert call["arguments"]["text"] == "\ufffd half"
    target.assert_strict("surrogate")


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_bytes_that_are_not_utf_8_are_replaced_and_lose_nothing_else(target: Target, kind: str) -> None:
    good, name = target.good(f"beside-cut-emoji-{kind}"), f"cut-emoji-{kind}"
    span = tool_span(target, name, '{"text": "@@@"}')
    encode = as_protobuf if kind == PROTOBUF else as_json
    answer = target.post(encode([a_group(span, *good.spans)]).replace(b"@@@", b"\xf0\x9f\xa4"), kind, 4)
    assert (answer.status, answer.refused) == (200, 0)
    assert "U+FFFD" in answer.words
    target.assert_unhurt(good)
    [call] = target.calls(name)
    assert "\ufffd" in call["arguments"]["text"]
    target.assert_strict(name)


def test_a_span_that_ends_before_it_starts_is_kept(target: Target) -> None:
    good = target.good("beside-backwards")
    span = tool_span(target, "backwards", end=target.begin - 5 * SECOND)
    answer = target.send([span], good)
    assert (answer.status, answer.refused) == (200, 0)
    target.assert_unhurt(good)
    [call] = target.calls("backwards")
    assert call["tool_name"] == "read_page"


def test_times_beyond_what_a_column_holds_are_refused_alone(target: Target) -> None:
    good = target.good("beside-late")
    answer = target.send([tool_span(target, "late", end=2**64 - 1)], good)
    assert (answer.status, answer.refused) == (200, 1)
    assert "invalid_time" in answer.words
    target.assert_unhurt(good)


def test_one_span_id_with_two_contents_is_kept_twice_and_counted(target: Target) -> None:
    good = target.good("beside-conflict")
    before = target.total("conflict")
    one, other = tool_span(target, "conflict"), tool_span(target, "conflict", '{"page": 2}')
    answer = target.send([one, other, one], good)
    assert (answer.status, answer.refused) == (200, 0)
    target.assert_unhurt(good)
    assert target.total("conflict") == before + 1
    assert len(target.calls("conflict")) == 1


def test_a_parent_that_never_comes_makes_the_run_incomplete_not_lost(target: Target) -> None:
    good = target.good("beside-orphan")
    answer = target.send([tool_span(target, "orphan", parent=b"\7" * 8)], good)
    assert (answer.status, answer.refused) == (200, 0)
    target.assert_unhurt(good)
    assert len(target.calls("orphan")) == 1
    target.wait_until_closed("orphan")
    [run] = target.runs("orphan")
    assert run["run"]["closed"] == "idle"
    assert not run["run"]["root_seen"]
    assert run["findings"] == []


def test_clocks_a_day_apart_change_no_order_and_no_verdict(target: Target) -> None:
    day = 86_400 * SECOND
    for name, skew in (("behind", -day), ("ahead", day)):
        good = target.good(f"skewed-{name}")
        for span in good.spans[1:]:
            span["start"], span["end"] = span["start"] + skew, span["end"] + skew
        other = tool_span(target, f"skew-{name}", start=target.begin + skew, end=target.begin + skew + SECOND)
        answer = target.send([other], good)
        assert (answer.status, answer.refused) == (200, 0)
        target.assert_unhurt(good)
        assert [call["tool_call_id"] for call in target.calls(good.conversation)] == ["c1", "c2"]


def test_ten_thousand_attribute_names_cost_no_series_and_no_neighbour(target: Target) -> None:
    good = target.good("beside-names")
    before = set(target.monitor.metrics())
    names = {f"attribute.{ident(n).hex()[:12]}": n for n in range(10_000)}
    answer = target.send([tool_span(target, "names", more=names)], good)
    assert (answer.status, answer.refused) == (200, 0)
    target.assert_unhurt(good)
    assert len(target.calls("names")) == 1
    assert not [series for series in set(target.monitor.metrics()) - before if "attribute" in series]


def test_hostile_names_are_shown_as_text(target: Target) -> None:
    good = target.good("beside-markup")
    markup = "<script>alert(1)</script>"
    span = tool_span(
        target, "markup", json.dumps({markup: markup}), more={"gen_ai.tool.name": markup, "gen_ai.agent.name": markup}
    )
    assert target.send([span], good).status == 200
    target.assert_unhurt(good)
    [run] = target.monitor.read("runs", conversation="markup")
    page = target.page(f"/runs/{run['run']['run_id']}")
    assert markup not in page
    assert "&lt;script&gt;" in page
