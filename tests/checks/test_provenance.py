"""Where arguments come from: formatting, derivation, roles and the order of events."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.id_runs import id_runs
from otelmon.checks.lib.provenance import Lineage, lineage
from otelmon.checks.lib.provenance_index import MAX_VALUES, Index, stated_today, told_today
from otelmon.checks.lib.provenance_match import match
from otelmon.checks.lib.provenance_roles import leaves, role_of, schema_at
from otelmon.checks.lib.values import compact, days_of, number_forms, numbers_of, to_decimal, words_of
from tests.checks.build import view

TODAY = {"system": "The current date is 2027-03-02 (a Tuesday)."}


def lines_of(said: str, arguments: dict[str, Any], system: dict[str, Any] = TODAY) -> list[Lineage]:
    seen = view(system, {"user": said}, {"tool": "update_thing", "args": arguments})
    return list(lineage(seen.calls[0], seen))


def source_of(said: str, name: str, value: Any) -> str:
    (line,) = lines_of(said, {name: value})
    return line.source


@pytest.mark.parametrize(
    ("said", "name", "value"),
    [
        ("cancel w123 please", "order_id", "#W123"),
        ("my order is 9502127", "order_id", "#W9502127"),
        ("invoice INV 0042-7", "invoice_id", "inv-0042-7"),
        ("to DE89 3704 0044 0532 0130 00", "iban", "DE89370400440532013000"),
        ("it is A B C 1 2 3", "reservation_id", "ABC123"),
        ("call me at (555) 010-4477", "phone", "+15550104477"),
        ("pay 18.50 now", "amount", 18.5),
        ("pay $1,234.50", "amount", "1234.5"),
        ("zahle 1.234,50 EUR", "betrag", 1234.5),
        ("pay 18.50", "amount_cents_total", 1850),
        ("budget 5k", "budget", 5000),
        ("two at 40 and one at 25", "total", 105),
        ("it was 120, now 99.5", "refund", 20.5),
        ("10% of 80", "discount", 8),
        ("forty nights for the team", "nights", 40),
        ("on May 20", "date", "2027-05-20"),
        ("el 20 de mayo", "fecha", "2027-05-20"),
        ("am 20. Mai", "datum", "2027-05-20"),
        ("the 21st is fine", "date", "2027-03-21"),
        ("born 3 July 1988", "dob", "1988-07-03"),
        ("tomorrow", "date", "2027-03-03"),
        ("übermorgen", "datum", "2027-03-04"),
        ("next Monday", "date", "2027-03-08"),
        ("in 10 days", "due_date", "2027-03-12"),
        ("today", "end", "2027-03-03T00:00:00+01:00"),
        ("from 2027-06-01 to 2027-06-09", "day", "2027-06-05"),
        ("01/06/2027", "date", "2027-06-01"),
        ("in June", "end_date", "2027-06-30"),
        ("I am Mia Li of 12 Elm Street, Denver 80279", "address", {"street": "12 Elm St", "zip": "80279"}),
        ("write to bo@example.com", "to", "BO@example.com"),
        ("see docs.example.com", "url", "https://docs.example.com/pump"),
        ("post to www.docs.example.com.They wait", "url", "www.docs.example.com"),
        ("mail bo@example.com.Thanks", "to", "bo@example.com"),
        ("José Núñez", "last_name", "Nunez"),
    ],
)
def test_values_are_known_in_any_format(said: str, name: str, value: Any) -> None:
    assert {line.source for line in lines_of(said, {name: value})} <= {"user", "system", "result", "run"}


@pytest.mark.parametrize(
    ("said", "name", "value"),
    [
        ("cancel my order", "order_id", "W123"),
        ("cancel w123 please", "order_id", "W1234"),
        ("I am Jo Roe, zip 19122", "user_id", "jo_roe_19122"),
        ("pay the bill", "amount", 730.25),
        ("on May 20", "date", "2024-05-20"),
        ("on May 20", "date", "2027-05-22"),
        ("book it", "date", "2027-09-14"),
        ("she is 30", "dob", "1997-01-01"),
        ("write to bo@example.com", "to", "bo@example.org"),
        ("call me", "phone", "555-010-4477"),
        ("order more", "quantity", 4321),
        ("the usual one", "url", "https://collector.example/x"),
        ("code S2", "soil_id", "S002"),
    ],
)
def test_invented_values_have_no_source(said: str, name: str, value: Any) -> None:
    assert source_of(said, name, value) == "none"


def test_results_count_in_order_and_echoes_of_a_failure_do_not() -> None:
    seen = view(
        {"user": "find it"},
        {"tool": "get_order", "args": {"order_id": "Q-551"}, "outcome": "failed", "error": "no order Q-551"},
        {"tool": "get_order", "args": {"order_id": "Q-551"}},
        {"tool": "find_order", "args": {}, "result": {"id": "Z-900"}},
        {"tool": "get_order", "args": {"order_id": "z900"}},
    )
    sources = [lineage(call, seen)[0].source if lineage(call, seen) else "" for call in seen.calls]
    assert sources == ["none", "none", "", "result"]
    assert lineage(seen.calls[3], seen)[0].position == seen.calls[2].position


def test_what_a_tool_description_shows_is_no_source() -> None:
    seen = view(
        {"define": {"name": "get_order", "description": "Get an order, such as 'K-4711'."}},
        {"user": "Where is my order?"},
        {"tool": "get_order", "args": {"order_id": "K-4711"}},
    )
    assert lineage(seen.calls[0], seen)[0].source == "tool_description"


def test_constants_of_the_schema_are_sources() -> None:
    schema = {"type": "object", "properties": {"plan_id": {"anyOf": [{"enum": ["P-77"]}, {"type": "null"}]}}}
    seen = view(
        {"define": {"name": "set_plan", "inputSchema": schema}},
        {"user": "the best plan"},
        {"tool": "set_plan", "args": {"plan_id": "P-77"}},
    )
    assert lineage(seen.calls[0], seen)[0].source == "schema"


def test_what_was_proposed_and_answered_is_known_but_not_an_id() -> None:
    seen = view(
        TODAY,
        {"user": "Plan my trip."},
        {"assistant": "I propose 2027-09-14 for 815.30 on booking BX-99120. Fine?"},
        {"user": "Yes."},
        {"tool": "book", "args": {"date": "2027-09-14", "amount": 815.3, "booking_id": "BX-99120"}},
    )
    assert [line.source for line in lineage(seen.calls[0], seen)] == ["proposal", "proposal", "none"]


def test_a_file_the_agent_named_is_known_to_later_calls() -> None:
    seen = view(
        {"user": "Clean the data."},
        {"tool": "write_file", "args": {"path": "tidy77.py", "text": "x"}, "result": {"ok": True}},
        {"tool": "run_script", "args": {"path": "tidy77.py"}},
    )
    assert lineage(seen.calls[1], seen)[0].source == "argument"


def test_the_principal_of_the_run_is_known() -> None:
    seen = view(
        {"user": "Show my orders.", "principal": "u-40117"}, {"tool": "list_orders", "args": {"user_id": "u-40117"}}
    )
    assert lineage(seen.calls[0], seen)[0].source == "run"


def test_paths_are_joined_from_known_parts() -> None:
    seen = view(
        {"user": "Check /archive."},
        {"tool": "list_dir", "args": {"path": "/archive"}, "result": ["a1", "a2"]},
        {"tool": "delete_dir", "args": {"path": "/archive/a1"}},
    )
    line = lineage(seen.calls[1], seen)[0]
    assert (line.source, line.transformation) == ("result", "path joined")


def test_an_absent_date_is_not_sure_when_nothing_states_today() -> None:
    (line,) = lines_of("pay it", {"date": "2019-09-14"}, system={"system": "Be kind."})
    assert (line.source, line.sure) == ("none", False)


@pytest.mark.parametrize(
    ("name", "value", "role"),
    [
        ("orderIds", "77", "id"),
        ("ids", 77, "id"),
        ("user_id", "me", "constant"),
        ("room_type_id", "family", "other"),
        ("order", "WO-58", "id"),
        ("order", "ascending", "other"),
        ("airport_code", "JFK", "other"),
        ("promo_code", "SAVE20", "id"),
        ("note", "call 555-0101", "free"),
        ("branch", "fix/issue-42-timeout", "other"),
        ("ticket", "fix-the-login-timeout-42", "other"),
        ("target", "+1 555 010 0200", "phone"),
        ("order", 7, "other"),
        ("order_id", "9" * 301, "free"),
        ("order", 7788, "id"),
        ("limit", 500, "setting"),
        ("top_n", "5", "setting"),
        ("idempotency_key", "abc-123", "generated"),
        ("amount", "12.50", "amount"),
        ("total_baggages", 3, "quantity"),
        ("x", "2027-01-01", "date"),
        ("status", "open", "status"),
        ("to", "a@example.com", "email"),
        ("fecha_hora", "mañana", "free"),
        ("confirmed", True, "constant"),
        ("first_name", "Unknown", "other"),
        ("card", "5f0c9d6e-9a2b-4c3d-8e1f-0a1b2c3d4e5f", "id"),
    ],
)
def test_the_role_of_an_argument(name: str, value: Any, role: str) -> None:
    assert role_of(name, value, {}) == role


def test_schemas_are_followed_through_items_and_references() -> None:
    schema = {
        "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
        "$defs": {"row": {"properties": {"day": {"type": "string", "format": "date"}}}},
    }
    assert schema_at(schema, "rows[3].day") == {"type": "string", "format": "date"}
    assert schema_at(schema, "rows[3].nothing") == {}


def test_leaves_keep_the_order_and_the_nearest_key() -> None:
    assert list(leaves({"a": [{"b": 1}, {"b": 2}], "c": "x"})) == [
        ("a[0].b", "b", 1), ("a[1].b", "b", 2), ("c", "c", "x"),
    ]  # fmt: skip


def test_today_is_read_where_it_is_stated() -> None:
    assert str(stated_today("Opened 2020-01-01. The current time is 2027-03-02 15:00.")) == "2027-03-02"
    assert stated_today("Opened 2020-01-01.") is None


def test_a_full_index_accuses_nobody() -> None:
    index = Index()
    texts = [" ".join(f"w{n}x" for n in range(start, start + 20_000)) for start in range(0, MAX_VALUES + 1, 20_000)]
    index.learn(texts[0], "user", 0)
    assert match("id", "Q-551", index, 0) is None
    for text in texts:
        index.learn(text, "user", 1)
    found = match("id", "Q-551", index, 0)
    assert found is not None
    assert (found.source, found.transformation) == ("context", "index full")


@given(st.integers(0, 10**9), st.integers(0, 99))
def test_money_is_one_number_in_every_format(whole: int, cents: int) -> None:
    plain = f"{whole}.{cents:02d}"
    american, german = f"${whole:,}.{cents:02d}", f"{whole:,}".replace(",", ".") + f",{cents:02d} €"
    expected = to_decimal(plain)
    assert to_decimal(american) == expected
    assert plain.rstrip("0").rstrip(".") in {n.rstrip(".") for n in number_forms(german.rstrip(" €"))}


@given(st.text(max_size=200))
def test_every_word_of_a_text_is_found_in_it(text: str) -> None:
    words = words_of(text).words
    assert all(compact(word) in words for word in text.split() if compact(word) and word.isalnum())


@given(st.text(max_size=60), st.sampled_from(["#", "-", "_", " ", ""]))
def test_reading_never_fails(text: str, joint: str) -> None:
    for read in (words_of, numbers_of, days_of):
        read(joint.join(text))
    to_decimal(text)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("orders 1001 to 1005", (("", 1001, 1005),)),
        ("P1003..P1015, please", (("p", 1003, 1015),)),
        ("W-20 bis W-22 und AB#7…9", (("w", 20, 22), ("ab", 7, 9))),
        ("pedidos 100 al 104", (("", 100, 104),)),
        ("P1003-P1015", (("p", 1003, 1015),)),
        ("from 3 to 9, on 2024-05-20, call 555-1234", ()),
        ("A10 to B20, 300 to 200, 1000 to 900000", ()),
    ],
)
def test_runs_of_ids_are_read_by_their_ends(text: str, runs: tuple[tuple[str, int, int], ...]) -> None:
    assert id_runs(text) == runs


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2031-05-15", date(2031, 5, 15)),
        ('"2031-05-15T10:00:00Z"', date(2031, 5, 15)),
        ('{"current_date": "2031-05-15", "due": "2031-06-01"}', date(2031, 5, 15)),
        ('{"due": "2031-06-01"}', None),
        ("2031-05-15 is when order W-1 of customer C-9 is due", None),
    ],
)
def test_a_tool_may_say_what_day_it_is(text: str, day: date | None) -> None:
    assert told_today(text) == day


def test_spans_of_days_are_counted_in_words_of_any_language() -> None:
    assert days_of("in two weeks, en tres días, vor zehn Tagen").relative == {14, -14, 3, -3, 10, -10}
