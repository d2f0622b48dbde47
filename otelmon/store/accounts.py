"""Conservation: what came in, and what became of every span, kept durably with the rows.

The unit on the spans topic is a span or a log record (a message that can not be read counts as one); on the records
topic it is a message. Per topic and partition, over all offsets below `next_offset`:

    received = stored + duplicate + filtered + dead_lettered + rejected, summed over its reasons

`conflict` is the part of `stored` whose id was there already with other content: both are kept.
What lies between `next_offset` and the end of the partition is pending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
from duckdb import DuckDBPyConnection

from otelmon.bus.protocol import Delivered
from otelmon.store.tables import Row, append, delete, replace
from otelmon.vocabulary.messages import Account

Place = tuple[str, int]
STAGE = "store"


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What became of everything below `next_offset` of one partition. `pending` is in messages, None
    when the end of the partition was not given."""

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    received: int = 0
    stored: int = 0
    duplicate: int = 0
    conflict: int = 0
    filtered: int = 0
    dead_lettered: int = 0
    rejected: dict[str, int] = {}
    pending: int | None = None

    @property
    def missing(self) -> int:
        """Received and not accounted for: 0, or there is a bug."""
        accounted = self.stored + self.duplicate + self.filtered + self.dead_lettered
        return self.received - accounted - sum(self.rejected.values())


class Refused(msgspec.Struct, frozen=True):
    """What a stage (the doors, "receive") refused for one reason, and when it did last."""

    stage: str
    reason: str
    amount: int
    last_unix_nano: int


class Tally:
    """Counts of one batch per partition: {(kind, reason): amount}, and the newest time."""

    def __init__(self) -> None:
        self.counts: dict[Place, Counter[tuple[str, str]]] = {}
        self.newest: dict[Place, int] = {}

    def saw(self, message: Delivered) -> None:
        """A message of this batch, whatever is in it."""
        place = (message.topic, message.partition)
        self.counts.setdefault(place, Counter())
        self.newest[place] = max(self.newest.get(place, 0), message.time_unix_nano)

    def add(self, message: Delivered, kind: str, reason: str = "", amount: int = 1) -> None:
        """`amount` units of the message ended as `kind`, for `reason`."""
        if amount:
            self.counts[message.topic, message.partition][kind, reason] += amount


class Ledger:
    """The running totals of every partition. `Ledger.write` returns what to keep after the commit."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self.counts: dict[Place, Counter[tuple[str, str]]] = {}
        self.newest: dict[Place, int] = {}
        rows = connection.execute(
            "SELECT topic, partition, kind, reason, amount, observed_unix_nano FROM accounts WHERE stage = ?", [STAGE]
        ).fetchall()
        for topic, partition, kind, reason, amount, observed in rows:
            self.counts.setdefault((topic, partition), Counter())[kind, reason] = amount
            self.newest[topic, partition] = observed

    def write(self, connection: DuckDBPyConnection, tally: Tally) -> None:
        """Store the totals with the batch added. `keep` after the commit."""
        rows: list[Row] = []
        for place, counts in tally.counts.items():
            total = self.counts.get(place, Counter()) + counts
            newest = max(self.newest.get(place, 0), tally.newest[place])
            topic, partition = place
            rows += [
                (_id(place), STAGE, topic, partition, kind, reason, amount, newest)
                for (kind, reason), amount in sorted(total.items())
            ]
        replace(connection, "accounts", "id", {_id(place) for place in tally.counts}, rows)

    def keep(self, tally: Tally) -> None:
        """The batch is committed: its counts are part of the totals."""
        for place, counts in tally.counts.items():
            self.counts[place] = self.counts.get(place, Counter()) + counts
            self.newest[place] = max(self.newest.get(place, 0), tally.newest[place])


def write_reports(connection: DuckDBPyConnection, accounts: Mapping[str, Account]) -> None:
    """Upsert what other stages report, by id."""
    delete(connection, "accounts", "id", accounts)
    rows: list[Row] = []
    for account in accounts.values():
        head = (account.id, account.stage, "", -1)
        rows.append((*head, "received", "", account.received, account.observed_unix_nano))
        rows += [
            (*head, "rejected", reason, amount, account.observed_unix_nano)
            for reason, amount in sorted(account.rejected.items())
        ]
    append(connection, "accounts", rows)


def conservation(connection: DuckDBPyConnection, ends: Mapping[Place, int] | None = None) -> list[Totals]:
    """Totals per partition, in order. `ends` are the end offsets of the partitions, for `pending`."""
    ledger = Ledger(connection)
    found = []
    rows = connection.execute("SELECT topic, partition, first_offset, next_offset FROM offsets").fetchall()
    for topic, partition, first, following in sorted(rows):
        counts = ledger.counts.get((topic, partition), Counter())
        plain: Counter[str] = Counter()
        for (kind, _), amount in counts.items():
            plain[kind] += amount
        del plain["rejected"]
        rejected = {reason: amount for (kind, reason), amount in counts.items() if kind == "rejected"}
        end = (ends or {}).get((topic, partition))
        pending = None if end is None else max(0, end - following)
        found.append(
            Totals(
                topic=topic, partition=partition, first_offset=first, next_offset=following,
                rejected=dict(sorted(rejected.items())), pending=pending, **plain,
            )
        )  # fmt: skip
    return found


def refusals(connection: DuckDBPyConnection) -> list[Refused]:
    """What other stages reported that they refused, by stage and reason, in order."""
    rows = connection.execute(
        "SELECT stage, reason, sum(amount)::BIGINT, max(observed_unix_nano) FROM accounts"
        " WHERE stage <> ? AND kind = 'rejected' GROUP BY ALL ORDER BY ALL",
        [STAGE],
    ).fetchall()
    return [Refused(*row) for row in rows]


def _id(place: Place) -> str:
    return f"{STAGE}:{place[0]}/{place[1]}"
