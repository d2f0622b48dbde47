"""The laws of a check, held over every rule and arbitrary small conversations: it never raises, the same
view gives the same findings, it changes nothing, and it points at things that are there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otelmon.checks.lib.effects import effect_entry
from otelmon.checks.lib.histories import HistoryKind, history_kind
from otelmon.checks.lib.tool_versions import in_order, tool_versions
from otelmon.checks.view import View
from otelmon.rules.catalogue import catalogue_of
from otelmon.rules.evaluate import Trouble, evaluate, evaluate_effects, evaluate_tools
from otelmon.rules.loader import load_rules, with_params
from otelmon.rules.scene import Scene, build
from otelmon.vocabulary.event import Outcome
from otelmon.vocabulary.finding import Finding
from otelmon.vocabulary.messages import EffectEntry, ToolVersion
from otelmon.vocabulary.reading import Fidelity
from tests.rules.helpers import case

RULES = load_rules()

TOOLS = ("get_order", "issue_refund", "run_sql", "send_email", "delete_user", "mystery")
OUTCOMES: tuple[Outcome, ...] = ("succeeded", "failed", "unknown", "denied", "pending")
FIDELITIES: tuple[Fidelity, ...] = ("exact", "decoded", "repaired", "redacted", "hashed", "truncated", "absent")
# Values that meet again in texts, arguments and results, beside arbitrary ones.
words = st.sampled_from(
    ["A-1", "W-7788", "12.50", "2026-03-04", "ann@example.com", "yes", "no", "refund order A-1", ""]
)
texts = words | st.text(max_size=20) | st.builds("{} and {}".format, words, words)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | texts
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=6)
arguments = st.one_of(
    st.dictionaries(
        st.sampled_from(["order_id", "amount", "sql", "to", "reason", "items"]) | st.text(max_size=5),
        values,
        max_size=4,
    ),
    st.sampled_from([{"order_id": "A-1", "amount": 12.5}, {"sql": "DELETE FROM users"}, {"to": "ann@example.com"}]),
    st.sampled_from(["{broken", '{"a": 1', "", '"{}"', "null"]),
    values,
)
results = st.one_of(
    values,
    st.sampled_from(
        [{"error": "not found"}, {"ok": True}, {"status": "pending"}, "Error: timed out", [{"order_id": "A-1"}], "[]"]
    ),
)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


place = maybe(
    run=st.just("new"),
    trace=st.just("new"),
    conversation=st.sampled_from(["main", "other"]),
    after=st.sampled_from([0.0, 1.0, 40.0, 4000.0]),
    trigger=st.just("job-1"),
    environment=st.just("prod"),
    agent=st.sampled_from(["till", "sub"]),
)
calls = st.builds(
    lambda required, more, where: {**required, **more, **where},
    st.fixed_dictionaries({"tool": st.sampled_from(TOOLS)}),
    maybe(
        args=arguments,
        result=results,
        outcome=st.sampled_from(OUTCOMES),
        error=texts,
        id=st.sampled_from(["c1", "c2"]),
        key=st.sampled_from(["k1", "k2"]),
        server=st.sampled_from(["one", "two"]),
        effect=st.sampled_from(["read", "write", "destructive", "rubbish"]),
        annotations=maybe(readOnlyHint=st.booleans(), destructiveHint=st.booleans(), idempotentHint=st.booleans()),
        approval=st.sampled_from(["approved", "rejected", "auto", "x"]),
        http=st.lists(st.sampled_from([{"method": "POST", "status_code": 200}, {"method": "GET", "resend_count": 2}]), max_size=2),
        fidelity=st.sampled_from(FIDELITIES),
        result_fidelity=st.sampled_from(FIDELITIES),
        derived=st.booleans(),
        parallel=st.booleans(),
        nested_calls=st.integers(0, 2),
        repeat=st.integers(1, 3),
    ),
    place,
)  # fmt: skip
claims = st.sampled_from(
    ["I have refunded order A-1.", "It could not be sent.", "Done!", "Shall I delete it?", "42 users were deleted."]
)
messages = st.builds(
    lambda message, where: {**message, **where},
    st.one_of(
        st.fixed_dictionaries({"user": texts}),
        st.fixed_dictionaries({"assistant": claims | texts}),
        st.fixed_dictionaries({"system": texts}),
        st.fixed_dictionaries({"context": texts}),
        st.fixed_dictionaries({"assistant": texts, "calls": st.lists(st.fixed_dictionaries({"tool": st.sampled_from(TOOLS), "args": arguments}), max_size=2)}),
    ),
    place,
)  # fmt: skip
pairs = st.sampled_from([
    ("get_order", {"order_id": "A-1"}), ("issue_refund", {"order_id": "A-1", "amount": 12.5}), ("run_sql", {"sql": "DROP TABLE users"}),
    ("send_email", {"to": "ann@example.com", "body": "A-1"}), ("delete_user", {"user": "W-7788"}),
])  # fmt: skip
# Stories that go wrong more often than chance would: a request, a call with an ending, the same again, a claim.
episodes = st.builds(
    lambda ask, call, first, again, where, claim: [
        {"user": ask},
        {"tool": call[0], "args": call[1], **first},
        {"tool": call[0], "args": call[1], **again, **where},
        {"assistant": claim},
    ],
    texts,
    pairs,
    maybe(outcome=st.sampled_from(OUTCOMES), error=texts, result=results, key=st.just("k1")),
    maybe(
        outcome=st.sampled_from(OUTCOMES),
        result=results,
        key=st.sampled_from(["k1", "k2"]),
        approval=st.just("approved"),
    ),
    place,
    claims,
)
schemas = st.none() | st.sampled_from([
    {}, {"type": "object"}, {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    {"type": "object", "properties": {"amount": {"type": "number", "enum": [1, 2]}}, "additionalProperties": False},
    {"type": "nonsense"}, {"$ref": "#/nowhere"}, {"properties": 3},
])  # fmt: skip
defines = st.builds(
    lambda name, schema, description, server: {"define": {"name": name, "inputSchema": schema, "description": description, "server": server}},
    st.sampled_from(TOOLS), schemas, texts, st.none() | st.sampled_from(["one", "two"]),
)  # fmt: skip
tools = st.builds(
    lambda name, more: {"name": name, **more},
    st.sampled_from(TOOLS),
    maybe(
        effect=st.sampled_from(["read", "write", "destructive", "external_send"]),
        repeat=st.sampled_from(["additive", "absolute"]),
        identity=st.just(["order_id"]),
        volatile=st.just(["reason"]),
        idempotency_key=st.just({"argument": "key"}),
        max_attempts=st.integers(1, 3),
        poll_ok=st.booleans(),
        sources=st.just({"amount": "get_order.items[].amount"}),
        claims=st.just(["refunded"]),
        inputSchema=schemas,
    ),
)
policies = st.builds(
    lambda required, more: {"id": "p", **required, **more},
    st.sampled_from([{"action": "forbid"}, {"action": "confirm"}, {"action": "after", "calls": ["get_order"]}, {"action": "limit", "max": 1}]),
    maybe(
        tools=st.lists(st.sampled_from([*TOOLS, "*", "delete_*"]), max_size=2),
        effects=st.lists(st.sampled_from(["read", "write", "destructive"]), max_size=2),
        when=st.sampled_from(["call.arguments.amount > 10", "call.environment == 'prod'"]),
        unless_approved=st.booleans(),
        window_seconds=st.just(60.0),
    ),
)  # fmt: skip
catalogues = st.none() | st.fixed_dictionaries(
    {"tools": st.lists(tools, min_size=1, max_size=4), "policy": st.lists(policies, max_size=2)},
    optional={"complete": st.booleans()},
)
cases = st.builds(
    lambda events, more: case(events, **more),
    st.lists(st.lists(calls | messages | defines, max_size=4) | episodes, min_size=1, max_size=3).map(
        lambda parts: [step for part in parts for step in part]
    ),
    st.just({})
    | maybe(
        closed=st.booleans(),
        content=st.sampled_from(["on", "off"]),
        gaps=st.lists(st.sampled_from(["content_off", "sampled", "prior_turns_unseen", "incomplete_run"]), max_size=1),
        trusted=st.just([""]),
    ),
)


def histories(scene: Scene) -> list[tuple[HistoryKind, list[EffectEntry]]]:
    """The histories of writes that the ledger would see, in its order."""
    by_key: dict[str, list[EffectEntry]] = {}
    for view in scene.views:
        for call in view.calls:
            entry = effect_entry(call, view)
            if entry is not None:
                for key in (entry.effect_key, *entry.histories):
                    by_key.setdefault(key, []).append(entry)
    return [
        (history_kind(key), sorted(h, key=lambda e: (e.start_time_unix_nano, e.anchor))) for key, h in by_key.items()
    ]


def fresh(view: View) -> View:
    """The same conversation, with nothing remembered."""
    timeline = msgspec.msgpack.decode(msgspec.msgpack.encode(view.timeline), type=type(view.timeline))
    return View(timeline, view.catalogue, view.trusted, view.trust_approvals)


def tool_histories(scene: Scene) -> list[tuple[ToolVersion, ...]]:
    """The versions of each tool that the ledger would see, in its order."""
    by_key: dict[str, list[ToolVersion]] = {}
    for view in scene.views:
        for version in tool_versions(view.timeline):
            by_key.setdefault(version.tool_key, []).append(version)
    return [in_order(versions) for versions in by_key.values()]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(cases, catalogues)
def test_checks_never_raise_and_say_the_same_twice(case: Any, catalogue: Any) -> None:
    scene = build(case, catalogue_of(catalogue) if catalogue is not None else None)
    for view in scene.views:
        before = msgspec.msgpack.encode(view.timeline)
        first = evaluate(RULES, view)
        assert first.errors == {}
        assert evaluate(RULES, view) == first
        assert msgspec.msgpack.encode(view.timeline) == before
        hold(first.findings, {span for e in view.events for span in (e.span_id, *getattr(e, "span_ids", ()))})
    trouble = Trouble()
    for kind, history in histories(scene):
        found = evaluate_effects(RULES, history, trouble=trouble, kind=kind)
        assert evaluate_effects(RULES, history, kind=kind) == found
        hold(found, {span for e in history for span in (e.span_id, e.run_id.rpartition(":")[2])})
    for versions in tool_histories(scene):
        found = evaluate_tools(RULES, versions, trouble=trouble)
        assert evaluate_tools(RULES, versions) == found
        hold(found, {version.span_id for version in versions})
    assert trouble == Trouble()


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(cases, catalogues)
def test_a_conversation_that_travelled_gives_the_same_findings(case: Any, catalogue: Any) -> None:
    scene = build(case, catalogue_of(catalogue) if catalogue is not None else None)
    for view in scene.views:
        there = fresh(View(view.timeline, view.catalogue if view.has_operator_catalogue else None, view.trusted))
        assert evaluate(RULES, there) == evaluate(RULES, fresh(there))


def hold(findings: list[Finding], spans: set[str]) -> None:
    """What every finding must be: one an id, on a known span, in data that can be stored."""
    ids = [finding.finding_id for finding in findings]
    assert len(ids) == len(set(ids))
    for finding in findings:
        assert finding.summary
        assert finding.span_ids[0] in spans
        assert set(finding.span_ids) <= spans
        assert msgspec.json.decode(msgspec.json.encode(finding), type=Finding).finding_id == finding.finding_id


@pytest.mark.parametrize("writer", RULES.rules)
def test_the_laws_hold_for_every_rule_over_the_examples_of_every_other(writer: str) -> None:
    """Chance reaches some checks rarely; what was written for one rule is asked of all of them."""
    fired: set[str] = set()
    for example in RULES.rules[writer].tests:
        subject = with_params(RULES.rules[writer], example.params) if example.params else RULES.rules[writer]
        rules = [subject, *(rule for rule in RULES.rules.values() if rule.id != writer)]
        scene = build(example, catalogue_of(example.catalogue) if example.catalogue is not None else None)
        for view in scene.views:
            found = evaluate(rules, view)
            assert found.errors == {}
            assert evaluate(rules, fresh(view)) == found
            hold(found.findings, {span for e in view.events for span in (e.span_id, *getattr(e, "span_ids", ()))})
            fired |= {finding.rule_id for finding in found.findings}
        for kind, history in histories(scene):
            fired |= {finding.rule_id for finding in evaluate_effects(rules, history, kind=kind)}
        for versions in tool_histories(scene):
            fired |= {finding.rule_id for finding in evaluate_tools(rules, versions)}
    assert writer in fired
