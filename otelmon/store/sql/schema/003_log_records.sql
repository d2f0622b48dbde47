-- One row a log record with agent content: which span it names, and in which payload it lies. What it says
-- is in the payload and, read, in the rows of its span's run.
CREATE TABLE log_records (
    trace_id VARCHAR NOT NULL,
    span_id VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    received_unix_nano BIGINT NOT NULL,
    payload_topic VARCHAR NOT NULL,
    payload_partition INTEGER NOT NULL,
    payload_offset BIGINT NOT NULL,
    trace_key UBIGINT NOT NULL
);
