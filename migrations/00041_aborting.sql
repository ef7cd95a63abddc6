-- +goose Up

-- As before, with whether the run is to be aborted and nodes have not ended their parts
-- yet: with in-band control that takes a window of each.
CREATE OR REPLACE VIEW run_overview AS
SELECT r.id, r.ordinal, r.campaign_id, c.name AS campaign, c.plan, r.cell, r.state, r.message, r.sheet_hash,
       r.radio, r.topology, r.size_bytes, r.trials, r.created_at, r.started_at, r.ended_at, r.estimated_seconds,
       t.trials_ended, a.attempts_failed,
       t.estimated_seconds_ended, t.estimated_seconds_left,
       a.measured_seconds_ended,
       coalesce((SELECT n.provenance ->> 'place' FROM run_nodes n WHERE n.run_id = r.id AND n.role = 'client'), '')::text AS place,
       coalesce(p.kind = 'pause', false)::boolean AS pause_requested,
       coalesce(p.applied_at IS NOT NULL OR p.rejected <> '', false)::boolean AS pause_settled,
       coalesce(h.kind = 'pause', false)::boolean AS held,
       (SELECT coalesce(array_agg(n.node ORDER BY n.role), '{}') FROM run_nodes n WHERE n.run_id = r.id)::text[] AS nodes,
       coalesce(h.reason, '')::text AS pause_reason,
       (r.ended_at IS NOT NULL AND NOT EXISTS (SELECT FROM run_nodes n WHERE n.run_id = r.id AND n.ended IS NULL))::boolean AS sealed,
       (SELECT coalesce(sum(n.late_records), 0) FROM run_nodes n WHERE n.run_id = r.id)::bigint AS late_records,
       (r.abort_at IS NOT NULL AND r.ended_at IS NULL)::boolean AS aborting
FROM runs r
JOIN campaigns c ON c.id = r.campaign_id
CROSS JOIN LATERAL (
    SELECT count(t.verdict)::integer AS trials_ended,
           coalesce(sum(e.seconds) FILTER (WHERE t.verdict IS NOT NULL), 0)::double precision AS estimated_seconds_ended,
           coalesce(sum(e.seconds) FILTER (WHERE t.verdict IS NULL), 0)::double precision AS estimated_seconds_left
    FROM trials t LEFT JOIN unnest(r.estimated_seconds) WITH ORDINALITY AS e (seconds, place) ON e.place = t.trial + 1
    WHERE t.run_id = r.id) t
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE a.verdict <> 'succeeded')::integer AS attempts_failed,
           (coalesce(sum(a.duration_ns) FILTER (WHERE e.verdict IS NOT NULL), 0) / 1e9)::double precision AS measured_seconds_ended
    FROM attempts a JOIN trials e ON e.run_id = a.run_id AND e.trial = a.trial
    WHERE a.run_id = r.id) a
LEFT JOIN LATERAL (
    SELECT o.kind, o.applied_at, o.rejected FROM command_states o
    WHERE o.run_id = r.id AND o.kind IN ('pause', 'resume') ORDER BY o.ordinal DESC LIMIT 1) p ON true
LEFT JOIN LATERAL (
    SELECT j.body ->> 'kind' AS kind, j.body ->> 'reason' AS reason FROM journal j
    WHERE j.run_id = r.id AND j.type = 'command' AND j.body ->> 'kind' IN ('pause', 'resume') AND j.body ->> 'passed_over' IS NULL
    ORDER BY j.seq DESC LIMIT 1) h ON true;
