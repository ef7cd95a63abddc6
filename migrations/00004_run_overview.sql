-- +goose Up

-- A run as people see it, without its sheet.
CREATE VIEW run_overview AS
SELECT r.id, r.ordinal, r.campaign_id, c.name AS campaign, c.plan, r.cell, r.state, r.message, r.sheet_hash,
       r.radio, r.topology, r.size_bytes, r.trials, r.created_at, r.started_at, r.ended_at, r.estimated_seconds,
       t.trials_ended, a.attempts_failed,
       t.estimated_seconds_ended, t.estimated_seconds_left,
       a.measured_seconds_ended,
       coalesce((SELECT n.provenance ->> 'place' FROM run_nodes n WHERE n.run_id = r.id AND n.role = 'client'), '')::text AS place
FROM runs r
JOIN campaigns c ON c.id = r.campaign_id
CROSS JOIN LATERAL (
    SELECT count(t.verdict)::integer AS trials_ended,
           coalesce(sum(r.estimated_seconds[t.trial + 1]) FILTER (WHERE t.verdict IS NOT NULL), 0)::double precision AS estimated_seconds_ended,
           coalesce(sum(r.estimated_seconds[t.trial + 1]) FILTER (WHERE t.verdict IS NULL), 0)::double precision AS estimated_seconds_left
    FROM trials t WHERE t.run_id = r.id) t
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE a.verdict <> 'succeeded')::integer AS attempts_failed,
           (coalesce(sum(a.duration_ns) FILTER (WHERE e.verdict IS NOT NULL), 0) / 1e9)::double precision AS measured_seconds_ended
    FROM attempts a JOIN trials e ON e.run_id = a.run_id AND e.trial = a.trial
    WHERE a.run_id = r.id) a;
