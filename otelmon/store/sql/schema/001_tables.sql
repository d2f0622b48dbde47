-- No primary keys: there is one writer, and it replaces rows by key inside one transaction. An index
-- would cost every append, and DuckDB refuses to delete and insert one key in one transaction.
-- trace_key and hash_key are 8 bytes of the long key beside them: the writer scans them instead (17 times
-- faster over 3 million rows), and compares the long key of the few rows it finds.

-- One row a bus message of the spans topic: the request as it came, zstd-compressed.
CREATE TABLE payloads (
    topic VARCHAR NOT NULL,
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    received_unix_nano BIGINT NOT NULL,
    spans INTEGER NOT NULL,
    bytes_raw BIGINT NOT NULL,
    bytes_stored BIGINT NOT NULL,
    encoding VARCHAR NOT NULL,
    data BLOB NOT NULL
);

-- One row a span and content (digest). conflict: an earlier row has the same id and other content.
CREATE TABLE spans (
    trace_id VARCHAR NOT NULL,
    span_id VARCHAR NOT NULL,
    parent_span_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    kind TINYINT NOT NULL,
    service_name VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    start_time_unix_nano BIGINT NOT NULL,
    end_time_unix_nano BIGINT NOT NULL,
    status_code TINYINT NOT NULL,
    digest VARCHAR NOT NULL,
    conflict BOOLEAN NOT NULL,
    received_unix_nano BIGINT NOT NULL,
    payload_topic VARCHAR NOT NULL,
    payload_partition INTEGER NOT NULL,
    payload_offset BIGINT NOT NULL,
    payload_index INTEGER NOT NULL,
    trace_key UBIGINT NOT NULL
);

-- Long texts, once each: zstd-compressed UTF-8, keyed by their hash.
CREATE TABLE contents (
    hash VARCHAR NOT NULL,
    bytes_raw BIGINT NOT NULL,
    bytes_stored BIGINT NOT NULL,
    data BLOB NOT NULL,
    hash_key UBIGINT NOT NULL
);

CREATE TABLE runs (
    run_id VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    agent_name VARCHAR,
    agent_version VARCHAR,
    model VARCHAR,
    service_name VARCHAR NOT NULL,
    service_namespace VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    host VARCHAR NOT NULL,
    principal VARCHAR,
    "trigger" VARCHAR,
    dialects VARCHAR[] NOT NULL,
    start_time_unix_nano BIGINT NOT NULL,
    end_time_unix_nano BIGINT NOT NULL,
    last_received_unix_nano BIGINT NOT NULL,
    spans INTEGER NOT NULL,
    root_seen BOOLEAN NOT NULL,
    closed VARCHAR,
    gaps VARCHAR[] NOT NULL,
    error_type VARCHAR,
    trace_key UBIGINT NOT NULL
);

-- One row an execution of a tool. *_content: hash of the full text in contents, when the row shows
-- only its beginning. extra: JSON of the fields that no query filters by.
CREATE TABLE tool_calls (
    call_key VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    span_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    tool_name VARCHAR NOT NULL,
    tool_call_id VARCHAR,
    server VARCHAR,
    derived BOOLEAN NOT NULL,
    outcome VARCHAR NOT NULL,
    outcome_source VARCHAR NOT NULL,
    error_type VARCHAR,
    idempotency_key VARCHAR,
    attempt INTEGER,
    agent_name VARCHAR,
    agent_version VARCHAR,
    model VARCHAR,
    principal VARCHAR,
    service_name VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    start_time_unix_nano BIGINT NOT NULL,
    end_time_unix_nano BIGINT NOT NULL,
    arguments_fidelity VARCHAR NOT NULL,
    arguments_hash VARCHAR NOT NULL,
    tool_call_arguments VARCHAR NOT NULL,
    arguments_content VARCHAR,
    result_fidelity VARCHAR NOT NULL,
    tool_call_result VARCHAR NOT NULL,
    result_content VARCHAR,
    extra VARCHAR NOT NULL,
    trace_key UBIGINT NOT NULL
);

-- What a call does and whether doing it twice is two effects, as judged with the catalogue in force.
CREATE TABLE effects (
    call_key VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    effect VARCHAR NOT NULL,
    repeat VARCHAR NOT NULL,
    trace_key UBIGINT NOT NULL
);

CREATE TABLE messages (
    trace_id VARCHAR NOT NULL,
    span_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    role VARCHAR NOT NULL,
    turn INTEGER,
    final BOOLEAN,
    agent_name VARCHAR,
    start_time_unix_nano BIGINT NOT NULL,
    end_time_unix_nano BIGINT NOT NULL,
    text VARCHAR NOT NULL,
    content VARCHAR,
    requests VARCHAR NOT NULL,
    trace_key UBIGINT NOT NULL
);

-- One row a distinct definition of a tool and where it was seen.
CREATE TABLE tool_versions (
    service_name VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    server VARCHAR NOT NULL,
    tool_name VARCHAR NOT NULL,
    definition_hash VARCHAR NOT NULL,
    schema_hash VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    input_schema VARCHAR,
    annotations VARCHAR,
    first_seen_unix_nano BIGINT NOT NULL,
    last_seen_unix_nano BIGINT NOT NULL
);

-- One row a finding and owner. shown: the row that speaks for the finding when two owners list it.
CREATE TABLE findings (
    finding_id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    shown BOOLEAN NOT NULL,
    rule_id VARCHAR NOT NULL,
    rule_version VARCHAR NOT NULL,
    family VARCHAR NOT NULL,
    severity VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    span_ids VARCHAR[] NOT NULL,
    tool_call_id VARCHAR,
    tool_name VARCHAR,
    agent_name VARCHAR,
    environment VARCHAR NOT NULL,
    service_name VARCHAR NOT NULL,
    summary VARCHAR NOT NULL,
    evidence VARCHAR NOT NULL,
    event_time_unix_nano BIGINT NOT NULL,
    first_seen_unix_nano BIGINT NOT NULL,
    retracted_unix_nano BIGINT
);

-- The epoch of an owner of findings or of the rows of a trace. Epoch 0 has no row.
CREATE TABLE epochs (
    owner VARCHAR NOT NULL,
    epoch BIGINT NOT NULL,
    observed_unix_nano BIGINT NOT NULL
);

CREATE TABLE not_evaluable (
    trace_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    agent_name VARCHAR,
    rule_id VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    time_unix_nano BIGINT NOT NULL,
    trace_key UBIGINT NOT NULL
);

CREATE TABLE incidents (
    incident_id VARCHAR NOT NULL,
    family VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    agent_name VARCHAR NOT NULL,
    tool_name VARCHAR NOT NULL,
    severity VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    opened_unix_nano BIGINT NOT NULL,
    last_seen_unix_nano BIGINT NOT NULL,
    observed_unix_nano BIGINT NOT NULL,
    findings INTEGER NOT NULL,
    rule_ids VARCHAR[] NOT NULL
);

-- A finding stays in the incident it joined first.
CREATE TABLE incident_findings (
    incident_id VARCHAR NOT NULL,
    finding_id VARCHAR NOT NULL
);

-- What happened to an incident: opened, reopened, retracted, acknowledged, resolved, labelled.
CREATE TABLE incident_history (
    incident_id VARCHAR NOT NULL,
    sequence INTEGER NOT NULL,
    action VARCHAR NOT NULL,
    who VARCHAR NOT NULL,
    note VARCHAR NOT NULL,
    time_unix_nano BIGINT NOT NULL
);

-- What a person said of an incident; outlives retention.
CREATE TABLE labels (
    incident_id VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    who VARCHAR NOT NULL,
    note VARCHAR NOT NULL,
    time_unix_nano BIGINT NOT NULL
);

-- kind: received, stored, duplicate, conflict, filtered, dead_lettered, rejected. conflict is a part of stored.
CREATE TABLE accounts (
    id VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,
    topic VARCHAR NOT NULL,
    partition INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    amount BIGINT NOT NULL,
    observed_unix_nano BIGINT NOT NULL
);

-- Everything from first_offset up to, not including, next_offset is in the tables.
CREATE TABLE offsets (
    topic VARCHAR NOT NULL,
    partition INTEGER NOT NULL,
    first_offset BIGINT NOT NULL,
    next_offset BIGINT NOT NULL
);

CREATE TABLE golden_tasks (
    task_id VARCHAR NOT NULL,
    incident_id VARCHAR,
    state VARCHAR NOT NULL,
    created_unix_nano BIGINT NOT NULL,
    task VARCHAR NOT NULL
);
