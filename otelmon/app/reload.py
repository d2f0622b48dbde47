"""Take rules, catalogue and suppressions anew when their files change: all of it, or nothing of it.

Files are looked at, not subscribed to: it is some dozens of `stat` calls a second, and it sees what
notifications miss (a file replaced by another, a folder that goes and comes back, a mounted volume).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from otelmon.app.laws import laws_and_plugins
from otelmon.app.plugins import Plugin
from otelmon.detect.engine import Laws
from otelmon.rules.settings import Settings, load_settings
from otelmon.vocabulary.errors import OtelmonError

log = logging.getLogger("otelmon")
LOOK_EVERY_S = 0.5
DEFAULT_FILE = Path("otelmon.toml")
RELOADED = frozenset(("rules", "rules_dirs", "catalogue", "suppress", "plugins", "detect.trusted_services"))
Stamp = tuple[str, int, int, int]


class Loaded(msgspec.Struct, frozen=True):
    """A complete set: the settings, the laws they give, the plug-ins, and the files as they were then."""

    settings: Settings
    laws: Laws
    plugins: tuple[Plugin, ...] = ()
    stamps: frozenset[Stamp] = frozenset()


class LawSource:
    """Where laws are written: a settings file, the environment and options, and the files these name."""

    def __init__(self, file: Path | None, env: Mapping[str, str], overrides: Mapping[str, object]) -> None:
        self._file, self._env, self._overrides = file or DEFAULT_FILE, dict(env), dict(overrides)
        self._must = file is not None
        self._named: tuple[Path, ...] = ()

    def settings(self) -> Settings:
        """The settings now. A file that was there once must stay: without it every change to a rule that
        it holds would silently be gone. Raises UserError with every mistake."""
        self._must = self._must or self._file.exists()
        return load_settings(self._file if self._must else None, self._env, self._overrides)

    def load(self) -> Loaded:
        """Everything, complete and checked. Raises UserError with every mistake."""
        settings = self.settings()
        config = settings.config
        self._named = tuple(map(Path, (*config.rules_dirs, *filter(None, (config.catalogue,)))))
        stamps = self.stamps()
        laws, plugins = laws_and_plugins(config, settings.origin)
        return Loaded(settings, laws, plugins, stamps)

    def stamps(self) -> frozenset[Stamp]:
        """What changes when one of the files does: name, time, size and number of each."""
        found: set[Stamp] = set()
        for path in (self._file, *self._named):
            found.update(_stamps(path))
        return frozenset(found)


class Reload(msgspec.Struct, frozen=True):
    """The last attempt: when (nanoseconds), which rules are in force since, what stood against it, and
    settings that changed and hold only after a restart."""

    at_unix_nano: int
    version: str
    mistakes: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether what the files say is in force."""
        return not self.mistakes


class Reloader:
    """Watches a source in a thread of its own. A change is taken once the files have been still for a
    look, and only when they are the same after they were read. `apply` is given each complete new set;
    `count` how each attempt ended, "success" or "failure"; `wall` gives nanoseconds."""

    def __init__(
        self,
        source: LawSource,
        first: Loaded,
        apply: Callable[[Loaded], None],
        count: Callable[[str], None],
        wall: Callable[[], int],
    ) -> None:
        self._source, self._apply, self._count, self._wall = source, apply, count, wall
        self._first = first.settings
        self._seen = first.stamps  # the files as they were last taken or refused: each state is told once
        self._version = first.laws.rules.version
        self._stop = threading.Event()
        self._asked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="otelmon-reload", daemon=True)
        self.last = Reload(wall(), self._version)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def ask(self) -> None:
        """Take the files now, changed or not (SIGHUP). May be called by a signal handler."""
        self._asked.set()

    def stop(self) -> None:
        """Return when nothing is being applied any more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        last = self._seen
        while not self._stop.wait(LOOK_EVERY_S):
            now = self._source.stamps()
            if self._asked.is_set() or (now != self._seen and now == last):
                self._asked.clear()
                self._take(now)
            last = now

    def _take(self, before: frozenset[Stamp]) -> None:
        mistakes: list[str] = []
        loaded = None
        try:
            loaded = self._source.load()
        except OtelmonError as error:
            mistakes = [str(problem) for problem in error.problems]
        except Exception as error:
            log.exception("rules could not be loaded; this is a bug; the rules in force stay")
            mistakes = [f"{type(error).__name__}: {error}; this is a bug"]
        if self._source.stamps() != before:
            return  # a file changed while it was read, or other files are named now: the next look takes it
        self._seen = before
        if loaded is None:
            self._refuse(mistakes)
        else:
            self._accept(loaded)

    def _accept(self, loaded: Loaded) -> None:
        self._version = loaded.laws.rules.version
        self._apply(loaded)
        self._count("success")
        restart = changed_settings(self._first, loaded.settings)
        self.last = Reload(self._wall(), self._version, (), restart)
        tell(loaded)
        log.info("rules %s are in force (%d rules)", self._version, len(loaded.laws.rules.rules))
        if restart:
            log.warning("changed, and in force only after a restart: %s", ", ".join(restart))

    def _refuse(self, mistakes: Sequence[str]) -> None:
        self._count("failure")
        self.last = Reload(self._wall(), self._version, tuple(mistakes), self.last.restart)
        log.error("the files can not be used as they are; rules %s stay in force:\n%s", self._version, "\n".join(mistakes))  # fmt: skip


def tell(loaded: Loaded) -> None:
    """Log what is not as the configuration wants it, though all can be used."""
    for expired in loaded.settings.expired:
        log.warning("%s", expired)
    for plugin in loaded.plugins:
        for error in plugin.errors:
            log.error("plug-in %s: %s", plugin.name, error)


def changed_settings(old: Settings, new: Settings) -> tuple[str, ...]:
    """Keys that differ and are read at the start only."""
    before = {key: value for key, value, _ in old.describe()}
    after = {key: value for key, value, _ in new.describe()}
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    return tuple(sorted(key for key in changed if key not in RELOADED and not key.startswith("rules.")))


def _stamps(path: Path) -> set[Stamp]:
    """The file, or the rule files of the folder and the folder itself; nothing when it is not there."""
    try:
        if not path.is_dir():
            return {_stamp(path)}
        return {(str(path), 0, 0, 0), *(_stamp(file) for file in path.iterdir() if file.suffix in (".yaml", ".yml"))}
    except OSError:
        return {(str(path), 0, 0, -1)}


def _stamp(file: Path) -> Stamp:
    found = file.stat()
    return str(file), found.st_mtime_ns, found.st_size, found.st_ino
