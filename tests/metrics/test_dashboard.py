"""The dashboard is one Grafana can import: panels that do not overlap, each with its question."""

from __future__ import annotations

import json

from otelmon.metrics.dashboard import dashboard_json, panels


def test_every_panel_is_in_it_with_its_question() -> None:
    shown = [panel for panel in json.loads(dashboard_json())["panels"] if panel["type"] != "row"]
    assert [(panel["title"], panel["targets"][0]["expr"]) for panel in shown] == [(p.title, p.expr) for p in panels()]
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in shown)


def test_ids_are_unique_and_nothing_overlaps() -> None:
    items = json.loads(dashboard_json())["panels"]
    assert len({item["id"] for item in items}) == len(items)
    taken: set[tuple[int, int]] = set()
    for item in items:
        at = item["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
