"""What dialects say they can show: complete, and true of the samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otelmon.assemble.dialects import Dialect, Shows, dialects
from otelmon.vocabulary.reading import Reading
from tests.assemble.dialect_spans import read_file

AMOUNTS = [f for f in Shows.__struct_fields__ if f not in ("instrumentation", "setting", "note")]


def amounts(dialect: Dialect) -> dict[str, str]:
    return {name: getattr(dialect.shows, name) for name in AMOUNTS}


@pytest.mark.parametrize("dialect", dialects(), ids=lambda d: d.name)
def test_a_dialect_names_the_setting_or_the_reason(dialect: Dialect) -> None:
    said = set(amounts(dialect).values())
    assert said <= {"yes", "setting", "partly", "no"}
    assert dialect.shows.instrumentation
    assert dialect.shows.setting or "setting" not in said
    assert dialect.shows.note or not said & {"partly", "no"}


def test_names_are_told_apart() -> None:
    every = dialects()
    assert len({d.name for d in every}) == len({d.shows.instrumentation for d in every}) == len(every)
    assert [d.priority for d in every] == sorted(d.priority for d in every)


# Samples that do not have the whole scenario: made from documentation, or without a model client.
INCOMPLETE = {"otelmon", "spring_ai"}


def seen(reading: Reading) -> set[str]:
    """What one reading shows."""
    tool: Any = reading.tool
    found = {
        "arguments": tool is not None and tool.arguments_fidelity not in ("absent", "truncated"),
        "results": tool is not None and tool.result_fidelity != "absent",
        "definitions": bool(reading.definitions),
        "user_text": any(m.role == "user" for m in reading.messages),
        "final_message": any(m.role == "assistant" and m.text for m in reading.messages),
        "conversation": reading.conversation_id is not None,
        "errors": tool is not None and "status_error" in tool.signals,
        "timeouts": tool is not None and "timeout" in tool.signals,
    }
    return {name for name, is_there in found.items() if is_there}


@pytest.mark.data
@pytest.mark.parametrize("dialect", dialects(), ids=lambda d: d.name)
def test_what_is_said_never_to_be_shown_is_in_no_sample(dialect: Dialect, shared: Path) -> None:
    never = {name for name, amount in amounts(dialect).items() if amount == "no"}
    for path in sorted((shared / "spans").glob("*.otlp.json")):
        if not path.name.endswith(".logs.otlp.json"):
            for reading in read_file(path):
                if reading.dialect == dialect.name:
                    assert not seen(reading) & never, (path.name, reading.name)


@pytest.mark.data
def test_what_is_said_to_be_shown_as_it_comes_is_in_a_sample(shared: Path) -> None:
    shown: dict[str, set[str]] = {}
    for path in sorted((shared / "spans").glob("*.otlp.json")):
        if not path.name.endswith(".logs.otlp.json"):
            for reading in read_file(path):
                if reading.dialect in INCOMPLETE:
                    continue
                shown.setdefault(reading.dialect, set()).update(seen(reading))
    said = {d.name: {name for name, amount in amounts(d).items() if amount == "yes"} for d in dialects()}
    lacking = {name: said[name] - found for name, found in shown.items() if said[name] - found}
    assert lacking == {}
