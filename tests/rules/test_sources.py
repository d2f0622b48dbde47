"""Where arguments must come from, in the catalogue: mistakes and their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from otelmon.rules.catalogue import load_catalogue
from otelmon.vocabulary.errors import UserError

TOOLS = """\
version: 1
complete: {complete}
tools:
  - name: get_order
    outputSchema: {{type: object, properties: {{items: {{type: array}}, total: {{type: number}}}}}}
  - name: get_return
  - name: issue_refund
    inputSchema: {{type: object, properties: {{amount: {{type: number}}, items: {{type: array}}}}}}
    sources: {{{sources}}}
"""


def write(folder: Path, sources: str, complete: str = "true") -> Path:
    path = folder / "catalogue.yaml"
    path.write_text(TOOLS.format(sources=sources, complete=complete))
    return path


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ('amount: "get_ordr.total"', "no tool is called get_ordr; did you mean get_order?"),
        ('amount: "get_order.totl"', "get_order gives no totl; did you mean total?"),
        ('amount: "get_order"', '"get_order" is no source; write tool.field, tool.items[].field, or one of user, system, context, result, run; alternatives are parted by |'),
        ('amount: "get_order.total | usr"', '"usr" is no source; did you mean user?'),
        ('amount: "get_order.items[0].amount"', '"get_order.items[0].amount" is no source; write tool.field, tool.items[].field, or one of user, system, context, result, run; alternatives are parted by |'),
        ('amunt: "get_order.total"', "issue_refund has no argument amunt; did you mean amount?"),
        ('"items[0]": "get_order.total"', '"items[0]" names one place of a list; write items[].sku for all of them'),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(tmp_path: Path, sources: str, message: str) -> None:
    path = write(tmp_path, sources)
    with pytest.raises(UserError) as caught:
        load_catalogue(path)
    assert [str(problem) for problem in caught.value.problems] == [f"{path}:9:15: {message}"]


@pytest.mark.parametrize(
    "sources",
    [
        'amount: "get_order.items[].amount | user"',
        'amount: "get_return.anything"',
        'amount: "get_*.total"',
        'amount: "*.price"',
        'items: "get_order.*.price"',
    ],
)
def test_what_can_be_is_taken(tmp_path: Path, sources: str) -> None:
    load_catalogue(write(tmp_path, sources))


def test_where_a_part_of_the_tools_is_listed_others_may_exist(tmp_path: Path) -> None:
    load_catalogue(write(tmp_path, 'amount: "get_invoice.total"', complete="false"))
