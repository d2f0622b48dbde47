"""Tools from files of any kind: the operator's catalogue, MCP `tools/list` JSON, traces, transcripts."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from otelmon.assemble.history import History
from otelmon.assemble.readings import read_span
from otelmon.assemble.transcripts import read_transcript
from otelmon.receive import otlp
from otelmon.receive.files import World, read_worlds
from otelmon.rules.catalogue import load_catalogue
from otelmon.store.results import ToolVersion
from otelmon.vocabulary.catalogue import Annotations, Catalogue, Tool
from otelmon.vocabulary.errors import Problem, UserError
from otelmon.vocabulary.reading import Definition, Reading

_SCHEMAS = ("inputSchema", "input_schema", "parameters")
_EXPECTED = "expected an operator's catalogue, the answer of tools/list, traces or transcripts"


def read_catalogue(path: Path) -> Catalogue:
    """The tools a file holds; of an operator's file also the policy. Raises UserError."""
    if path.suffix in (".yaml", ".yml"):
        return load_catalogue(path)
    listed = _listed(_json(path))
    if listed is None:
        return Catalogue(version=1, complete=False, tools=_of_worlds(path))
    if isinstance(listed, dict):
        return load_catalogue(path)
    return Catalogue(version=1, tools=tools_of(listed, str(path)))


def tools_of(listed: Sequence[Any], where: str) -> tuple[Tool, ...]:
    """Tools in MCP's shape, or in that of a function call's `tools`. What MCP adds and no check reads is left
    out. Raises UserError with every tool that is not one."""
    problems: list[Problem] = []
    found: dict[tuple[str, str | None], Tool] = {}
    for number, item in enumerate(listed, 1):
        tool = _tool(item)
        if tool is None:
            problems.append(Problem(where, f"tool {number} is not one", "expected an object with a name"))
        else:
            found[tool.name, tool.server] = tool
    if problems:
        raise UserError(*problems)
    return tuple(found.values())


def latest(versions: Iterable[ToolVersion]) -> tuple[Tool, ...]:
    """The tools as traffic last showed them: of each server and name the version that was seen last."""
    newest: dict[tuple[str, str], ToolVersion] = {}
    for version in versions:
        known = newest.get((version.server, version.tool_name))
        if known is None or known.last_seen_unix_nano <= version.last_seen_unix_nano:
            newest[version.server, version.tool_name] = version
    return tuple(_of_version(version) for _, version in sorted(newest.items()))


def _json(path: Path) -> Any:
    """The JSON document of a file, None when it is not one document."""
    try:
        data = path.read_bytes()
        return msgspec.json.decode(gzip.decompress(data) if path.suffix == ".gz" else data)
    except (msgspec.DecodeError, gzip.BadGzipFile, EOFError, RecursionError, UnicodeError):
        return None
    except OSError as error:
        raise UserError(Problem(str(path), f"can not be read ({error.strerror or error})", "", "give a readable file")) from None  # fmt: skip


def _listed(data: Any) -> list[Any] | dict[str, Any] | None:
    """The list of tools in it; the object itself when it is an operator's file; None when it is neither."""
    if isinstance(data, list):
        return data
    if not isinstance(data, dict) or "messages" in data:
        return None
    if "version" in data or "policy" in data:
        return data
    inner = data.get("result")
    tools = inner.get("tools") if isinstance(inner, dict) else data.get("tools")
    return tools if isinstance(tools, list) else None


def _tool(item: Any) -> Tool | None:
    body = item.get("function", item) if isinstance(item, dict) else None
    if not isinstance(body, dict) or not isinstance(body.get("name"), str) or not body["name"]:
        return None
    schema = next((body[key] for key in _SCHEMAS if isinstance(body.get(key), dict)), None)
    output = body.get("outputSchema")
    return Tool(
        name=body["name"],
        server=_text(item.get("server", body.get("server"))) or None,
        title=_text(body.get("title")) or None,
        description=_text(body.get("description")),
        input_schema=schema,
        output_schema=output if isinstance(output, dict) else None,
        annotations=annotations_of(item.get("annotations", body.get("annotations"))),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def annotations_of(value: Any) -> Annotations | None:
    """MCP hints; None when there are none that can be read."""
    try:
        found = msgspec.convert(value, Annotations) if isinstance(value, dict) else None
    except msgspec.ValidationError:
        return None
    return None if found == Annotations() else found


def _of_worlds(path: Path) -> tuple[Tool, ...]:
    problems: list[Problem] = []
    found: dict[tuple[str, str | None], Tool] = {}
    for world in read_worlds(path, lambda _, problem: problems.append(problem)):
        for definition in _definitions(world):
            found[definition.name, definition.server] = _of_definition(definition)
    if not found:
        raise UserError(*problems or [Problem(str(path), "shows no tools", _EXPECTED)])
    return tuple(found.values())


def _definitions(world: World) -> Iterator[Definition]:
    readings: Iterable[Reading] = ()
    if world.transcript is not None:
        readings = read_transcript(world.transcript, 1)
    elif world.request is not None:
        history = History()
        readings = (read_span(span, history) for span in otlp.spans(world.request, 1))
    for reading in readings:
        yield from reading.definitions


def _of_definition(one: Definition) -> Tool:
    return Tool(
        name=one.name,
        server=one.server,
        description=one.description,
        input_schema=one.input_schema,
        annotations=one.annotations,
    )


def _of_version(version: ToolVersion) -> Tool:
    return Tool(
        name=version.tool_name,
        server=version.server or None,
        description=version.description,
        input_schema=version.input_schema,
        annotations=annotations_of(version.annotations),
    )
