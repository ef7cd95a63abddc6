-- name: ImportedCampaign :one
SELECT content, sha256, origin, file_name, given_by, given_at FROM imports WHERE campaign_id = $1;

-- name: ImportsLike :many
SELECT campaign_id FROM imports WHERE starts_with(campaign_id, sqlc.arg(prefix)::text) ORDER BY campaign_id LIMIT 2;
