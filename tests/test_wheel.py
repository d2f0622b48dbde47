"""What is installed works without the source tree: the shim on the core alone, the monitor with its data."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SERVER = {
    "duckdb",
    "grpc",
    "kafka",
    "starlette",
    "uvicorn",
    "click",
    "jinja2",
    "httpx",
    "prometheus_client",
    "phonenumbers",
}


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built here and unpacked where nothing else of the project is."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def python(installed: Path, code: str) -> str:
    """Run code that finds otelmon in the unpacked wheel only."""
    return run(
        sys.executable, "-c", f"import sys; sys.path.insert(0, {str(installed)!r}); {code}", cwd=installed.parent
    )


def test_rules_dashboards_templates_and_data_are_inside(installed: Path) -> None:
    for source, target in (
        ("rules", "otelmon/data/rules"),
        ("dashboards", "otelmon/data/dashboards"),
        ("otelmon", "otelmon"),
    ):
        listed = run("git", "ls-files", "-z", source, cwd=ROOT).split("\0")
        wanted = {Path(line).relative_to(source) for line in listed if line and (ROOT / line).is_file()}
        there = {path.relative_to(installed / target) for path in (installed / target).rglob("*") if path.is_file()}
        assert wanted - there == set()


def test_the_command_works_elsewhere(installed: Path) -> None:
    code = "sys.argv = ['otelmon', 'rules', 'list']; import otelmon; print(otelmon.__file__); from otelmon.cli import main; main()"
    out = python(installed, code)
    assert out.startswith(str(installed))
    assert "duplicate_write" in out


def test_the_shim_needs_the_core_alone(installed: Path) -> None:
    blocked = f"blocked = {SERVER!r}\nclass Block:\n def find_spec(self, name, *_):\n  if name.partition('.')[0] in blocked: raise ImportError('not in the core: ' + name)\n"
    code = (
        f"exec({blocked!r}); sys.meta_path.insert(0, Block()); from otelmon import instrument\n"
        "@instrument.tool\ndef add(a: int, b: int) -> int: return a + b\n"
        "with instrument.run(agent='a', user_text='add') as r: r.answer(str(add(1, 2)))\n"
        "print(instrument.__file__)"
    )
    assert python(installed, code).startswith(str(installed))
