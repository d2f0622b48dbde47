"""Doors open only where they may, say what is in the way, and close without losing what they took."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from otelmon.receive.addresses import is_loopback, split_address
from otelmon.receive.doors import Doors, check_config
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.errors import UnreachableError, UserError
from tests.receive.build import as_protobuf, many
from tests.receive.conftest import Sink

OpenDoors = Callable[..., Doors]
HEADERS = {"content-type": "application/x-protobuf"}


def test_the_defaults_may_be_served() -> None:
    check_config(ReceiveConfig())


@pytest.mark.parametrize("address", ["0.0.0.0:4318", ":4318", "192.0.2.1:4318", "[::]:4318", "agents.example.com:4318"])
def test_a_public_address_needs_a_token_and_tls(address: str, certificate: dict[str, str]) -> None:
    with pytest.raises(UserError) as caught:
        check_config(ReceiveConfig(http=address, grpc=address))
    first, second = caught.value.problems
    assert (first.where, second.where) == ("receive.grpc", "receive.http")
    assert "receive.token, receive.tls_cert, receive.tls_key are not set" in str(second)
    tls: Any = {"tls_cert": certificate["cert"], "tls_key": certificate["key"]}
    with pytest.raises(UserError, match=r"receive\.token are not set|receive\.token"):
        check_config(ReceiveConfig(http=address, **tls))
    check_config(ReceiveConfig(http=address, token="secret", **tls))


def test_nothing_is_opened_that_may_not_be_served(sink: Sink) -> None:
    with pytest.raises(UserError):
        Doors(sink.receiver(http="0.0.0.0:0"))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("10.0.0.1", False), ("box", False)],
)
def test_what_is_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_addresses_are_split() -> None:
    assert split_address("o", "127.0.0.1:4318") == ("127.0.0.1", 4318)
    assert split_address("o", "[::1]:1") == ("::1", 1)
    assert split_address("o", ":0") == ("0.0.0.0", 0)


@pytest.mark.parametrize(
    "address", ["localhost", "localhost:", "localhost:http", "localhost:65536", "a:-1", "4318", "a:²"]
)
def test_an_address_that_is_none_is_the_users_mistake(address: str) -> None:
    with pytest.raises(UserError, match=r"receive\.http: .* is no address; host:port; for example"):
        check_config(ReceiveConfig(http=address))


def test_half_of_tls_and_broken_tls_are_told(certificate: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"receive\.tls_key: is not set"):
        check_config(ReceiveConfig(tls_cert=certificate["cert"]))
    with pytest.raises(UserError, match=r"receive\.tls_cert: is not set"):
        check_config(ReceiveConfig(tls_key=certificate["key"]))
    with pytest.raises(UserError, match=r"can not be used: .*No such file"):
        check_config(ReceiveConfig(tls_cert=str(tmp_path / "no.pem"), tls_key=certificate["key"]))
    with pytest.raises(UserError, match="can not be used"):
        check_config(ReceiveConfig(tls_cert=certificate["key"], tls_key=certificate["key"]))


@pytest.mark.parametrize("door", ["grpc", "http"])
def test_a_port_that_is_taken_is_told_with_the_option(door: str, sink: Sink) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(UnreachableError) as caught:
            Doors(sink.receiver(None, **{door: address}))
    text = str(caught.value)
    assert text.startswith(f"receive.{door}: can not listen on {address}")
    assert f"choose another one with receive.{door}" in text


def test_when_one_door_can_not_open_the_other_does_not_stay_open(sink: Sink) -> None:
    with socket.socket() as other, socket.socket() as free:
        other.bind(("127.0.0.1", 0))
        other.listen()
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        with pytest.raises(UnreachableError) as caught:
            Doors(sink.receiver(grpc=f"127.0.0.1:{port}", http=f"127.0.0.1:{other.getsockname()[1]}"))
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
    assert caught.value.problems[0].where == "receive.http"


@pytest.mark.parametrize("door", ["grpc", "http"])
def test_two_monitors_never_share_a_port(door: str, open_doors: OpenDoors, sink: Sink) -> None:
    address = getattr(open_doors(), door)
    with pytest.raises(UnreachableError):
        Doors(sink.receiver(None, **{door: address}))


def test_a_host_that_is_unknown_is_told(sink: Sink, certificate: dict[str, str]) -> None:
    config: dict[str, Any] = {"token": "t", "tls_cert": certificate["cert"], "tls_key": certificate["key"], "grpc": ""}
    with pytest.raises(UnreachableError, match=r"receive\.http: can not listen on nowhere\.invalid:4318"):
        Doors(sink.receiver(http="nowhere.invalid:4318", **config))


@pytest.mark.parametrize(("off", "on"), [("grpc", "http"), ("http", "grpc")])
def test_a_door_can_be_turned_off(off: str, on: str, open_doors: OpenDoors) -> None:
    doors = open_doors(**{off: ""})
    assert getattr(doors, off) == ""
    assert getattr(doors, on).startswith("127.0.0.1:")


def test_a_door_on_version_6_loopback(open_doors: OpenDoors, sink: Sink) -> None:
    doors = open_doors(http="[::1]:0", grpc="[::1]:0")
    assert doors.http.startswith("[::1]:")
    response = httpx.post(f"http://{doors.http}/v1/traces", content=as_protobuf(many(1)), headers=HEADERS)
    assert response.status_code == 200
    assert len(sink.spans) == 1


def test_after_closing_nothing_listens(open_doors: OpenDoors) -> None:
    doors = open_doors()
    doors.close()
    for address in (doors.grpc, doors.http):
        host, port = split_address("o", address)
        with pytest.raises(ConnectionRefusedError), socket.create_connection((host, port), timeout=5):
            pass
    doors.close()
