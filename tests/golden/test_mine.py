"""Golden tasks of real incidents: those of the demo's agents, and of real trajectories."""

from __future__ import annotations

import gzip
import importlib
import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

from otelmon.app.laws import load_laws
from otelmon.app.runtime import DATABASE, Monitor
from otelmon.app.sender import Sender
from otelmon.golden.model import GoldenTask, decode_task, encode_task
from otelmon.golden.tasks import mine_incident, read_tasks, stored_tasks, write_tasks
from otelmon.receive import otlp
from otelmon.store.database import Database
from otelmon.vocabulary.config import AssembleConfig, Config, ReceiveConfig, SpoolConfig, WebConfig
from otelmon.vocabulary.errors import UserError
from otelmon.web.reads import answer
from tests.demo import Demo
from tests.system.monitor import free_port


@pytest.fixture(scope="module")
def database(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    file = tmp_path_factory.mktemp("golden") / DATABASE
    shutil.copy(demo.data / DATABASE, file)
    with Database.open(file, Config().store) as opened:
        yield opened


def incident_of(database: Database, rule_id: str) -> str:
    """The incident that has findings of a rule."""
    for incident in answer(database, "incidents", {}).incidents:
        if rule_id in {f.finding.rule_id for f in answer(database, "incident", {"id": incident.incident_id}).findings}:
            return str(incident.incident_id)
    raise AssertionError(rule_id)


def mined(database: Database, rule_id: str) -> GoldenTask:
    return mine_incident(database, incident_of(database, rule_id), 1)


def test_a_repeat_must_have_its_effect_once(database: Database) -> None:
    task = mined(database, "unsafe_retry")
    [effect] = task.expected_effects
    assert (effect.tool, effect.times) == ("charge_card", 1)
    assert effect.arguments["amount"].value == 59.9
    assert effect.arguments["key"].kind == "any"  # another key is as good
    assert "unsafe_retry" in task.rules
    assert task.input == "Please charge customer C-80 59.90 for order W-4417."
    assert [stub.outcome for stub in task.stubs] == ["unknown", "succeeded"]
    assert task.forbidden_calls == ()
    assert task.agent == "billing"


def test_a_forbidden_call_stays_forbidden(database: Database) -> None:
    task = mined(database, "forbidden_write")
    [call] = task.forbidden_calls
    assert (call.tool, call.at_most, call.why) == ("delete_customer", 0, "forbidden_write")
    assert call.arguments["customer"].value == "C-17"
    assert task.expected_calls == ()


def test_the_invented_arguments_are_what_is_forbidden(database: Database) -> None:
    task = mined(database, "ungrounded_argument")
    [call] = task.forbidden_calls
    assert call.tool == "issue_refund"
    assert call.arguments["order_id"].value == "W-9931"
    assert call.why == "ungrounded_argument"


def test_a_false_success_keeps_the_failure_that_must_be_told(database: Database) -> None:
    task = mined(database, "false_success")
    assert "false_success" in task.rules
    [stub] = task.stubs
    assert (stub.tool, stub.outcome) == ("update_address", "failed")
    assert task.expected_calls == task.forbidden_calls == ()
    assert "update_address" in {tool.name for tool in task.tools}
    assert next(tool for tool in task.tools if tool.name == "update_address").parameters is not None


def test_mined_again_it_is_the_same_task(database: Database) -> None:
    once, again = mined(database, "unsafe_retry"), mined(database, "unsafe_retry")
    assert once == again
    assert [task.id for task in stored_tasks(database)].count(once.id) == 1


def test_an_incident_that_is_not_there(database: Database) -> None:
    with pytest.raises(UserError, match="nothing"):
        mine_incident(database, "nothing", 1)


def test_tasks_go_to_a_file_and_come_back(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "tasks" / "all.jsonl"
    one, two = mined(database, "unsafe_retry"), mined(database, "false_success")
    assert write_tasks(file, [one]) == 1
    assert write_tasks(file, [two, msgspec.structs.replace(one, reviewed=True)]) == 2
    assert read_tasks(file) == [msgspec.structs.replace(one, reviewed=True), two]
    assert decode_task(encode_task(one)) == one


@pytest.mark.parametrize("change", [{"version": 2}, {"version": None}, {"surprise": 1}, {"input": 7}])
def test_what_is_no_task_of_a_version_we_know_is_named_by_line(
    database: Database, tmp_path: Path, change: dict[str, Any]
) -> None:
    good = encode_task(mined(database, "unsafe_retry"))
    bad = json.dumps({**json.loads(good), **change}).encode()
    file = tmp_path / "tasks.jsonl"
    file.write_bytes(b"\n".join([good, b"", bad, b"no json", b""]))
    with pytest.raises(UserError) as caught:
        read_tasks(file)
    assert [problem.where for problem in caught.value.problems] == [f"{file}:3", f"{file}:4"]


# -- real people -----------------------------------------------------------------------------------
NAME_FIELDS = ("first_name", "last_name")
PRIVATE_FIELDS = (*NAME_FIELDS, "email", "dob", "address1", "zip", "full_name", "phone_number")


def private(value: Any) -> Iterator[tuple[str, str]]:
    """(field, value) of everything personal in tool results."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            value = json.loads(value)
        except ValueError:
            return
    if isinstance(value, dict):
        yield from ((k, v) for k, v in value.items() if k in PRIVATE_FIELDS and isinstance(v, str) and v)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from private(inner)


@pytest.mark.data
def test_tasks_of_real_incidents_hold_nobodys_data(shared: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(shared / "tools"))
    converter: Any = importlib.import_module("to_otlp")
    config = Config(
        data=str(tmp_path / "data"), receive=ReceiveConfig(grpc="", http=f"127.0.0.1:{free_port()}"),
        web=WebConfig(listen=""), spool=SpoolConfig(min_free_bytes=0),
        assemble=AssembleConfig(settle_seconds=0.5, idle_seconds=2),
    )  # fmt: skip
    monitor = Monitor(config, load_laws(config))
    monitor.start()
    sender = Sender(f"http://{config.receive.http}")
    persons: set[tuple[str, str]] = set()
    with gzip.open(shared / "datasets" / "tau2" / "dev.jsonl.gz", "rt") as lines:
        for line in islice(lines, 60):
            record = json.loads(line)
            persons |= set(private([m.get("content") for m in record["messages"] if m.get("role") == "tool"]))
            request = otlp.parse(
                json.dumps(converter.build(record).request).encode(), "application/json", ReceiveConfig()
            )
            sender.send(request.SerializeToString())
    sender.close()
    database = monitor.database
    assert database is not None
    end = time.monotonic() + 60
    while not (found := answer(database, "incidents", {}).incidents) or monitor.workers[2].stats()["runs_open"]:
        assert time.monotonic() < end, "nothing was found"
        time.sleep(0.2)
    tasks = [mine_incident(database, incident.incident_id, 1) for incident in found]
    monitor.stop()
    assert persons
    for task in tasks:
        text = " ".join(texts({**msgspec.to_builtins(task), "tools": [], "source": {}}))
        seen = {v for stub in task.stubs for v in private(stub.result)}
        for field, value in persons:
            if field in NAME_FIELDS or (field == "full_name" and seen):
                continue
            assert value not in text or re.fullmatch(r"\d{1,5}", value), (task.id, field)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from texts(inner)
