-- name: InsertCampaign :exec
INSERT INTO campaigns (id, name, plan, plan_file, plan_text, plan_hash, caveats)
VALUES ($1, $2, $3, $4, $5, $6, coalesce(sqlc.arg(caveats)::text[], '{}'));

-- name: Campaign :one
SELECT * FROM campaigns WHERE id = $1;

-- name: NewestCampaign :one
SELECT id FROM campaigns ORDER BY ordinal DESC LIMIT 1;

-- name: CampaignsLike :many
SELECT id FROM campaigns WHERE starts_with(id, sqlc.arg(prefix)::text) ORDER BY ordinal LIMIT 2;

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

-- name: NewestOverviews :many
SELECT * FROM run_overview ORDER BY ordinal DESC LIMIT $1;

-- name: CampaignOverviewNewestFirst :many
SELECT * FROM run_overview WHERE campaign_id = $1 ORDER BY ordinal DESC LIMIT $2;

-- name: OpenOverviews :many
SELECT * FROM run_overview WHERE ended_at IS NULL AND (sqlc.arg(campaign_id)::text = '' OR campaign_id = sqlc.arg(campaign_id)::text)
ORDER BY ordinal DESC LIMIT sqlc.arg(count);

-- name: RunsByState :many
SELECT state, count(*) AS n FROM runs GROUP BY state;
