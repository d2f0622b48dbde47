"""Opening and closing the doors: addresses, TLS, tokens, and what is refused before anything listens."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from pathlib import Path

from otelmon.receive.grpc_server import GrpcDoor
from otelmon.receive.http import HttpDoor
from otelmon.receive.receiver import Receiver
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import Problem, UnreachableError, UserError


class Doors:
    """The open doors. `grpc` and `http` are the addresses in use, "" for a door that is turned off."""

    def __init__(self, receiver: Receiver) -> None:
        """Opens what the receiver's config names. Raises UserError for a config that must not be
        served, UnreachableError when an address can not be bound; then nothing stays open."""
        config = receiver.config
        check_config(config)
        self.grpc = self.http = ""
        self._open: list[GrpcDoor | HttpDoor] = []
        try:
            if config.grpc:
                self.grpc = self._open_grpc(receiver)
            if config.http:
                self.http = self._open_http(receiver)
        except BaseException:
            self.close()
            raise

    def _open_grpc(self, receiver: Receiver) -> str:
        config = receiver.config
        tls = (Path(config.tls_cert).read_bytes(), Path(config.tls_key).read_bytes()) if config.tls_cert else None
        host, port = split_address("receive.grpc", config.grpc)
        try:
            door = GrpcDoor(receiver, f"{_bracketed(host)}:{port}", tls)
        except OSError:
            raise _taken("receive.grpc", config.grpc, "") from None
        self._open.append(door)
        return f"{_bracketed(host)}:{door.port}"

    def _open_http(self, receiver: Receiver) -> str:
        config = receiver.config
        host, port = split_address("receive.http", config.http)
        listening = _bind("receive.http", host, port)
        try:
            door = HttpDoor(receiver, listening, (config.tls_cert, config.tls_key) if config.tls_cert else None)
        except BaseException:
            listening.close()
            raise
        self._open.append(door)
        return f"{_bracketed(host)}:{listening.getsockname()[1]}"

    def close(self) -> None:
        """Stop accepting, finish the requests that have come in, then return."""
        while self._open:
            self._open.pop().close()


def check_config(config: ReceiveConfig) -> None:
    """Raises UserError with every reason not to serve this config."""
    problems: list[Problem] = []
    for option, address in (("receive.grpc", config.grpc), ("receive.http", config.http)):
        if address:
            problems += _address_problems(option, address, config)
    if bool(config.tls_cert) != bool(config.tls_key):
        missing = "receive.tls_key" if config.tls_cert else "receive.tls_cert"
        problems.append(Problem(missing, "is not set", "both tls_cert and tls_key, or neither", f"set {missing}"))
    elif config.tls_cert:
        problems += _tls_problems(config)
    if problems:
        raise UserError(*problems)


def _address_problems(option: str, address: str, config: ReceiveConfig) -> list[Problem]:
    try:
        host, _ = split_address(option, address)
    except UserError as error:
        return list(error.problems)
    if is_loopback(host):
        return []
    needs = {"receive.token": config.token, "receive.tls_cert": config.tls_cert, "receive.tls_key": config.tls_key}
    missing = [name for name, value in needs.items() if not value]
    if not missing:
        return []
    wrong = f"{address} can be reached from other machines, and {', '.join(missing)} are not set"
    do = "set them, or listen on 127.0.0.1"
    return [Problem(option, wrong, "a token and TLS on an address that is not loopback", do)]


def _tls_problems(config: ReceiveConfig) -> list[Problem]:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(config.tls_cert, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        expected = "a PEM certificate file and the PEM file of its key"
        wrong = f"{config.tls_cert} with {config.tls_key} can not be used: {error}"
        return [Problem("receive.tls_cert, receive.tls_key", wrong, expected, "check the two files")]
    return []


def split_address(option: str, address: str) -> tuple[str, int]:
    """(host, port) of "host:port" or "[v6]:port"; no host means every interface. Raises UserError."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UserError(Problem(option, f"{address!r} is no address", "host:port", "for example 127.0.0.1:4318"))
    return host or "0.0.0.0", int(port)  # noqa: S104 - refused by check_config without a token and TLS


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _bind(option: str, host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _taken(option, f"{_bracketed(host)}:{port}", f": {error.strerror}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise _taken(option, f"{_bracketed(host)}:{port}", f": {error.strerror}") from None
    return listening


def _taken(option: str, address: str, why: str) -> UnreachableError:
    wrong = f"can not listen on {address}{why}"
    do = f"stop the program that uses the port, or choose another one with {option}"
    return UnreachableError(Problem(option, wrong, "a free port of this machine", do))
