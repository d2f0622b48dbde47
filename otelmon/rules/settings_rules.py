"""What settings must mean beside their types: addresses, ranges, dates, and nothing open without a token."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from datetime import date

import msgspec

from otelmon.rules.shapes import Keys, Mistake, guess, shown
from otelmon.rules.suppress import FIELDS
from otelmon.vocabulary.config import Config

SECRETS = ("receive.token", "web.token", "kafka.sasl_password")
_ADDRESSES = (("receive", "grpc"), ("receive", "http"), ("web", "listen"))
_MAY_BE_ZERO = frozenset(("settle_seconds", "retain_bytes", "min_free_bytes", "batch_seconds"))
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\s\[\]]*):(\d{1,5})\Z")


def meaning_problems(config: Config) -> Iterator[Mistake]:
    """Everything about a well-typed configuration that can not be meant."""
    yield from _numbers(config, ())
    yield from _addresses(config)
    yield from _suppressions(config)


def host_of(address: str) -> str:
    """The host of host:port, without brackets."""
    return address.rpartition(":")[0].strip("[]")


def is_loopback(host: str) -> bool:
    """True when only this machine can reach an address on this host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _numbers(part: msgspec.Struct, path: Keys) -> Iterator[Mistake]:
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, msgspec.Struct):
            yield from _numbers(value, (*path, name))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            least = "0 or more" if name in _MAY_BE_ZERO else "more than 0"
            if not (value >= 0 if name in _MAY_BE_ZERO else value > 0):
                yield Mistake((*path, name), f"{name} is {shown(value)}", f"expected {least}")


def _addresses(config: Config) -> Iterator[Mistake]:
    for section, name in _ADDRESSES:
        part = getattr(config, section)
        address = getattr(part, name)
        if not address:
            continue
        found = _ADDRESS.match(address)
        if found is None or int(found[2]) > 65_535:
            yield Mistake((section, name), f"{name} is {shown(address)}", "expected host:port")
        elif not is_loopback(host_of(address)):
            yield from _open_door(config, section, name)


def _open_door(config: Config, section: str, name: str) -> Iterator[Mistake]:
    part = getattr(config, section)
    address = getattr(part, name)
    if not part.token:
        wrong = f"{name} is {shown(address)}, which other machines can reach, and {section}.token is not set"
        do = f"set {section}.token (or {section}.token_file), or listen on 127.0.0.1"
        yield Mistake((section, name), wrong, "expected a token", do)
    if section == "receive" and not (config.receive.tls_cert and config.receive.tls_key):
        wrong = (
            f"{name} is {shown(address)}, which other machines can reach, without receive.tls_cert and receive.tls_key"
        )
        yield Mistake((section, name), wrong, "expected TLS", "set both, or listen on 127.0.0.1")


def _suppressions(config: Config) -> Iterator[Mistake]:
    for index, suppression in enumerate(config.suppress):
        at = ("suppress", index)
        for field in suppression.where:
            if field not in FIELDS:
                do = guess(field, FIELDS) or f"known: {', '.join(FIELDS)}"
                yield Mistake((*at, "where", field), f"unknown field {field}", do=do)
        try:
            date.fromisoformat(suppression.expires)
        except ValueError:
            yield Mistake((*at, "expires"), f"expires is {shown(suppression.expires)}", "expected a date such as 2027-01-31")  # fmt: skip
        if not suppression.reason.strip():
            yield Mistake((*at, "reason"), "reason is empty", "expected why this is accepted")
