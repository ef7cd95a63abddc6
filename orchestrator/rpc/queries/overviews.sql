-- name: NewestOverviews :many
SELECT * FROM run_overview ORDER BY ordinal DESC LIMIT $1;

-- name: CampaignOverviewNewestFirst :many
SELECT * FROM run_overview WHERE campaign_id = $1 ORDER BY ordinal DESC LIMIT $2;

-- name: OpenOverviews :many
SELECT * FROM run_overview WHERE ended_at IS NULL AND (sqlc.arg(campaign_id)::text = '' OR campaign_id = sqlc.arg(campaign_id)::text)
ORDER BY ordinal DESC LIMIT sqlc.arg(count);
