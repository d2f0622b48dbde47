"""The API over HTTP: the same answers as asking directly, and everything it must refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from otelmon.metrics.table import METRICS
from otelmon.vocabulary.errors import UnreachableError, UserError
from otelmon.web.api import MAX_BODY, json_response
from otelmon.web.reads import READS, answer
from otelmon.web.server import HEADERS
from tests.services.monitor import LiveMonitor, double_write, until

OWN = {"x-otelmon": "1"}
NANOSECONDS = 1_700_000_000 * 10**9


def params(live: LiveMonitor) -> dict[str, list[dict[str, object]]]:
    """Ways to ask each read that have an answer."""
    incident = live.read("incidents")["incidents"][0]
    run = live.read("runs")[0]["run"]
    finding = live.read("findings")[0]["finding"]
    return {
        "incidents": [{}, {"states": "open,acknowledged", "severity": "high", "limit": 2, "offset": 1}, {"family": "effect"},
                      {"agent": incident["agent_name"], "since": NANOSECONDS, "label": "unreviewed"}],
        "incident": [{"id": incident["incident_id"]}],
        "runs": [{}, {"with_findings": "true", "service": "shop", "limit": 3}, {"trace": run["trace_id"]}],
        "run": [{"id": run["run_id"]}],
        "conversation": [{"id": run["conversation_id"]}],
        "find": [{"id": incident["incident_id"][:4]}, {"id": "0000"}],
        "findings": [{}, {"run": finding["run_id"], "rule": finding["rule_id"], "status": "open", "limit": 5}],
        "tools": [{}, {"tool": "charge_card"}],
        "accounts": [{}],
        "refused": [{}],
        "suppressed": [{}],
        "not_evaluable": [{}],
        "agents": [{}],
        "sizes": [{}],
        "golden_tasks": [{}],
        "snapshot": [{}],
    }  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_a_read_over_http_is_the_direct_answer(full: LiveMonitor, name: str) -> None:
    assert full.monitor.database is not None
    for given in params(full)[name]:
        response = full.client.get(f"/api/v1/{name}", params={k: str(v) for k, v in given.items()}, headers=OWN)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        direct = answer(full.monitor.database, name, {key: str(value) for key, value in given.items()})
        decoded = msgspec.json.decode(response.content, type=READS[name].result)
        if name == "sizes":  # other programs use the disk too
            assert decoded.rows == direct.rows
        elif name == "snapshot":  # a newer one may have been made between the two
            assert Path(decoded.path).parent == Path(direct.path).parent
        else:
            assert decoded == direct
            assert decoded or name in ("golden_tasks", "tools", "refused", "suppressed")  # there are none here


def test_filters_choose(full: LiveMonitor) -> None:
    assert {i["severity"] for i in full.read("incidents", severity="critical")["incidents"]} == {"critical"}
    assert full.read("incidents", states="resolved") == {"incidents": [], "total": 0}
    assert [r["run"]["agent_name"] for r in full.read("runs", agent="quiet")] == ["quiet"]
    assert len(full.read("runs", limit=2)) == 2


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("incidents?severity=awful", "severity"),
        ("incidents?states=open,gone", "states 'open,gone' is not known"),
        ("incidents?limit=0", "limit"),
        ("incidents?limit=-1", "limit"),
        ("incidents?limit=1000000", "limit"),
        ("incidents?offset=-1", "offset"),
        ("incidents?limit=many", "limit"),
        ("incidents?since=99999999999999999999", "since"),
        ("incidents?colour=red", "parameters are states"),
        ("incident", "id"),
        ("incident?id=1&x=2", "x"),
        ("runs?with_findings=perhaps", "with_findings"),
        ("sizes?a=1", "no parameters"),
    ],
)
def test_wrong_parameters_are_told(full: LiveMonitor, path: str, said: str) -> None:
    response = full.client.get(f"/api/v1/{path}")
    assert response.status_code == 400
    assert said in response.json()["error"]


@pytest.mark.parametrize(
    "path", ["incident?id=none", "run?id=none", "conversation?id=%00", "nonsense", "run?id=" + "x" * 5000]
)
def test_what_is_not_there_is_404(full: LiveMonitor, path: str) -> None:
    response = full.client.get(f"/api/v1/{path}")
    assert response.status_code == 404
    assert response.json()["error"]


def test_nothing_found_is_an_empty_answer(full: LiveMonitor) -> None:
    assert full.read("find", id="no such prefix") == []
    assert full.read("findings", run="none") == []


# -- changes ---------------------------------------------------------------------------------------
@pytest.fixture
def changing(empty: LiveMonitor) -> tuple[LiveMonitor, str]:
    """A monitor of the test's own, and the path of its incident."""
    empty.judged(double_write(1))
    until(lambda: bool(empty.read("incidents")["incidents"]))
    return empty, f"/api/v1/incidents/{empty.read('incidents')['incidents'][0]['incident_id']}"


def test_changes_are_made_and_remembered(changing: tuple[LiveMonitor, str]) -> None:
    live, incident = changing
    for verb, body in (("ack", {"who": "ada", "note": "mine"}), ("label", {"label": "true_positive"}), ("resolve", {})):
        response = live.client.post(f"{incident}/{verb}", json=body, headers=OWN)
        assert (response.status_code, response.json()) == (200, {"ok": True})
    [found] = live.read("incidents")["incidents"]
    assert (found["state"], found["label"]) == ("resolved", "true_positive")
    history = live.read("incident", id=found["incident_id"])["history"]
    assert [(h["who"], h["note"]) for h in history if h["action"] == "acknowledged"] == [("ada", "mine")]


def test_a_golden_task_is_mined_and_kept(changing: tuple[LiveMonitor, str]) -> None:
    live, incident = changing
    response = live.client.post(f"{incident}/mine", headers=OWN)
    assert response.status_code == 200, response.text
    assert [task["id"] for task in live.read("golden_tasks")] == [response.json()["id"]]


def test_stored_messages_are_sent_again(changing: tuple[LiveMonitor, str]) -> None:
    live, _ = changing
    before = live.read("findings")
    response = live.client.post("/api/v1/replay", json={"since": "0"}, headers=OWN)
    assert response.status_code == 200, response.text
    assert response.json()["messages"] >= 1
    until(lambda: sum(a["duplicate"] for a in live.read("accounts")) >= 3)
    assert live.read("findings") == before


@pytest.mark.parametrize("path", ["{}/ack", "{}/resolve", "{}/label", "{}/mine", "/api/v1/replay"])
def test_a_change_without_the_own_header_is_refused(changing: tuple[LiveMonitor, str], path: str) -> None:
    """What a foreign page can send: a form or a plain fetch, with any body, but never that header."""
    live, incident = changing
    for content_type in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data", "application/json"):
        response = live.client.post(path.format(incident), content=b'{"since":"0"}', headers={"content-type": content_type})  # fmt: skip
        assert response.status_code == 400
        assert "x-otelmon is missing" in response.json()["error"]
    assert live.read("incidents")["incidents"][0]["state"] == "open"


def test_a_foreign_page_can_not_set_the_header(full: LiveMonitor) -> None:
    """The browser asks first; no answer allows it."""
    preflight = {"origin": "http://evil.example", "access-control-request-method": "POST", "access-control-request-headers": "x-otelmon"}  # fmt: skip
    response = full.client.request("OPTIONS", "/api/v1/incidents/x/ack", headers=preflight)
    assert not [name for name in response.headers if name.startswith("access-control")]
    assert response.status_code == 405


def test_a_read_that_writes_files_needs_the_header_too(full: LiveMonitor) -> None:
    assert full.client.get("/api/v1/snapshot").status_code == 400


@pytest.mark.parametrize(
    ("verb", "body", "said"),
    [
        ("ack", b"[]", "not a JSON object"),
        ("ack", b'{"who": 1}', "not a JSON object of texts"),
        ("ack", b"{", "not a JSON object"),
        ("ack", b"\xff", "not a JSON object"),
        ("ack", b'{"note": "' + b"x" * MAX_BODY + b'"}', "larger than"),
        ("label", b'{"label": "maybe"}', "true_positive, false_positive or unreviewed"),
        ("label", b"{}", "true_positive"),
        ("explode", b"{}", "no such change"),
    ],
)
def test_a_change_that_can_not_be_is_told(full: LiveMonitor, verb: str, body: bytes, said: str) -> None:
    incident = full.read("incidents")["incidents"][0]["incident_id"]
    response = full.client.post(f"/api/v1/incidents/{incident}/{verb}", content=body, headers=OWN)
    assert response.status_code == 400
    assert said in response.json()["error"]


@pytest.mark.parametrize(
    "body", [{}, {"since": ""}, {"since": "-1"}, {"since": "x"}, {"since": "0", "until": "²"}, {"since": "9" * 20}]
)
def test_a_replay_needs_times(full: LiveMonitor, body: dict[str, str]) -> None:
    response = full.client.post("/api/v1/replay", json=body, headers=OWN)
    assert response.status_code == 400
    assert "nanoseconds" in response.json()["error"]


@pytest.mark.parametrize("verb", ["ack", "resolve", "label", "mine"])
def test_a_change_of_nothing_is_404(full: LiveMonitor, verb: str) -> None:
    response = full.client.post(f"/api/v1/incidents/none/{verb}", json={"label": "true_positive"}, headers=OWN)
    assert response.status_code == 404


# -- who may ask -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8317", "127.0.0.1.evil.example", "", "localhost.", "[::2]"]
)
def test_a_foreign_host_name_is_refused(full: LiveMonitor, host: str) -> None:
    for path in ("/", "/api/v1/incidents", "/metrics", "/healthz", "/static/otelmon.js"):
        response = full.client.get(path, headers={"host": host})
        assert response.status_code == 421
        assert "incident" not in response.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "localhost:8317", "LocalHost", "[::1]:8317", "[::1]"])
def test_names_of_this_machine_are_answered(full: LiveMonitor, host: str) -> None:
    assert full.client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveMonitor]:
    live = LiveMonitor(tmp_path_factory.mktemp("public"), web={"listen": "0.0.0.0:0", "token": "s3cret"})
    yield live
    live.stop()


def ask(live: LiveMonitor, method: str, path: str, **options: Any) -> httpx.Response:
    url = live.web.replace("0.0.0.0", "127.0.0.1") + path
    return httpx.request(method, url, trust_env=False, timeout=30, **options)


def test_a_public_address_asks_for_the_token(public: LiveMonitor) -> None:
    for path in ("/", "/metrics", "/api/v1/incidents", "/static/otelmon.js", "/nothing"):
        response = ask(public, "GET", path)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Basic")
    assert ask(public, "POST", "/api/v1/replay", json={"since": "0"}, headers=OWN).status_code == 401
    for path in ("/healthz", "/readyz"):
        assert ask(public, "GET", path).status_code == 200


@pytest.mark.parametrize("given", ["Bearer s3cret", "bearer s3cret", "Basic OnMzY3JldA==", "Basic YWRhOnMzY3JldA=="])
def test_the_token_is_taken_as_bearer_and_as_password(public: LiveMonitor, given: str) -> None:
    response = ask(public, "GET", "/api/v1/sizes", headers={"authorization": given, "host": "monitor.example"})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer wrong",
        "Bearer s3cret2",
        "Basic s3cret",
        "Basic !!",
        "Basic czNjcmV0",
        "s3cret",
        "Bearer \u00ff",
    ],
)
def test_other_tokens_are_refused(public: LiveMonitor, given: str) -> None:
    headers = {"authorization": given.encode("latin-1")}
    assert ask(public, "GET", "/api/v1/sizes", headers=headers).status_code == 401


@pytest.mark.parametrize("listen", ["0.0.0.0:0", ":0", "[::]:0", "monitor.example:0"])
def test_a_public_address_without_a_token_is_not_served(tmp_path: Path, listen: str) -> None:
    with pytest.raises(UserError, match=r"web\.listen: .* is reachable from other machines and web\.token is not set"):
        LiveMonitor(tmp_path, web={"listen": listen})


def test_an_address_that_is_taken_is_told(full: LiveMonitor, tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match=r"web\.listen: can not listen on 127\.0\.0\.1"):
        LiveMonitor(tmp_path, web={"listen": full.web.removeprefix("http://")})


def test_version_6_loopback_is_served(tmp_path: Path) -> None:
    live = LiveMonitor(tmp_path, web={"listen": "[::1]:0"})
    assert live.client.get("/healthz").status_code == 200
    live.stop()


# -- every answer ----------------------------------------------------------------------------------
ANSWERS = (
    ("GET", "/", 200), ("GET", "/incidents/none", 404), ("GET", "/nothing", 404), ("GET", "/static/otelmon.css", 200),
    ("GET", "/static/../pages.py", 404), ("GET", "/static/%2e%2e/pages.py", 404), ("POST", "/", 405), ("DELETE", "/runs", 405),
    ("GET", "/api/v1/incidents", 200), ("GET", "/api/v1/nonsense", 404), ("GET", "/api/v1/run", 400), ("GET", "/metrics", 200),
    ("GET", "/healthz", 200), ("HEAD", "/", 200), ("GET", "/api/v1/incidents/x/ack", 405), ("GET", "/?severity=awful", 400),
)  # fmt: skip


@pytest.mark.parametrize(("method", "path", "status"), ANSWERS)
def test_every_answer_carries_the_security_headers(full: LiveMonitor, method: str, path: str, status: int) -> None:
    response = full.client.request(method, path)
    assert response.status_code == status
    for name, value in HEADERS:
        assert response.headers.get_list(name.decode()) == [value.decode()]


def test_refusals_carry_them_too(full: LiveMonitor, public: LiveMonitor) -> None:
    for response in (full.client.get("/", headers={"host": "evil.example"}), ask(public, "GET", "/")):
        assert {name.decode() for name, _ in HEADERS} <= set(response.headers)


def test_nothing_inline_is_allowed_and_nothing_inline_is_used(full: LiveMonitor) -> None:
    policy = full.client.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")
    for path in ("/", "/runs", "/rules", "/rules/false_success"):
        text = full.client.get(path).text
        assert "style=" not in text
        assert " onclick" not in text


@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"k": "\ud83d"}, {"\udc00": 1}])
def test_half_characters_never_make_broken_json(value: Any) -> None:
    body = bytes(json_response(value).body)
    json.loads(body.decode("utf-8", "strict"))


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, -math.inf]])
def test_numbers_that_json_does_not_have_are_null(value: Any) -> None:
    text = bytes(json_response(value).body).decode()
    json.loads(text, parse_constant=lambda word: pytest.fail(word))


# -- health ----------------------------------------------------------------------------------------
def test_ready_says_so(full: LiveMonitor) -> None:
    assert full.client.get("/healthz").text.startswith("otelmon ")
    assert (full.client.get("/readyz").status_code, full.client.get("/readyz").text) == (200, "ready\n")


def test_a_failing_stage_is_not_ready_and_says_why_and_recovers(empty: LiveMonitor) -> None:
    assert empty.monitor.database is not None
    enough = empty.monitor.database.min_free_bytes
    empty.monitor.database.min_free_bytes = 10**18  # no disk has that much room
    empty.send(double_write(1))
    until(lambda: "MiB are free" in empty.client.get("/readyz").text)
    assert empty.client.get("/readyz").status_code == 503
    assert empty.client.get("/healthz").status_code == 200
    assert 'otelmon_up_stage{stage="store"} 0.0' in empty.client.get("/metrics").text
    empty.monitor.database.min_free_bytes = enough
    until(lambda: empty.client.get("/readyz").status_code == 200)
    until(lambda: bool(empty.read("incidents")["incidents"]))


def test_metrics_are_what_prometheus_reads(full: LiveMonitor) -> None:
    response = full.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(response.text)}
    assert families.keys() == {f"otelmon_{metric.name}" for metric in METRICS}
    assert all(families[f"otelmon_{m.name}"].type == m.kind for m in METRICS)


def test_a_process_without_the_store_answers_health_and_says_where_to_ask(tmp_path: Path) -> None:
    live = LiveMonitor(tmp_path, stages=("receive",))
    try:
        assert live.client.get("/healthz").status_code == 200
        assert live.client.get("/metrics").status_code == 200
        for response in (
            live.client.get("/api/v1/incidents"),
            live.client.post("/api/v1/replay", json={"since": "0"}, headers=OWN),
        ):
            assert response.status_code == 503
            assert "without the store" in response.json()["error"]
        assert "without the store" in live.client.get("/").text
    finally:
        live.stop()
