"""The demo does what it promises: wrong agents are found within a minute, right ones are left alone."""

from __future__ import annotations

import re

from otelmon.app.demo.agents import RIGHT, WRONG
from otelmon.cli.demo import EXPECTED
from tests.demo import Demo


def test_every_wrong_agent_is_found_and_no_right_one(demo: Demo) -> None:
    assert demo.code == 0, demo.out + demo.err
    found = re.findall(r"^ {11}([a-z_]+): ", demo.out, re.M)
    assert set(found) >= EXPECTED  # one wrong deed may be seen from several sides
    assert len(WRONG) == len(EXPECTED)
    assert f"Running {len(WRONG)} agents" in demo.out
    assert f"and {len(RIGHT)} that look alike" in demo.out
    for right in ("9 Mill Lane", "C-81", "crew@example.com"):
        assert right not in demo.out


def test_it_says_how_long_the_last_incident_took(demo: Demo) -> None:
    match = re.search(r"^(\d+) incidents, the last after (\d+) s:$", demo.out, re.M)
    assert match
    assert int(match[1]) == len(re.findall(r"/incidents/[0-9a-f-]+$", demo.out, re.M))
    assert int(match[2]) < 60


def test_it_complains_about_nothing_and_keeps_its_data_in_its_folder(demo: Demo) -> None:
    assert demo.err == ""
    assert [path.name for path in demo.folder.iterdir()] == ["otelmon-data"]
    assert (demo.data / "otelmon.duckdb").is_file()
