"""How a command reads what was stored: from the running server, or from a database nobody serves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx
import msgspec

from otelmon.app.runtime import DATABASE
from otelmon.golden.model import GoldenTask, decode_task
from otelmon.golden.tasks import mine_incident
from otelmon.store.database import Database
from otelmon.store.queries import payloads
from otelmon.store.results import Payload
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.errors import Problem, UnreachableError, UserError
from otelmon.web.api import OWN_HEADER
from otelmon.web.changes import change_incident
from otelmon.web.reads import READS, answer, params_of
from otelmon.web.stored import read_frames

TIMEOUT_S = 30.0


class Reader(Protocol):
    """Answers reads of otelmon.web.reads by name, and changes incidents. `place` says what is read, in words."""

    @property
    def place(self) -> str: ...

    def read(self, name: str, **given: object) -> Any: ...

    def change(self, verb: str, incident_id: str, **given: str) -> None:
        """`verb`: ack, resolve or label."""
        ...

    def mine(self, incident_id: str) -> GoldenTask:
        """Mine an incident as a golden task and keep it."""
        ...

    def payloads(self, since: int | None, until: int | None) -> Iterator[Payload]:
        """Stored messages received in [since, until), oldest first, few in memory at once."""
        ...


class ServerReader:
    """Asks a running server."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    @property
    def place(self) -> str:
        return f"the server on {self._client.base_url.netloc.decode()}"

    def read(self, name: str, **given: object) -> Any:
        params = {k: str(v) for k, v in given.items() if v is not None}
        params_of(name, params)
        response = self._client.get(f"/api/v1/{name}", params=params)
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        _raise_for(response)
        return msgspec.json.decode(response.content, type=READS[name].result)

    def change(self, verb: str, incident_id: str, **given: str) -> None:
        _raise_for(self._client.post(f"/api/v1/incidents/{incident_id}/{verb}", json=given))

    def mine(self, incident_id: str) -> GoldenTask:
        response = self._client.post(f"/api/v1/incidents/{incident_id}/mine")
        _raise_for(response)
        return decode_task(response.content)

    def payloads(self, since: int | None, until: int | None) -> Iterator[Payload]:
        """Stored messages received in [since, until). Raises UnreachableError when they do not all arrive."""
        params = {name: str(value) for name, value in (("since", since), ("until", until)) if value is not None}
        with self._client.stream("GET", "/api/v1/payloads", params=params) as response:
            if not response.is_success:
                response.read()
                _raise_for(response)
            try:
                yield from read_frames(response.iter_bytes())
            except (httpx.HTTPError, msgspec.DecodeError) as error:
                wrong = f"the stored spans did not all arrive: {error}"
                raise UnreachableError(
                    Problem(str(self._client.base_url), wrong, "a running `otelmon serve`")
                ) from None


class FileReader:
    """Opens the database itself: only while no server has it open."""

    def __init__(self, database: Database, now: int) -> None:
        self._database, self._now = database, now

    @property
    def place(self) -> str:
        return f"the data folder {self._database.path.parent}"

    def read(self, name: str, **given: object) -> Any:
        return answer(self._database, name, {k: v for k, v in given.items() if v is not None})

    def change(self, verb: str, incident_id: str, **given: str) -> None:
        change_incident(self._database, verb, incident_id, self._now, given)

    def mine(self, incident_id: str) -> GoldenTask:
        return mine_incident(self._database, incident_id, self._now)

    def payloads(self, since: int | None, until: int | None) -> Iterator[Payload]:
        yield from payloads(self._database, since, until)


def _raise_for(response: httpx.Response) -> None:
    if response.is_success:
        return
    try:
        text = str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        text = f"{response.request.url}: answered {response.status_code}"
    raise UserError(Problem("server", text))


def client_of(config: Config) -> httpx.Client:
    """An HTTP client for the configured server."""
    headers = {OWN_HEADER: "1"}
    if config.web.token:
        headers["authorization"] = f"Bearer {config.web.token}"
    return httpx.Client(base_url=f"http://{config.web.listen}", headers=headers, timeout=TIMEOUT_S, trust_env=False)


def server_answers(client: httpx.Client) -> bool:
    """Whether an otelmon server listens there."""
    try:
        return "otelmon" in client.get("/healthz", timeout=3.0).headers.get("server", "")
    except httpx.HTTPError:
        return False


@contextmanager
def open_reader(config: Config, now: int) -> Iterator[Reader]:
    """The running server when it answers, else the database in the data folder. Raises
    UnreachableError when there is neither."""
    with client_of(config) as client:
        if server_answers(client):
            yield ServerReader(client)
            return
    file = Path(config.data) / DATABASE
    if not file.exists():
        raise UnreachableError(
            Problem(
                str(file), f"no server answers on {config.web.listen}, and there is no database here",
                "a running `otelmon serve`, or a data folder", "start it, or name the folder: --set data=FOLDER",
            )
        )  # fmt: skip
    with Database.open(file, config.store) as database:
        yield FileReader(database, now)
