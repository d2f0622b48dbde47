"""Telemetry from files: each file, and each line of a JSON-lines file, is a world of its own.

Log records of a run lie in a file of their own: see `with_logs`.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from otelmon.receive import otlp
from otelmon.receive.otlp_json import position, text_of
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import InputError, Problem, UserError

MAX_LINE_BYTES = 256 * 1024 * 1024
"""Longest line, and largest single document, after decompression."""
MAX_PROBLEMS = 1000
_LIMITS = ReceiveConfig(max_request_bytes=MAX_LINE_BYTES, max_span_bytes=MAX_LINE_BYTES, message_bytes=MAX_LINE_BYTES)
_BLANK = b" \t\r\n"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_EXPECTED = "an OTLP request of traces (resourceSpans) or logs (resourceLogs), or a chat transcript (messages)"
_OTHER_SIGNALS = {"resource_metrics": "metrics", "resource_profiles": "profiles"}

OnProblem = Callable[[str, Problem], None]


class World(msgspec.Struct, frozen=True):
    """What is judged together: one request, or one chat transcript ({id, tools, messages}). `logs` is a
    request of log records (ExportLogsServiceRequest), a world of another kind: it completes those of the
    traces it names.

    `source` is "file:line". `rejected` counts spans of the request that had to be left out, by reason,
    and `message` names an example of each.
    """

    source: str
    request: Any = None
    transcript: dict[str, Any] | None = None
    logs: Any = None
    rejected: dict[str, int] = {}
    message: str = ""


_ABSENT = msgspec.Raw()


class _Kind(msgspec.Struct, rename="camel"):
    """Which of the known documents a JSON object is: only whether a key is there."""

    resource_spans: msgspec.Raw = _ABSENT
    resource_logs: msgspec.Raw = _ABSENT
    resource_metrics: msgspec.Raw = _ABSENT
    resource_profiles: msgspec.Raw = _ABSENT
    messages: msgspec.Raw = _ABSENT

    def has(self, name: str) -> bool:
        """Whether the key is there and not null."""
        return bytes(getattr(self, name)) not in (b"", b"null")


_kind = msgspec.json.Decoder(_Kind)
_transcript = msgspec.json.Decoder(dict[str, Any])


def read_worlds(path: Path, on_problem: OnProblem | None = None) -> Iterator[World]:
    """The worlds of one file, streamed: OTLP/JSON (one document or JSON lines), OTLP protobuf, chat
    transcripts, and each of them compressed with gzip; told apart by content.

    What can not be read is given to `on_problem(reason, problem)` as it is met; without it, one
    InputError with all problems is raised after the last good world. UserError when the file can not be opened.
    """
    reader = _Reader(str(path), on_problem)
    try:
        with path.open("rb") as file:
            yield from reader.worlds(file)
    except OSError as error:
        what = "is a folder" if path.is_dir() else f"can not be read: {error.strerror or error}"
        raise UserError(Problem(str(path), what, "a file with traces or transcripts", "name the files")) from None
    reader.finish()


def is_logs(path: Path) -> bool:
    """Whether a file is named as one of log records: `x.logs.otlp.json` beside `x.otlp.json`."""
    return ".logs." in path.name


def with_logs(paths: Sequence[Path]) -> list[tuple[Path, list[Path]]]:
    """Every path that is no file of logs, with the files of logs named for it, in the order given. Files of
    logs without their traces come last, alone."""
    logs = {path: path.with_name(path.name.replace(".logs.", ".", 1)) for path in paths if is_logs(path)}
    mine = [(path, [log for log, traces in logs.items() if traces == path]) for path in paths if path not in logs]
    return mine + [(log, []) for log, traces in logs.items() if traces not in paths]


class _Reader:
    def __init__(self, name: str, on_problem: OnProblem | None) -> None:
        self._name = name
        self._told = on_problem
        self._problems: list[Problem] = []
        self._reason = ""
        self._left_out = 0

    def worlds(self, file: io.BufferedReader) -> Iterator[World]:
        """Every world of an open file."""
        try:
            if file.peek(2)[:2] == _GZIP:
                yield from self._documents(io.BufferedReader(gzip.GzipFile(fileobj=file)))
            else:
                yield from self._documents(file)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            self._problem("invalid_compression", Problem(self._name, f"broken gzip: {error}", "a whole gzip file"))

    def finish(self) -> None:
        """Raise what was not told."""
        if self._left_out:
            self._problems.append(Problem(self._name, f"and {self._left_out} more problems"))
        if self._problems:
            raise InputError(self._reason, *self._problems)

    def _problem(self, reason: str, problem: Problem) -> None:
        if self._told:
            self._told(reason, problem)
        elif len(self._problems) < MAX_PROBLEMS:
            self._reason = self._reason or reason
            self._problems.append(problem)
        else:
            self._left_out += 1

    def _documents(self, stream: io.BufferedReader[Any]) -> Iterator[World]:
        head = stream.peek(4096)[:4096]
        start = head.removeprefix(_BOM).lstrip(_BLANK)[:1]
        if not start:
            self._problem("unknown_format", Problem(self._name, "is empty", _EXPECTED))
        elif start == b"{":
            yield from self._json(stream)
        elif start == b"[":
            self._problem("unknown_format", Problem(f"{self._name}:1", "is a JSON array", "one object, or one a line"))
        elif head[:1] == b"\n":
            yield from self._protobuf(_whole(stream, b""))
        else:
            self._problem("unknown_format", Problem(self._name, "is neither JSON nor protobuf", _EXPECTED))

    def _json(self, stream: io.BufferedReader[Any]) -> Iterator[World]:
        """JSON lines when the first line is a document of its own, or broken with a document in the next."""
        head: list[bytes] = []
        objects = 0
        while objects < 2 and (line := stream.readline(MAX_LINE_BYTES)):
            head.append(line if head else line.removeprefix(_BOM))
            objects += bool(line.strip(_BLANK))
            if objects and (_ends(head[-1]) if objects == 1 else _known(head[-1])):
                yield from self._lines(chain(head, self._rest(stream, len(head))))
                return
        yield from self._document(_whole(stream, b"".join(head)))

    def _rest(self, stream: io.BufferedReader[Any], number: int) -> Iterator[bytes]:
        """The lines that are left; one that is too long is told and given as blank."""
        while line := stream.readline(MAX_LINE_BYTES):
            number += 1
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                wrong = f"is longer than {MAX_LINE_BYTES} bytes"
                self._problem("too_large", Problem(f"{self._name}:{number}", wrong))
                while line and not line.endswith(b"\n"):
                    line = stream.readline(1 << 20)
                line = b"\n"
            yield line

    def _lines(self, lines: Iterable[bytes]) -> Iterator[World]:
        for number, line in enumerate(lines, 1):
            if line.strip(_BLANK):
                try:
                    world = self._world(number, line)
                except InputError as error:
                    self._tell(error)
                else:
                    yield world

    def _document(self, body: bytes) -> Iterator[World]:
        if len(body) > MAX_LINE_BYTES:
            wrong, do = f"is larger than {MAX_LINE_BYTES} bytes", "write one request a line (JSON lines)"
            self._problem("too_large", Problem(f"{self._name}:1", wrong, "", do))
            return
        try:
            world = self._world(1, body)
        except InputError as error:
            broken = error.reason == "invalid_json"
            if broken and any(_known(line) for line in body.split(b"\n")):
                yield from self._lines(body.split(b"\n"))
            elif broken and body[:1] == b"\n" and not _is_text(body):
                yield from self._protobuf(body)
            else:
                self._tell(error)
        else:
            yield world

    def _tell(self, error: InputError) -> None:
        for problem in error.problems:
            self._problem(error.reason, problem)

    def _world(self, number: int, body: bytes) -> World:
        source = f"{self._name}:{number}"
        kind = self._decoded(_kind, number, body)
        for shape in (otlp.TRACES, otlp.LOGS):
            if kind.has(shape.resources):
                return self._request(number, body, shape)
        if bytes(kind.messages)[:1] == b"[":
            return World(source, None, self._decoded(_transcript, number, body))
        for name, what in _OTHER_SIGNALS.items():
            if kind.has(name):
                wrong = f"holds {what}, which are not read yet"
                raise InputError("unsupported_signal", Problem(source, wrong, _EXPECTED, "leave the file out"))
        raise InputError("unknown_format", Problem(source, "is neither a request nor a transcript", _EXPECTED))

    def _request(self, number: int, body: bytes, shape: otlp.Shape) -> World:
        try:
            parsed = otlp.read(body, otlp.JSON, _LIMITS, shape)
        except InputError as error:
            raise InputError(error.reason, *(self._placed(number, p) for p in error.problems)) from None
        return _world(f"{self._name}:{number}", parsed, shape)

    def _decoded(self, decoder: msgspec.json.Decoder[Any], number: int, body: bytes) -> Any:
        try:
            return decoder.decode(body)
        except msgspec.ValidationError as error:
            raise InputError("unknown_format", Problem(f"{self._name}:{number}", str(error), _EXPECTED)) from None
        except msgspec.DecodeError as error:
            place = position(body, error)
            problem = Problem("body" + place, text_of(error), "JSON")
            raise InputError("invalid_json", self._placed(number, problem)) from None
        except RecursionError:
            problem = Problem(f"{self._name}:{number}", "JSON nested too deep to read")
            raise InputError("too_deep", problem) from None

    def _placed(self, number: int, problem: Problem) -> Problem:
        """A problem of a body, placed in the file: "body:line:column" counts from the body's own first line."""
        _, *place = problem.where.split(":")
        line = number + (int(place[0]) - 1 if place else 0)
        where = ":".join([self._name, str(line), *place[1:]])
        return Problem(where, problem.wrong, problem.expected, problem.do)

    def _protobuf(self, body: bytes) -> Iterator[World]:
        shape = otlp.LOGS if is_logs(Path(self._name)) else otlp.TRACES
        try:
            parsed = otlp.read(body, otlp.PROTOBUF, _LIMITS, shape)
        except InputError as error:
            for p in error.problems:
                self._problem(error.reason, Problem(self._name, p.wrong, p.expected or _EXPECTED, p.do))
            return
        yield _world(f"{self._name}:1", parsed, shape)


def _world(source: str, parsed: otlp.Parsed, shape: otlp.Shape) -> World:
    if shape is otlp.LOGS:
        return World(source, logs=parsed.request, rejected=parsed.rejected, message=parsed.message)
    return World(source, parsed.request, None, None, parsed.rejected, parsed.message)


def _whole(stream: io.BufferedReader[Any], read: bytes) -> bytes:
    """All of a stream behind what was read of it, but no more than one byte beyond the limit."""
    return read + stream.read(MAX_LINE_BYTES + 1 - len(read))


def _ends(line: bytes) -> bool:
    """Whether a line is a document of its own, however wrong: not one that goes on in the next line."""
    try:
        _kind.decode(line)
    except msgspec.ValidationError:
        return True
    except msgspec.DecodeError as error:
        return "truncated" not in str(error)
    except RecursionError:
        return True
    return True


def _known(line: bytes) -> bool:
    """Whether a line is one of the documents that are read, or refused by name."""
    try:
        kind = _kind.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return any(kind.has(name) for name in kind.__struct_fields__)


def _is_text(body: bytes) -> bool:
    """Whether a body holds no control characters, as JSON never does."""
    return not any(byte < 32 and byte not in _BLANK for byte in body[:4096])
