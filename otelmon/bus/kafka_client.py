"""What every Kafka client of ours is made with, and what its errors mean for a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka import errors as kafka_errors

from otelmon.bus.errors import BackpressureError
from otelmon.vocabulary.config import KafkaConfig
from otelmon.vocabulary.errors import Problem, UnreachableError, UserError

START_SECONDS = 20.0  # how long a start may wait for the brokers
_OVERHEAD = 64 * 1024  # headers, key and framing of the largest message


def settings(config: KafkaConfig, start_seconds: float = START_SECONDS) -> dict[str, Any]:
    """Connection, TLS and login settings of kafka-python."""
    wanted: dict[str, Any] = {
        "bootstrap_servers": [part.strip() for part in config.bootstrap.split(",") if part.strip()],
        "client_id": "otelmon",
        "security_protocol": config.security_protocol,
        "bootstrap_timeout_ms": int(start_seconds * 1000),
        "reconnect_backoff_ms": 100,
        "reconnect_backoff_max_ms": 2000,
    }
    if config.ca_file:
        wanted["ssl_cafile"] = config.ca_file
    if config.sasl_mechanism:
        wanted["sasl_mechanism"] = config.sasl_mechanism
        wanted["sasl_plain_username"] = config.sasl_username
        wanted["sasl_plain_password"] = _password(config)
    return wanted


def _password(config: KafkaConfig) -> str:
    if not config.sasl_password_file:
        return config.sasl_password
    try:
        return Path(config.sasl_password_file).read_text().strip()
    except OSError as error:
        where = f"kafka.sasl_password_file = {config.sasl_password_file}"
        raise UserError(Problem(where, f"can not be read ({error.strerror})", "a file with the password")) from None


def request_bytes(config: KafkaConfig) -> int:
    """Room for one message of the largest size."""
    return config.max_message_bytes + _OVERHEAD


def not_now(config: KafkaConfig, what: str, error: Exception) -> BackpressureError:
    """The brokers are away, or did not confirm in time: the same call may be made again."""
    wrong = f"{what} ({str(error) or type(error).__name__})"
    where = f"kafka.bootstrap = {config.bootstrap}"
    return BackpressureError(Problem(where, wrong, "an answer of the brokers", "try again"))


def unreachable(config: KafkaConfig, error: Exception) -> UnreachableError:
    """The brokers can not be used: away, or they refuse us."""
    do = "start Kafka or correct kafka.bootstrap"
    if config.security_protocol != "PLAINTEXT":  # kafka-python does not tell a refused login from silence
        do += ", kafka.security_protocol, kafka.ca_file or kafka.sasl_*"
    if isinstance(error, (kafka_errors.AuthorizationError, kafka_errors.SaslAuthenticationFailedError)):
        do = "give this user the rights it lacks, or correct the kafka.sasl_* settings"
    text = str(error) or type(error).__name__
    return UnreachableError(
        Problem(f"kafka.bootstrap = {config.bootstrap}", f"Kafka can not be used ({text})", "brokers that answer", do)
    )
