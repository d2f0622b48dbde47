"""How good the rules are: labelled runs through the product's own pipeline, and tables of what came out.

A data set is named by path only; nothing of what it says is kept, figures are.
"""

from __future__ import annotations

import gzip
import itertools
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Literal

import msgspec

from otelmon.app.bench.quality_claims import beside, is_statements
from otelmon.app.bench.quality_judge import Opinion, is_opinions, opinions_in
from otelmon.app.bench.quality_runs import JudgedRun, flagged, is_definitions, judge_record, tool_list
from otelmon.app.laws import load_laws
from otelmon.assemble.transcripts import is_transcript
from otelmon.detect.engine import Laws
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import Problem, UserError
from otelmon.vocabulary.finding import Severity

Show = Literal["false-alarms", "hits", "misses"]
SHOWS: tuple[Show, ...] = ("false-alarms", "hits", "misses")
CHUNK = 8
_laws: tuple[Laws, Config] | None = None  # of a worker process, which judges many records by the same laws


def label_of(path: Path) -> str:
    """A data set's name in tables: its folder and file, without what the machine adds."""
    return f"{path.parent.name}/{path.name.split('.')[0]}" if path.parent.name else path.name.split(".")[0]


class Sources(msgspec.Struct, frozen=True):
    """Data sets by what they hold. `runs`: labelled runs; `definitions`: tools without runs (lists of a release, or one
    tool before and after a change); `statements`: files of statements read by hand; `opinions`: of models about runs."""

    runs: tuple[Path, ...]
    definitions: tuple[Path, ...]
    statements: tuple[Path, ...]
    opinions: tuple[Path, ...] = ()


def sources(paths: Sequence[Path]) -> Sources:
    """Sort data sets by what their first record is; statements that lie beside them come along. Raises UserError
    for a file that can not be read."""
    runs: list[Path] = []
    definitions: list[Path] = []
    read_by_hand: list[Path] = []
    judged: list[Path] = []
    for path in paths:
        if path.suffix == ".json" and _is_statements(path):
            read_by_hand.append(path)
            continue
        first = _first_record(path)
        (definitions if is_definitions(first) else judged if is_opinions(first) else runs).append(path)
    found = {path.resolve(): None for path in read_by_hand} | dict.fromkeys(beside(runs))
    return Sources(tuple(runs), tuple(definitions), tuple(found), tuple(judged))


def opinions(path: Path) -> list[Opinion]:
    """The opinions of models in a file. Raises UserError for a line that holds none."""
    found: list[Opinion] = []
    for number, line in _lines(path):
        record = _decoded(line, str(path), number)
        if not is_opinions(record):
            wrong, expected = "holds no opinion of a model", "{simulation_id, judges: {prompt: {verdict, cost_usd}}}"
            raise UserError(Problem(f"{path}:{number}", wrong, expected))
        found += opinions_in(record)
    return found


def measure(
    paths: Sequence[Path], config: Config, origins: Mapping[str, str], processes: int, most: int | None = None
) -> list[JudgedRun]:
    """Judge every record (or the first `most`) of every data set, in the order of the files. Raises
    UserError for a file that is no data set and for rules that can not be loaded."""
    load_laws(config, origins)  # mistakes are told once, here, not by each process
    lines = [
        (label_of(path), str(path), number, line)
        for path in paths
        for number, line in itertools.islice(_lines(path), most)
    ]
    if processes == 1:
        _prepare(config, dict(origins))
        return [_judge_line(line) for line in lines]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _prepare, (config, dict(origins))) as pool:
        return list(pool.map(_judge_line, lines, chunksize=CHUNK))


def chosen(runs: Sequence[JudgedRun], show: Show, least: Severity) -> list[JudgedRun]:
    """The runs behind a cell: flagged although they passed, flagged and failed, failed and not flagged. Of
    attacked runs those count as failed in which the attack succeeded, and the others as passed."""
    bad = {id(run): run.attack == "succeeded" if run.attack else run.passed is False for run in runs}
    if show == "misses":
        return [run for run in runs if bad[id(run)] and not flagged(run, least)]
    return [run for run in runs if flagged(run, least) and bad[id(run)] is (show == "hits")]


def _is_statements(path: Path) -> bool:
    try:
        return is_statements(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.DecodeError):
        return False


def _first_record(path: Path) -> Any:
    """The first line of a file as JSON; None when it is none, which is told when the file is judged."""
    for _, line in _lines(path):
        try:
            return msgspec.json.decode(line)
        except msgspec.DecodeError:
            return None
    return None


def _decoded(line: bytes, path: str, number: int) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise UserError(Problem(f"{path}:{number}", f"is not JSON: {error}", "one record a line")) from None


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, unpacked when they are packed."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as lines:
            yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    except (OSError, EOFError) as error:
        expected = "JSON lines with labels, .gz or not"
        raise UserError(Problem(str(path), f"can not be read: {error}", expected, "name the files")) from None


def _prepare(config: Config, origins: dict[str, str]) -> None:
    global _laws
    _laws = (load_laws(config, origins), config)


def _judge_line(line: tuple[str, str, int, bytes]) -> JudgedRun:
    label, path, number, text = line
    if _laws is None:
        raise RuntimeError("a record came before the laws")
    record = _decoded(text, path, number)
    if is_definitions(record):
        return tool_list(record, label)
    if not is_transcript(record) or not isinstance(record.get("labels"), dict):
        wrong, expected = "is no labelled run", "an object with id, tools, messages and labels, or a list of tools"
        raise UserError(Problem(f"{path}:{number}", wrong, expected))
    return judge_record(record, label, *_laws)
