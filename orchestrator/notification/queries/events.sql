-- What there is to tell, as the store has it.

-- name: Begin :one
-- Since when notifications are made: from the first start with this schema on.
WITH new AS (INSERT INTO notification_begin (at) VALUES (sqlc.arg(now)) ON CONFLICT DO NOTHING RETURNING at)
SELECT at FROM new UNION ALL SELECT at FROM notification_begin LIMIT 1;

-- name: EndedRuns :many
-- Runs that have ended since then and are not told yet. Left out are those that completed in the
-- virtual-time lab, and those that were aborted before their nodes were told of them: the end
-- of the campaign tells of both.
SELECT r.id, r.campaign_id, c.name AS campaign, r.radio, r.topology, r.state, r.message, r.ended_at, r.trials,
       (SELECT count(*) FROM trials t WHERE t.run_id = r.id AND t.verdict IS NOT NULL) AS trials_ended,
       (SELECT count(*) FROM attempts a WHERE a.run_id = r.id AND a.verdict <> 'succeeded') AS attempts_failed
FROM runs r JOIN campaigns c ON c.id = r.campaign_id
WHERE r.ended_at >= sqlc.arg(since)::timestamptz AND NOT EXISTS (SELECT FROM notifications n WHERE n.event = 'ended/' || r.id)
  AND NOT (r.state = 'aborted' AND r.prepared_at IS NULL)
  AND NOT (r.state = 'completed' AND EXISTS (SELECT FROM run_nodes n JOIN nodes x ON x.name = n.node WHERE n.run_id = r.id AND x.virtual))
ORDER BY r.ended_at, r.ordinal;

-- name: EndedCampaigns :many
-- Campaigns whose last run has ended since then, and of which that was not told.
SELECT r.campaign_id, c.name AS campaign, (max(r.ended_at))::timestamptz AS ended_at, count(*) AS runs,
       count(*) FILTER (WHERE r.state = 'completed') AS completed, count(*) FILTER (WHERE r.state = 'stopped') AS stopped,
       count(*) FILTER (WHERE r.state = 'aborted') AS aborted, count(*) FILTER (WHERE r.state <> 'completed' AND r.prepared_at IS NULL) AS unbegun,
       coalesce((array_agg(r.message ORDER BY r.ended_at) FILTER (WHERE r.state <> 'completed' AND r.message <> ''))[1], '')::text AS reason
FROM runs r JOIN campaigns c ON c.id = r.campaign_id
WHERE r.campaign_id IN (
    SELECT e.campaign_id FROM runs e WHERE e.ended_at >= sqlc.arg(since)::timestamptz
      AND NOT EXISTS (SELECT FROM notifications n WHERE n.event = 'campaign-ended/' || e.campaign_id)
      AND NOT EXISTS (SELECT FROM runs o WHERE o.campaign_id = e.campaign_id AND o.ended_at IS NULL))
GROUP BY r.campaign_id, c.name
ORDER BY 3;

-- name: WaitingRuns :many
-- Runs that wait for people to move their nodes; done: which topology the run before had.
SELECT r.id, r.campaign_id, c.name AS campaign, r.topology, r.radio,
       coalesce((SELECT p.topology FROM runs p WHERE p.campaign_id = r.campaign_id AND p.ordinal < r.ordinal ORDER BY p.ordinal DESC LIMIT 1), '')::text AS done,
       (SELECT coalesce(array_agg(n.node ORDER BY n.role), '{}') FROM run_nodes n WHERE n.run_id = r.id)::text[] AS nodes
FROM runs r JOIN campaigns c ON c.id = r.campaign_id
WHERE r.state = 'waiting' AND r.abort_at IS NULL AND r.ended_at IS NULL AND NOT EXISTS (SELECT FROM notifications n WHERE n.event = 'waits/' || r.id)
ORDER BY r.ordinal;

-- name: PausedRuns :many
-- Runs that are paused, where the leading node did so for a reason of its own; seq: the record
-- of its journal that says so.
SELECT r.id, r.campaign_id, c.name AS campaign, h.seq, h.at, h.reason
FROM runs r JOIN campaigns c ON c.id = r.campaign_id
CROSS JOIN LATERAL (
    SELECT j.seq, coalesce(j.received_at, j.at)::timestamptz AS at, (j.body ->> 'kind')::text AS kind, coalesce(j.body ->> 'reason', '')::text AS reason FROM journal j
    WHERE j.run_id = r.id AND j.type = 'command' AND j.body ->> 'kind' IN ('pause', 'resume') AND j.body ->> 'passed_over' IS NULL
    ORDER BY j.seq DESC LIMIT 1) h
WHERE r.ended_at IS NULL AND r.state = 'running' AND h.kind = 'pause' AND h.reason <> ''
  AND NOT EXISTS (SELECT FROM run_nodes n JOIN nodes x ON x.name = n.node WHERE n.run_id = r.id AND x.virtual)
  AND NOT EXISTS (SELECT FROM notifications n WHERE n.event = 'paused/' || r.id || '/' || h.seq)
ORDER BY r.ordinal;

-- name: ContactLosses :many
-- Nodes of runs that are under way without contact, and those that are back of which people
-- were told that there was none. What was over before anybody looked is not told.
SELECT l.run_id, r.campaign_id, c.name AS campaign, l.node, l.lost_at, l.back_at, l.restarted
FROM contact_losses l JOIN runs r ON r.id = l.run_id JOIN campaigns c ON c.id = r.campaign_id
WHERE l.lost_at >= sqlc.arg(since)::timestamptz
  AND CASE WHEN l.back_at IS NULL
      THEN r.ended_at IS NULL AND NOT EXISTS (SELECT FROM notifications n WHERE n.event = 'lost/' || l.run_id || '/' || l.node || '/' || (extract(epoch FROM l.lost_at) * 1000000)::bigint)
      ELSE EXISTS (SELECT FROM notifications n WHERE n.event = 'lost/' || l.run_id || '/' || l.node || '/' || (extract(epoch FROM l.lost_at) * 1000000)::bigint)
       AND NOT EXISTS (SELECT FROM notifications n WHERE n.event = 'back/' || l.run_id || '/' || l.node || '/' || (extract(epoch FROM l.lost_at) * 1000000)::bigint)
      END
ORDER BY l.lost_at;

-- name: FailedStarts :many
SELECT s.id, s.plan, s.name, s.start_at, s.state, s.message, s.ended_at FROM schedules s
WHERE s.state IN ('failed', 'missed', 'skipped') AND s.ended_at >= sqlc.arg(since)::timestamptz
  AND NOT EXISTS (SELECT FROM notifications n WHERE n.event = 'start/' || s.id)
ORDER BY s.ended_at;

-- name: RunCampaigns :many
-- The campaigns of open runs.
SELECT r.id, r.campaign_id, c.name AS campaign FROM runs r JOIN campaigns c ON c.id = r.campaign_id WHERE r.ended_at IS NULL;

-- name: KnownEvents :many
SELECT event FROM notifications WHERE event = ANY (sqlc.arg(events)::text[]);
