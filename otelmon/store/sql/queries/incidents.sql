-- name: members
SELECT finding_id, incident_id FROM incident_findings WHERE finding_id IN (SELECT unnest(?::VARCHAR[]))

-- name: load
SELECT i.*, (SELECT count(*) FROM incident_history h WHERE h.incident_id = i.incident_id) AS past
FROM incidents i
WHERE incident_id IN (SELECT unnest($1::VARCHAR[]))
   OR concat_ws(chr(31), family, environment, agent_name, tool_name) IN (SELECT unnest($2::VARCHAR[]))

-- name: groups
SELECT m.incident_id, f.rule_id, f.severity, f.status, count(*) AS amount,
       arg_min(f.summary, (f.event_time_unix_nano, f.finding_id)) AS summary,
       min(f.event_time_unix_nano) AS first
FROM incident_findings m JOIN findings f USING (finding_id)
WHERE f.shown AND m.incident_id IN (SELECT unnest(?::VARCHAR[]))
GROUP BY ALL

-- name: tools
SELECT m.incident_id, list_sort(list(DISTINCT f.tool_name)) AS tools
FROM incident_findings m JOIN findings f USING (finding_id)
WHERE f.shown AND f.tool_name IS NOT NULL AND m.incident_id IN (SELECT unnest(?::VARCHAR[]))
GROUP BY ALL

-- name: quiet
SELECT incident_id FROM incidents WHERE state IN ('open', 'acknowledged') AND observed_unix_nano < ?
