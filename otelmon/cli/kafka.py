"""otelmon kafka: topics."""

from __future__ import annotations

import click

from otelmon.cli.common import Context
from otelmon.vocabulary.errors import OK


@click.group()
def command() -> None:
    """The Kafka bus."""


@command.command()
@click.pass_obj
def init(context: Context) -> int:
    """Create the topics that are missing; say what differs in the others."""
    from otelmon.bus.kafka import KafkaBus

    bus = KafkaBus(context.config.kafka)
    try:
        for line in bus.init_topics():
            click.echo(line)
    finally:
        bus.close()
    return OK
