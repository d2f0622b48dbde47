"""A receiver that publishes into a list, and doors on free ports."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import trustme

from otelmon.receive import otlp
from otelmon.receive.doors import Doors
from otelmon.receive.receiver import Intake, Packed, Receiver
from otelmon.vocabulary.config import ReceiveConfig
from otelmon.vocabulary.span import Span
from tests.receive.build import NOW


class Sink:
    """What was published, and the accounts. Set `error` to make publishing fail, `gate` to make it wait."""

    def __init__(self) -> None:
        self.published: list[tuple[Packed, int]] = []
        self.accounts: list[Intake] = []
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Semaphore(0)
        self._clock = itertools.count(NOW)

    def publish(self, messages: Sequence[Packed], received_unix_nano: int) -> None:
        self.waiting.release()
        self.gate.wait(30)
        if self.error:
            raise self.error
        self.published += [(message, received_unix_nano) for message in messages]

    def now(self) -> int:
        return next(self._clock)

    def receiver(self, redact: Callable[[Any], Any] | None = None, **config: Any) -> Receiver:
        return Receiver(
            ReceiveConfig(**{"grpc": "127.0.0.1:0", "http": "127.0.0.1:0"} | config),
            self.publish,
            lambda trace_id: int(trace_id[-1], 16) % 4,
            self.now,
            self.accounts.append,
            redact,
        )

    @property
    def spans(self) -> list[Span]:
        limits = ReceiveConfig()
        return [
            span
            for message, at in list(self.published)
            for span in otlp.spans(otlp.parse(message.value, otlp.PROTOBUF, limits), at)
        ]

    @property
    def refused(self) -> Counter[str]:
        """Whole requests refused, by reason."""
        return Counter(account.refused for account in self.accounts if account.refused)


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def open_doors(sink: Sink) -> Iterator[Callable[..., Doors]]:
    """Opens doors to the sink; they close after the test."""
    opened: list[Doors] = []

    def of(**config: Any) -> Doors:
        opened.append(Doors(sink.receiver(**config)))
        return opened[-1]

    yield of
    sink.gate.set()
    for doors in opened:
        doors.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files of a certificate for 127.0.0.1, its key, and the authority to trust."""
    folder: Path = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1", "localhost")
    paths = {name: folder / f"{name}.pem" for name in ("cert", "key", "ca")}
    made.cert_chain_pems[0].write_to_path(paths["cert"])
    made.private_key_pem.write_to_path(paths["key"])
    authority.cert_pem.write_to_path(paths["ca"])
    return {name: str(path) for name, path in paths.items()}
