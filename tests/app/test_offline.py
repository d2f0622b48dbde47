"""Judging files is judging live: transcripts and traces, alone and together."""

from __future__ import annotations

from pathlib import Path

from otelmon.app.offline import Checker, Report, check_paths
from otelmon.detect.ledger_stage import LedgerStage
from otelmon.detect.stage import DetectStage
from otelmon.vocabulary.config import Config
from tests.bus.places import SpoolPlace
from tests.cli.conftest import refund
from tests.detect.build import laws, stories
from tests.detect.bus import Wall, config, final, publish


def write(folder: Path, name: str, *lines: str) -> Path:
    file = folder / name
    file.write_text("".join(lines), encoding="utf-8")
    return file


def rules(report: Report) -> list[str]:
    return [finding.rule_id for finding in report.findings]


def test_each_line_is_a_world_unless_they_are_together(tmp_path: Path) -> None:
    file = write(tmp_path, "two.jsonl", refund("a", times=1), refund("b", times=1))
    apart, joined = (check_paths([file], laws(), Config(), together) for together in (False, True))
    assert (rules(apart), rules(joined)) == ([], ["duplicate_run", "duplicate_write"])
    assert (apart.runs, apart.tool_calls) == (joined.runs, joined.tool_calls) == (2, 2)


def test_the_order_of_files_changes_nothing(tmp_path: Path) -> None:
    files = [write(tmp_path, f"{n}.jsonl", refund(n, times=t)) for n, t in (("a", 1), ("b", 2), ("c", 1))]
    one = check_paths(files, laws(), Config(), together=True)
    other = check_paths(files[::-1], laws(), Config(), together=True)
    assert one.findings == other.findings
    assert one.not_evaluable == other.not_evaluable


def test_what_files_show_is_what_the_stages_find(tmp_path: Path) -> None:
    checker = Checker(laws(), Config())
    for story in stories():
        checker._take(story)
    offline = {finding.finding_id for finding in checker.finish().findings}
    place, wall = SpoolPlace(tmp_path / "spool"), Wall()
    bus = place.open()
    publish(bus, stories())
    detect, ledger = DetectStage(bus, laws(), config(), wall), LedgerStage(bus, laws(), config(), wall)
    for _ in range(12):
        detect.step(0.01)
        ledger.step(0.01)
        wall.pass_seconds(60)
    live = {finding.finding_id for found in final(bus).values() for finding in found}
    place.close()
    assert live == offline
    assert len(offline) == 4


def test_what_can_not_be_read_is_a_problem_and_its_neighbours_are_judged(tmp_path: Path) -> None:
    file = write(tmp_path, "some.jsonl", refund("a"), "{broken\n", refund("b"))
    report = check_paths([file], laws(), Config())
    assert [problem.where.startswith(f"{file}:2:") for problem in report.problems] == [True]
    assert rules(report) == ["duplicate_write"] * 2
