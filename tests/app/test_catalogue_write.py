"""Operator's files that are written: they load as what they were, comments and all."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otelmon.app.catalogue_guess import suggest
from otelmon.app.catalogue_write import as_json, as_yaml, merged, write_file
from otelmon.rules.catalogue import load_catalogue
from otelmon.vocabulary.catalogue import Annotations, Catalogue, IdempotencyKey, Policy, Tool
from otelmon.vocabulary.errors import UserError

_WORDS = st.text(  # YAML has no place for control characters, lone surrogates and U+FFFE
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
    | st.sampled_from("\n \t#:-'\"|"),
    max_size=40,
)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | _WORDS
    | st.sampled_from(["no", "on", "1:30", "007", "~"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=8,
)
_TOOLS = st.builds(
    Tool,
    name=_WORDS.filter(bool),
    server=st.none() | _WORDS,
    description=_WORDS,
    input_schema=st.none() | st.dictionaries(_WORDS, _VALUES, max_size=4),
    annotations=st.none() | st.just(Annotations(read_only_hint=False, title="no")),
    effect=st.none() | st.just("destructive"),
    idempotency_key=st.none() | st.just(IdempotencyKey(argument="key")),
    identity=st.none() | st.just(("a", "b")),
    poll_ok=st.booleans(),
    claims=st.lists(_WORDS, max_size=2).map(tuple),
)


@pytest.mark.parametrize(
    "text", ["\n", "a\n", "a\n\n", " a\nb", "a\n b\n", "\na", "a\x85b", "a\u2028b", "a\tb\n", "#\n", "1\n2"]
)
def test_every_text_is_read_as_it_was(text: str, tmp_path: Path) -> None:
    whole = Catalogue(version=1, tools=(Tool(name="a", claims=(text,)), Tool(name="b", description=text, title=text)))
    path = tmp_path / "written.yaml"
    for written in (
        as_yaml(whole),
        as_yaml(whole, {("b", None): {"description": "guess", "title": "guess"}}),
        as_json(whole),
    ):
        path.write_text(written)
        assert load_catalogue(path) == whole


@given(st.lists(_TOOLS, max_size=4, unique_by=lambda t: (t.name, t.server)), st.booleans())
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, tools: list[Tool], complete: bool
) -> None:
    policy = (Policy(id="freeze", action="limit", max=0, tools=("a*",), reason="line\nline"),)
    whole = Catalogue(version=1, complete=complete, tools=tuple(tools), policy=policy)
    notes = {(tool.name, tool.server): {"effect": "guess", "name": "who"} for tool in tools if "\n" not in tool.name}
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    for text in (as_yaml(whole), as_yaml(whole, notes), as_json(whole)):
        path.write_text(text)
        assert load_catalogue(path) == whole


@given(st.lists(_TOOLS, max_size=4, unique_by=lambda t: (t.name, t.server)))
@settings(max_examples=60, deadline=None)
def test_every_proposal_loads(tmp_path_factory: pytest.TempPathFactory, tools: list[Tool]) -> None:
    path = tmp_path_factory.getbasetemp() / "proposed.yaml"
    path.write_text(suggest(tools))
    assert sorted(t.name for t in load_catalogue(path).tools) == sorted(t.name for t in tools)


def test_texts_of_several_lines_are_written_as_they_are_read() -> None:
    assert "    description: |-\n      One.\n      Two." in as_yaml(
        Catalogue(version=1, tools=(Tool(name="a", description="One.\nTwo."),))
    )


def tool(name: str, server: str | None = None, **fields: Any) -> Tool:
    return Tool(name=name, server=server, **fields)


def test_an_entry_without_a_server_is_that_of_the_server_that_lists_the_tool() -> None:
    known = Catalogue(version=1, tools=(tool("pay", effect="destructive"), tool("look", "other")))
    found = merged(known, [tool("pay", "bank", description="Pays.")], "bank")
    assert [(t.name, t.server, t.effect, t.description) for t in found.tools] == [
        ("look", "other", None, ""), ("pay", "bank", "destructive", "Pays.")
    ]  # fmt: skip


def test_without_a_server_named_what_is_not_listed_goes() -> None:
    known = Catalogue(version=1, tools=(tool("pay", "bank"), tool("look", "other")))
    assert [t.name for t in merged(known, [tool("pay", "bank")]).tools] == ["pay"]


def test_a_file_is_replaced_with_its_rights_and_only_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "tools.yaml"
    path.write_text("old")
    path.chmod(0o640)
    write_file(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode), list(tmp_path.iterdir())) == ("new", 0o640, [path])
    with pytest.raises(UserError, match="can not be written"):
        write_file(tmp_path / "none" / "tools.yaml", "new")


def test_a_file_that_would_not_load_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "tools.yaml"
    path.write_text("old")
    with pytest.raises(UserError, match=r"tools\.yaml: would not load any more .*version"):
        write_file(path, "tools: []\n", load_catalogue)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
