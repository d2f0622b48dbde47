"""A check that exists only in the tests of this folder."""

from __future__ import annotations

import pytest

from otelmon.checks import registry
from otelmon.checks.registry import Check
from tests.rules.helpers import Limit, too_dear


@pytest.fixture
def too_dear_check(monkeypatch: pytest.MonkeyPatch) -> Check:
    """The check `too_dear`, known to the registry while the test runs."""
    known = Check("too_dear", {"call": too_dear}, Limit, "A call with an amount above the limit.")
    monkeypatch.setitem(registry._DECLARED[registry.OURS], "too_dear", known)
    return known
