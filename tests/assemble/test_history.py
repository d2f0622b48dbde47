"""The memory of a trace saves work and never changes what is known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.assemble import history as module
from otelmon.assemble.dialects._messages import from_item
from otelmon.assemble.history import History, preferred, whole_elements
from otelmon.assemble.readings import read_span
from otelmon.vocabulary.reading import Message, Reading
from tests.assemble.dialect_spans import all_messages, make_span

TURNS = [
    {"role": "user", "parts": [{"type": "text", "content": 'refund A-1, then "B", please ]}'}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "refund", "arguments": {"id": "A-1"}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": '{"ok": [1, 2]}'}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "Done."}]},
    {"role": "user", "parts": [{"type": "text", "content": "thanks"}]},
]


def counted() -> tuple[list[Any], Any]:
    """A reader of elements, and the elements it was given."""
    seen: list[Any] = []

    def read(item: Any) -> list[Message]:
        seen.append(item)
        return from_item(item)

    return seen, read


def test_a_known_prefix_is_not_read_again() -> None:
    memory = History()
    seen, read = counted()
    for size in range(1, len(TURNS) + 1):
        batch = memory.array("k", json.dumps(TURNS[:size]), read)
        assert batch is not None
        assert len(batch.digests) == size
        assert len(batch.messages) == 1
    assert seen == TURNS


def test_the_same_array_again_costs_and_sends_nothing() -> None:
    memory = History()
    seen, read = counted()
    text = json.dumps(TURNS, indent=1)
    first, again = memory.array("k", text, read), memory.array("k", text, read)
    assert first is not None
    assert again is not None
    assert first.digests == again.digests
    assert again.messages == ()
    assert len(seen) == len(TURNS)


def test_branches_of_one_history_are_all_remembered() -> None:
    memory = History()
    _, read = counted()
    branches = [[TURNS[0], {"role": "user", "parts": [{"type": "text", "content": str(n)}]}] for n in range(3)]
    for branch in branches:
        memory.array("k", json.dumps(branch), read)
    seen, read = counted()
    for branch in branches:
        memory.array("k", json.dumps([*branch, TURNS[3]]), read)
    assert seen == [TURNS[3]] * 3


def test_a_prefix_that_is_no_whole_element_is_not_trusted() -> None:
    memory = History()
    _, read = counted()
    memory.array("k", '["a"]', read)
    batch = memory.array("k", '["a", "b"]x', read)
    assert batch is None
    assert memory.array("k", '["a","b"', read).truncated  # type: ignore[union-attr]
    assert memory.array("k", '["a" "b"]', read) is None


def test_a_cut_array_gives_its_whole_elements() -> None:
    text = json.dumps(TURNS)
    assert whole_elements(text) == TURNS
    assert whole_elements(text[:-40]) == TURNS[:4]
    assert whole_elements("[") == []
    assert whole_elements('[{"a": 1}, {b: 2}, {"c": 3}') == [{"a": 1}]
    batch = History().array("k", text[:-40], from_item)
    assert batch is not None
    assert batch.truncated
    assert len(batch.digests) == 4


@pytest.mark.parametrize("text", ["", "null", '{"role": "user"}', "[1", "not json", '"[]"'])
def test_what_is_no_array_of_messages_gives_none(text: str) -> None:
    batch = History().array("k", text, from_item)
    assert batch is None or batch.digests == ()


def test_what_is_forgotten_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SEEN", 2)
    memory = History()
    messages = [m for turn in TURNS for m in from_item(turn)]
    assert len(memory.send(messages).messages) == len(messages)
    assert memory.send(messages).digests == tuple(m.digest for m in messages)
    for n in range(10):
        memory.items([n], lambda i: messages[:1])
    assert len(memory._items) <= 2
    for n in range(40):
        memory.array(f"key {n}", json.dumps(TURNS), from_item)
    assert len(memory._prefixes) <= module.MAX_KEYS


def test_messages_of_one_digest_that_differ_are_both_sent() -> None:
    one, other = (from_item({"role": "tool", "tool_call_id": "c", "name": n, "content": "x"})[0] for n in ("a", "b"))
    assert one.digest == other.digest
    assert History().send([one, other]).messages == (one, other)
    assert preferred(one, other) == preferred(other, one)


PARTS = st.one_of(
    st.builds(lambda t: {"type": "text", "content": t}, st.text()),
    st.builds(
        lambda i, n, a: {"type": "tool_call", "id": i, "name": n, "arguments": a},
        st.sampled_from(["c1", "c2", None]),
        st.sampled_from(["get", "put"]),
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=4), max_size=2) | st.text(max_size=5),
    ),
    st.builds(lambda t: {"type": "tool_call_response", "id": "c1", "response": t}, st.text()),
)
MESSAGES = st.builds(
    lambda r, p: {"role": r, "parts": p},
    st.sampled_from(["user", "assistant", "tool", "system"]),
    st.lists(PARTS, max_size=3),
)
RUNS = st.lists(MESSAGES, min_size=1, max_size=6)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")])


def model_spans(turns: list[Any], cuts: list[int], separators: tuple[str, str], structured: bool) -> list[Any]:
    spans = []
    for number, cut in enumerate(cuts):
        part = turns[: cut % len(turns) + 1]
        value: Any = part if structured else json.dumps(part, separators=separators)
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": value}
        spans.append(make_span(attributes, span_id=f"{number:016x}"))
    return spans


def essence(readings: list[Reading]) -> Any:
    told = [(r.input, r.output, r.content, r.history_complete) for r in readings]
    return told, all_messages(readings)


@given(RUNS, st.lists(st.integers(0, 9), min_size=1, max_size=6), SEPARATORS, st.booleans())
def test_readings_are_the_same_with_or_without_memory(
    turns: list[Any], cuts: list[int], separators: tuple[str, str], structured: bool
) -> None:
    spans = model_spans(turns, cuts, separators, structured)
    memory = History()
    with_memory = [read_span(span, memory) for span in spans]
    without = [read_span(span, History()) for span in spans]
    assert essence(with_memory) == essence(without)
    sent = [m for r in with_memory for m in r.messages]
    assert len(sent) == len(set(map(repr, sent)))


@given(RUNS, st.lists(st.integers(0, 9), min_size=1, max_size=5), SEPARATORS)
def test_the_order_of_arrival_changes_nothing(turns: list[Any], cuts: list[int], separators: tuple[str, str]) -> None:
    spans = model_spans(turns, cuts, separators, structured=False)
    there, back = History(), History()
    forth = [read_span(span, there) for span in spans]
    reverse = [read_span(span, back) for span in reversed(spans)]
    assert essence(forth) == essence(list(reversed(reverse)))


def test_the_work_is_linear_in_the_bytes_received() -> None:
    """Each element is decoded once over a run in which every step repeats the whole history."""
    memory = History()
    seen, read = counted()
    turns = [{"role": "user", "content": f"turn {n}"} for n in range(200)]
    for size in range(1, len(turns) + 1):
        memory.array("k", json.dumps(turns[:size]), read)
    assert len(seen) == len(turns)
