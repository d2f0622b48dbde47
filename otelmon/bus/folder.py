"""The spool's folder: who holds it, and the shape it was made with."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

import msgspec

from otelmon.bus.log import sync_folder
from otelmon.vocabulary.errors import Problem, UnreachableError, UserError

_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


class _Shape(msgspec.Struct, frozen=True):
    version: int
    partitions: int


class Claim:
    """The right to use the folder, held until released or until the process is gone."""

    def __init__(self, folder: Path) -> None:
        (folder / "topics").mkdir(parents=True, exist_ok=True)
        self._fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            self.release()
            raise UnreachableError(
                Problem(
                    str(folder),
                    f"this spool is in use by process {pid}",
                    "one process per folder",
                    f"stop process {pid}, or give this one another folder with `data`",
                )
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def count_partitions(folder: Path, partitions: int) -> int:
    """Remember the number of partitions of a new folder; refuse another number later (UserError)."""
    path = folder / "spool.json"
    wanted = _Shape(_VERSION, partitions)
    if not path.exists():
        part = path.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(wanted))
        part.replace(path)
        sync_folder(folder)
        return partitions
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Shape)
    except msgspec.MsgspecError as error:
        raise UserError(Problem(str(path), f"can not be read ({error})", "a spool's own file", "restore it")) from None
    if found != wanted:
        raise UserError(
            Problem(
                str(path),
                f"the spool has format {found.version} and {found.partitions} partitions",
                f"format {_VERSION} and {partitions}",
                "keep the number, or start with an empty folder: keys would lie in other partitions",
            )
        )
    return partitions


def topic_name(name: str) -> str:
    """The topic's name when it can name a folder."""
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise ValueError(f"not a topic name: {name!r}")
    return name


def folder_unusable(folder: Path, error: OSError) -> UnreachableError:
    """The folder can not be made, read or written."""
    return UnreachableError(
        Problem(
            str(error.filename or folder),
            f"the spool can not be opened ({error.strerror})",
            "a folder this user may write, on a disk with room",
            "correct its owner, free space, or name another one with `data`",
        )
    )
