"""The file of figures: one section a command, each replaced alone."""

from __future__ import annotations

import re
from pathlib import Path

from otelmon.app.bench.measurements import write_section


def test_sections_are_added_replaced_and_leave_each_other_alone(tmp_path: Path) -> None:
    file = tmp_path / "docs" / "measurements.md"
    write_section(file, "One", "otelmon bench one", "| a |\n|---|\n| 1 |\n")
    write_section(file, "Two", "otelmon bench two", "second")
    write_section(file, "One", "otelmon bench one --more", "first again")
    text = file.read_text()
    assert re.findall(r"^## (.+)$", text, re.M) == ["One", "Two"]
    assert text.startswith("# Measurements\n")
    assert "| 1 |" not in text
    assert "`otelmon bench one --more`, 2" in text
    assert text.count("second") == 1


def test_writing_the_same_again_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "m.md"
    for title in ("One", "Two", "Three"):
        write_section(file, title, "c", f"body of {title}\n\n### a part\n\ntext")
    before = file.read_text()
    for title in ("Two", "One", "Three"):
        write_section(file, title, "c", f"body of {title}\n\n### a part\n\ntext")
    assert file.read_text() == before
