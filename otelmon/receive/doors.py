"""Opening and closing the doors: addresses, TLS, tokens, and what is refused before anything listens."""

from __future__ import annotations

import ssl
from pathlib import Path

from otelmon.receive.addresses import bind, bracketed, is_loopback, split_address, taken
from otelmon.receive.grpc_server import GrpcDoor
from otelmon.receive.http import HttpDoor
from otelmon.receive.receiver import Receiver
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import Problem, UserError


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
            door = GrpcDoor(receiver, f"{bracketed(host)}:{port}", tls)
        except OSError:
            raise taken("receive.grpc", config.grpc, "") from None
        self._open.append(door)
        return f"{bracketed(host)}:{door.port}"

    def _open_http(self, receiver: Receiver) -> str:
        config = receiver.config
        host, port = split_address("receive.http", config.http)
        listening = bind("receive.http", host, port)
        try:
            door = HttpDoor(receiver, listening, (config.tls_cert, config.tls_key) if config.tls_cert else None)
        except BaseException:
            listening.close()
            raise
        self._open.append(door)
        return f"{bracketed(host)}:{listening.getsockname()[1]}"

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
