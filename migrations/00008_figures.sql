-- +goose Up

-- An emulated radio's report holds the history of its channels and is kept
-- apart from its row; pages that show many attempts need only the times of the
-- all-knowing sender of it.
ALTER TABLE attempts ADD COLUMN ideal_ns jsonb GENERATED ALWAYS AS (radio -> 'ideal_ns') STORED;

-- As before, but that the estimates of a run are unfolded once, not once for
-- each trial: the array of a long run is stored out of line, and takes longer to
-- fetch than all else.
CREATE OR REPLACE VIEW run_overview AS
SELECT r.id, r.ordinal, r.campaign_id, c.name AS campaign, c.plan, r.cell, r.state, r.message, r.sheet_hash,
       r.radio, r.topology, r.size_bytes, r.trials, r.created_at, r.started_at, r.ended_at, r.estimated_seconds,
       t.trials_ended, a.attempts_failed,
       t.estimated_seconds_ended, t.estimated_seconds_left,
       a.measured_seconds_ended,
       coalesce((SELECT n.provenance ->> 'place' FROM run_nodes n WHERE n.run_id = r.id AND n.role = 'client'), '')::text AS place,
       coalesce(p.kind = 'pause', false)::boolean AS pause_ordered,
       coalesce(p.obeyed_at IS NOT NULL OR p.passed_over <> '', false)::boolean AS pause_settled,
       coalesce((SELECT j.body ->> 'kind' = 'pause' FROM journal j
                 WHERE j.run_id = r.id AND j.type = 'command' AND j.body ->> 'kind' IN ('pause', 'resume') AND j.body ->> 'passed_over' IS NULL
                 ORDER BY j.seq DESC LIMIT 1), false)::boolean AS held,
       (SELECT coalesce(array_agg(n.node ORDER BY n.role), '{}') FROM run_nodes n WHERE n.run_id = r.id)::text[] AS nodes
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
    SELECT o.kind, o.obeyed_at, o.passed_over FROM order_states o
    WHERE o.run_id = r.id AND o.kind IN ('pause', 'resume') ORDER BY o.ordinal DESC LIMIT 1) p ON true;
