-- name: Nodes :many
SELECT * FROM nodes ORDER BY name;

-- name: TouchNodes :exec
-- Notes when nodes were heard of, all at once: some hundreds are heard of all the time.
UPDATE nodes n SET last_contact_at = t.at, disk_free_bytes = CASE WHEN t.free > 0 THEN t.free ELSE n.disk_free_bytes END
FROM (SELECT unnest(sqlc.arg(names)::text[]) AS name, unnest(sqlc.arg(ats)::timestamptz[]) AS at, unnest(sqlc.arg(disk_free_bytes)::bigint[]) AS free) AS t
WHERE n.name = t.name;

-- name: PutContactLoss :exec
INSERT INTO contact_losses (run_id, node, lost_at, back_at, restarted) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (run_id, node, lost_at) DO UPDATE SET back_at = excluded.back_at, restarted = excluded.restarted;

-- name: OpenContactLosses :many
-- Those of runs that have not ended.
SELECT l.* FROM contact_losses l JOIN runs r ON r.id = l.run_id WHERE l.back_at IS NULL AND r.ended_at IS NULL ORDER BY l.lost_at;
