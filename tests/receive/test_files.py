"""Files are worlds, told apart by content; what can not be read is said in full and costs nothing else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from otelmon.receive import files, otlp
from otelmon.receive.files import World, read_worlds, with_logs
from otelmon.receive.tally import REQUEST_REASONS
from otelmon.vocabulary.errors import InputError, UserError
from tests.receive.build import NOW, a_group, a_span, as_json, as_protobuf

REQUEST = as_json([a_group(a_span(name="one"))])
PRETTY = json.dumps(json.loads(REQUEST), indent=2).encode()
PROTOBUF = as_protobuf([a_group(a_span(name="one"))])
TRANSCRIPT = b'{"id": "t1", "tools": [], "messages": [{"role": "user", "content": "hi"}]}'


class Read:
    """The worlds of a file with this content, and the problems told."""

    def __init__(self, path: Path) -> None:
        self.problems: list[tuple[str, str]] = []
        self.worlds = [
            self._short(path, world)
            for world in read_worlds(path, lambda r, p: self.problems.append((r, str(p).removeprefix(f"{path}"))))
        ]
        assert {reason for reason, _ in self.problems} <= set(REQUEST_REASONS)

    @staticmethod
    def _short(path: Path, world: World) -> tuple[str, str]:
        source = world.source.removeprefix(str(path))
        if world.transcript is not None:
            assert world.request is None
            return source, world.transcript["id"]
        return source, "+".join(span.name for span in otlp.spans(world.request, NOW))


Reader = Callable[[bytes], Read]


@pytest.fixture(params=["plain", "gzip"])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    """Reads content, as it is and compressed; the name of the file says nothing."""

    def of(content: bytes) -> Read:
        path = tmp_path / "file.bin"
        path.write_bytes(gzip.compress(content) if request.param == "gzip" else content)
        return Read(path)

    return of


@pytest.mark.parametrize("content", [REQUEST, PRETTY, PROTOBUF, b"\xef\xbb\xbf" + PRETTY, REQUEST + b"\r\n\r\n"])
def test_one_request_is_one_world(read: Reader, content: bytes) -> None:
    result = read(content)
    assert result.worlds == [(":1", "one")]
    assert result.problems == []


@pytest.mark.parametrize("content", [TRANSCRIPT, json.dumps(json.loads(TRANSCRIPT), indent=1).encode()])
def test_one_transcript_is_one_world(read: Reader, content: bytes) -> None:
    assert read(content).worlds == [(":1", "t1")]


def test_each_line_is_a_world(read: Reader) -> None:
    result = read(b"\xef\xbb\xbf\n" + REQUEST + b"\n\n" + TRANSCRIPT + b"\r\n" + REQUEST)
    assert result.worlds == [(":2", "one"), (":4", "t1"), (":5", "one")]
    assert result.problems == []


def test_bad_lines_are_told_with_their_place_and_lose_no_other(read: Reader) -> None:
    lines = [
        REQUEST,
        b'{"messages": [}',
        b'{"other": 1}',
        b"[]",
        TRANSCRIPT,
        b'{"resourceSpans": {}}',
        b'{"mess',
        REQUEST,
    ]
    result = read(b"\n".join(lines))
    assert result.worlds == [(":1", "one"), (":5", "t1"), (":8", "one")]
    assert [(reason, text.split(" ", 1)[0]) for reason, text in result.problems] == [
        ("invalid_json", ":2:15:"),
        ("unknown_format", ":3:"),
        ("unknown_format", ":4:"),
        ("invalid_json", ":6:"),
        ("invalid_json", ":7:7:"),
    ]


@pytest.mark.parametrize(
    "first", [b'{"resourceSpans": [nope]}', b'{"resourceSpans": [', b'{"a":1}', b'{"messages": 5}']
)
def test_a_bad_first_line_loses_no_other(read: Reader, first: bytes) -> None:
    result = read(first + b"\n" + REQUEST + b"\n" + TRANSCRIPT)
    assert result.worlds == [(":2", "one"), (":3", "t1")]
    assert len(result.problems) == 1
    assert result.problems[0][1].startswith(":1:")


def test_bad_first_lines_that_look_like_one_document_lose_no_other(read: Reader) -> None:
    result = read(b'{"cut": \n{"cut": \n' + REQUEST)
    assert result.worlds == [(":3", "one")]
    assert [text[:3] for _, text in result.problems] == [":1:", ":2:"]


def test_a_document_over_lines_that_hold_objects_stays_one_document(read: Reader) -> None:
    [resource_spans] = json.loads(REQUEST)["resourceSpans"]
    result = read(b'{"resourceSpans": [\n' + json.dumps(resource_spans).encode() + b"\n]}")
    assert result.worlds == [(":1", "one")]


def test_a_mistake_in_a_pretty_document_is_placed(read: Reader) -> None:
    result = read(b'\n{\n "resourceSpans": [\n\n  oops]}')
    assert result.worlds == []
    assert result.problems == [("invalid_json", ":5:3: JSON is malformed: invalid character; JSON")]


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        (b"", "unknown_format", "is empty"),
        (b" \n\n", "unknown_format", "is empty"),
        (b"hello", "unknown_format", "is neither JSON nor protobuf"),
        (b"[1]", "unknown_format", "is a JSON array"),
        (b'{"resourceMetrics":[{}]}', "unsupported_signal", "holds metrics, which are not read yet"),
        (b'{"resourceSpans":null}', "unknown_format", "is neither a request nor a transcript"),
        (b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}", "too_deep", "nested too deep"),
        (PROTOBUF[:-1], "invalid_protobuf", "cut off"),
    ],
)
def test_what_is_no_world_is_refused_by_name(read: Reader, content: bytes, reason: str, says: str) -> None:
    result = read(content)
    assert result.worlds == []
    [(told, text)] = result.problems
    assert told == reason
    assert says in text


def test_protobuf_that_begins_like_text_is_protobuf(read: Reader) -> None:
    """A request whose first part is 123 bytes long begins with a line end and a brace."""
    name = "n" * next(n for n in range(200) if as_protobuf([a_group(a_span(name="n" * n))])[1:2] == b"{")
    content = as_protobuf([a_group(a_span(name=name))])
    assert content.startswith(b"\n{")
    assert read(content).worlds == [(":1", name)]
    lines = content + as_protobuf([a_group(a_span(name="\n\n\n \n{ \n", span=b"2" * 8))])
    assert read(lines).worlds == [(":1", name + "+\n\n\n \n{ \n")]


def test_spans_that_are_left_out_are_counted_in_their_world(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(as_json([a_group(a_span(trace=bytes(16)), a_span())]))
    [world] = read_worlds(path)
    assert world.rejected == {"invalid_trace_id": 1}
    assert "invalid_trace_id 1" in world.message


@pytest.mark.parametrize("content", [b"\x1f\x8bnot gzip", gzip.compress(REQUEST * 3)[:-9]])
def test_broken_gzip_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(content)
    [(reason, text)] = Read(path).problems
    assert reason == "invalid_compression"
    assert "broken gzip" in text


def test_lines_before_broken_gzip_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"".join(b'{"id": "%d", "messages": []}\n' % (n * n) for n in range(20_000)))[:-9])
    result = Read(path)
    assert result.worlds[:2] == [(":1", "0"), (":2", "1")]
    assert [reason for reason, _ in result.problems] == ["invalid_compression"]


def test_without_a_listener_all_problems_come_at_the_end_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"a":1}\n' + REQUEST + b"\n{oops\n")
    worlds = read_worlds(path)
    assert next(worlds).source == f"{path}:2"
    with pytest.raises(InputError) as caught:
        next(worlds)
    assert [problem.where for problem in caught.value.problems] == [f"{path}:1", f"{path}:3:2"]
    assert caught.value.reason == "unknown_format"


def test_the_number_of_problems_told_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"a":1}\n' * (files.MAX_PROBLEMS + 7))
    with pytest.raises(InputError) as caught:
        list(read_worlds(path))
    assert len(caught.value.problems) == files.MAX_PROBLEMS + 1
    assert "and 7 more problems" in str(caught.value.problems[-1])


def test_a_line_that_is_too_long_loses_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 2 * len(REQUEST))
    path = tmp_path / "x"
    long = b'{"messages":["' + b"x" * 3 * len(REQUEST) + b'"]}'
    path.write_bytes(b"\n".join([REQUEST, long, REQUEST]))
    result = Read(path)
    assert result.worlds == [(":1", "one"), (":3", "one")]
    assert [(reason, text[:3]) for reason, text in result.problems] == [("too_large", ":2:")]
    path.write_bytes(PRETTY * 2)
    assert [reason for reason, _ in Read(path).problems] == ["too_large"]


@pytest.mark.parametrize(("name", "says"), [("absent", "can not be read: No such file"), (".", "is a folder")])
def test_a_file_that_can_not_be_opened_is_the_users_mistake(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        list(read_worlds(tmp_path / name))


@pytest.mark.parametrize("first", [TRANSCRIPT, b"{oops}\n{oops}"])
def test_a_large_file_of_lines_is_streamed(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(first + b"\n" + (TRANSCRIPT + b"\n") * 20_000)
    with path.open("rb") as file:
        reader = files._Reader(str(path), None)
        next(reader.worlds(file))
        assert file.tell() < 100_000 < path.stat().st_size


def test_files_of_logs_belong_to_the_traces_they_are_named_after() -> None:
    a, a_logs, b, c_logs = (Path("d") / n for n in ("a.otlp.json", "a.logs.otlp.json", "b.jsonl", "c.logs.otlp.json"))
    elsewhere = Path("e/a.otlp.json")
    assert with_logs([a_logs, b, c_logs, a, elsewhere]) == [(b, []), (a, [a_logs]), (elsewhere, []), (c_logs, [])]


@pytest.mark.data
def test_every_sample_is_read(shared: Path) -> None:
    samples = sorted((shared / "spans").glob("*.otlp.json"))
    assert samples
    for path in samples:
        if ".logs." in path.name:
            [world] = read_worlds(path)
            assert list(otlp.log_records(world.logs, NOW)), path
            assert (world.request, world.transcript, world.rejected) == (None, None, {})
        else:
            result = Read(path)
            assert result.problems == [], path
            [(source, names)] = result.worlds
            assert source == ":1"
            assert names


@pytest.mark.data
def test_every_sample_is_the_same_in_protobuf(shared: Path, tmp_path: Path) -> None:
    for path in sorted((shared / "spans").glob("*.otlp.json")):
        [world] = read_worlds(path)
        assert not world.rejected
        copy = tmp_path / f"copy.{'logs.' if world.logs else ''}binpb"
        copy.write_bytes((world.logs or world.request).SerializeToString())
        [again] = read_worlds(copy)
        if world.logs:
            assert list(otlp.log_records(again.logs, NOW)) == list(otlp.log_records(world.logs, NOW)), path
        else:
            assert list(otlp.spans(again.request, NOW)) == list(otlp.spans(world.request, NOW)), path


@pytest.mark.data
@pytest.mark.parametrize("name", ["tau2", "taubench", "tau2_es", "agentdojo"])
def test_every_transcript_is_read(shared: Path, name: str) -> None:
    worlds = list(read_worlds(shared / "datasets" / name / "dev.jsonl.gz"))
    assert len(worlds) > 100
    assert all(world.transcript and isinstance(world.transcript["messages"], list) for world in worlds)
