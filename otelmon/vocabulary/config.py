"""The configuration as types, with every default. Loading, precedence and errors: otelmon/rules/settings.py.

Field docstrings are the reference: docs/config.md is generated from them. Sizes in bytes, times in
seconds, addresses as host:port.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from otelmon.vocabulary.finding import Severity


class _Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ReceiveConfig(_Config, frozen=True, kw_only=True):
    grpc: str = "127.0.0.1:4317"
    """OTLP/gRPC address. Empty turns it off."""
    http: str = "127.0.0.1:4318"
    """OTLP/HTTP address. Empty turns it off."""
    max_request_bytes: int = 64 * 1024 * 1024
    """Largest request, after decompression."""
    max_span_bytes: int = 4 * 1024 * 1024
    """Largest single span; larger ones are rejected and counted, their neighbours kept."""
    max_depth: int = 30
    """Deepest nesting of an attribute value. Protobuf parsers carry about 30, so a larger limit changes nothing."""
    message_bytes: int = 900_000
    """Target size of one message on the spans topic."""
    token: str = ""
    """Bearer token that senders must give; needed when an address is not loopback."""
    tls_cert: str = ""
    """PEM certificate file for both doors; needed with tls_key when an address is not loopback."""
    tls_key: str = ""
    """PEM key file."""


class WebConfig(_Config, frozen=True, kw_only=True):
    listen: str = "127.0.0.1:8317"
    """Web pages, API and /metrics."""
    token: str = ""
    """Bearer token (or the password of HTTP basic auth); needed when not on loopback."""


class SpoolConfig(_Config, frozen=True, kw_only=True):
    fsync: bool = True
    """fsync received spans before they are acknowledged."""
    segment_bytes: int = 64 * 1024 * 1024
    """Size at which a segment file is closed."""
    retain_bytes: int = 2 * 1024 * 1024 * 1024
    """Consumed segments kept, all topics together."""
    min_free_bytes: int = 512 * 1024 * 1024
    """Free disk space below which intake stops (senders are told to retry)."""


class KafkaConfig(_Config, frozen=True, kw_only=True):
    bootstrap: str = "127.0.0.1:9092"
    """Brokers, comma-separated host:port."""
    partitions: int = 8
    """Partitions of topics that otelmon creates."""
    replication: int = 1
    """Replication factor of topics that otelmon creates."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How to talk to the brokers."""
    sasl_mechanism: str = ""
    """For example SCRAM-SHA-512."""
    sasl_username: str = ""
    """SASL user."""
    sasl_password: str = ""
    """SASL password; better in OTELMON_KAFKA__SASL_PASSWORD or sasl_password_file."""
    sasl_password_file: str = ""
    """File that holds the SASL password."""
    ca_file: str = ""
    """PEM file of the authorities to trust."""
    session_timeout_ms: int = 10_000
    """Group session timeout in milliseconds."""
    max_message_bytes: int = 32 * 1024 * 1024
    """Largest message produced and fetched; above detect.conversation_bytes, whose records travel in one."""


class AssembleConfig(_Config, frozen=True, kw_only=True):
    settle_seconds: float = 10.0
    """Quiet time after a run's root span before it is judged as a whole."""
    idle_seconds: float = 300.0
    """Quiet time after which a run without a root span is closed."""
    max_open_traces: int = 50_000
    """Traces held open at once; beyond it the oldest is closed and counted as evicted."""
    max_trace_spans: int = 20_000
    """Spans of one trace; beyond it the run is closed with the reason span_limit."""
    max_bytes: int = 1024 * 1024 * 1024
    """Memory for open traces, estimated from their size on the wire."""


class DetectConfig(_Config, frozen=True, kw_only=True):
    max_conversations: int = 20_000
    """Conversations held in memory; the oldest closed ones leave first."""
    max_bytes: int = 1024 * 1024 * 1024
    """Memory for conversations, estimated from their size on the wire."""
    conversation_bytes: int = 16 * 1024 * 1024
    """Largest single conversation; beyond it the oldest runs leave and later absence rules are not evaluable."""
    memory_seconds: float = 86_400.0
    """How long a quiet conversation is remembered across runs."""
    effect_seconds: float = 86_400.0
    """How long the effect ledger remembers a write."""
    tool_seconds: float = 2_592_000.0
    """How long the ledger remembers a version of a tool after the next one came; the newest one stays."""
    trusted_services: tuple[str, ...] = ()
    """Services whose own hints, approvals and effect words may lower a severity."""


class StoreConfig(_Config, frozen=True, kw_only=True):
    batch_seconds: float = 0.5
    """Longest wait before a batch is written."""
    retention_days: float = 30.0
    """Age after which rows leave."""
    max_bytes: int = 20 * 1024 * 1024 * 1024
    """Size at which the oldest rows leave early."""
    memory_limit: str = "2GB"
    """DuckDB's memory limit."""
    sql_seconds: float = 30.0
    """Longest run of one `otelmon sql` query."""


class IncidentsConfig(_Config, frozen=True, kw_only=True):
    quiet_seconds: float = 3600.0
    """Findings of one problem within this time of each other are one incident."""
    resolve_seconds: float = 86_400.0
    """Quiet time after which an open incident is resolved."""


class RuleConfig(_Config, frozen=True, kw_only=True):
    enabled: bool = True
    """Off: the rule is not loaded."""
    severity: Severity | None = None
    """Another severity for every finding of the rule."""
    params: dict[str, Any] = {}
    """Parameters that differ from the rule file."""


class Suppression(_Config, frozen=True, kw_only=True):
    rule: str
    """Rule id, or "*"."""
    where: dict[str, str] = {}
    """Fields of the finding that must be equal: agent, tool, environment, service."""
    reason: str
    """Why; shown with the suppressed finding."""
    expires: str
    """ISO date after which it no longer holds and is reported."""


class Config(_Config, frozen=True, kw_only=True):
    data: str = "./otelmon-data"
    """Folder of the spool and the database."""
    bus: Literal["embedded", "kafka"] = "embedded"
    """How stages talk: an embedded durable spool, or Kafka."""
    catalogue: str = ""
    """Operator's catalogue file (YAML or JSON)."""
    rules_dirs: tuple[str, ...] = ()
    """Folders with rule files beside the built-in ones."""
    plugins: tuple[str, ...] = ()
    """Installed distributions whose checks and rules may be loaded; see docs/plugins.md. None is loaded unasked."""
    receive: ReceiveConfig = ReceiveConfig()
    """The OTLP doors."""
    web: WebConfig = WebConfig()
    """Pages, API and metrics."""
    spool: SpoolConfig = SpoolConfig()
    """The embedded bus."""
    kafka: KafkaConfig = KafkaConfig()
    """The Kafka bus."""
    assemble: AssembleConfig = AssembleConfig()
    """Runs from spans."""
    detect: DetectConfig = DetectConfig()
    """Conversations and the effect ledger."""
    store: StoreConfig = StoreConfig()
    """The DuckDB database."""
    incidents: IncidentsConfig = IncidentsConfig()
    """Grouping."""
    rules: dict[str, RuleConfig] = {}
    """Changes to single rules, by rule id."""
    suppress: tuple[Suppression, ...] = ()
    """Findings that are known and accepted for a while."""
