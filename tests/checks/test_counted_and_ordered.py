"""Thresholds and sequences: mistakes in their rule files. What they find is tested in the packs (rules/examples)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from otelmon.rules.loader import load_rule, with_params
from otelmon.vocabulary.errors import UserError

PACK = Path(__file__).parents[2] / "rules" / "examples" / "payments"


@pytest.mark.parametrize(
    ("rule_id", "params", "said"),
    [
        ("payments_refund_count", {"max": -1}, "max is -1"),
        ("payments_refund_count", {"window_seconds": 0}, "window_seconds is 0"),
        ("payments_refund_count", {"calls": {"when": "call.amount"}}, "call has no field amount"),
        ("payments_charge_after_dispute", {"without": {"when": "result"}}, "unknown variable result"),
        ("payments_charge_after_dispute", {"then": {"when": "1 +"}}, "is not CEL"),
        ("payments_charge_after_dispute", {"first": {"when": "first"}}, "unknown variable first"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, rule_id: str, params: dict[str, Any], said: str) -> None:
    rule = load_rule(PACK / f"{rule_id}.yaml")
    with pytest.raises(UserError, match=said):
        with_params(rule, params)
    raw = {**rule.raw, "params": {**rule.raw["params"], **params}}
    path = tmp_path / f"{rule_id}.yaml"
    path.write_text(yaml.safe_dump(raw))
    with pytest.raises(UserError, match=said) as refused:
        load_rule(path)
    assert str(refused.value).startswith(f"{path}:")
