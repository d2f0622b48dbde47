-- Where the arguments of a call came from, one row a call: a JSON list with a list an argument [path, role,
-- source, anchor, transformation, sure]. A row an argument would cost the writer four times as much.
CREATE TABLE call_lineage (
    call_key VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    arguments VARCHAR NOT NULL,
    trace_key UBIGINT NOT NULL
);

-- One row an argument. anchor: the call_key, or the span_id of the message, that had the value first.
CREATE VIEW lineage AS
SELECT trace_id, run_id, call_key, tool_name, start_time_unix_nano,
       argument ->> 0 AS path, argument ->> 1 AS role, argument ->> 2 AS source, argument ->> 3 AS anchor,
       argument ->> 4 AS transformation, (argument -> 5)::BOOLEAN AS sure
FROM (
    SELECT c.trace_id, c.run_id, c.call_key, c.tool_name, c.start_time_unix_nano,
           unnest(from_json(l.arguments, '["JSON"]')) AS argument
    FROM call_lineage l JOIN tool_calls c USING (trace_id, call_key)
);
