"""Tool calls that a message only writes down: as JSON, as markup, or as code on a line of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import msgspec

MAX_TEXT = 24_000  # characters of a message that are read
MAX_FOUND = 20
_NAME = r"[A-Za-z_][\w.\-/:]{0,127}"
_KEYS = r"name|action|tool|tool_name|function|function_name|recipient_name|tool_to_use"
_INPUTS = r"arguments|args|parameters|params|input|inputs|action_input|tool_input|kwargs"
_JSON = re.compile(
    rf"""["'](?:{_KEYS})["']\s*:\s*["'](?P<name>{_NAME})["']\s*,\s*["'](?:{_INPUTS})["']\s*:\s*["'{{\[]"""
    rf"""|["'](?:{_INPUTS})["']\s*:\s*\{{[^{{}}]{{0,2000}}\}}\s*,\s*["'](?:{_KEYS})["']\s*:\s*["'](?P<name2>{_NAME})["']"""
)
_MARKUP = re.compile(
    rf"""<(?:[a-z_]+:)?(?:function_call|tool_call|function|invoke|tool|call)(?:=|\s+name\s*=\s*["']?)(?P<name>{_NAME})["']?\s*/?>""",
    re.IGNORECASE,
)
_CODE = re.compile(
    rf"""^[ \t>`]*(?:(?:print|await)[ (]+)?(?:\w{{1,40}}[ ]*=[ ]*)?(?P<name>{_NAME})\((?:\)|\s*\w{{1,60}}\s*=|\s*[{{"'\[]).{{0,2000}}?\)?[ \t`;)]*$""",
    re.MULTILINE,
)


class TextCall(msgspec.Struct, frozen=True):
    """A call as written: the tool's name, how ("json", "markup", "code") and where in the text."""

    tool: str
    form: str
    at: int


def text_calls(text: str, tools: Collection[str]) -> list[TextCall]:
    """The calls of these tools that a text writes down, in order, at most MAX_FOUND."""
    text = text[:MAX_TEXT]
    found = sorted(_found(text, tools), key=lambda item: item.at)
    return found[:MAX_FOUND]


def _found(text: str, tools: Collection[str]) -> Iterator[TextCall]:
    for form, pattern in (("json", _JSON), ("markup", _MARKUP), ("code", _CODE)):
        for match in pattern.finditer(text):
            groups = match.groupdict()
            name = groups["name"] or groups.get("name2") or ""
            known = _known(name, tools)
            if known:
                yield TextCall(known, form, match.start())


def _known(name: str, tools: Collection[str]) -> str | None:
    """The tool of this name, also behind a namespace (`functions.get_order`)."""
    if name in tools:
        return name
    last = re.split(r"[./:]", name)[-1]
    return last if last in tools else None
