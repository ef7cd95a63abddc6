-- name: InsertPreflight :exec
INSERT INTO preflights (id, topology, radio, nodes, started_at) VALUES ($1, $2, $3, $4, $5);

-- name: EndPreflight :exec
UPDATE preflights SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL;

-- name: OpenPreflights :many
SELECT * FROM preflights WHERE ended_at IS NULL ORDER BY ordinal;

-- name: Preflight :one
SELECT * FROM preflights WHERE id = $1;

-- name: NewestPreflight :one
SELECT * FROM preflights ORDER BY ordinal DESC LIMIT 1;

-- name: PreflightChecks :many
SELECT * FROM preflight_checks WHERE preflight_id = $1 ORDER BY ordinal;

-- name: InsertPreflightChecks :copyfrom
INSERT INTO preflight_checks (preflight_id, ordinal, node, peer, kind, state, found, expected, meaning, remedy)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: Links :many
SELECT * FROM links ORDER BY from_node, to_node, network;

-- name: KeepLink :exec
INSERT INTO links (from_node, to_node, network, reachable, rtt_ns, loss, probes, probed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (from_node, to_node, network) DO UPDATE SET reachable = excluded.reachable, rtt_ns = excluded.rtt_ns,
    loss = excluded.loss, probes = excluded.probes, probed_at = excluded.probed_at;

-- name: DropOldPreflights :execrows
-- Drops those that have ended and are, for each of their nodes, not among the newest of the same topology.
DELETE FROM preflights WHERE ended_at IS NOT NULL AND id IN (
    SELECT numbered.id FROM (
        SELECT p.id, row_number() OVER (PARTITION BY p.topology, n.node ORDER BY p.ordinal DESC) AS place
        FROM preflights p LEFT JOIN LATERAL unnest(p.nodes) AS n (node) ON true) AS numbered
    GROUP BY numbered.id HAVING min(numbered.place) > sqlc.arg(newest)::bigint);
