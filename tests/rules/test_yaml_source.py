"""Strict YAML: what is read as what, what is refused, and where a message says it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.rules.yaml_source import decode, parse_yaml, read_yaml
from otelmon.vocabulary.errors import UserError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("Yes", "Yes"), ("on", "on"), ("off", "off"), ("y", "y"),
        ("1:30", "1:30"), ("2026-01-31", "2026-01-31"), ("007", "007"), ("0x1F", "0x1F"), ("1_000", "1_000"),
        ("true", True), ("False", False), ("tRue", "tRue"), ("null", None), ("~", None), ("", None),
        ("12", 12), ("-3", -3), ("+4", 4), ("0", 0), ("1.5", 1.5), ("1e3", 1000.0), (".5", ".5"), ("1.", "1."),
        ("9" * 60, "9" * 60), (".inf", ".inf"), (".nan", ".nan"),
        ("'12'", "12"), ('"true"', "true"), ("'null'", "null"), ("[a, 1, {b: no}]", ["a", 1, {"b": "no"}]),
    ],
)  # fmt: skip
def test_plain_words_are_read_as_json_would(text: str, value: Any) -> None:
    read = parse_yaml(f"key: {text}").data["key"]
    assert read == value
    assert type(read) is type(value)


def test_keys_are_always_text() -> None:
    assert parse_yaml("{4: high, no: 1, true: 2}").data == {"4": "high", "no": 1, "true": 2}


def test_an_alias_stands_for_what_it_names() -> None:
    assert parse_yaml("a: &x {b: 1}\nc: *x").data == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "f:2:1: a is given twice (first in line 1); expected each key once; remove one"),
        ("x:\n  b: {c: 1, c: 2}", "f:2:13: c is given twice (first in line 2); expected each key once; remove one"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "f:3:3: a merge key (<<); expected the values themselves; write them out again"),
        ("? [a]\n: 1", "f:1:3: a key that is a list or a map; expected text"),
        ("a: !!python/name:os.system x", "f:1:4: tag tag:yaml.org,2002:python/name:os.system; expected plain YAML without tags; remove the tag"),
        ("a: !mine x", "f:1:4: tag !mine; expected plain YAML without tags; remove the tag"),
        ("a: b: c", "f:1:5: is not YAML: mapping values are not allowed in this context"),
        ("a: *x", "f:1:4: is not YAML: found undefined alias"),
        ("--- 1\n--- 2", "f:2:1: is not YAML: expected a single document in the stream but found another document"),
        ("a: &a [*a]", "f:1:4: nested deeper than 64 levels"),
    ],
)  # fmt: skip
def test_what_is_refused_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_yaml(text, "f")
    assert str(caught.value) == message


def test_aliases_can_not_blow_up_memory() -> None:
    lines = ["a: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"b{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(UserError, match="more than 200000 values, counting what aliases repeat"):
        parse_yaml("\n".join(lines))


def test_all_mistakes_of_form_are_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        parse_yaml("a: 1\na: 2\nb: !x 1\nb: 3", "f")
    assert [p.where for p in caught.value.problems] == ["f:2:1", "f:3:4", "f:4:1"]


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    missing, latin = tmp_path / "no.yaml", tmp_path / "latin.yaml"
    latin.write_bytes(b"a: \xe9")
    for path, message in (
        (missing, "can not be read (No such file or directory); give a readable file"),
        (latin, "is not UTF-8 text (byte 3); expected UTF-8; save it as UTF-8"),
    ):
        with pytest.raises(UserError) as caught:
            read_yaml(path)
        assert str(caught.value) == f"{path}: {message}"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, max_size=4), st.sampled_from([None, "\t", 2]), st.booleans())
def test_every_json_object_is_read_as_json_reads_it(value: Any, indent: str | int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    try:
        read = parse_yaml(text).data
    except UserError:
        # YAML has no place for control characters, lone surrogates and keys that take 1,024 characters to write:
        # refused, never read as something else.
        long = any(len(key) > 1_000 for key in re.findall(r'"(?:[^"\\]|\\.)*"', text))
        assert long or any(
            ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 or ord(c) >= 0xFFFE
            for c in str(json.loads(text)) + text
        )
        return
    assert read == json.loads(text)


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: int
    word: Literal["one", "two"] = "one"


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = {}
    ratio: float = 1.0
    flag: bool = False


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("name: a\nmany:\n  - {size: 1}\n  - {size: x, wrod: two}", [
            'f:4:6: size is "x"; expected a whole number',
            "f:4:15: unknown field wrod; did you mean word?",
        ]),
        ("inner: {size: 1.5, word: tow}", [
            "f:1:1: name is missing; expected text",
            "f:1:9: size is 1.5; expected a whole number",
            'f:1:20: word is "tow"; expected one of one, two; did you mean two?',
        ]),
        ("name: 3\nflag: yes\nratio: [1]\nmany: {}\nby_name: {x: {}}", [
            "f:1:1: name is 3; expected text",
            'f:2:1: flag is "yes"; expected true or false',
            "f:3:1: ratio is [1]; expected a number",
            "f:4:1: many is {}; expected a list",
            "f:5:11: size is missing; expected a whole number",
        ]),
        ("name: a\nzzz: 1", ["f:2:1: unknown field zzz; known: name, inner, many, by_name, ratio, flag"]),
        ("- 1", ["f:1:1: the content is [1]; expected a map"]),
        ("", ["f:1:1: the content is null; expected a map"]),
        ("name: a\nmany: [3]", ["f:2:8: many[0] is 3; expected a map"]),
    ],
)  # fmt: skip
def test_every_mistake_of_shape_is_told_with_its_place(text: str, messages: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        decode(parse_yaml(text, "f"), Outer)
    assert [str(p) for p in caught.value.problems] == messages


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: Annotated[int, msgspec.Meta(ge=1)] = 1
    least: int = 0

    def __post_init__(self) -> None:
        if self.least > self.size:
            raise ValueError("least is larger than size")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size: 0", "f:1:1: size is 0; expected int >= 1"),
        ("size: x", 'f:1:1: size is "x"; expected a whole number'),
        ("{size: 1, least: 2}", "f:1:1: the content: least is larger than size"),
    ],
)
def test_bounds_of_a_type_are_told(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        decode(parse_yaml(text, "f"), Strict)
    assert str(caught.value) == message


def test_what_has_no_mistake_is_decoded() -> None:
    source = parse_yaml("name: a\ninner: {size: 2}\nmany: [{size: 3, word: two}]\nratio: 2")
    assert decode(source, Outer) == Outer("a", Inner(2), (Inner(3, "two"),), {}, 2.0)
    assert decode(source, Inner, ("many", 0)) == Inner(3, "two")


@given(json_values)
def test_shape_mistakes_are_found_exactly_where_decoding_fails(value: Any) -> None:
    source = msgspec.structs.replace(parse_yaml("a: 1"), data=value)
    try:
        expected = msgspec.convert(value, Outer)
    except msgspec.ValidationError:
        with pytest.raises(UserError):
            decode(source, Outer)
    else:
        assert decode(source, Outer) == expected
