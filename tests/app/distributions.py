"""Small real distributions on the path: a package, and beside it what an installer writes about it."""

from __future__ import annotations

from pathlib import Path

CHECK = '''\
"""A check of somebody else."""

from collections.abc import Iterator

import msgspec

from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import ToolCall
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`most`: the largest amount."""

    most: int = 100


@check(on="call")
def {name}(call: ToolCall, view: View, params: Params) -> Iterator[Evidence]:
    """An amount above the limit."""
    amount = call.arguments["amount"] if call.arguments else 0
    if amount > params.most:
        yield Evidence(summary=f"{{amount}} is too much", anchor=call.key)
'''

RULE = """\
id: {id}
title: Too dear
status: stable
severity: high
family: policy
description: An amount above the limit.
check: {check}
params: {{most: 100}}
scope: run
needs: [arguments]
runbook: |
  ## Meaning
  Too dear.
  ## Impact
  Money.
  ## Diagnosis
  Look at the amount.
  ## Mitigation
  Ask.
tests:
  - name: fires
    events:
      - {{tool: pay, args: {{amount: 101}}, result: {{}}}}
    fires: [1]
  - name: silent
    events:
      - {{tool: pay, args: {{amount: 100}}, result: {{}}}}
    fires: []
"""


def install(
    site: Path, name: str, files: dict[str, str], points: dict[str, dict[str, str]], version: str = "1.2"
) -> None:
    """Write the files of a distribution and its metadata into `site`, as an installer does. `points` are entry
    points by group."""
    for path, text in files.items():
        file = site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in found.items()) for group, found in points.items())
    (info / "entry_points.txt").write_text("\n".join(groups))


def acme(site: Path, package: str = "acme_checks", rule: str = "acme_too_dear") -> None:
    """A distribution with one check and one rule for it."""
    install(
        site,
        package.replace("_", "-"),
        {
            f"{package}/__init__.py": "",
            f"{package}/checks.py": CHECK.format(name=f"{package}_dear"),
            f"{package}/rules/__init__.py": "",
            f"{package}/rules/{rule}.yaml": RULE.format(id=rule, check=f"{package}_dear"),
        },
        {"otelmon.checks": {package: f"{package}.checks"}, "otelmon.rules": {package: f"{package}.rules"}},
    )
