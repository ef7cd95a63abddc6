-- +goose Up

-- What the plan's rule to stop by left out has no attempt, as what a person skipped before its
-- first one; only the journal's reason tells them apart.
ALTER TABLE trials ADD COLUMN not_needed boolean NOT NULL DEFAULT false CHECK (NOT not_needed OR verdict = 'aborted');
COMMENT ON COLUMN trials.not_needed IS 'the plan''s rule to stop by ended the trial before its first attempt';
CREATE INDEX trials_not_needed ON trials (run_id) WHERE not_needed;

DROP VIEW run_overview;

-- A run as people see it, without its sheet. The estimates of a run are unfolded once, not
-- once for each trial: the array of a long run is stored out of line, and takes longer to
-- fetch than all else.
CREATE VIEW run_overview AS
SELECT r.id, r.ordinal, r.campaign_id, c.name AS campaign, c.plan, r.cell, r.state, r.message, r.sheet_hash,
       r.radio, r.topology, r.size_bytes, r.trials, r.created_at, r.started_at, r.ended_at, r.estimated_seconds,
       t.trials_ended, a.attempts_failed,
       t.estimated_seconds_ended, t.estimated_seconds_left,
       a.measured_seconds_ended,
       coalesce((SELECT n.provenance ->> 'place' FROM run_nodes n WHERE n.run_id = r.id AND n.role = 'client'), '')::text AS place,
       -- Whether the newest command to pause or resume is to pause, whether the leading
       -- agent has dealt with it, and whether the run is held now.
       coalesce(p.kind = 'pause', false)::boolean AS pause_requested,
       coalesce(p.applied_at IS NOT NULL OR p.rejected <> '', false)::boolean AS pause_settled,
       coalesce(h.kind = 'pause', false)::boolean AS held,
       (SELECT coalesce(array_agg(n.node ORDER BY n.role), '{}') FROM run_nodes n WHERE n.run_id = r.id)::text[] AS nodes,
       coalesce(h.reason, '')::text AS pause_reason,
       -- The run has ended, and every journal of it.
       (r.ended_at IS NOT NULL AND NOT EXISTS (SELECT FROM run_nodes n WHERE n.run_id = r.id AND n.ended IS NULL))::boolean AS sealed,
       (SELECT coalesce(sum(n.late_records), 0) FROM run_nodes n WHERE n.run_id = r.id)::bigint AS late_records,
       -- The run is to be aborted, and nodes have not ended their parts yet: with in-band
       -- control that takes a window of each.
       (r.abort_at IS NOT NULL AND r.ended_at IS NULL)::boolean AS aborting,
       -- Of those that have ended: the plan's rule to stop by left them out.
       t.trials_not_needed
FROM runs r
JOIN campaigns c ON c.id = r.campaign_id
CROSS JOIN LATERAL (
    SELECT count(t.verdict)::integer AS trials_ended, (count(*) FILTER (WHERE t.not_needed))::integer AS trials_not_needed,
           coalesce(sum(e.seconds) FILTER (WHERE t.verdict IS NOT NULL AND NOT t.not_needed), 0)::double precision AS estimated_seconds_ended,
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
