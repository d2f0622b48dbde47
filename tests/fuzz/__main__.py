"""Fuzz one target: python -m tests.fuzz TARGET FOLDER [libFuzzer options]. Crash files are kept in FOLDER.

python -m tests.fuzz all FOLDER SECONDS shares the time between all targets and says which of them failed.
python -m tests.fuzz TARGET --read FILE... runs a target on crash files, without a fuzzer.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main(name: str, folder: str, *options: str) -> None:
    """Write the seeds, then fuzz until libFuzzer has enough. It ends the process."""
    import atheris  # type: ignore[import-untyped]

    # The fuzzer follows what is imported here, so everything of ours is, with what is only loaded when needed.
    with atheris.instrument_imports(include=["otelmon"], enable_loader_override=False):
        from otelmon.assemble.dialects import dialects
        from otelmon.checks.registry import load_checks
        from tests.fuzz.seeds import seeds
        from tests.fuzz.targets import TARGETS, crash

        dialects()
        load_checks()
    corpus = Path(folder) / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (corpus / f"seed{number:03}").write_bytes(seed)
    fixed = (f"-artifact_prefix={folder}/{name}-", "-timeout=20", "-rss_limit_mb=4096", "-max_len=4096")
    atheris.Setup([sys.argv[0], str(corpus), *fixed, *options], {**TARGETS, "crash": crash}[name])
    atheris.Fuzz()


def every(folder: str, seconds: str) -> None:
    """All targets, one after the other, each in a process of its own that a crash may end."""
    from tests.fuzz.targets import TARGETS

    share = max(1, int(float(seconds) / len(TARGETS)))
    failed = []
    for name in TARGETS:
        sys.stdout.write(f"{name}: {share} s\n")
        sys.stdout.flush()
        log = Path(folder) / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            run = [sys.executable, "-m", "tests.fuzz", name, folder, f"-max_total_time={share}"]
            if subprocess.run(run, stdout=out, stderr=out, check=False).returncode:
                failed.append(f"{name} failed, see {log}")
    sys.exit("\n".join(failed) or None)


def read(name: str, *files: str) -> None:
    """Run a target on files."""
    from tests.fuzz.targets import TARGETS, crash

    for file in files:
        {**TARGETS, "crash": crash}[name](Path(file).read_bytes())


if __name__ == "__main__":
    if sys.argv[1] == "all":
        every(*sys.argv[2:])
    elif sys.argv[2] == "--read":
        read(sys.argv[1], *sys.argv[3:])
    else:
        main(*sys.argv[1:])
