"""The service says in one line what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services import kafka


@pytest.fixture
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("OTELMON_KAFKA_LIBS", str(tmp_path / "libs"))


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(("arguments", "lacks"), [(["fetch"], "mvn"), (["run"], "java")])
def test_what_is_missing_is_said_in_one_line(
    arguments: list[str], lacks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kafka.main(arguments) == 3
    said = capsys.readouterr().err
    assert said.startswith(f"{lacks}: not found")
    assert "apt-get install" in said
    assert said.count("\n") == 1


@pytest.mark.kafka
def test_the_jars_are_fetched_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert kafka.main(["fetch"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert list(folder.glob("kafka_2.13-*.jar"))
