-- name: CampaignsEnded :many
-- The campaigns whose last run ended in an interval, in the order of their ends.
SELECT c.id, c.name, c.plan, max(r.ended_at)::timestamptz AS ended_at, sum(r.trials)::bigint AS trials
FROM campaigns c JOIN runs r ON r.campaign_id = c.id
WHERE c.id IN (SELECT e.campaign_id FROM runs e WHERE e.ended_at >= sqlc.arg(since)::timestamptz AND e.ended_at < sqlc.arg(until)::timestamptz)
GROUP BY c.id HAVING bool_and(r.ended_at IS NOT NULL) AND max(r.ended_at) < sqlc.arg(until)::timestamptz
ORDER BY max(r.ended_at), c.ordinal;

-- name: RunsOfCampaigns :many
SELECT id, campaign_id, radio, topology, state, trials FROM runs WHERE campaign_id = ANY (sqlc.arg(campaigns)::text[]) ORDER BY ordinal;

-- name: JournalsNotSealed :many
-- The journals of ended runs of campaigns whose end has not been delivered.
SELECT n.run_id, n.node, n.role, n.committed_seq FROM run_nodes n JOIN runs r ON r.id = n.run_id
WHERE r.campaign_id = ANY (sqlc.arg(campaigns)::text[]) AND r.prepared_at IS NOT NULL AND r.ended_at IS NOT NULL AND n.ended IS NULL ORDER BY r.ordinal, n.role;

-- name: RunsUnderWay :many
-- Those that were created before a moment and have not ended.
SELECT r.id, r.state, r.message, c.name, c.plan FROM runs r JOIN campaigns c ON c.id = r.campaign_id
WHERE r.ended_at IS NULL AND r.created_at < sqlc.arg(until)::timestamptz ORDER BY r.ordinal;
