-- name: incidents
SELECT incident_id, family, environment, agent_name, tool_name, severity, state, label, title,
       opened_unix_nano, last_seen_unix_nano, findings, rule_ids, count(*) OVER () AS total
FROM incidents
WHERE (len($states::VARCHAR[]) = 0 OR state IN (SELECT unnest($states::VARCHAR[])))
  AND list_position(['info', 'low', 'medium', 'high', 'critical'], severity)
      >= list_position(['info', 'low', 'medium', 'high', 'critical'], $severity)
  AND ($family IS NULL OR family = $family)
  AND ($agent IS NULL OR agent_name = $agent)
  AND ($tool IS NULL OR tool_name = $tool)
  AND ($environment IS NULL OR environment = $environment)
  AND ($label IS NULL OR label = $label)
  AND ($since IS NULL OR last_seen_unix_nano >= $since)
ORDER BY (state IN ('open', 'acknowledged')) DESC, last_seen_unix_nano DESC, incident_id
LIMIT $limit OFFSET $offset

-- name: incident
SELECT incident_id, family, environment, agent_name, tool_name, severity, state, label, title,
       opened_unix_nano, last_seen_unix_nano, findings, rule_ids
FROM incidents WHERE incident_id = ?

-- name: history
SELECT action, who, note, time_unix_nano FROM incident_history WHERE incident_id = ? ORDER BY sequence

-- name: findings
SELECT f.* EXCLUDE (owner, shown), m.incident_id
FROM findings f LEFT JOIN incident_findings m USING (finding_id)
WHERE f.shown
  AND ($incident IS NULL OR m.incident_id = $incident)
  AND ($run IS NULL OR f.run_id = $run)
  AND ($finding IS NULL OR f.finding_id = $finding)
  AND ($conversation IS NULL OR f.conversation_id = $conversation)
  AND ($rule IS NULL OR f.rule_id = $rule)
  AND ($status IS NULL OR f.status = $status)
  AND ($since IS NULL OR f.event_time_unix_nano >= $since)
ORDER BY f.status = 'open' DESC, f.event_time_unix_nano, f.finding_id
LIMIT $limit OFFSET $offset

-- name: calls_of_spans
SELECT c.* EXCLUDE (trace_key), coalesce(e.effect, 'unknown') AS effect, coalesce(e.repeat, 'additive') AS repeat,
       coalesce(l.arguments, '[]') AS lineage
FROM tool_calls c LEFT JOIN effects e USING (trace_id, call_key) LEFT JOIN call_lineage l USING (trace_id, call_key)
WHERE c.span_id IN (SELECT unnest(?::VARCHAR[]))
ORDER BY c.start_time_unix_nano, c.position, c.call_key

-- name: calls_of_run
SELECT c.* EXCLUDE (trace_key), coalesce(e.effect, 'unknown') AS effect, coalesce(e.repeat, 'additive') AS repeat,
       coalesce(l.arguments, '[]') AS lineage
FROM tool_calls c LEFT JOIN effects e USING (trace_id, call_key) LEFT JOIN call_lineage l USING (trace_id, call_key)
WHERE c.run_id = ? ORDER BY c.position, c.call_key

-- name: calls_of_conversation
SELECT c.* EXCLUDE (trace_key), coalesce(e.effect, 'unknown') AS effect, coalesce(e.repeat, 'additive') AS repeat,
       coalesce(l.arguments, '[]') AS lineage
FROM tool_calls c LEFT JOIN effects e USING (trace_id, call_key) LEFT JOIN call_lineage l USING (trace_id, call_key)
WHERE c.conversation_id = ? ORDER BY c.position, c.call_key

-- name: tools_of_calls
SELECT call_key, any_value(tool_name) FROM tool_calls WHERE call_key IN (SELECT unnest(?::VARCHAR[])) GROUP BY ALL

-- name: messages_of_run
SELECT position, role, turn, final, agent_name, span_id, run_id, start_time_unix_nano, end_time_unix_nano,
       text, content, requests
FROM messages WHERE run_id = ? ORDER BY position

-- name: messages_of_conversation
SELECT position, role, turn, final, agent_name, span_id, run_id, start_time_unix_nano, end_time_unix_nano,
       text, content, requests
FROM messages WHERE conversation_id = ? ORDER BY position

-- name: not_evaluable_of_run
SELECT rule_id, reason FROM not_evaluable WHERE run_id = ? ORDER BY rule_id

-- name: run
SELECT * EXCLUDE (trace_key) FROM runs WHERE run_id = ?

-- name: runs_of_conversation
SELECT * EXCLUDE (trace_key) FROM runs WHERE conversation_id = ? ORDER BY start_time_unix_nano, run_id

-- name: runs
WITH picked AS (
    SELECT * FROM runs r
    WHERE ($agent IS NULL OR agent_name = $agent)
      AND ($service IS NULL OR service_name = $service)
      AND ($environment IS NULL OR environment = $environment)
      AND ($conversation IS NULL OR conversation_id = $conversation)
      AND ($trace IS NULL OR trace_id = $trace)
      AND ($since IS NULL OR start_time_unix_nano >= $since)
      AND (NOT $with_findings OR EXISTS (
          FROM findings f WHERE f.run_id = r.run_id AND f.shown AND f.status = 'open'))
    ORDER BY start_time_unix_nano DESC, run_id
    LIMIT $limit OFFSET $offset
),
called AS (SELECT run_id, count(*) AS calls FROM tool_calls SEMI JOIN picked USING (run_id) GROUP BY ALL),
found AS (
    SELECT run_id, count(*) AS findings FROM findings SEMI JOIN picked USING (run_id)
    WHERE shown AND status = 'open' GROUP BY ALL
)
SELECT picked.* EXCLUDE (trace_key), coalesce(calls, 0), coalesce(findings, 0)
FROM picked LEFT JOIN called USING (run_id) LEFT JOIN found USING (run_id)
ORDER BY start_time_unix_nano DESC, run_id

-- name: find
SELECT * FROM (
    (SELECT 1 AS rank, 'incident' AS kind, incident_id AS id, title AS label FROM incidents WHERE starts_with(incident_id, $prefix) LIMIT $limit)
    UNION ALL
    (SELECT 2, 'finding', finding_id, rule_id || ': ' || summary FROM findings WHERE shown AND starts_with(finding_id, $prefix) LIMIT $limit)
    UNION ALL
    (SELECT 3, 'run', run_id, coalesce(agent_name, '') FROM runs WHERE starts_with(run_id, $prefix) LIMIT $limit)
    UNION ALL
    (SELECT 4, 'conversation', conversation_id, count(*) || ' runs' FROM runs WHERE starts_with(conversation_id, $prefix) GROUP BY conversation_id LIMIT $limit)
    UNION ALL
    (SELECT 5, 'trace', trace_id, count(*) || ' spans' FROM spans WHERE starts_with(trace_id, $prefix) GROUP BY trace_id LIMIT $limit)
)
ORDER BY rank, id LIMIT $limit

-- name: versions
SELECT * FROM tool_versions
WHERE ($tool IS NULL OR tool_name = $tool)
ORDER BY service_name, environment, server, tool_name, first_seen_unix_nano, definition_hash

-- name: finding_counts
SELECT rule_id, family, severity, status, count(*) FROM findings WHERE shown GROUP BY ALL ORDER BY ALL

-- name: incident_counts
SELECT family, severity, state, label, count(*) FROM incidents GROUP BY ALL ORDER BY ALL

-- name: call_counts
SELECT c.tool_name, coalesce(c.agent_name, ''), coalesce(e.effect, 'unknown'), c.outcome, count(*)
FROM tool_calls c LEFT JOIN effects e USING (trace_id, call_key)
WHERE ($since IS NULL OR c.start_time_unix_nano >= $since)
GROUP BY ALL ORDER BY ALL

-- name: suppressed_counts
SELECT rule_id, coalesce(agent_name, ''), sum(amount)::BIGINT FROM suppressed GROUP BY ALL ORDER BY ALL

-- name: not_evaluable_counts
SELECT rule_id, coalesce(agent_name, ''), reason, count(*) FROM not_evaluable GROUP BY ALL ORDER BY ALL

-- name: agents
SELECT coalesce(agent_name, ''), count(*), count(closed), list_sort(list_distinct(flatten(list(dialects))))
FROM runs GROUP BY ALL ORDER BY ALL

-- name: sizes
SELECT (SELECT count(*) FROM spans), (SELECT count(*) FROM runs), (SELECT count(*) FROM tool_calls),
       (SELECT count(*) FROM findings WHERE shown), (SELECT count(*) FROM incidents)

-- name: payload_places
SELECT topic, partition, "offset" FROM payloads p
WHERE ($since IS NULL OR received_unix_nano >= $since)
  AND ($until IS NULL OR received_unix_nano < $until)
  AND ($trace IS NULL OR EXISTS (
      FROM spans s WHERE s.trace_id = $trace AND s.payload_topic = p.topic
       AND s.payload_partition = p.partition AND s.payload_offset = p."offset")
   OR EXISTS (
      FROM log_records l WHERE l.trace_id = $trace AND l.payload_topic = p.topic
       AND l.payload_partition = p.partition AND l.payload_offset = p."offset"))
ORDER BY received_unix_nano, topic, partition, "offset"

-- name: payloads
SELECT topic, partition, "offset", received_unix_nano, encoding, data FROM payloads
WHERE topic || '/' || partition || '/' || "offset" IN (SELECT unnest(?::VARCHAR[]))
ORDER BY received_unix_nano, topic, partition, "offset"
