"""A message calls work done that was only started."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from otelmon.checks.lib.tasks import called_done, open_tasks
from otelmon.checks.lib.turns import last_words
from otelmon.checks.registry import check
from otelmon.checks.view import View
from otelmon.vocabulary.event import Run
from otelmon.vocabulary.finding import Evidence


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`every_turn`: judge the last message of each user turn, not only of the run."""

    every_turn: bool = True


@check(on="run")
def async_claimed_done(run: Run, view: View, params: Params) -> Iterator[Evidence]:
    """A call was accepted and its work still runs, and the agent tells the user that it is done.

    Why it matters: the work may fail after the message, and nobody looks again.
    """
    for message in last_words(run, view, params.every_turn):
        for task in open_tasks(message, view):
            said = called_done(task, message, view)
            if not said:
                continue
            yield Evidence(
                summary=f"the message says {said[:100]!r}, but {task.tool_name} was last seen running",
                anchor=message.span_id,
                span_ids=(message.span_id, *task.span_ids),
                severity="high" if view.writes(task) else "medium",
                details={
                    "claim": said,
                    "other": task.key,
                    "task": {
                        "tool": task.tool_name,
                        "tool_call_id": task.tool_call_id,
                        "outcome": task.outcome,
                        "result": (task.result_text or "")[:300],
                    },
                },
            )
            break
