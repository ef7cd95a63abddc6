-- name: InsertImport :execrows
-- Nothing where the campaign is here already, its own or imported.
INSERT INTO imports (campaign_id, plan, runs, trials, created_at, place, radios, topologies, sizes_bytes, treatments, content, sha256, origin, file_name, given_by)
SELECT sqlc.arg(campaign_id)::text, sqlc.arg(plan)::text, sqlc.arg(runs)::integer, sqlc.arg(trials)::integer, sqlc.arg(created_at)::timestamptz,
    sqlc.arg(place)::text, sqlc.arg(radios)::text[], sqlc.arg(topologies)::text[], sqlc.arg(sizes_bytes)::bigint[], sqlc.arg(treatments)::text[],
    sqlc.arg(content)::bytea, encode(sha256(sqlc.arg(content)::bytea), 'hex'), sqlc.arg(origin)::text, sqlc.arg(file_name)::text, sqlc.arg(given_by)::text
WHERE NOT EXISTS (SELECT FROM campaigns WHERE id = sqlc.arg(campaign_id)::text)
ON CONFLICT DO NOTHING;

-- name: Imports :many
-- All imports, or one; without their contents.
SELECT campaign_id, plan, runs, trials, created_at, place, radios, topologies, sizes_bytes, treatments, sha256, origin, file_name, given_by, given_at
FROM imports WHERE sqlc.arg(campaign)::text IN ('', campaign_id) ORDER BY given_at DESC, campaign_id;

-- name: DeleteImport :execrows
DELETE FROM imports WHERE campaign_id = $1;
