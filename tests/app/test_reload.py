"""Laws that change while the monitor serves: all of a new set or nothing of it, told once, swapped between steps."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from otelmon.app.reload import LawSource, Loaded, Reloader
from otelmon.rules.loader import builtin_rules_dir
from otelmon.vocabulary.errors import UserError

PATIENCE_S = 30.0
LOOP = (builtin_rules_dir() / "loop.yaml").read_text(encoding="utf-8")


def a_rule(rule_id: str, **changes: str) -> str:
    """The rule `loop` under another id; `changes` replace the values of top keys."""
    lines = []
    for line in LOOP.replace("id: loop", f"id: {rule_id}", 1).splitlines():
        key = line.partition(":")[0]
        lines.append(f"{key}: {changes[key]}" if key in changes else line)
    return "\n".join(lines) + "\n"


def until(true: Callable[[], object], what: str = "did not happen") -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Watched:
    """A settings file, a folder of rules, and a reloader on them."""

    def __init__(self, folder: Path) -> None:
        self.file, self.rules = folder / "otelmon.toml", folder / "mine"
        self.rules.mkdir()
        self.catalogue = folder / "catalogue.yaml"
        self.catalogue.write_text("version: 1\ntools: []\n")
        self.file.write_text(f'rules_dirs = ["{self.rules}"]\ncatalogue = "{self.catalogue}"\n')
        (self.rules / "mine_one.yaml").write_text(a_rule("mine_one"))
        self.source = LawSource(self.file, {}, {})
        self.applied: list[Loaded] = []
        self.results: Counter[str] = Counter()
        self.reloader = Reloader(self.source, self.source.load(), self.applied.append, self._count, time.time_ns)
        self.reloader.start()

    def _count(self, result: str) -> None:
        self.results[result] += 1

    def refused(self, times: int) -> tuple[str, ...]:
        """What stood against the last attempt, once there were so many failures."""
        until(lambda: self.results["failure"] == times and not self.reloader.last.ok)
        return self.reloader.last.mistakes

    def accepted(self, times: int) -> Loaded:
        until(lambda: self.results["success"] == times and self.reloader.last.ok)
        return self.applied[-1]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    made.reloader.stop()


def test_a_changed_rule_is_taken_with_another_version(watched: Watched) -> None:
    before = watched.source.load().laws.rules
    (watched.rules / "mine_one.yaml").write_text(a_rule("mine_one", severity="critical"))
    after = watched.accepted(1).laws.rules
    assert after.rules["mine_one"].severity == "critical"
    assert after.rules["mine_one"].version != before.rules["mine_one"].version
    assert after.version == watched.reloader.last.version != before.version


def test_a_half_written_file_changes_nothing_and_is_told_once(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    whole = a_rule("mine_two")
    with caplog.at_level(logging.ERROR, "otelmon"):
        (watched.rules / "mine_two.yaml").write_text(whole[: len(whole) // 2])
        mistakes = watched.refused(1)
        time.sleep(1.5)  # three more looks at the same file
    assert watched.results == {"failure": 1}
    assert watched.applied == []
    assert all(mistake.startswith(f"{watched.rules}/mine_two.yaml:") for mistake in mistakes)
    assert [r.getMessage().count(mistakes[0]) for r in caplog.records] == [1]
    (watched.rules / "mine_two.yaml").write_text(whole)
    assert "mine_two" in watched.accepted(1).laws.rules.rules


def test_of_two_files_one_is_wrong_and_neither_is_taken(watched: Watched) -> None:
    (watched.rules / "mine_one.yaml").write_text(a_rule("mine_one", severity="critical"))
    (watched.rules / "mine_two.yaml").write_text(a_rule("mine_two", severity="terrible"))
    (mistake,) = watched.refused(1)
    line = a_rule("mine_two").splitlines().index("severity: medium") + 1
    assert mistake.startswith(f'{watched.rules}/mine_two.yaml:{line}:1: severity is "terrible"; expected one of')
    assert watched.applied == []
    (watched.rules / "mine_two.yaml").unlink()
    assert watched.accepted(1).laws.rules.rules["mine_one"].severity == "critical"


def test_a_folder_that_goes_leaves_the_rules_and_may_come_back(watched: Watched, tmp_path: Path) -> None:
    watched.rules.rename(tmp_path / "gone")
    (mistake,) = watched.refused(1)
    assert mistake.startswith(f"{watched.rules}: is no folder")
    (tmp_path / "gone").rename(watched.rules)
    assert "mine_one" in watched.accepted(1).laws.rules.rules


def test_a_rule_that_is_removed_is_no_longer_in_force(watched: Watched) -> None:
    (watched.rules / "mine_one.yaml").unlink()
    assert "mine_one" not in watched.accepted(1).laws.rules.rules


def test_settings_and_catalogue_are_watched_and_what_needs_a_restart_is_named(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    text = watched.file.read_text()
    suppress = '[[suppress]]\nrule = "loop"\nreason = "known"\nexpires = "2020-01-01"\n'
    with caplog.at_level(logging.WARNING, "otelmon"):
        watched.file.write_text(f'{text}[rules.loop]\nseverity = "low"\n{suppress}[store]\nbatch_seconds = 9\n')
        loaded = watched.accepted(1)
    assert loaded.laws.rules.rules["loop"].severity == "low"
    assert loaded.laws.rules.rules["loop"].overridden == ("severity",)
    assert [one.rule for one in loaded.laws.suppress] == ["loop"]
    assert watched.reloader.last.restart == ("store.batch_seconds",)
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert "only after a restart: store.batch_seconds" in told
    assert "expired on 2020-01-01" in told
    watched.catalogue.write_text("version: 1\ntools: [{name: pay, efect: write}]\n")
    assert "efect" in watched.refused(1)[0]
    watched.catalogue.write_text("version: 1\ntools: [{name: pay, effect: write}]\n")
    catalogue = watched.accepted(2).laws.catalogue
    assert catalogue is not None
    assert [tool.name for tool in catalogue.tools] == ["pay"]


def test_a_settings_file_that_goes_is_a_mistake_not_a_return_to_the_defaults(watched: Watched) -> None:
    watched.file.unlink()
    assert "can not be read" in watched.refused(1)[0]
    assert watched.applied == []


def test_the_default_file_may_come_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = LawSource(None, {}, {})
    first = source.load()
    (tmp_path / "otelmon.toml").write_text("[rules.loop]\nenabled = false\n")
    assert source.stamps() != first.stamps
    assert "loop" not in source.load().laws.rules.rules
    (tmp_path / "otelmon.toml").unlink()
    with pytest.raises(UserError, match="can not be read"):
        source.load()


def test_a_folder_named_later_is_watched_from_then_on(watched: Watched, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "third.yaml").write_text(a_rule("third"))
    watched.file.write_text(f'rules_dirs = ["{watched.rules}", "{other}"]\n')
    assert "third" in watched.accepted(1).laws.rules.rules
    (other / "third.yaml").write_text(a_rule("third", severity="info"))
    assert watched.accepted(2).laws.rules.rules["third"].severity == "info"


def test_asking_takes_the_files_though_nothing_changed(watched: Watched) -> None:
    watched.reloader.ask()
    watched.accepted(1)
    time.sleep(1.2)
    assert watched.results == {"success": 1}


class Slow(LawSource):
    """A source that is slow to read, so that files can change meanwhile."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.reading, self.go = threading.Event(), threading.Event()
        self.go.set()

    def load(self) -> Loaded:
        loaded = super().load()
        self.reading.set()
        assert self.go.wait(PATIENCE_S)
        return loaded


def test_files_that_change_while_they_are_read_are_read_again(tmp_path: Path) -> None:
    rule = tmp_path / "mine_one.yaml"
    rule.write_text(a_rule("mine_one"))
    source = Slow(None, {}, {"rules_dirs": [str(tmp_path)]})
    applied: list[Loaded] = []
    reloader = Reloader(source, source.load(), applied.append, lambda _: None, time.time_ns)
    source.reading.clear()
    source.go.clear()
    reloader.start()
    try:
        rule.write_text(a_rule("mine_one", severity="low"))
        assert source.reading.wait(PATIENCE_S)
        rule.write_text(a_rule("mine_one", severity="critical"))
        source.go.set()
        until(lambda: applied)
        time.sleep(0.1)
    finally:
        reloader.stop()
    assert [one.laws.rules.rules["mine_one"].severity for one in applied] == ["critical"]


def test_a_file_replaced_by_one_of_the_same_time_and_size_is_seen(watched: Watched, tmp_path: Path) -> None:
    file = watched.rules / "mine_one.yaml"
    before = file.stat()
    other = tmp_path / "new.yaml"
    other.write_text(a_rule("mine_one").replace("severity: ", "severity: ", 1))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, file)
    assert file.stat().st_size == before.st_size
    watched.accepted(1)
