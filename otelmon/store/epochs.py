"""The epoch rule: what an owner of a lower epoch says is ignored."""

from __future__ import annotations

from collections.abc import Iterable

from duckdb import DuckDBPyConnection

from otelmon.store.tables import replace, select


class Epochs:
    """The epochs of the owners of one batch. An owner without a row has epoch 0."""

    def __init__(self, connection: DuckDBPyConnection, owners: Iterable[str]) -> None:
        rows = select(
            connection,
            "SELECT owner, epoch, observed_unix_nano FROM epochs WHERE owner IN (SELECT unnest(?::VARCHAR[]))",
            owners,
        )
        self._epochs: dict[str, tuple[int, int]] = {owner: (epoch, observed) for owner, epoch, observed in rows}
        self._raised: set[str] = set()

    def accept(self, owner: str, epoch: int, observed_unix_nano: int) -> bool:
        """True when the owner may say so; a higher epoch is remembered."""
        known = self._epochs.get(owner, (0, 0))[0]
        if epoch > known:
            self._epochs[owner] = (epoch, observed_unix_nano)
            self._raised.add(owner)
        return epoch >= known

    def write(self, connection: DuckDBPyConnection) -> None:
        """Store the epochs that rose."""
        replace(
            connection,
            "epochs",
            "owner",
            self._raised,
            [(owner, *self._epochs[owner]) for owner in sorted(self._raised)],
        )
