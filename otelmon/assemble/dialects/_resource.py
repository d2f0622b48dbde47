"""The resource of a span: which service, where, and what started it."""

from __future__ import annotations

from typing import Any

import msgspec

from otelmon.vocabulary.span import Attributes

_ENVIRONMENT = ("deployment.environment.name", "deployment.environment")
_HOST = ("service.instance.id", "k8s.pod.name", "host.name", "host.id", "container.id")
_TRIGGER = (
    "workflow.id",
    "job.id",
    "temporalWorkflowID",
    "faas.invocation_id",
    "cicd.pipeline.run.id",
)


class Where(msgspec.Struct, frozen=True):
    """Service and place. Absent texts are empty."""

    name: str = ""
    namespace: str = ""
    version: str | None = None
    environment: str = ""
    host: str = ""
    trigger: str | None = None


def _first(attributes: Attributes, keys: tuple[str, ...]) -> str:
    for key in keys:
        value: Any = attributes.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


# The last resource read: the spans of one request share it, so it is read once a request.
_last: list[tuple[Attributes, Where]] = [({}, Where())]


def read(resource: Attributes) -> Where:
    """The place that a resource names."""
    known, where = _last[0]
    if known is resource:
        return where
    where = Where(
        name=_first(resource, ("service.name",)),
        namespace=_first(resource, ("service.namespace",)),
        version=_first(resource, ("service.version",)) or None,
        environment=_first(resource, _ENVIRONMENT),
        host=_first(resource, _HOST),
        trigger=trigger_of(resource),
    )
    _last[0] = (resource, where)
    return where


def trigger_of(attributes: Attributes) -> str | None:
    """What started the work beside the conversation: a workflow, a job, a message."""
    return _first(attributes, _TRIGGER) or None
