"""Refusals of validators, as they word them, against the arguments that were sent."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.lib.refusals import MAX_NAMES, refused_arguments


@pytest.mark.parametrize(
    ("text", "arguments", "found"),
    [
        ("1 validation error for Guest\ndob\n  Field required [type=missing, input_value={'a': 1}]", {"birth": 1}, [("dob", "missing")]),
        ("2 validation errors for Pay\nid\n  Field required\namount\n  Field required", {"pays": [{"x": 1}]}, [("id", "missing"), ("amount", "missing")]),
        ("1 validation error for Call\nguests.0.dob\n  Field required", {"guests": [{"x": 1}]}, [("dob", "missing")]),
        ("'city' is a required property", {"town": "Lima"}, [("city", "missing")]),
        ("data must have required property 'city'", {"town": "Lima"}, [("city", "missing")]),
        ("region\n  Extra inputs are not permitted [type=extra_forbidden]", {"address": {"region": 1}}, [("region", "unknown")]),
        ("find() got an unexpected keyword argument 'lang'", {"q": 1, "lang": "de"}, [("lang", "unknown")]),
        ("Additional properties are not allowed ('lang' was unexpected)", {"lang": "de"}, [("lang", "unknown")]),
        ("top_n\n  Input should be a valid integer [type=int_parsing]", {"top_n": "five"}, [("top_n", "wrong")]),
        ("f() missing 2 required positional arguments: 'a' and 'b'", {}, [("a", "missing"), ("b", "missing")]),
        # One of two guests lacks a date of birth; the other has it, so that only the unknown key tells.
        ("dob\n  Field required\nborn\n  Extra inputs are not permitted", {"guests": [{"dob": 1}, {"born": 1}]}, [("dob", "missing"), ("born", "unknown")]),
    ],
)  # fmt: skip
def test_what_validators_say(text: str, arguments: Any, found: list[tuple[str, str]]) -> None:
    assert [(refused.name, refused.kind) for refused in refused_arguments(text, arguments)] == found


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (None, {"a": 1}),
        ("", {"a": 1}),
        ("Error: order not found", {"a": 1}),
        ("All fields are valid. Input should be short.", {"a": 1}),
        # A failure inside the server: what it lacked was sent, what it did not know was not.
        ("dob\n  Field required", {"guest": {"dob": "1990-01-01"}}),
        ("save() got an unexpected keyword argument 'tenant'", {"a": 1}),
        ("rows\n  Input should be a valid list", {"a": 1}),
        ("'city' is a required property", ["a"]),
    ],
)
def test_what_is_no_refusal_of_these_arguments(text: str | None, arguments: Any) -> None:
    assert refused_arguments(text, arguments) == []


def test_names_are_bounded_and_depth_is() -> None:
    text = "\n".join(f"'n{i}' is a required property" for i in range(100))
    assert len(refused_arguments(text, {"a": 1})) == MAX_NAMES
    deep: dict[str, Any] = {"lang": 1}
    for _ in range(50):
        deep = {"a": deep}
    assert refused_arguments("unexpected keyword argument 'lang'", deep) == []
