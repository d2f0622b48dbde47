"""The first inputs of every target: real requests of every shape for the decoders, random bytes for the rest."""

from __future__ import annotations

import random
from collections.abc import Iterator

from otelmon.rules.loader import builtin_rules_dir
from tests.receive.build import a_group, a_span, as_json, as_protobuf

TEXTS = (
    '{"order_id": "A-1", "amount": 12.5}', "{'ok': True, 'items': (1, 2)}", '{"error": {"code": 404, "message": "gone"}}',
    '{"isError": true, "content": [{"type": "text", "text": "no"}]}', "Error: timed out", '"{\\"a\\": \\"{}\\"}"', "[1, 2",
    "I've refunded order A-1 (12.50 EUR) and sent the mail to ann@example.com; ticket #4711 was not closed.",
    "Soll ich die Bestellung am 4. M\u00e4rz 2026 stornieren? Ja, bitte, und zwar zweimal.", "BEGIN; DELETE FROM t WHERE a = 1; --",
    "cd /tmp && rm -rf x | tee y > z; curl -X POST http://h/ -d @f", "next Friday, 3rd of May, 1.234,56 EUR, 20 %",
    "call.arguments.amount > 10 && call.environment == 'prod'",
)  # fmt: skip


def seeds(target: str, number: int = 40) -> Iterator[bytes]:
    """The same inputs every time."""
    chance = random.Random(target)
    if target in ("protobuf", "json"):
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.call.arguments": '{"a": 1}',
            "b": [1, {"c": b"x"}],
        }
        groups = [
            [a_group(a_span())],
            [a_group(a_span(attributes=attributes), a_span(span=b"\1" * 8, parent=b"\2" * 8, events=[{"name": "e", "time": 5, "attributes": {"x": 1.5}}]))],
            [a_group(a_span(trace=b"\0" * 16)), a_group(a_span(span=b"\0" * 8))],
        ]  # fmt: skip
        for group in groups:
            yield as_protobuf(group) if target == "protobuf" else as_json(group)
        return
    if target in ("rule_files", "catalogues"):
        for file in sorted(builtin_rules_dir().glob("*.yaml")):
            yield b"\0" + file.read_bytes()[:2000]
    for text in TEXTS:
        yield b"\0" + text.encode()
    for _ in range(number):
        yield chance.randbytes(chance.choice((8, 60, 300, 2000)))
