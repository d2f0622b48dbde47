"""Decoding of arguments and payloads: what the model wrote, what the wire added, what was cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.assemble.values import (
    MAX_DEPTH,
    Decoded,
    IncompleteError,
    TooDeepError,
    bind,
    clean_text,
    decode_arguments,
    decode_payload,
    depth_of,
    hidden,
    looks_cut,
    parse_json,
    parse_repr,
    plain,
    stable_bytes,
)

SIMPLE = {"a": 1}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, Decoded(None, None, "absent")),
        (SIMPLE, Decoded(SIMPLE, None, "exact")),
        ('{"a": 1}', Decoded(SIMPLE, None, "exact")),
        (b'{"a": 1}', Decoded(SIMPLE, None, "exact")),
        ("[1, 2]", Decoded([1, 2], None, "exact")),
        ("", Decoded({}, None, "decoded")),
        ("null", Decoded({}, None, "decoded")),
        (json.dumps('{"a": 1}'), Decoded(SIMPLE, json.dumps('{"a": 1}'), "repaired")),
        (json.dumps(json.dumps('{"a": 1}')), Decoded(SIMPLE, json.dumps(json.dumps('{"a": 1}')), "repaired")),
        ("{'a': 1, 'b': (1, None)}", Decoded({"a": 1, "b": [1, None]}, None, "decoded")),
        ('{"a": 1', Decoded(None, '{"a": 1', "exact")),
        ('{"a": 1}}', Decoded(None, '{"a": 1}}', "exact")),
        ("ORD-1", Decoded(None, "ORD-1", "exact")),
        ('"ORD-1"', Decoded("ORD-1", '"ORD-1"', "exact")),
        ("__REDACTED__", Decoded(None, "__REDACTED__", "redacted")),
        ("[Scrubbed due to 'password']", Decoded(None, "[Scrubbed due to 'password']", "redacted")),
        ("sha256:" + "ab" * 32, Decoded(None, "sha256:" + "ab" * 32, "hashed")),
        ("[" * 200 + "]" * 200, Decoded(None, "[" * 200 + "]" * 200, "truncated")),
    ],
)
def test_arguments_are_decoded_with_their_fidelity(raw: Any, expected: Decoded) -> None:
    assert decode_arguments(raw) == expected


def test_what_a_limit_cut_is_never_the_models_fault() -> None:
    assert decode_arguments('{"a": "xxx', cut=True) == Decoded(None, '{"a": "xxx', "truncated")
    assert decode_arguments('{"a": "xxx...[truncated]', cut=True).fidelity == "truncated"
    # Broken in the middle is not cut at the end.
    assert decode_arguments('{"a": 1}}', cut=True).fidelity == "exact"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("ORD-1", Decoded("ORD-1", None, "decoded")),
        ("42", Decoded(42, None, "exact")),
        ('"ORD-1"', Decoded("ORD-1", None, "decoded")),
        ('{"a": ', Decoded(None, '{"a": ', "exact")),
    ],
)
def test_a_lone_argument_may_be_bare(raw: str, expected: Decoded) -> None:
    assert decode_arguments(raw, scalar=True) == expected


def test_big_integers_stay_exact() -> None:
    assert decode_arguments('{"id": 9007199254740993}').value == {"id": 9007199254740993}
    assert parse_json("18446744073709551615") == 18446744073709551615
    # Beyond what the bus can carry the digits are kept.
    assert parse_json("[123456789012345678901234567890]") == ["123456789012345678901234567890"]
    assert len(str(plain(10**5000))) > 4_000


def test_json_that_others_refuse_is_read() -> None:
    assert parse_json('{"a": NaN, "b": -Infinity}') == {"a": "NaN", "b": "-Infinity"}
    assert parse_json('{"a": 1e999}') == {"a": "inf"}
    assert parse_json('"\\ud83d"') == "�"


def test_json_errors_say_which_kind_they_are() -> None:
    with pytest.raises(IncompleteError):
        parse_json('{"a": [1, 2')
    with pytest.raises(TooDeepError):
        parse_json('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1))
    with pytest.raises(TooDeepError):
        parse_json("[" * 100_000)
    with pytest.raises(ValueError, match="malformed"):
        parse_json("{a: 1}")


def test_depth_is_counted_in_levels() -> None:
    assert depth_of(1) == 0
    assert depth_of([]) == 1
    assert depth_of({"a": [{"b": 1}]}) == 3
    wide = parse_json(json.dumps([[1]] * (MAX_DEPTH * 2)))
    assert len(wide) == MAX_DEPTH * 2


def test_reprs_are_bounded_and_are_no_code() -> None:
    assert parse_repr("{'a': {1, 2}, 3: b'x'}") == {"a": [1, 2], "3": "x"}
    for text in ("__import__('os')", "{'a': f()}", "[" * 5_000, "{'a': '" + "x" * 70_000 + "'}", "1 + 1", "('\\d', "):
        with pytest.raises(ValueError, match="not a literal"):
            parse_repr(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"ok": true}', {"ok": True}),
        (json.dumps('{"ok": true}'), {"ok": True}),
        ("{'ok': True}", {"ok": True}),
        ("42", 42),
        ("done", None),
        ("[Note] not a list", None),
        ('{"ok": tr', None),
        ("", None),
    ],
)
def test_payloads_are_opened_when_they_hold_something(text: str, value: Any) -> None:
    assert decode_payload(text) == value


@pytest.mark.parametrize(
    ("size", "others", "dropped", "cut"),
    [
        (64, [64, 10], 0, True),
        (100, [100], 0, True),
        (4096, [4096, 900], 0, True),
        (97, [97, 97], 0, True),
        (97, [97, 20], 0, False),
        (64, [64, 200], 0, False),
        (16, [16], 0, False),
        (97, [97], 3, True),
    ],
)
def test_a_limit_shows_in_the_lengths(size: int, others: list[int], dropped: int, cut: bool) -> None:
    assert looks_cut("x" * size, others, dropped) is cut


@pytest.mark.parametrize("text", ["abc...", "abc…", "abc [truncated]", "abc<truncated 12 bytes>", "abc (truncated)"])
def test_a_cut_marker_is_known(text: str) -> None:
    assert looks_cut(text, [99], 0)


def test_stand_ins_are_told_from_content() -> None:
    assert hidden("<REDACTED>") == "redacted"
    assert hidden("***") == "redacted"
    assert hidden("The file was redacted by the court") is None
    assert hidden('{"note": "[REDACTED]"}') is None


@pytest.mark.parametrize(
    ("arguments", "bound"),
    [
        ("ORD-1", {"id": "ORD-1"}),
        (["ORD-1"], {"id": "ORD-1"}),
        ({"id": 1}, {"id": 1}),
        (None, None),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_positional_arguments_get_the_names_of_the_schema(arguments: Any, bound: Any) -> None:
    assert bind(arguments, {"properties": {"id": {}}}) == bound


def test_binding_needs_a_schema_that_is_plain() -> None:
    assert bind("x", None) == "x"
    assert bind("x", {"properties": {"a": {}, "b": {}}}) == "x"
    assert bind(["x"], {"properties": {"a": {}, "b": {}}}) == {"a": "x"}
    assert bind("x", {"properties": []}) == "x"


@given(JSON_VALUES.filter(lambda v: v not in (None, "") and not isinstance(v, str)))
def test_one_layer_of_json_is_exact(value: Any) -> None:
    assert decode_arguments(json.dumps(value)) == Decoded(plain(value), None, "exact")


@given(st.text() | st.binary() | JSON_VALUES)
def test_decoding_never_fails(value: Any) -> None:
    decoded = decode_arguments(value)
    assert decode_arguments(value, cut=True, scalar=True).fidelity
    assert decoded.value is not None or decoded.text is not None or decoded.fidelity in ("absent", "decoded")
    if isinstance(value, str):
        decode_payload(value)


@given(st.text(alphabet=st.characters(), max_size=20))
def test_clean_text_is_always_utf8(text: str) -> None:
    clean_text(text).encode("utf-8")


@given(st.dictionaries(st.text(), st.integers()))
def test_equal_objects_have_equal_bytes(value: dict[str, int]) -> None:
    assert stable_bytes(value) == stable_bytes(dict(reversed(value.items())))


def test_any_value_becomes_plain() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 5):
        deep = [deep]
    made = plain({1: {b"x"}, "f": float("nan"), "t": (1, 2), "o": object, "deep": deep})
    assert made["1"] == ["x"]
    assert made["f"] == "nan"
    assert made["t"] == [1, 2]
    assert isinstance(made["o"], str)
    assert "too deep" in json.dumps(made["deep"])
