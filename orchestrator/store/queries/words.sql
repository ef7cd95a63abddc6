-- name: ReportWords :one
-- The newest words of a campaign.
SELECT * FROM report_words WHERE campaign_id = $1 ORDER BY version DESC LIMIT 1;

-- name: InsertReportWords :one
-- The words after a version; no row where that is not the newest one. Of two at a time one
-- has the key already.
INSERT INTO report_words (campaign_id, version, title, author, summary, remarks, given_by)
SELECT sqlc.arg(campaign_id)::text, sqlc.arg(after)::integer + 1, sqlc.arg(title)::text, sqlc.arg(author)::text, sqlc.arg(summary)::text, sqlc.arg(remarks)::jsonb, sqlc.arg(given_by)::text
WHERE sqlc.arg(after)::integer = (SELECT coalesce(max(w.version), 0) FROM report_words w WHERE w.campaign_id = sqlc.arg(campaign_id))
ON CONFLICT DO NOTHING
RETURNING *;
