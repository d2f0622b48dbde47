"""Secrets that came back from a tool, and later calls that carry them on."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
import re2

from otelmon.checks.lib.directing import result_text
from otelmon.checks.lib.following import is_address
from otelmon.checks.lib.provenance_roles import leaves, name_words, role_of
from otelmon.checks.lib.values import EMAIL, compact, words_of
from otelmon.checks.lib.verbs import name_words as tool_words
from otelmon.checks.view import View
from otelmon.vocabulary.event import SystemMessage, ToolCall, UserMessage

MAX_SECRETS = 2_000  # of one conversation; the first ones
MAX_TEXT = 400_000  # characters read of one text
_TOKEN = re.compile(r"[A-Za-z0-9_\-+.~!$%^]{6,}")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{32,76}")
_LEAST = 6


class Secret(msgspec.Struct, frozen=True):
    """A secret value: the call whose result had it first, what kind it is, and what it is compared by."""

    call: ToolCall
    kind: str
    token: str


class Leak(msgspec.Struct, frozen=True):
    """A call that carries a secret in the argument at `path`. `outside`: it talks to the outside; `named`: the user
    named where it goes; `other_server`: another server than the one the secret came from."""

    call: ToolCall
    secret: Secret
    path: str
    outside: bool
    named: bool
    other_server: bool


class _Language(msgspec.Struct, frozen=True):
    any: Any
    shapes: Any
    named: Any
    placeholders: Any
    credentials: frozenset[str]
    asked: Any
    public: frozenset[str]


@cache
def _language() -> _Language:
    data = tomllib.loads((files("otelmon.checks") / "data" / "instructions_secrets.toml").read_text("utf-8"))
    options = re2.Options()
    options.never_capture = True
    return _Language(
        any=re2.compile("|".join([*data["shapes"], data["named"]]), options),
        shapes=re2.compile("|".join(f"(?:{shape})" for shape in data["shapes"])),
        named=re2.compile(data["named"]),
        placeholders=re2.compile(data["placeholders"]),
        credentials=frozenset(data["credentials"].split()),
        asked=re2.compile(data["asked"]),
        public=frozenset(data["public"].split()),
    )


_Asked = tuple[tuple[str, ...], tuple[str, ...], bool]
_REMEMBERED: WeakKeyDictionary[View, dict[_Asked, dict[str, tuple[Leak, ...]]]] = WeakKeyDictionary()


class _Lazy:
    """The words of texts, read when somebody asks: most conversations have no secret."""

    def __init__(self, read: Callable[[str], Iterable[str]]) -> None:
        self.texts: list[str] = []
        self._read = read
        self._words: set[str] = set()

    def words(self) -> set[str]:
        """All words of the texts so far."""
        for text in self.texts:
            self._words.update(self._read(text[:MAX_TEXT]))
        self.texts.clear()
        return self._words


def _words_of_user(text: str) -> Iterable[str]:
    return words_of(text).words


def leaks(view: View, tools: tuple[str, ...], fields: tuple[str, ...], shapes: bool) -> dict[str, tuple[Leak, ...]]:
    """Calls that carry a secret on, by the key of the call. Secrets are what the named `tools` (globs) return, the
    values of the named `fields` of results, and with `shapes` what looks like one. Linear; read once."""
    remembered = _REMEMBERED.setdefault(view, {})
    asked = (tools, fields, shapes)
    if asked not in remembered:
        by_call: dict[str, list[Leak]] = {}
        for leak in _leaks(view, tools, fields, shapes):
            by_call.setdefault(leak.call.key, []).append(leak)
        remembered[asked] = {key: tuple(found) for key, found in by_call.items()}
    return remembered[asked]


def _leaks(view: View, tools: tuple[str, ...], fields: tuple[str, ...], shapes: bool) -> Iterator[Leak]:
    known: dict[str, Secret] = {}
    theirs, said = _Lazy(_words), _Lazy(_words_of_user)
    asked = False
    for event in view.events:
        if isinstance(event, (UserMessage, SystemMessage)):
            theirs.texts.append(event.text)
            if isinstance(event, UserMessage):
                said.texts.append(event.text)
                asked = asked or bool(_language().asked.search(event.text[:20_000]))
        elif isinstance(event, ToolCall):
            if known and not asked:
                yield from _carried(event, known, theirs, said, view)
            for secret in _secrets(event, tools, fields, shapes):
                if len(known) < MAX_SECRETS:
                    known.setdefault(secret.token, secret)


def _secrets(call: ToolCall, tools: tuple[str, ...], fields: tuple[str, ...], shapes: bool) -> Iterator[Secret]:
    if any(fnmatchcase(call.tool_name, glob) for glob in tools):
        for token in _words(result_text(call)[:MAX_TEXT]):
            if sum(c.isdigit() for c in token) >= 3 or EMAIL.fullmatch(token):
                yield Secret(call, f"a value of {call.tool_name}", token)
    elif fields and isinstance(call.result, (dict, list)):
        for _, name, value in leaves(call.result):
            if name in fields and len(str(value)) >= _LEAST:
                for token in _words(str(value)):
                    yield Secret(call, f"the field {name}", token)
    if shapes:
        yield from _by_shape(call)


def _by_shape(call: ToolCall) -> Iterator[Secret]:
    text = call.result_text or ""
    if not text and call.result is not None:
        text = msgspec.json.encode(call.result).decode("utf-8", "replace")
    text, words = text[:MAX_TEXT], _language()
    if not text.isascii():
        text = text.encode("ascii", "replace").decode("ascii")
    if not words.any.search(text):
        return
    for hit in words.shapes.finditer(text):
        token = hit.group()
        if token.startswith("-----"):
            body = _KEY_BODY.search(text, hit.end(), hit.end() + 400)
            if body:
                yield Secret(call, "a private key", body.group()[:32])
        else:
            yield Secret(call, "an access token", max(_words(token), key=len, default=token))
    for hit in words.named.finditer(text):
        token = max(_words(hit.group(1)), key=len, default="")
        if len(token) >= _LEAST and not words.placeholders.search(token) and not token.isalpha():
            yield Secret(call, "a password or key", token)


def _carried(call: ToolCall, known: dict[str, Secret], theirs: _Lazy, said: _Lazy, view: View) -> Iterator[Leak]:
    if not isinstance(call.arguments, dict):
        return
    for path, name, value in leaves(call.arguments):
        if not isinstance(value, str) or len(value) < _LEAST or _meant_for_secrets(path):
            continue
        for token in _tokens(value):
            secret = known.get(token)
            if secret is not None and token not in theirs.words() and not _own_link(name, value, secret):
                yield _leak(call, secret, (path, name, value), said, view)
                return


def _words(text: str) -> list[str]:
    """The chunks of a text that can be a secret, without the marks of a sentence's end."""
    return [token.rstrip(".!~") for token in _TOKEN.findall(text)]


def _own_link(name: str, value: str, secret: Secret) -> bool:
    """An address that came with the secret in it is followed as it is."""
    return is_address(name, role_of(name, value, {}), value) and value in result_text(secret.call)


def _tokens(value: str) -> Iterator[str]:
    text = value[:MAX_TEXT]
    yield from _words(text)
    if "PRIVATE KEY" in text:
        yield from (body[:32] for body in _KEY_BODY.findall(text))


def _meant_for_secrets(path: str) -> bool:
    """An argument that a secret belongs in: `password`, `headers.Authorization`, `access_token`."""
    return bool(_language().credentials & set(name_words(path)))


def _leak(call: ToolCall, secret: Secret, argument: tuple[str, str, str], said: _Lazy, view: View) -> Leak:
    path, name, value = argument
    effect = view.effect(call).effect
    addressed = [str(v) for _, n, v in leaves(call.arguments) if _is_place(n, v)]
    outside = (
        effect == "external_send"
        or is_address(name, role_of(name, value, {}), value)
        or (effect != "read" and (bool(addressed) or bool(_language().public & set(tool_words(call.tool_name)))))
    )
    named = bool(addressed) and all(compact(place) in said.words() for place in addressed)
    other = bool(call.server and secret.call.server and call.server != secret.call.server)
    return Leak(call, secret, path, outside, named, other)


def _is_place(name: str, value: Any) -> bool:
    return isinstance(value, str) and (
        bool(EMAIL.fullmatch(value.strip())) or is_address(name, role_of(name, value, {}), value)
    )
