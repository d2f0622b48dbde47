"""The vendored list of tags: OWASP's agentic risks and MITRE ATLAS techniques."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


@cache
def known_tags() -> dict[str, str]:
    """Every tag a rule may have, with its name: {"owasp.asi02": "Tool Misuse and Exploitation"}."""
    text = (files("otelmon") / "data" / "taxonomy.toml").read_text(encoding="utf-8")
    lists = tomllib.loads(text)
    return {f"{name}.{key}": title for name, entry in lists.items() for key, title in entry["ids"].items()}
