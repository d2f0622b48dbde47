-- Findings that the configuration accepts for a while: how many of each rule in each run.
CREATE TABLE suppressed (
    trace_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    agent_name VARCHAR,
    rule_id VARCHAR NOT NULL,
    amount BIGINT NOT NULL,
    time_unix_nano BIGINT NOT NULL,
    trace_key UBIGINT NOT NULL
);
