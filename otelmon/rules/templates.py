"""`otelmon rules new ID`: a rule that loads at once and whose tests pass, to be changed into what is meant.

With a generic check it is one YAML file; without, a check in Python and a rule for it.
"""

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
    """Say what the agent does wrong.

    Why it matters: say what it costs.
    """
    earlier = [c for c in view.calls_before(call) if c.tool_name == call.tool_name and c.run_id == call.run_id]
    if len(earlier) == params.max_calls:
        yield Evidence(
            summary=f"{{call.tool_name}} was called more than {{params.max_calls}} times",
            anchor=call.key,
            span_ids=(call.span_id,),
        )
'''

_HEAD = """\
id: {id}
title: {words}
status: draft
severity: medium
family: {family}
description: Say in one or two sentences what the agent does wrong.
check: {check}
"""
_TAIL = """\
scope: {scope}
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
"""


class _Template(msgspec.Struct, frozen=True):
    """What differs from rule to rule."""

    family: str
    scope: str
    params: str
    tests: str


_PLAIN = _Template(
    family="progress",
    scope="run",
    params="params: {max_calls: 10}\n",
    tests="""\
tests:
  - name: the eleventh call
    events:
      - {user: "look it up"}
      - {tool: search, args: {q: shoes}, result: [], repeat: 12}
      - {assistant: "Nothing found."}
    fires: [12]
  - name: ten calls, and ten of another tool
    events:
      - {user: "look it up"}
      - {tool: search, args: {q: shoes}, result: [], repeat: 10}
      - {tool: browse, args: {q: shoes}, result: [], repeat: 10}
      - {assistant: "Nothing found."}
    fires: []
""",
)
_GENERIC = {
    "match": _Template(
        family="policy",
        scope="conversation",
        params="""\
params:                            # one call, beside what was looked up for it
  calls: {tools: [issue_refund]}
  let:
    order: {tools: [get_order], where: result.id == call.arguments.order_id}
  when: double(call.arguments.amount) > double(order.total)
  summary: more than the order cost
""",
        tests="""\
tests:
  - name: more than the order cost
    events:
      - {user: "Refund 90 of order A-1."}
      - {tool: get_order, args: {id: A-1}, result: {id: A-1, total: 50}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 90}, result: {ok: true}}
    fires: [3]
  - name: what the order cost, another tool, and another order
    events:
      - {user: "Refund 50 of order A-1."}
      - {tool: get_order, args: {id: A-1}, result: {id: A-1, total: 50}}
      - {tool: get_order, args: {id: A-2}, result: {id: A-2, total: 10}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 50}, result: {ok: true}}
      - {tool: note_refund, args: {order_id: A-1, amount: 90}, result: {ok: true}}
    fires: []
  - name: no list of orders is an order
    events:
      - {user: "Refund 90 of order A-1."}
      - {tool: list_orders, args: {id: A-1}, result: {id: A-1, total: 50}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 90}, result: {ok: true}}
    fires: []
""",
    ),
    "threshold": _Template(
        family="effect",
        scope="conversation",
        params="""\
params:                            # calls counted in a window, those with equal arguments together
  calls: {tools: ["*refund*"], effects: [write, destructive]}
  max: 2
  window_seconds: 3600
  same: [order_id]
  summary: many refunds of one order
""",
        tests="""\
tests:
  - name: the third in an hour
    events:
      - {tool: issue_refund, args: {order_id: A-1, amount: 5}, result: {ok: true}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 5}, result: {ok: true}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 5}, result: {ok: true}, after: 3599}
    fires: [3]
  - name: two, and the third an hour later
    events:
      - {tool: issue_refund, args: {order_id: A-1, amount: 5}, result: {ok: true}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 5}, result: {ok: true}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 5}, result: {ok: true}, after: 3600}
    fires: []
  - name: other orders, looks and charges
    events:
      - {tool: issue_refund, args: {order_id: A-1, amount: 5}, result: {ok: true}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 5}, result: {ok: true}}
      - {tool: issue_refund, args: {order_id: A-2, amount: 5}, result: {ok: true}}
      - {tool: get_refund, args: {order_id: A-1}, result: {ok: true}, repeat: 3}
      - {tool: create_charge, args: {order_id: A-1, amount: 5}, result: {ok: true}, repeat: 3}
    fires: []
""",
    ),
    "sequence": _Template(
        family="policy",
        scope="conversation",
        params="""\
params:                            # one call after another, and nothing between that makes it right
  first: {tools: [close_ticket]}
  then: {tools: [update_ticket]}
  without: {tools: [reopen_ticket]}
  same: [ticket_id]
  summary: the ticket is closed
""",
        tests="""\
tests:
  - name: an update after the end
    events:
      - {tool: close_ticket, args: {ticket_id: T-1}, result: {ok: true}}
      - {tool: update_ticket, args: {ticket_id: T-1, note: more}, result: {ok: true}}
    fires: [2]
  - name: reopened between, another ticket, another call
    events:
      - {tool: close_ticket, args: {ticket_id: T-1}, result: {ok: true}}
      - {tool: reopen_ticket, args: {ticket_id: T-1}, result: {ok: true}}
      - {tool: update_ticket, args: {ticket_id: T-1, note: more}, result: {ok: true}}
      - {tool: close_ticket, args: {ticket_id: T-2}, result: {ok: true}}
      - {tool: update_ticket, args: {ticket_id: T-3, note: more}, result: {ok: true}}
      - {tool: get_ticket, args: {ticket_id: T-2}, result: {ok: true}}
    fires: []
  - name: after something else
    events:
      - {tool: get_ticket, args: {ticket_id: T-1}, result: {ok: true}}
      - {tool: update_ticket, args: {ticket_id: T-1, note: more}, result: {ok: true}}
    fires: []
""",
    ),
    "provenance": _Template(
        family="source",
        scope="conversation",
        params="""\
params:                            # where the value of an argument must come from
  calls: {tools: [issue_refund]}
  argument: amount
  from: "get_order.total | get_order.items[].price"
  summary: a refund must repeat what the order says
""",
        tests="""\
tests:
  - name: an amount that only the user said
    events:
      - {user: "Refund 77 of order A-1."}
      - {tool: get_order, args: {id: A-1}, result: {id: A-1, total: 50, items: [{price: 30}, {price: 20}]}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 77}, result: {ok: true}}
    fires: [3]
  - name: the total, one item, and another tool
    events:
      - {user: "Refund order A-1, then its first item, then note 77."}
      - {tool: get_order, args: {id: A-1}, result: {id: A-1, total: 50, items: [{price: 30}, {price: 20}]}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 50}, result: {ok: true}}
      - {tool: issue_refund, args: {order_id: A-1, amount: 30}, result: {ok: true}}
      - {tool: note_refund, args: {order_id: A-1, amount: 77}, result: {ok: true}}
    fires: []
""",
    ),
}
GENERIC = tuple(_GENERIC)
"""Checks that a rule can use without any Python."""


class NewRule(msgspec.Struct, frozen=True):
    """The files that were written; no `check` where the rule uses a generic one."""

    rule: Path
    check: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them."""
        return (self.rule,) if self.check is None else (self.check, self.rule)


def new_rule(rule_id: str, checks_dir: Path, rules_dir: Path, generic: str | None = None) -> NewRule:
    """Write `<rules_dir>/<id>.yaml`, and `<checks_dir>/<id>.py` unless the rule uses a `generic` check. Raises
    UserError when the id can not be one or a file is there already; nothing is written then."""
    rule = rules_dir / f"{rule_id}.yaml"
    new = NewRule(rule, None if generic else checks_dir / f"{rule_id}.py")
    problems = [Problem(str(p), "is there already", "", "choose another id") for p in new.files if p.exists()]
    folders = dict.fromkeys(path.parent for path in new.files)
    problems += [Problem(str(d), "is no folder", "", "run this in the source tree, or name another: --checks, --rules") for d in folders if not d.is_dir()]  # fmt: skip
    if not _ID.match(rule_id) or keyword.iskeyword(rule_id):
        problems.insert(0, Problem(rule_id, "can not be an id", "expected 3 to 48 of a-z, 0-9 and _, a letter first"))
    if problems:
        raise UserError(*problems)
    words = rule_id.replace("_", " ").capitalize()
    if new.check is not None:
        new.check.write_text(CHECK.format(id=rule_id, words=words), encoding="utf-8")
    rule.write_text(_rule(rule_id, words, generic), encoding="utf-8")
    return new


def _rule(rule_id: str, words: str, generic: str | None) -> str:
    """The text of a rule."""
    template = _GENERIC[generic] if generic else _PLAIN
    head = _HEAD.format(id=rule_id, words=words, family=template.family, check=generic or rule_id)
    return head + template.params + _TAIL.format(scope=template.scope) + template.tests
