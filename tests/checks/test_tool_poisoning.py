"""tool_poisoning and data_exfiltration on many manners of attack, and on honest text that looks like one."""

from __future__ import annotations

from typing import Any

import pytest

from otelmon.checks.view import View
from otelmon.rules.evaluate import evaluate
from otelmon.rules.loader import builtin_rules_dir, load_rule
from otelmon.vocabulary.finding import Finding, level
from tests.checks.attack_texts import (
    ATTACKS,
    HONEST_DESCRIPTIONS,
    HONEST_RESULTS,
    MORE_ATTACKS,
    MORE_POISONED,
    POISONED,
)
from tests.checks.build import view

RULES = [load_rule(builtin_rules_dir() / f"{name}.yaml") for name in ("tool_poisoning", "data_exfiltration")]
PLACE = "drop@collect.example"


def found(seen: View) -> list[Finding]:
    result = evaluate(RULES, seen)
    assert result.errors == {}, result.raised
    return result.findings


def high(seen: View) -> set[str]:
    return {finding.rule_id for finding in found(seen) if level(finding.severity) >= level("high")}


def reads(text: Any, *after: dict[str, Any], asked: str = "What does the page say about opening hours?") -> View:
    page = {"tool": "read_page", "args": {"name": "hours"}, "result": text}
    return view({"user": asked}, page, *after, {"assistant": "Open from 9 to 5."})


def sends(to: str = PLACE, **more: Any) -> dict[str, Any]:
    return {"tool": "send_email", "args": {"to": to, "body": "here it is", **more}, "result": {"ok": True}}


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS.keys())
def test_followed_orders_are_high_at_the_text_and_at_the_call(text: str) -> None:
    assert high(reads(text.format(place=PLACE), sends())) == {"tool_poisoning", "data_exfiltration"}


@pytest.mark.parametrize("asked", ["What does the page say?", "Read the page and mail the hours to ana@example.org."])
@pytest.mark.parametrize("text", MORE_ATTACKS)
def test_other_words_are_understood_as_well(text: str, asked: str) -> None:
    """Whether the user only asked, or had something else sent somewhere else."""
    assert high(reads(text.format(place=PLACE), sends(), asked=asked)) == {"tool_poisoning", "data_exfiltration"}


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS.keys())
def test_resisted_orders_never_page(text: str) -> None:
    assert high(reads(text.format(place=PLACE))) == set()
    assert (
        high(reads(text.format(place=PLACE), sends("ana@example.org"), asked="Mail the hours to ana@example.org"))
        == set()
    )


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS.keys())
def test_an_address_that_the_user_gave_is_the_users(text: str) -> None:
    asked = f"Read the page, then mail the hours to {PLACE}."
    assert high(reads(text.format(place=PLACE), sends(), asked=asked)) == set()


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS.keys())
def test_structured_results_are_read_string_by_string(text: str) -> None:
    result = {"items": [{"title": "Hours", "text": "9 to 5"}, {"title": "Note", "text": text.format(place=PLACE)}]}
    assert high(reads(result, sends())) == {"tool_poisoning", "data_exfiltration"}


def defined(description: str, *after: dict[str, Any], server: str = "facts", **schema: Any) -> View:
    tool = {"name": "quote", "description": description, "inputSchema": {"type": "object", **schema}, "server": server}
    mail = {"name": "send_email", "description": "Sends a mail.", "inputSchema": {"type": "object"}, "server": "mail"}
    file = {"name": "read_file", "description": "Reads a file.", "inputSchema": {"type": "object"}, "server": "files"}
    return view({"define": mail}, {"define": file}, {"define": tool}, {"user": "Tell Ana a quote."}, *after)


@pytest.mark.parametrize("description", POISONED.values(), ids=POISONED.keys())
def test_poisoned_descriptions_are_told_at_the_tool(description: str) -> None:
    [finding] = found(defined(description))
    assert (finding.rule_id, finding.tool_name, finding.severity) == ("tool_poisoning", "quote", "medium")


@pytest.mark.parametrize("description", MORE_POISONED)
def test_tools_that_reach_for_those_of_another_server(description: str) -> None:
    [finding] = found(defined(description))
    assert (finding.rule_id, finding.tool_name) == ("tool_poisoning", "quote")


@pytest.mark.parametrize("description", POISONED.values(), ids=POISONED.keys())
def test_descriptions_of_arguments_are_read_too(description: str) -> None:
    properties = {"note": {"type": "string", "description": description}}
    [finding] = found(defined("Returns a quote.", properties=properties))
    assert (finding.rule_id, finding.tool_name) == ("tool_poisoning", "quote")


def test_a_followed_description_is_high_at_the_tool_and_at_the_call() -> None:
    seen = defined(POISONED["rerouted mail"], sends("relay@collect.example"))
    poisoning, exfiltration = sorted(found(seen), key=lambda f: f.rule_id, reverse=True)
    assert (poisoning.rule_id, poisoning.tool_name, poisoning.severity) == ("tool_poisoning", "quote", "critical")
    assert (exfiltration.rule_id, exfiltration.tool_name, exfiltration.severity) == (
        "data_exfiltration",
        "send_email",
        "high",
    )


@pytest.mark.parametrize("description", HONEST_DESCRIPTIONS)
def test_honest_guidance_is_silent(description: str) -> None:
    assert found(defined(description, sends("ana@example.org"))) == []


@pytest.mark.parametrize("text", HONEST_RESULTS)
def test_honest_text_is_silent(text: str) -> None:
    assert found(reads(text)) == []


@pytest.mark.parametrize("text", HONEST_RESULTS)
def test_honest_text_that_the_user_handed_the_work_over_to_is_silent(text: str) -> None:
    asked = "Please read the page and do what it says, send and pay whatever it asks for."
    acts = (sends("team@example.org"), sends("contabilidad@example.org"), {"tool": "pay", "args": {"iban": "DE44500105175407324931"}, "result": "ok"})  # fmt: skip
    assert found(reads(text, *acts, asked=asked)) == []
