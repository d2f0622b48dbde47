"""Addresses that doors listen on: taken apart, judged, bound. For the OTLP doors and the web door."""

from __future__ import annotations

import ipaddress
import socket

from otelmon.vocabulary.errors import Problem, UnreachableError, UserError


def split_address(option: str, address: str) -> tuple[str, int]:
    """(host, port) of "host:port" or "[v6]:port"; no host means every interface. Raises UserError."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UserError(Problem(option, f"{address!r} is no address", "host:port", "for example 127.0.0.1:4318"))
    return host or "0.0.0.0", int(port)  # noqa: S104 - every caller refuses it without a token


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bracketed(host: str) -> str:
    """The host as it stands before ":port"."""
    return f"[{host}]" if ":" in host else host


def bind(option: str, host: str, port: int) -> socket.socket:
    """A TCP socket bound to the address, not listening yet. Raises UnreachableError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise taken(option, f"{bracketed(host)}:{port}", f": {error.strerror}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise taken(option, f"{bracketed(host)}:{port}", f": {error.strerror}") from None
    return listening


def taken(option: str, address: str, why: str) -> UnreachableError:
    """The failure to listen on an address."""
    wrong = f"can not listen on {address}{why}"
    do = f"stop the program that uses the port, or choose another one with {option}"
    return UnreachableError(Problem(option, wrong, "a free port of this machine", do))
