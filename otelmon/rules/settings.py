"""The configuration: command line > OTELMON_* variables > otelmon.toml > defaults, and where each value is from.

`OTELMON_RECEIVE__HTTP` is `receive.http`: two underscores go one level down. `OTELMON_DATA` is not a
setting (it names test data); the data folder is `OTELMON_DATA_DIR`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from otelmon.rules.settings_rules import SECRETS, meaning_problems
from otelmon.rules.shapes import Keys, Mistake, dotted, mistakes, shown, without_none
from otelmon.rules.toml_lines import toml_lines
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import Problem, UserError

PREFIX = "OTELMON_"
MASK = "(set)"
# Variables that other parts read, and those that Kubernetes sets for a service called otelmon.
_NOT_SETTINGS = frozenset(("OTELMON_DATA", "OTELMON_DEBUG", "OTELMON_KAFKA_LIBS"))
_KUBERNETES = re.compile(r"OTELMON_(SERVICE_(HOST|PORT(_.+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)\Z")
_ALIASES = {"OTELMON_DATA_DIR": "data"}


class Settings(msgspec.Struct, frozen=True):
    """The configuration in force. `origin`: where each value is from, by dotted key: "default",
    "otelmon.toml:12", "OTELMON_RECEIVE__HTTP" or "--set receive.http". `expired`: suppressions that no
    longer hold."""

    config: Config
    origin: dict[str, str]
    expired: tuple[Problem, ...] = ()

    def describe(self) -> list[tuple[str, str, str]]:
        """Every key, its value as text (secrets masked) and its origin, in the order of the reference."""
        return [(key, _described(key, value), self.origin.get(key, "default")) for key, value in _leaves(self.config)]


def load_settings(
    file: Path | None, env: Mapping[str, str], cli: Mapping[str, object], today: date | None = None
) -> Settings:
    """The settings of a file (None: no file), the environment and the command line (dotted keys).

    Raises UserError with every mistake: unknown keys, wrong types, values that can not be meant.
    """
    layers = _Layers()
    if file is not None:
        layers.add_file(file)
    layers.add_env(env)
    layers.add_cli(cli)
    layers.read_secret_files()
    found = [*layers.problems, *(layers.problem(m) for m in mistakes(layers.data, Config))]
    if found:
        raise UserError(*found)
    config = msgspec.convert(layers.data, Config)
    found = [layers.problem(m) for m in meaning_problems(config)]
    if found:
        raise UserError(*found)
    origin = {key: layers.origin_of(key) for key, _ in _leaves(config)}
    return Settings(config, origin, tuple(_expired(config, layers, today or date.today())))  # noqa: DTZ011 - local day


class _Layers:
    """The layers laid over each other: the data, and the origin of each value by path."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.origins: dict[Keys, str] = {}
        self.problems: list[Problem] = []

    def add_file(self, file: Path) -> None:
        try:
            text = file.read_text(encoding="utf-8")
            data = tomllib.loads(text)
        except OSError as error:
            self.problems.append(Problem(str(file), f"can not be read ({error.strerror})", "", "give a readable file"))
            return
        except UnicodeDecodeError:
            self.problems.append(Problem(str(file), "is not UTF-8 text", "", "save it as UTF-8"))
            return
        except tomllib.TOMLDecodeError as error:
            self.problems.append(_toml_problem(str(file), error))
            return
        self.data = data
        for path, line in toml_lines(text).items():
            self.origins[path] = f"{file}:{line}"

    def add_env(self, env: Mapping[str, str]) -> None:
        for name in sorted(env):
            if not name.startswith(PREFIX) or name in _NOT_SETTINGS or _KUBERNETES.match(name):
                continue
            key = _ALIASES.get(name) or name.removeprefix(PREFIX).lower().replace("__", ".")
            self._set(tuple(key.split(".")), env[name], name)

    def add_cli(self, cli: Mapping[str, object]) -> None:
        for key, value in cli.items():
            self._set(tuple(key.split(".")), value, f"--set {key}")

    def _set(self, path: tuple[str, ...], value: object, origin: str) -> None:
        place: Any = self.data
        for key in path[:-1]:
            place = place.setdefault(key, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            self.problems.append(Problem(origin, f"{'.'.join(path[:-1])} holds no further keys", "", "check the name"))
            return
        place[path[-1]] = _from_text(value, _kind_at(path)) if isinstance(value, str) else _plain(value)
        for known in [p for p in self.origins if p[: len(path)] == path]:
            del self.origins[known]
        self.origins[path] = origin

    def read_secret_files(self) -> None:
        """A secret can stand in a file of its own: `token_file` beside `token`."""
        for secret in SECRETS:
            *parents, name = secret.split(".")
            place: Any = self.data
            for key in parents:
                place = place.get(key) if isinstance(place, dict) else None
            if (
                not isinstance(place, dict)
                or not isinstance(place.get(f"{name}_file"), str)
                or not place[f"{name}_file"]
            ):
                continue
            self._read_secret(place, (*parents, name))

    def _read_secret(self, place: dict[str, Any], path: tuple[str, ...]) -> None:
        name, beside = path[-1], f"{path[-1]}_file"
        where = self.where((*path[:-1], beside))
        file = place[beside] if _kind_at((*path[:-1], beside)) is not None else place.pop(beside)
        if place.get(name):
            self.problems.append(Problem(where, f"{'.'.join(path)} is given too", "expected one of the two", f"remove {name} or {beside}"))  # fmt: skip
            return
        try:
            place[name] = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            self.problems.append(
                Problem(where, f"{file} can not be read ({reason})", "expected a file with the secret")
            )
        self.origins[path] = where

    def where(self, path: Keys) -> str:
        """The origin of the value at the path, of what is around it, or its key."""
        for size in range(len(path), 0, -1):
            if path[:size] in self.origins:
                return self.origins[path[:size]]
        inside = (origin for known, origin in self.origins.items() if known[: len(path)] == path)
        return next(inside, dotted(path) or "settings")

    def origin_of(self, key: str) -> str:
        path = tuple(key.split("."))
        return self.where(path) if self._given(path) else "default"

    def _given(self, path: Keys) -> bool:
        place: Any = self.data
        for key in path:
            if not isinstance(place, dict) or key not in place:
                return False
            place = place[key]
        return True

    def problem(self, mistake: Mistake) -> Problem:
        """A mistake with its origin. The key is named in full where the origin does not show it."""
        wrong = mistake.wrong
        if mistake.path:
            last, full = str(mistake.path[-1]), dotted(mistake.path)
            wrong = wrong.replace(f"unknown field {last}", f"unknown setting {full}")
            wrong = re.sub(rf"^{re.escape(last)} is ", f"{full} is ", wrong)
        secret = dotted(mistake.path) in SECRETS
        wrong = f"{dotted(mistake.path)} is not what was expected" if secret else wrong
        return Problem(self.where(mistake.path), wrong, mistake.expected, mistake.do)


def _toml_problem(name: str, error: tomllib.TOMLDecodeError) -> Problem:
    found = re.match(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
    if found is None:
        return Problem(name, f"is not TOML: {error}")
    return Problem(f"{name}:{found[2]}:{found[3]}", f"is not TOML: {found[1]}")


def _kind_at(path: Keys) -> Any:
    """The type of a setting; None when there is no such setting."""
    kind: Any = Config
    for key in path:
        kind = without_none(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            kind = get_type_hints(kind).get(str(key))
        elif get_origin(kind) is dict:
            kind = get_args(kind)[1]
        else:
            return None
    return kind


def _from_text(text: str, kind: Any) -> Any:
    """A value written as text in a variable or an option. What can not be read stays text, so that the
    check of types names it."""
    kind = without_none(kind)
    if get_origin(kind) is tuple and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind in (int, float, bool):
        try:
            return msgspec.convert(text, kind, strict=False)
        except msgspec.ValidationError:
            return text
    structured = kind is Any or get_origin(kind) in (tuple, dict) or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))  # fmt: skip
    if structured:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return text


def _plain(value: object) -> Any:
    """A value from an option as configuration data."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _leaves(config: msgspec.Struct, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in config.__struct_fields__:
        value = getattr(config, name)
        if isinstance(value, msgspec.Struct):
            yield from _leaves(value, f"{prefix}{name}.")
        elif name == "rules" and value:
            for rule_id, rule in value.items():
                yield from ((f"rules.{rule_id}.{key}", v) for key, v in msgspec.to_builtins(rule).items())
        else:
            yield f"{prefix}{name}", value


def _described(key: str, value: Any) -> str:
    if key in SECRETS:
        return MASK if value else ""
    if isinstance(value, str):
        return value
    return shown(msgspec.to_builtins(value))


def _expired(config: Config, layers: _Layers, today: date) -> Iterator[Problem]:
    for index, suppression in enumerate(config.suppress):
        if date.fromisoformat(suppression.expires) < today:
            wrong = f"the suppression of {suppression.rule} ({suppression.reason}) expired on {suppression.expires}"
            yield Problem(layers.where(("suppress", index)), wrong, "", "remove it, or give it another date")
