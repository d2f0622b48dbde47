"""Which rules can be evaluated for an agent, why not, and the setting that would change it."""

from __future__ import annotations

import httpx
import pytest

from otelmon.assemble.dialects import dialects
from otelmon.rules.loader import load_rules
from otelmon.rules.model import Need
from otelmon.store.results import AgentRuns, NotEvaluableCount
from otelmon.vocabulary.errors import UserError
from otelmon.web.coverage import FIELDS, GENERAL, RuleCoverage, coverage, of_agent
from tests.services.monitor import LiveMonitor

RULES = load_rules().rules


def rule_of(dialect: tuple[str, ...], rule: str, closed: int = 10, **reasons: int) -> RuleCoverage:
    agents = [AgentRuns("till", closed, closed, dialect)]
    counts = [NotEvaluableCount(rule, "till", reason, runs) for reason, runs in reasons.items()]
    [agent] = coverage(RULES.values(), agents, counts)
    assert len(agent.rules) == len(RULES)
    return next(found for found in agent.rules if found.rule_id == rule)


def test_a_rule_is_evaluated_always_partly_never_or_not_asked_yet() -> None:
    assert rule_of(("genai",), "schema_violation").evaluated == "always"
    partly = rule_of(("genai",), "schema_violation", no_catalogue=4)
    assert (partly.evaluated, partly.runs) == ("partly", 6)
    never = rule_of(("genai",), "schema_violation", no_catalogue=7, content_off=3)
    assert (never.evaluated, never.runs) == ("never", 0)
    assert [(reason.reason, reason.runs) for reason in never.reasons] == [("no_catalogue", 7), ("content_off", 3)]
    assert rule_of(("genai",), "schema_violation", closed=0).evaluated == "not asked yet"


@pytest.mark.parametrize("dialect", [d for d in dialects() if d.shows.arguments == "setting"], ids=lambda d: d.name)
def test_hidden_content_names_the_exact_setting_of_the_instrumentation(dialect: object) -> None:
    shows, name = dialect.shows, dialect.name  # type: ignore[attr-defined]
    [reason] = rule_of((name,), "schema_violation", content_off=10).reasons
    assert any(shows.setting in line and shows.instrumentation in line for line in reason.settings)


def test_what_an_instrumentation_never_carries_is_said() -> None:
    [reason] = rule_of(("autogen",), "schema_violation", content_off=1).reasons
    assert any("never carries arguments" in line for line in reason.settings)


def test_two_instrumentations_are_both_named() -> None:
    [reason] = rule_of(("genai", "vercel"), "duplicate_write", content_off=1).reasons
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in "".join(reason.settings)
    assert "experimental_telemetry" in "".join(reason.settings)


@pytest.mark.parametrize("reason", GENERAL)
def test_every_other_reason_has_its_own_remedy(reason: str) -> None:
    [found] = rule_of(("other",), "schema_violation", **{reason: 1}).reasons
    assert GENERAL[reason] in found.settings


def test_every_need_of_a_rule_is_known() -> None:
    needs: set[Need] = {need for rule in RULES.values() for need in rule.needs}
    assert needs <= FIELDS.keys()
    assert set(dialects()[0].shows.__struct_fields__) >= {field for fields in FIELDS.values() for field in fields}


def test_an_agent_nobody_has_seen_is_refused_with_those_that_were() -> None:
    found = coverage(RULES.values(), [AgentRuns("till", 1, 1, ("genai",))], [])
    assert of_agent(found, "till").amount("always") == len(RULES)
    with pytest.raises(UserError, match="'till'"):
        of_agent(found, "tiller")


def test_the_page_shows_agents_reasons_and_settings(full: LiveMonitor) -> None:
    every = httpx.get(f"{full.web}/coverage", trust_env=False)
    assert every.status_code == httpx.codes.OK
    for name in ("billing", "quiet", "crawler"):
        assert f"/coverage?agent={name}" in every.text
    one = httpx.get(f"{full.web}/coverage", params={"agent": "quiet"}, trust_env=False)
    assert "billing" not in one.text
    assert "content_off" in one.text
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in one.text
    assert (
        httpx.get(f"{full.web}/coverage", params={"agent": "<b>"}, trust_env=False).status_code
        == httpx.codes.BAD_REQUEST
    )
