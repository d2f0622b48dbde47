"""The short form of the fuzzers: every target on its seeds and on the same few hundred changes of them.
The long form is `make fuzz`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

CHANGES = {"rule_files": 400, "whole": 800, "words": 600}
USUAL_CHANGES = 2000


def changed(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """A few bytes other, gone, twice, or from another input."""
    body = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at, size = chance.randint(0, len(body)), chance.choice((1, 2, 8, 40))
        kind = chance.randrange(4)
        if kind == 0 and body:
            body[at % len(body)] = chance.randrange(256)
        elif kind == 1:
            del body[at : at + size]
        elif kind == 2:
            body[at:at] = body[at : at + size]
        else:
            start = chance.randint(0, len(other))
            body[at:at] = other[start : start + size]
    return bytes(body)


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_that_comes_in_breaks_what_reads_it(name: str) -> None:
    chance = random.Random(name)
    known = list(seeds(name))
    for data in known:
        TARGETS[name](data)
    for _ in range(CHANGES.get(name, USUAL_CHANGES)):
        data = changed(chance.choice(known), chance.choice(known), chance)
        TARGETS[name](data)
        known.append(data)


def test_the_long_form_runs_and_keeps_what_it_found(tmp_path: Path) -> None:
    """With a target that crashes on one byte, so that a fuzzer that finds nothing does not look like a clean one."""
    run = [sys.executable, "-m", "tests.fuzz"]
    where = {"cwd": Path(__file__).parents[2], "env": {**os.environ, "PYTHONHASHSEED": "0"}}
    clean = subprocess.run(
        [*run, "bodies", str(tmp_path), "-runs=200", "-seed=1"], capture_output=True, text=True, **where
    )  # type: ignore[call-overload]
    assert clean.returncode == 0, clean.stderr[-2000:]
    assert "DONE" in clean.stderr
    assert len(list((tmp_path / "bodies").iterdir())) > 40
    crash = subprocess.run(
        [*run, "crash", str(tmp_path), "-runs=20000", "-seed=1"], capture_output=True, text=True, **where
    )  # type: ignore[call-overload]
    assert crash.returncode != 0
    [kept] = tmp_path.glob("crash-crash-*")
    again = subprocess.run([*run, "crash", "--read", str(kept)], capture_output=True, text=True, **where)  # type: ignore[call-overload]
    assert "found a byte that is 77" in again.stderr
