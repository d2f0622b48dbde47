"""The words for errors, as data: folded as they are compared, and complete."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from otelmon.assemble.error_words import BUT_DONE, REFUSES, STARTS, fold

DATA = tomllib.loads((files("otelmon.assemble") / "data" / "errors.toml").read_text("utf-8"))


def test_every_word_is_written_as_it_is_compared() -> None:
    words = [word for languages in DATA.values() for each in languages.values() for word in each]
    assert [word for word in words if fold(word) != word] == []


@pytest.mark.parametrize("section", DATA)
def test_no_language_says_a_word_twice(section: str) -> None:
    assert [name for name, words in DATA[section].items() if len(words) != len(set(words))] == []


def test_accents_and_sharp_s_are_folded() -> None:
    assert fold("ÉXITO Größe ungültig ação") == "exito grosse ungultig acao"


@pytest.mark.parametrize("text", ["fehler: x", "error al guardar", "erreur 500", "erro - x", "*** fehler (x)"])
def test_beginnings(text: str) -> None:
    assert STARTS.match(text)


@pytest.mark.parametrize("text", ["fehlerfrei: ja", "errores: 0", "fehler gefunden", "x fehler: y", "error algebra"])
def test_what_is_no_beginning(text: str) -> None:
    assert STARTS.match(text) is None


def test_refusals_and_their_good_ends() -> None:
    assert REFUSES.match("acceso denegado")
    assert REFUSES.match("el pedido a-1 ya existe")
    assert REFUSES.match("der auftrag war da und wurde gespeichert") is None
    assert BUT_DONE.search("ya existe, actualizado con exito")
    assert BUT_DONE.search("ya existe") is None
