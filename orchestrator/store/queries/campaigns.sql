-- name: InsertCampaign :exec
INSERT INTO campaigns (id, name, plan, plan_file, plan_text, plan_hash, caveats)
VALUES ($1, $2, $3, $4, $5, $6, coalesce(sqlc.arg(caveats)::text[], '{}'));

-- name: Campaign :one
SELECT * FROM campaigns WHERE id = $1;

-- name: NewestCampaign :one
SELECT id FROM campaigns ORDER BY ordinal DESC LIMIT 1;

-- name: CampaignsLike :many
SELECT id FROM campaigns WHERE starts_with(id, sqlc.arg(prefix)::text) ORDER BY ordinal LIMIT 2;

-- name: CampaignsOfPlans :many
-- Of plans of these names, whose text has these bytes in it; the newest first.
SELECT id FROM campaigns
WHERE plan = ANY (sqlc.arg(plans)::text[]) AND position(sqlc.arg(containing)::bytea IN plan_text) > 0
ORDER BY ordinal DESC LIMIT sqlc.arg(count)::int;

-- name: InsertRun :exec
INSERT INTO runs (id, campaign_id, cell, sheet, sheet_hash, radio, topology, size_bytes, trials, estimated_seconds, treatment_labels, swept)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: InsertRunNode :exec
INSERT INTO run_nodes (run_id, role, node) VALUES ($1, $2, $3);

-- name: InsertTrials :copyfrom
INSERT INTO trials (run_id, trial, iteration, treatment) VALUES ($1, $2, $3, $4);

-- name: NewestRun :one
SELECT id FROM runs ORDER BY ordinal DESC LIMIT 1;

-- name: RunsLike :many
SELECT id, campaign_id FROM runs WHERE starts_with(id, sqlc.arg(prefix)::text) ORDER BY ordinal LIMIT 2;

-- name: RunSheet :one
SELECT sheet FROM runs WHERE id = $1;

-- name: RunOverview :one
SELECT * FROM run_overview WHERE id = $1;

-- name: CampaignOverview :many
SELECT * FROM run_overview WHERE campaign_id = $1 ORDER BY cell;

-- name: OpenRunOverviews :many
-- Those that are first in the order of runs.
SELECT * FROM run_overview WHERE ended_at IS NULL ORDER BY ordinal LIMIT sqlc.arg(most)::integer;

-- name: RunSignature :one
SELECT * FROM run_signatures WHERE run_id = $1;

-- name: RunNodes :many
SELECT * FROM run_nodes WHERE run_id = $1 ORDER BY role;

-- name: OutageRecords :many
-- What the nodes that do not lead recorded of their listeners, of their radios' interfaces
-- and of times at which their agents did not run, with the time of the record before that is no step of the clock.
SELECT j.node, n.role, j.seq, j.at, j.type, j.body, coalesce(p.at, j.at)::timestamptz AS before, coalesce(p.seq, j.seq)::bigint AS before_seq
FROM journal j JOIN run_nodes n ON n.run_id = j.run_id AND n.node = j.node
LEFT JOIN LATERAL (
    SELECT x.at, x.seq FROM journal x
    WHERE x.run_id = j.run_id AND x.node = j.node AND x.seq < j.seq AND x.type <> 'clock-stepped' ORDER BY x.seq DESC LIMIT 1) p ON true
WHERE j.run_id = $1 AND n.role <> 'client' AND j.type IN ('run-resumed', 'listener-ready', 'listener-failed', 'agent-stopped', 'interface-failed', 'interface-ready')
ORDER BY j.node, j.seq;
