-- name: findings_of
SELECT * FROM findings
WHERE finding_id IN (
    SELECT finding_id FROM findings WHERE owner IN (SELECT unnest($1::VARCHAR[]))
    UNION
    SELECT unnest($2::VARCHAR[])
)

-- name: versions
SELECT service_name, environment, server, tool_name, definition_hash, first_seen_unix_nano, last_seen_unix_nano
FROM tool_versions WHERE definition_hash IN (SELECT unnest(?::VARCHAR[]))
