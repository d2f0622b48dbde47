-- name: findings_of
SELECT * FROM findings
WHERE finding_id IN (
    SELECT finding_id FROM findings WHERE owner IN (SELECT unnest($1::VARCHAR[]))
    UNION
    SELECT unnest($2::VARCHAR[])
)

-- name: drop_calls
DELETE FROM tool_calls
WHERE trace_id IN (SELECT unnest($1::VARCHAR[]))
  AND (trace_id || ' ' || call_key) NOT IN (SELECT unnest($2::VARCHAR[]))

-- name: drop_effects
DELETE FROM effects
WHERE trace_id IN (SELECT unnest($1::VARCHAR[]))
  AND (trace_id || ' ' || call_key) NOT IN (SELECT unnest($2::VARCHAR[]))

-- name: versions
SELECT service_name, environment, server, tool_name, definition_hash, first_seen_unix_nano, last_seen_unix_nano
FROM tool_versions WHERE definition_hash IN (SELECT unnest(?::VARCHAR[]))

-- name: follow_tool_calls
UPDATE tool_calls SET conversation_id = now.conversation
FROM (SELECT unnest($1::VARCHAR[]) AS trace, unnest($2::VARCHAR[]) AS conversation) now
WHERE trace_id = now.trace AND conversation_id <> now.conversation

-- name: follow_messages
UPDATE messages SET conversation_id = now.conversation
FROM (SELECT unnest($1::VARCHAR[]) AS trace, unnest($2::VARCHAR[]) AS conversation) now
WHERE trace_id = now.trace AND conversation_id <> now.conversation
