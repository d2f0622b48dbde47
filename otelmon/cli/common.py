"""What every verb shares: the configuration, how answers are printed, how failures end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import click
import msgspec

from otelmon.app.laws import load_laws
from otelmon.app.reload import DEFAULT_FILE, LawSource
from otelmon.detect.engine import Laws
from otelmon.rules.settings import Settings, load_settings
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import BUG, OtelmonError, Problem, UserError


class Context:
    """The command's configuration, loaded when first asked for."""

    def __init__(self, config_file: str | None, overrides: Sequence[str]) -> None:
        self._file = Path(config_file) if config_file else None
        self._overrides: dict[str, object] = _pairs(overrides)

    def override(self, key: str, value: object) -> None:
        """Set a dotted configuration key from a verb's own option."""
        if value is not None:
            self._overrides[key] = value

    @cached_property
    def settings(self) -> Settings:
        file = self._file or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
        return load_settings(file, os.environ, self._overrides)

    @property
    def config(self) -> Config:
        return self.settings.config

    def source(self) -> LawSource:
        """Where the configuration and the laws are written, to be read again when that changes."""
        return LawSource(self._file, os.environ, self._overrides)

    def laws(self, drafts: bool = False) -> Laws:
        """The rules and the catalogue in force; with `drafts` also rules that are being written."""
        return load_laws(self.config, self.settings.origin, drafts)


def _pairs(overrides: Iterable[str]) -> dict[str, object]:
    pairs: dict[str, object] = {}
    for item in overrides:
        key, equals, value = item.partition("=")
        if not equals:
            raise UserError(Problem(f"--set {item}", "there is no '='", "expected KEY=VALUE"))
        pairs[key.strip()] = value
    return pairs


def run(cli: click.Group) -> int:
    """Run the command line; the exit code. Mistakes of the user end without a stack trace."""
    try:
        code = cli.main(prog_name="otelmon", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        return 130
    except OtelmonError as error:
        click.echo(str(error), err=True)
        return error.exit_code
    except ReaderGoneError:
        return 0
    except Exception as error:
        if os.environ.get("OTELMON_DEBUG"):
            raise
        click.echo(
            f"otelmon: {type(error).__name__}: {error}; this is a bug of otelmon; "
            "run again with OTELMON_DEBUG=1 and report what it prints",
            err=True,
        )
        return BUG
    return code if isinstance(code, int) else 0


class ReaderGoneError(Exception):
    """Nobody reads standard output any more (`| head`): nothing is left to say."""


@contextmanager
def for_a_reader() -> Iterator[None]:
    """Around what prints. click would end with 1, which here means that the answer is no."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python must not say it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ReaderGoneError from None


def print_json(value: Any) -> None:
    """One JSON document on standard output, strict: no NaN, no lone surrogates."""
    text = msgspec.json.encode(msgspec.to_builtins(value, str_keys=True)).decode()
    click.echo(json.dumps(json.loads(text), ensure_ascii=False, indent=2))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Aligned columns; the last one is not padded."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(headings), *cells]) for i in range(len(headings))]
    for row in [list(headings), *cells]:
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def _cell(value: object) -> str:
    """Text safe for a terminal: data can hold escape sequences."""
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def plain(text: object) -> str:
    """Any value as text that can not drive the terminal; line breaks stay."""
    return "\n".join(_cell(line) for line in str(text).splitlines())
