"""`otelmon rules new ID`: a check and a rule that load at once and whose tests are red until they are filled."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import msgspec

from otelmon.vocabulary.errors import Problem, UserError

_ID = re.compile(r"[a-z][a-z0-9_]{2,47}\Z")

CHECK = '''\
"""{words}."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`max_calls`: how many calls of one tool a run may make."""

    max_calls: int = 10


@check(on="call")
def {id}(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """Say what the agent does wrong, and why it matters."""
    del call, view, params  # look at these, and yield Evidence(summary=..., anchor=call.key) where it goes wrong
    yield from ()
'''

RULE = """\
id: {id}
title: {words}
status: draft
severity: medium
family: progress
description: Say in one or two sentences what the agent does wrong.
check: {id}
scope: run
params: {{max_calls: 10}}
needs: [arguments]
tags: []
references: []
false_positives: []
runbook: |
  ## Meaning
  What has happened.
  ## Impact
  What it costs whom.
  ## Diagnosis
  Where to look, and what to compare.
  ## Mitigation
  What to do now, and what to change.
tests:
  - name: say what must fire
    events:
      - {{user: "look it up"}}
      - {{tool: search, args: {{q: shoes}}, result: [], repeat: 11}}
      - {{assistant: "Nothing found."}}
    fires: [12]
  - name: say what looks alike and must stay silent
    events:
      - {{user: "look it up"}}
      - {{tool: search, args: {{q: shoes}}, result: [], repeat: 10}}
      - {{assistant: "Nothing found."}}
    fires: []
"""


class NewRule(msgspec.Struct, frozen=True):
    """The two files that were written."""

    check: Path
    rule: Path


def new_rule(rule_id: str, checks_dir: Path, rules_dir: Path) -> NewRule:
    """Write `<checks_dir>/<id>.py` and `<rules_dir>/<id>.yaml`. Raises UserError when the id can not be
    one or a file is there already; nothing is written then."""
    files = NewRule(checks_dir / f"{rule_id}.py", rules_dir / f"{rule_id}.yaml")
    problems = [
        Problem(str(p), "is there already", "", "choose another id") for p in (files.check, files.rule) if p.exists()
    ]
    problems += [
        Problem(str(d), "is no folder", "", "run this in the source tree")
        for d in (checks_dir, rules_dir)
        if not d.is_dir()
    ]
    if not _ID.match(rule_id) or keyword.iskeyword(rule_id):
        problems.insert(0, Problem(rule_id, "can not be an id", "expected 3 to 48 of a-z, 0-9 and _, a letter first"))
    if problems:
        raise UserError(*problems)
    words = rule_id.replace("_", " ").capitalize()
    files.check.write_text(CHECK.format(id=rule_id, words=words), encoding="utf-8")
    files.rule.write_text(RULE.format(id=rule_id, words=words), encoding="utf-8")
    return files
