-- name: old_runs
CREATE OR REPLACE TEMP TABLE leaving AS
SELECT run_id, trace_id FROM runs WHERE last_received_unix_nano < ?

-- name: size
SELECT coalesce((SELECT sum(bytes_stored) FROM payloads), 0)
     + coalesce((SELECT sum(bytes_stored) FROM contents), 0)
     + 150 * (SELECT count(*) FROM spans)
     + 80 * (SELECT count(*) FROM log_records)
     + 600 * (SELECT count(*) FROM tool_calls)
     + 200 * (SELECT count(*) FROM messages)
     + 1500 * (SELECT count(*) FROM findings)

-- name: cutoff
SELECT quantile_disc(received_unix_nano, ?) FROM payloads

-- name: spans
DELETE FROM spans WHERE received_unix_nano < ?

-- name: log_records
DELETE FROM log_records WHERE received_unix_nano < ?

-- name: payloads
DELETE FROM payloads WHERE received_unix_nano < ?

-- name: findings
DELETE FROM findings WHERE first_seen_unix_nano < ?

-- name: epochs
DELETE FROM epochs WHERE observed_unix_nano < ?

-- name: tool_versions
DELETE FROM tool_versions WHERE last_seen_unix_nano < ?

-- name: calls_of_old_runs
DELETE FROM tool_calls WHERE run_id IN (SELECT run_id FROM leaving)

-- name: messages_of_old_runs
DELETE FROM messages WHERE run_id IN (SELECT run_id FROM leaving)

-- name: gaps_of_old_runs
DELETE FROM not_evaluable WHERE run_id IN (SELECT run_id FROM leaving)

-- name: accepted_of_old_runs
DELETE FROM suppressed WHERE run_id IN (SELECT run_id FROM leaving)

-- name: runs
DELETE FROM runs WHERE run_id IN (SELECT run_id FROM leaving)

-- name: orphan_effects
DELETE FROM effects e WHERE NOT EXISTS (
    FROM tool_calls c WHERE c.trace_id = e.trace_id AND c.call_key = e.call_key)

-- name: orphan_lineage
DELETE FROM call_lineage l WHERE NOT EXISTS (
    FROM tool_calls c WHERE c.trace_id = l.trace_id AND c.call_key = l.call_key)

-- name: orphan_contents
DELETE FROM contents WHERE hash NOT IN (
    SELECT arguments_content FROM tool_calls WHERE arguments_content IS NOT NULL
    UNION SELECT result_content FROM tool_calls WHERE result_content IS NOT NULL
    UNION SELECT content FROM messages WHERE content IS NOT NULL)

-- name: orphan_members
DELETE FROM incident_findings WHERE finding_id NOT IN (SELECT finding_id FROM findings)

-- name: orphan_incidents
DELETE FROM incidents WHERE incident_id NOT IN (SELECT incident_id FROM incident_findings)
    AND incident_id NOT IN (SELECT incident_id FROM labels)

-- name: orphan_history
DELETE FROM incident_history WHERE incident_id NOT IN (SELECT incident_id FROM incidents)

-- name: fold_reports
CREATE OR REPLACE TEMP TABLE folded AS
SELECT stage || ':older' AS id, stage, '' AS topic, -1 AS partition, kind, reason,
       sum(amount)::BIGINT AS amount, max(observed_unix_nano) AS observed_unix_nano
FROM accounts WHERE stage <> 'store' AND (observed_unix_nano < ? OR id = stage || ':older')
GROUP BY stage, kind, reason

-- name: reports
DELETE FROM accounts WHERE stage <> 'store' AND (observed_unix_nano < ? OR id = stage || ':older')

-- name: folded_reports
INSERT INTO accounts FROM folded
