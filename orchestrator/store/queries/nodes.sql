-- name: UpsertNode :exec
INSERT INTO nodes (name, role, version, host, kernel, radio, emulated, radio_address, disk_free_bytes, drivers, incarnation, registered_at, last_contact_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now(), now())
ON CONFLICT (name) DO UPDATE SET role = excluded.role, version = excluded.version, host = excluded.host, kernel = excluded.kernel,
    radio = excluded.radio, emulated = excluded.emulated, radio_address = excluded.radio_address,
    disk_free_bytes = excluded.disk_free_bytes, drivers = excluded.drivers, incarnation = excluded.incarnation,
    -- When this start of the agent was first heard of.
    registered_at = CASE WHEN nodes.incarnation = excluded.incarnation THEN nodes.registered_at ELSE excluded.registered_at END,
    last_contact_at = now();

-- name: Nodes :many
SELECT * FROM nodes ORDER BY name;

-- name: TouchNodes :exec
-- Notes when nodes were heard of, all at once: some hundreds are heard of all the time.
UPDATE nodes n SET last_contact_at = t.at, disk_free_bytes = CASE WHEN t.free > 0 THEN t.free ELSE n.disk_free_bytes END
FROM (SELECT unnest(sqlc.arg(names)::text[]) AS name, unnest(sqlc.arg(ats)::timestamptz[]) AS at, unnest(sqlc.arg(disk_free_bytes)::bigint[]) AS free) AS t
WHERE n.name = t.name;

-- name: LatestClockOffsets :many
SELECT DISTINCT ON (node) node, offset_ns FROM clock_offsets WHERE unknown = '' ORDER BY node, at DESC;
