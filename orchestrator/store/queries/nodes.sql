-- name: UpsertNode :exec
INSERT INTO nodes (name, role, version, host, kernel, radio, emulated, radio_address, disk_free_bytes, drivers, incarnation, virtual, lab, lab_problem, registered_at, last_contact_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, now(), now())
ON CONFLICT (name) DO UPDATE SET role = excluded.role, version = excluded.version, host = excluded.host, kernel = excluded.kernel,
    radio = excluded.radio, emulated = excluded.emulated, radio_address = excluded.radio_address,
    disk_free_bytes = excluded.disk_free_bytes, drivers = excluded.drivers, incarnation = excluded.incarnation, virtual = excluded.virtual,
    lab = excluded.lab, lab_problem = excluded.lab_problem,
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
-- By the order of runs and records: times of nodes whose clocks were wrong are in no order.
SELECT DISTINCT ON (c.node) c.node, c.offset_ns FROM clock_offsets c JOIN runs r ON r.id = c.run_id
WHERE c.unknown = '' ORDER BY c.node, r.ordinal DESC, c.seq DESC;

-- name: PutContactLoss :exec
INSERT INTO contact_losses (run_id, node, lost_at, back_at, restarted) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (run_id, node, lost_at) DO UPDATE SET back_at = excluded.back_at, restarted = excluded.restarted;

-- name: ContactLosses :many
SELECT * FROM contact_losses WHERE run_id = $1 ORDER BY lost_at, node;

-- name: OpenContactLosses :many
-- Those of runs that have not ended.
SELECT l.* FROM contact_losses l JOIN runs r ON r.id = l.run_id WHERE l.back_at IS NULL AND r.ended_at IS NULL ORDER BY l.lost_at;

-- name: NodeIsVirtual :one
SELECT virtual FROM nodes WHERE name = $1;
