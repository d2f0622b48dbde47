-- What people ask for most, so that `otelmon sql` needs no knowledge of owners and shadows.
CREATE VIEW open_findings AS
SELECT f.* EXCLUDE (owner, shown), m.incident_id
FROM findings f LEFT JOIN incident_findings m USING (finding_id)
WHERE f.shown AND f.status = 'open';

CREATE VIEW calls AS
SELECT c.* EXCLUDE (trace_key), coalesce(e.effect, 'unknown') AS effect, coalesce(e.repeat, 'additive') AS repeat
FROM tool_calls c LEFT JOIN effects e USING (trace_id, call_key);

CREATE VIEW open_incidents AS
SELECT * FROM incidents WHERE state IN ('open', 'acknowledged');
