"""The one file that published figures come from: a section a command, each with the command and the date."""

from __future__ import annotations

import platform
import re
from datetime import date
from pathlib import Path

FILE = Path("docs/measurements.md")
HEAD = "# Measurements\n\nWritten by the commands named in each section; nothing here is typed by hand.\n"
SECTION = re.compile(r"^## (.+)$", re.M)


def write_section(file: Path, title: str, command: str, body: str) -> None:
    """Put (or replace) one section; the others stay as they are."""
    sections = _sections(file.read_text(encoding="utf-8")) if file.exists() else {}
    where = f"Python {platform.python_version()}, {platform.machine()}, {_cpu()}"
    sections[title] = f"`{command}`, {date.today().isoformat()}, {where}\n\n{body.strip()}\n"  # noqa: DTZ011 - a date for people
    file.parent.mkdir(parents=True, exist_ok=True)
    parts = [HEAD, *(f"\n## {name}\n\n{text}" for name, text in sections.items())]
    file.write_text("".join(parts), encoding="utf-8")


def _sections(text: str) -> dict[str, str]:
    found = list(SECTION.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {m[1]: text[m.end() : end].strip() + "\n" for m, end in zip(found, ends, strict=True)}


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "unknown processor"
    name = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
    return f"{text.count('processor')} x {name[1]}" if name else "unknown processor"
